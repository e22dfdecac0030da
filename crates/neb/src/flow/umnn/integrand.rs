//! The positive integrand f(t, h) = ELU(net(t, h)) + 1 and its mean over [0, v].
//!
//! x = v · F + β with F = Σ_n w_n f(τ_n·v, h) the mean of f over [0, v]. The network's input is t followed by h;
//! what h contributes to its first layer is the same at every node and computed once. With p the network's
//! output, f = p + 1 above zero and e^p below, so log f = log(1 + p) or p itself: nothing underflows.

use fearless_simd::prelude::*;
use fearless_simd::{Simd, dispatch, f32x16};

use super::quadrature::Rule;
use crate::kernel::{Lane, level, math};
use crate::nn::mlp::{Mlp, MlpGradient, MlpRecord, MlpTape};

#[inline(always)]
fn load<S: Simd>(simd: S, lane: &Lane) -> f32x16<S> {
    f32x16::load_array_ref(simd, &lane.0)
}

/// f(p) and f′(p).
#[inline(always)]
fn elu_plus_one<S: Simd>(p: f32x16<S>) -> (f32x16<S>, f32x16<S>) {
    let below = math::exp(p.min(0.0));
    (p.max(0.0) + below, below_or_one(p, below))
}

#[inline(always)]
fn below_or_one<S: Simd>(p: f32x16<S>, below: f32x16<S>) -> f32x16<S> {
    p.simd_gt(0.0).select(f32x16::splat(p.simd, 1.0), below)
}

/// log f(p) and its slope.
#[inline(always)]
fn log_elu_plus_one<S: Simd>(p: f32x16<S>) -> (f32x16<S>, f32x16<S>) {
    let one = f32x16::splat(p.simd, 1.0);
    let above = p.max(0.0) + 1.0;
    (math::log(above) + p.min(0.0), one / above)
}

/// The network at the nodes τ_n·`limit`: its raw outputs p_n. With records, keeps what [`backward`] needs.
pub(super) fn evaluate(
    net: &Mlp,
    rule: &Rule,
    limit: &Lane,
    share: &[Lane],
    raw: &mut [Lane],
    tape: &mut MlpTape,
    mut records: Option<&mut [MlpRecord]>,
) {
    for (n, raw) in raw.iter_mut().enumerate() {
        let t = [scaled(limit, &rule.nodes[n])];
        let out = std::slice::from_mut(raw);
        if let Some(records) = &mut records {
            tape.swap_record(&mut records[n]);
            net.forward(&t, share, out, tape, true);
            tape.swap_record(&mut records[n]);
        } else {
            net.forward(&t, share, out, tape, false);
        }
    }
}

/// The mean F of f over the nodes, and f at the upper limit (node 0).
pub(super) fn mean_and_end(rule: &Rule, raw: &[Lane]) -> (Lane, Lane) {
    dispatch!(level(), simd => {
        let end = elu_plus_one(load(simd, &raw[0])).0;
        let mut mean = end * load(simd, &rule.weights[0]);
        for (raw, weight) in raw.iter().zip(&rule.weights).skip(1) {
            mean = elu_plus_one(load(simd, raw)).0.mul_add(load(simd, weight), mean);
        }
        (Lane(mean.to_array()), Lane(end.to_array()))
    })
}

/// Adds log f at the upper limit, from the raw output there.
pub(super) fn add_log_end(raw: &Lane, log_det: &mut Lane) {
    dispatch!(level(), simd => {
        let log = log_elu_plus_one(load(simd, raw)).0;
        (load(simd, log_det) + log).store_array(&mut log_det.0);
    });
}

/// One integral's way back.
pub(super) struct Back<'a> {
    /// The network.
    pub net: &'a Mlp,
    /// The rule.
    pub rule: &'a Rule,
    /// The upper limit.
    pub limit: &'a Lane,
    /// The raw outputs [`evaluate`] gave.
    pub raw: &'a [Lane],
}

impl Back<'_> {
    /// From the gradients with respect to the mean F and to log f at the limit: adds to `d_share` and the weights, and
    /// returns the gradient with respect to the limit *through log f alone*; that of v·F is Leibniz' f.
    pub(super) fn run(
        &self,
        d_mean: &Lane,
        d_log_end: &Lane,
        tape: &mut MlpTape,
        records: &mut [MlpRecord],
        d_share: &mut [Lane],
        mut gradient: Option<&mut MlpGradient>,
    ) -> Lane {
        for (n, record) in records.iter_mut().enumerate() {
            let weight = &self.rule.weights[n];
            if *weight == Lane::ZERO {
                continue;
            }
            let d_raw = dispatch!(level(), simd => {
                let slope = elu_plus_one(load(simd, &self.raw[n])).1;
                Lane((load(simd, d_mean) * load(simd, weight) * slope).to_array())
            });
            self.node(n, d_raw, tape, record, d_share, gradient.as_deref_mut());
        }
        if *d_log_end == Lane::ZERO {
            return Lane::ZERO;
        }
        let d_raw = dispatch!(level(), simd => {
            let slope = log_elu_plus_one(load(simd, &self.raw[0])).1;
            Lane((load(simd, d_log_end) * slope).to_array())
        });
        self.node(0, d_raw, tape, &mut records[0], d_share, gradient)
    }

    /// Back through node n; the gradient with respect to its t.
    fn node(
        &self,
        n: usize,
        d_raw: Lane,
        tape: &mut MlpTape,
        record: &mut MlpRecord,
        d_share: &mut [Lane],
        gradient: Option<&mut MlpGradient>,
    ) -> Lane {
        let t = [scaled(self.limit, &self.rule.nodes[n])];
        let mut d_t = [Lane::ZERO];
        tape.swap_record(record);
        self.net
            .backward(&t, &[d_raw], tape, &mut d_t, d_share, gradient);
        tape.swap_record(record);
        d_t[0]
    }
}

fn scaled(limit: &Lane, node: &Lane) -> Lane {
    Lane(std::array::from_fn(|lane| limit.0[lane] * node.0[lane]))
}
