//! Conditional Gaussian mixture: q(y|x) = Σ_c π_c N(y; μ_c, (A_cᵀA_c)⁻¹), all of π, μ, A from one network of x.
//!
//! A_c is lower triangular, A_ij = e^{a_i} b_ij with b_ii = 1: each y_i is regressed on those before it (−b), and what is
//! left has deviation e^{−a_i}. However narrow the density, b stays of the size of a slope, which a network can learn; the
//! entries of A themselves would not. The parameters depend on x alone, so they are the model's share: a pair costs only the
//! triangles, however deep the network.

use fearless_simd::prelude::*;
use fearless_simd::{Simd, dispatch, f32x16};

use crate::density::ConditionalDensity;
use crate::flow::head::{below_diagonal, triangle_parameters};
use crate::kernel::{LANES, Lane, level, math};
use crate::nn::activation::Activation;
use crate::nn::mlp::{Mlp, MlpGradient, MlpTape, Shape};
use crate::nn::parameters::Layout;
use crate::{Rows, Stream};

const HALF_LOG_TWO_PI: f32 = 0.918_938_5;
/// Log of 1/deviation of each of several components at the start.
const INITIAL_LOG_PRECISION: f32 = 1.0;

/// A mixture of Gaussians whose parameters are functions of the context.
#[derive(Clone, Debug)]
pub(crate) struct Mixture {
    dim: usize,
    components: usize,
    net: Mlp,
    layout: Layout,
    parameters: Vec<f32>,
}

/// Memory for one tile's passes through a [`Mixture`].
#[derive(Debug)]
pub(crate) struct MixtureTape {
    net: MlpTape,
    gradient: Option<MlpGradient>,
    inner: Vec<Lane>,
    d_inner: Vec<Lane>,
    raw: Vec<Lane>,
    d_raw: Vec<Lane>,
    share: Vec<Lane>,
    sums: Vec<Lane>,
    scratch: Scratch,
}

/// What one pass over v leaves: log of each component's term, then v − μ and u = A(v − μ) of each.
#[derive(Debug)]
struct Scratch {
    v: Vec<Lane>,
    logs: Vec<Lane>,
    centred: Vec<Lane>,
    scaled: Vec<Lane>,
}

impl Mixture {
    /// Lays out a mixture; its parameters are zero until drawn or loaded.
    pub(crate) fn new(dim: usize, context: usize, components: usize, hidden: &[usize]) -> Self {
        let mut layout = Layout::default();
        let shape = Shape {
            free: 0,
            context,
            hidden: hidden.to_vec(),
            outputs: components * (1 + triangle_parameters(dim)),
            activation: Activation::Silu,
        };
        let net = Mlp::new(shape, &mut layout, |l| format!("net.{}", 2 * l));
        let parameters = vec![0.0; layout.len()];
        let mut mixture = Self {
            dim,
            components,
            net,
            layout,
            parameters,
        };
        mixture.refresh();
        mixture
    }

    /// Draws initial parameters: several components start narrow, their means spread over N(0, 1), lest they fall together.
    pub(crate) fn initialise(&mut self, stream: &mut Stream) {
        self.net.initialise(0.5, stream, &mut self.parameters);
        if self.components > 1 {
            let tensors = self.layout.tensors();
            let bias = tensors.last().expect("a network has a bias").range();
            let per = triangle_parameters(self.dim);
            for c in 0..self.components {
                let first = bias.start + self.components + c * per;
                let (means, scales) =
                    self.parameters[first..first + 2 * self.dim].split_at_mut(self.dim);
                means.fill_with(|| stream.normal() as f32);
                scales.fill(INITIAL_LOG_PRECISION);
            }
        }
        self.refresh();
    }

    /// The raw parameters of component c: μ, a, and b below the diagonal.
    fn component<'a>(&self, raw: &'a [Lane], c: usize) -> &'a [Lane] {
        let per = triangle_parameters(self.dim);
        let first = self.components + c * per;
        &raw[first..first + per]
    }

    /// Lanes per component of the prepared form: constant, μ, and A row by row with its diagonal.
    fn prepared_len(&self) -> usize {
        1 + self.dim + self.dim * (self.dim + 1) / 2
    }

    /// Lanes per component of the sums that the gradient is made from.
    fn sums_len(&self) -> usize {
        1 + 2 * self.dim + self.dim * (self.dim - 1) / 2
    }

    fn run_net(&self, context: &[Lane], raw: &mut [Lane], tape: &mut MixtureTape, taped: bool) {
        self.net.share(context, &mut tape.inner);
        self.net
            .forward(&[], &tape.inner, raw, &mut tape.net, taped);
    }

    fn run_taped(&self, context: &[Lane], tape: &mut MixtureTape) {
        let mut raw = std::mem::take(&mut tape.raw);
        self.run_net(context, &mut raw, tape, true);
        tape.raw = raw;
    }

    /// Raw parameters ↦ prepared ones: log π N = constant − ½|A(v − μ)|².
    #[inline(always)]
    fn prepare<S: Simd>(&self, simd: S, raw: &[Lane], share: &mut [Lane]) {
        let log_norm = self.log_norm(simd, raw);
        let dim = self.dim;
        for (c, out) in share.chunks_exact_mut(self.prepared_len()).enumerate() {
            let parameters = self.component(raw, c);
            let mut constant = load(simd, &raw[c]) - log_norm - HALF_LOG_TWO_PI * dim as f32;
            let (head, triangle) = out.split_at_mut(1 + dim);
            let mut at = 0;
            for i in 0..dim {
                let log_scale = load(simd, &parameters[dim + i]);
                let scale = math::exp(log_scale);
                constant += log_scale;
                head[1 + i] = parameters[i];
                for j in 0..=i {
                    let a = if j == i {
                        scale
                    } else {
                        scale * load(simd, &parameters[below_diagonal(dim, i, j)])
                    };
                    a.store_array(&mut triangle[at].0);
                    at += 1;
                }
            }
            constant.store_array(&mut head[0].0);
        }
    }

    /// log Σ_c e^logit.
    #[inline(always)]
    fn log_norm<S: Simd>(&self, simd: S, raw: &[Lane]) -> f32x16<S> {
        let mut largest = load(simd, &raw[0]);
        for logit in &raw[1..self.components] {
            largest = largest.max(load(simd, logit));
        }
        let mut sum = f32x16::splat(simd, 0.0);
        for logit in &raw[..self.components] {
            sum += math::exp(load(simd, logit) - largest);
        }
        largest + math::log(sum)
    }

    /// log q(v|c) from prepared parameters; leaves the terms of each component in the scratch memory.
    #[inline(always)]
    fn log_prob_on<S: Simd>(
        &self,
        simd: S,
        v: &[Lane],
        share: &[Lane],
        scratch: &mut Scratch,
    ) -> f32x16<S> {
        let dim = self.dim;
        let mut largest = f32x16::splat(simd, f32::MIN);
        let terms = scratch.centred.chunks_exact_mut(dim);
        let terms = terms.zip(scratch.scaled.chunks_exact_mut(dim));
        let components = share.chunks_exact(self.prepared_len()).zip(terms);
        for ((parameters, (centred, scaled)), out) in components.zip(&mut scratch.logs) {
            let (head, triangle) = parameters.split_at(1 + dim);
            let mut square = f32x16::splat(simd, 0.0);
            let mut at = 0;
            for i in 0..dim {
                let difference = load(simd, &v[i]) - load(simd, &head[1 + i]);
                difference.store_array(&mut centred[i].0);
                let mut u = load(simd, &triangle[at + i]) * difference;
                for j in 0..i {
                    u = load(simd, &triangle[at + j]).mul_add(load(simd, &centred[j]), u);
                }
                at += i + 1;
                u.store_array(&mut scaled[i].0);
                square = u.mul_add(u, square);
            }
            let log = square.mul_add(-0.5, load(simd, &head[0]));
            largest = largest.max(log);
            log.store_array(&mut out.0);
        }
        if self.components == 1 {
            return largest;
        }
        let mut sum = f32x16::splat(simd, 0.0);
        for log in &scratch.logs {
            sum += math::exp(load(simd, log) - largest);
        }
        largest + math::log(sum)
    }

    /// Adds one v's part to the sums, with s = weight · share of the component: s, s u_i, s u_i², and s u_i (v − μ)_j for
    /// j < i. Returns log q.
    #[inline(always)]
    fn accumulate<S: Simd>(
        &self,
        simd: S,
        v: &[Lane],
        weight: &Lane,
        share: &[Lane],
        sums: &mut [Lane],
        scratch: &mut Scratch,
    ) -> f32x16<S> {
        let dim = self.dim;
        let value = self.log_prob_on(simd, v, share, scratch);
        let weight = load(simd, weight);
        let terms = scratch.centred.chunks_exact(dim);
        let terms = terms.zip(scratch.scaled.chunks_exact(dim));
        let components = sums.chunks_exact_mut(self.sums_len()).zip(terms);
        for ((sums, (centred, scaled)), log) in components.zip(&scratch.logs) {
            let s = weight * math::exp(load(simd, log) - value);
            let (head, slopes) = sums.split_at_mut(1 + 2 * dim);
            add(simd, &mut head[0], s);
            let mut at = 0;
            for i in 0..dim {
                let u = load(simd, &scaled[i]);
                let pull = s * u;
                add(simd, &mut head[1 + i], pull);
                add(simd, &mut head[1 + dim + i], pull * u);
                for j in 0..i {
                    add(simd, &mut slopes[at + j], pull * load(simd, &centred[j]));
                }
                at += i;
            }
        }
        value
    }

    /// From the sums to the gradient of Σ weight · log q with respect to the raw parameters, and to v if there is but one.
    #[inline(always)]
    fn gradient_from_sums<S: Simd>(
        &self,
        simd: S,
        raw: &[Lane],
        share: &[Lane],
        sums: &[Lane],
        d_raw: &mut [Lane],
        d_v: &mut [Lane],
    ) {
        let (dim, components) = (self.dim, self.components);
        let (logits, d_parameters) = d_raw.split_at_mut(components);
        let log_norm = self.log_norm(simd, raw);
        let mut total = f32x16::splat(simd, 0.0);
        for sums in sums.chunks_exact(self.sums_len()) {
            total += load(simd, &sums[0]);
        }
        d_v.fill(Lane::ZERO);
        let parts = d_parameters.chunks_exact_mut(triangle_parameters(dim));
        let parts = parts.zip(share.chunks_exact(self.prepared_len()));
        let sums = sums.chunks_exact(self.sums_len());
        for (c, ((out, share), sums)) in parts.zip(sums).enumerate() {
            let (triangle, slopes) = (&share[1 + dim..], &sums[1 + 2 * dim..]);
            let s = load(simd, &sums[0]);
            let prior = math::exp(load(simd, &raw[c]) - log_norm);
            (s - prior * total).store_array(&mut logits[c].0);
            out[..dim].fill(Lane::ZERO);
            for i in 0..dim {
                let row = &triangle[i * (i + 1) / 2..=i * (i + 1) / 2 + i];
                let pull = load(simd, &sums[1 + i]);
                for (j, a) in row.iter().enumerate() {
                    let pull = load(simd, a) * pull;
                    add(simd, &mut out[j], pull);
                    add(simd, &mut d_v[j], -pull);
                }
                let square = load(simd, &sums[1 + dim + i]);
                (s - square).store_array(&mut out[dim + i].0);
                let scale = -load(simd, &row[i]);
                for j in 0..i {
                    let slope = scale * load(simd, &slopes[i * (i - 1) / 2 + j]);
                    slope.store_array(&mut out[below_diagonal(dim, i, j)].0);
                }
            }
        }
    }

    /// From the gradient with respect to the raw parameters to those with respect to context and weights.
    fn backward_net(
        &self,
        context: &[Lane],
        tape: &mut MixtureTape,
        d_context: &mut [Lane],
        learn: bool,
    ) {
        if learn && tape.gradient.is_none() {
            tape.gradient = Some(self.net.new_gradient());
        }
        let mut gradient = if learn { tape.gradient.as_mut() } else { None };
        tape.d_inner.fill(Lane::ZERO);
        d_context.fill(Lane::ZERO);
        let d_inner = &mut tape.d_inner;
        self.net.backward(
            &[],
            &tape.d_raw,
            &mut tape.net,
            &mut [],
            d_inner,
            gradient.as_deref_mut(),
        );
        self.net
            .backward_share(context, d_inner, &mut tape.net, d_context, gradient);
    }
}

#[inline(always)]
fn load<S: Simd>(simd: S, lane: &Lane) -> f32x16<S> {
    f32x16::load_array_ref(simd, &lane.0)
}

#[inline(always)]
fn add<S: Simd>(simd: S, lane: &mut Lane, value: f32x16<S>) {
    (load(simd, lane) + value).store_array(&mut lane.0);
}

impl ConditionalDensity for Mixture {
    type Workspace = MixtureTape;

    fn dim(&self) -> usize {
        self.dim
    }

    fn context(&self) -> usize {
        self.net.shape().context
    }

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn parameters(&self) -> &[f32] {
        &self.parameters
    }

    fn parameters_mut(&mut self) -> &mut [f32] {
        &mut self.parameters
    }

    fn refresh(&mut self) {
        self.net.pack(&self.parameters);
    }

    fn workspace(&self) -> MixtureTape {
        let lanes = |n: usize| vec![Lane::ZERO; n];
        let outputs = self.net.shape().outputs;
        MixtureTape {
            net: self.net.new_tape(),
            gradient: None,
            inner: lanes(self.net.share_len()),
            d_inner: lanes(self.net.share_len()),
            raw: lanes(outputs),
            d_raw: lanes(outputs),
            share: lanes(self.share_len()),
            sums: lanes(self.components * self.sums_len()),
            scratch: Scratch {
                v: lanes(self.dim),
                logs: lanes(self.components),
                centred: lanes(self.components * self.dim),
                scaled: lanes(self.components * self.dim),
            },
        }
    }

    fn share_len(&self) -> usize {
        self.components * self.prepared_len()
    }

    fn share(&self, context: &[Lane], share: &mut [Lane], tape: &mut MixtureTape) {
        let mut raw = std::mem::take(&mut tape.raw);
        self.run_net(context, &mut raw, tape, false);
        dispatch!(level(), simd => self.prepare(simd, &raw, share));
        tape.raw = raw;
    }

    fn log_prob_shared(&self, v: &[Lane], share: &[Lane], tape: &mut MixtureTape) -> Lane {
        let scratch = &mut tape.scratch;
        dispatch!(level(), simd => Lane(self.log_prob_on(simd, v, share, scratch).to_array()))
    }

    fn log_prob_rows(&self, rows: Rows, share: &[Lane], tape: &mut MixtureTape, out: &mut [Lane]) {
        let scratch = &mut tape.scratch;
        let mut v = std::mem::take(&mut scratch.v);
        dispatch!(level(), simd => {
            for (row, out) in out.iter_mut().enumerate() {
                for (lane, &value) in v.iter_mut().zip(rows.row(row)) {
                    f32x16::splat(simd, value).store_array(&mut lane.0);
                }
                self.log_prob_on(simd, &v, share, scratch).store_array(&mut out.0);
            }
        });
        scratch.v = v;
    }

    fn log_prob(&self, v: &[Lane], context: &[Lane], tape: &mut MixtureTape) -> Lane {
        let mut share = std::mem::take(&mut tape.share);
        self.share(context, &mut share, tape);
        let value = self.log_prob_shared(v, &share, tape);
        tape.share = share;
        value
    }

    fn log_prob_backward(
        &self,
        v: &[Lane],
        context: &[Lane],
        weight: &Lane,
        tape: &mut MixtureTape,
        d_v: &mut [Lane],
        d_context: &mut [Lane],
        learn: bool,
    ) -> Lane {
        self.run_taped(context, tape);
        let MixtureTape {
            raw,
            d_raw,
            share,
            sums,
            scratch,
            ..
        } = tape;
        let value = dispatch!(level(), simd => {
            self.prepare(simd, raw, share);
            sums.fill(Lane::ZERO);
            let value = self.accumulate(simd, v, weight, share, sums, scratch);
            self.gradient_from_sums(simd, raw, share, sums, d_raw, d_v);
            Lane(value.to_array())
        });
        self.backward_net(context, tape, d_context, learn);
        value
    }

    fn gradient_of_few(
        &self,
        context: &[Lane],
        few: &mut dyn FnMut(&mut [Lane], &mut Lane) -> bool,
        tape: &mut MixtureTape,
        d_context: &mut [Lane],
    ) -> bool {
        self.run_taped(context, tape);
        let MixtureTape {
            raw,
            d_raw,
            share,
            sums,
            scratch,
            ..
        } = tape;
        let mut v = std::mem::take(&mut scratch.v);
        v.fill(Lane::ZERO);
        let mut weight = Lane::ZERO;
        dispatch!(level(), simd => {
            self.prepare(simd, raw, share);
            sums.fill(Lane::ZERO);
            while few(&mut v, &mut weight) {
                self.accumulate(simd, &v, &weight, share, sums, scratch);
            }
            self.gradient_from_sums(simd, raw, share, sums, d_raw, &mut v);
        });
        scratch.v = v;
        self.backward_net(context, tape, d_context, false);
        true
    }

    fn collect_gradient(&self, tape: &mut MixtureTape, flat: &mut [f32]) {
        if let Some(gradient) = &mut tape.gradient {
            self.net.unpack_gradient(gradient, flat);
            gradient.clear();
        }
    }

    fn sample(&self, noise: &mut [Lane], choice: &Lane, context: &[Lane], tape: &mut MixtureTape) {
        let mut raw = std::mem::take(&mut tape.raw);
        self.run_net(context, &mut raw, tape, false);
        for lane in 0..LANES {
            let logit = |c: usize| f64::from(raw[c].0[lane]);
            let largest = (0..self.components).map(logit).fold(f64::MIN, f64::max);
            let total: f64 = (0..self.components)
                .map(|c| (logit(c) - largest).exp())
                .sum();
            let mut left = f64::from(choice.0[lane]) * total;
            let mut chosen = self.components - 1;
            for c in 0..self.components {
                left -= (logit(c) - largest).exp();
                if left < 0.0 {
                    chosen = c;
                    break;
                }
            }
            let parameters = self.component(&raw, chosen);
            let at = |p: usize| parameters[p].0[lane];
            for i in 0..self.dim {
                let (before, rest) = noise.split_at_mut(i);
                let mut value = rest[0].0[lane] * (-at(self.dim + i)).exp() + at(i);
                for (j, v) in before.iter().enumerate() {
                    value -= at(below_diagonal(self.dim, i, j)) * (v.0[lane] - at(j));
                }
                rest[0].0[lane] = value;
            }
        }
        tape.raw = raw;
    }
}
