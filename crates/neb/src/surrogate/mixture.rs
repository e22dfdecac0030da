//! Conditional Gaussian mixture: q(y|x) = Σ_c π_c N(y; μ_c, (A_cᵀA_c)⁻¹), all of π, μ, A from one network of x.
//!
//! A_c is lower triangular with A_ii = e^{a_i}. The parameters depend on x alone, so they are the model's share:
//! a pair costs only the triangles, however deep the network, and the density may be arbitrarily narrow.

use fearless_simd::prelude::*;
use fearless_simd::{Simd, dispatch, f32x16};

use crate::Stream;
use crate::density::ConditionalDensity;
use crate::flow::head::{below_diagonal, triangle_parameters};
use crate::kernel::{LANES, Lane, level, math};
use crate::nn::activation::Activation;
use crate::nn::mlp::{Mlp, MlpGradient, MlpTape, Shape};
use crate::nn::parameters::Layout;

const HALF_LOG_TWO_PI: f32 = 0.918_938_5;

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
    share: Vec<Lane>,
    d_share: Vec<Lane>,
    log_weighted: Vec<Lane>,
    centred: Vec<Lane>,
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

    /// Draws initial parameters, the components' means spread over N(0, 1).
    pub(crate) fn initialise(&mut self, stream: &mut Stream) {
        self.net.initialise(0.5, stream, &mut self.parameters);
        if self.components > 1 {
            let bias = self
                .layout
                .tensors()
                .last()
                .expect("a network has a bias")
                .range();
            let per = triangle_parameters(self.dim);
            for c in 0..self.components {
                let first = bias.start + self.components + c * per;
                for value in &mut self.parameters[first..first + self.dim] {
                    *value = stream.normal() as f32;
                }
            }
        }
        self.refresh();
    }

    /// The parameters of component c within the share: μ, a, and the triangle.
    fn component<'a>(&self, share: &'a [Lane], c: usize) -> &'a [Lane] {
        let per = triangle_parameters(self.dim);
        let first = self.components + c * per;
        &share[first..first + per]
    }

    fn compute_share(
        &self,
        context: &[Lane],
        share: &mut [Lane],
        tape: &mut MixtureTape,
        taped: bool,
    ) {
        self.net.share(context, &mut tape.inner);
        self.net
            .forward(&[], &tape.inner, share, &mut tape.net, taped);
    }
}

#[inline(always)]
fn load<S: Simd>(simd: S, lane: &Lane) -> f32x16<S> {
    f32x16::load_array_ref(simd, &lane.0)
}

/// log N(v; component), keeping v − μ and u = A(v − μ).
#[inline(always)]
fn log_component<S: Simd>(
    simd: S,
    parameters: &[Lane],
    v: &[Lane],
    mut keep: impl FnMut(usize, f32x16<S>, f32x16<S>),
) -> f32x16<S> {
    let dim = v.len();
    let mut log = f32x16::splat(simd, -HALF_LOG_TWO_PI * dim as f32);
    for i in 0..dim {
        let difference = load(simd, &v[i]) - load(simd, &parameters[i]);
        let scale = load(simd, &parameters[dim + i]);
        let mut u = math::exp(scale) * difference;
        for j in 0..i {
            let centred = load(simd, &v[j]) - load(simd, &parameters[j]);
            let a = load(simd, &parameters[below_diagonal(dim, i, j)]);
            u = a.mul_add(centred, u);
        }
        keep(i, difference, u);
        log += scale - u * u * 0.5;
    }
    log
}

impl Mixture {
    /// log Σ_c π_c N_c; `log_weighted[c]` = logit_c + log N_c.
    #[inline(always)]
    fn log_prob_on<S: Simd>(
        &self,
        simd: S,
        v: &[Lane],
        share: &[Lane],
        log_weighted: &mut [Lane],
    ) -> f32x16<S> {
        let mut largest = f32x16::splat(simd, f32::MIN);
        let mut largest_logit = f32x16::splat(simd, f32::MIN);
        for (c, out) in log_weighted.iter_mut().enumerate() {
            let logit = load(simd, &share[c]);
            let log = logit + log_component(simd, self.component(share, c), v, |_, _, _| {});
            log.store_array(&mut out.0);
            largest = largest.max(log);
            largest_logit = largest_logit.max(logit);
        }
        let mut sum = f32x16::splat(simd, 0.0);
        let mut logits = sum;
        for (c, log) in log_weighted.iter().enumerate() {
            sum += math::exp(load(simd, log) - largest);
            logits += math::exp(load(simd, &share[c]) - largest_logit);
        }
        largest + math::log(sum) - largest_logit - math::log(logits)
    }

    /// The gradient of Σ weight · log q with respect to the share (overwritten) and v (overwritten).
    #[inline(always)]
    fn backward_on<S: Simd>(
        &self,
        simd: S,
        v: &[Lane],
        weight: &Lane,
        tape: &mut MixtureTape,
        d_v: &mut [Lane],
    ) -> f32x16<S> {
        let value = self.log_prob_on(simd, v, &tape.share, &mut tape.log_weighted);
        let weight = load(simd, weight);
        let zero = f32x16::splat(simd, 0.0);
        let dim = self.dim;
        let mut largest = f32x16::splat(simd, f32::MIN);
        for c in 0..self.components {
            largest = largest.max(load(simd, &tape.share[c]));
        }
        let mut logits = zero;
        for c in 0..self.components {
            logits += math::exp(load(simd, &tape.share[c]) - largest);
        }
        let log_norm = largest + math::log(logits);
        for lane in d_v.iter_mut() {
            zero.store_array(&mut lane.0);
        }
        let per = triangle_parameters(dim);
        for c in 0..self.components {
            let prior = math::exp(load(simd, &tape.share[c]) - log_norm);
            let log = load(simd, &tape.log_weighted[c]) - log_norm;
            let posterior = math::exp(log - value);
            (weight * (posterior - prior)).store_array(&mut tape.d_share[c].0);
            let share = weight * posterior;
            let first = self.components + c * per;
            let parameters = &tape.share[first..first + per];
            let d_parameters = &mut tape.d_share[first..first + per];
            let (centred, us) = tape.centred.split_at_mut(dim);
            log_component(simd, parameters, v, |i, difference, u| {
                difference.store_array(&mut centred[i].0);
                u.store_array(&mut us[i].0);
            });
            for j in 0..dim {
                let centre = load(simd, &centred[j]);
                let u = load(simd, &us[j]);
                let scaled = u * math::exp(load(simd, &parameters[dim + j]));
                (share * (f32x16::splat(simd, 1.0) - scaled * centre))
                    .store_array(&mut d_parameters[dim + j].0);
                let mut pull = scaled;
                for i in j + 1..dim {
                    let at = below_diagonal(dim, i, j);
                    let u = load(simd, &us[i]);
                    (-(share * u * centre)).store_array(&mut d_parameters[at].0);
                    pull = u.mul_add(load(simd, &parameters[at]), pull);
                }
                let pull = share * pull;
                pull.store_array(&mut d_parameters[j].0);
                (load(simd, &d_v[j]) - pull).store_array(&mut d_v[j].0);
            }
        }
        value
    }
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
        MixtureTape {
            net: self.net.new_tape(),
            gradient: None,
            inner: lanes(self.net.share_len()),
            d_inner: lanes(self.net.share_len()),
            share: lanes(self.share_len()),
            d_share: lanes(self.share_len()),
            log_weighted: lanes(self.components),
            centred: lanes(2 * self.dim),
        }
    }

    fn share_len(&self) -> usize {
        self.net.shape().outputs
    }

    fn share(&self, context: &[Lane], share: &mut [Lane], tape: &mut MixtureTape) {
        self.compute_share(context, share, tape, false);
    }

    fn log_prob_shared(&self, v: &[Lane], share: &[Lane], tape: &mut MixtureTape) -> Lane {
        dispatch!(level(), simd => {
            Lane(self.log_prob_on(simd, v, share, &mut tape.log_weighted).to_array())
        })
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
        let mut share = std::mem::take(&mut tape.share);
        self.compute_share(context, &mut share, tape, true);
        tape.share = share;
        let value = dispatch!(level(), simd => {
            Lane(self.backward_on(simd, v, weight, tape, d_v).to_array())
        });
        if learn && tape.gradient.is_none() {
            tape.gradient = Some(self.net.new_gradient());
        }
        let gradient = |tape: &mut MixtureTape| tape.gradient.take().filter(|_| learn);
        let mut kept = gradient(tape);
        tape.d_inner.fill(Lane::ZERO);
        d_context.fill(Lane::ZERO);
        self.net.backward(
            &[],
            &tape.d_share,
            &mut tape.net,
            &mut [],
            &mut tape.d_inner,
            kept.as_mut(),
        );
        self.net.backward_share(
            context,
            &tape.d_inner,
            &mut tape.net,
            d_context,
            kept.as_mut(),
        );
        tape.gradient = kept;
        value
    }

    fn collect_gradient(&self, tape: &mut MixtureTape, flat: &mut [f32]) {
        if let Some(gradient) = &mut tape.gradient {
            self.net.unpack_gradient(gradient, flat);
            gradient.clear();
        }
    }

    fn sample(&self, noise: &mut [Lane], choice: &Lane, context: &[Lane], tape: &mut MixtureTape) {
        let mut share = std::mem::take(&mut tape.share);
        self.compute_share(context, &mut share, tape, false);
        for lane in 0..LANES {
            let logit = |c: usize| f64::from(share[c].0[lane]);
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
            let parameters = self.component(&share, chosen);
            let at = |p: usize| parameters[p].0[lane];
            for i in 0..self.dim {
                let mut rest = noise[i].0[lane];
                for j in 0..i {
                    rest -= at(below_diagonal(self.dim, i, j)) * (noise[j].0[lane] - at(j));
                }
                noise[i].0[lane] = rest * (-at(self.dim + i)).exp() + at(i);
            }
        }
        tape.share = share;
    }
}
