//! Conditional Gaussian head: u = A(x)·(v − μ(x)) with A lower triangular, both from one network of x.
//!
//! As the first map of a flow it takes up location, scale and correlation, however narrow: a coupling layer's
//! clamped scale alone could not (four layers with α = 1.9 cap log q of a 2-D y at 5.8).
//! A_ij = e^{a_i} b_ij with b_ii = 1: what is left of v_i after regression on those before it, in units of its deviation. So
//! log |∂u/∂v| = Σ a_i, and b stays of the size of a slope however narrow the law. Its share is the network's whole output:
//! v costs only the triangle.

use fearless_simd::prelude::*;
use fearless_simd::{Simd, dispatch, f32x16};

use super::{Bijection, LayerGradient, LayerTape};
use crate::kernel::{Lane, level, math};
use crate::nn::activation::Activation;
use crate::nn::mlp::{Mlp, Shape};
use crate::nn::parameters::Layout;

/// A conditional affine map onto the base law.
#[derive(Clone, Debug)]
pub(crate) struct GaussianHead {
    dim: usize,
    net: [Mlp; 1],
}

/// Network outputs for dimension `dim`: μ, a, and b below the diagonal row by row.
pub(crate) fn triangle_parameters(dim: usize) -> usize {
    2 * dim + dim * (dim - 1) / 2
}

impl GaussianHead {
    /// Lays out the head's network under `name`.
    pub(crate) fn new(
        dim: usize,
        context: usize,
        hidden: &[usize],
        activation: Activation,
        layout: &mut Layout,
        name: &str,
    ) -> Self {
        let shape = Shape {
            free: 0,
            context,
            hidden: hidden.to_vec(),
            outputs: triangle_parameters(dim),
            activation,
        };
        Self {
            dim,
            net: [Mlp::new(shape, layout, |l| format!("{name}.{}", 2 * l))],
        }
    }
}

impl Bijection for GaussianHead {
    fn boxed_clone(&self) -> Box<dyn Bijection> {
        Box::new(self.clone())
    }

    fn nets(&self) -> &[Mlp] {
        &self.net
    }

    fn nets_mut(&mut self) -> &mut [Mlp] {
        &mut self.net
    }

    fn share_len(&self) -> usize {
        triangle_parameters(self.dim)
    }

    /// The network's own share and its gradient, v − μ, and the share of the last taped pass.
    fn tape_lanes(&self) -> usize {
        2 * self.net[0].share_len() + self.dim + self.share_len()
    }

    fn share(&self, context: &[Lane], share: &mut [Lane], tape: &mut LayerTape, taped: bool) {
        let net = &self.net[0];
        let inner = &mut tape.lanes[..net.share_len()];
        net.share(context, inner);
        net.forward(&[], inner, share, &mut tape.nets[0], taped);
    }

    fn forward(
        &self,
        v: &mut [Lane],
        share: &[Lane],
        log_det: &mut Lane,
        tape: &mut LayerTape,
        taped: bool,
    ) {
        let at = 2 * self.net[0].share_len();
        let (centred, kept) = tape.lanes[at..].split_at_mut(self.dim);
        if taped {
            kept.copy_from_slice(share);
        }
        dispatch!(level(), simd => triangle_forward(simd, share, v, centred, log_det));
    }

    fn inverse(&self, v: &mut [Lane], share: &[Lane], _tape: &mut LayerTape) {
        dispatch!(level(), simd => triangle_inverse(simd, share, v));
    }

    fn backward(
        &self,
        d_v: &mut [Lane],
        share: &[Lane],
        d_log_det: &Lane,
        tape: &mut LayerTape,
        d_share: &mut [Lane],
        _gradient: Option<&mut LayerGradient>,
    ) {
        let at = 2 * self.net[0].share_len();
        let centred = &tape.lanes[at..at + self.dim];
        dispatch!(level(), simd => triangle_backward(
            simd, share, centred, d_v, d_log_det, d_share
        ));
    }

    fn backward_inverse(
        &self,
        d_v: &mut [Lane],
        tape: &mut LayerTape,
        d_share: &mut [Lane],
        _gradient: Option<&mut LayerGradient>,
    ) {
        let at = 2 * self.net[0].share_len();
        let kept = &tape.lanes[at..];
        let (centred, share) = kept.split_at(self.dim);
        dispatch!(level(), simd => {
            triangle_solve_transposed(simd, share, d_v);
            let mut d_u: Vec<Lane> = d_v.iter().map(|lane| Lane(lane.0.map(|g| -g))).collect();
            triangle_backward(simd, share, centred, &mut d_u, &Lane::ZERO, d_share);
        });
    }

    fn backward_share(
        &self,
        context: &[Lane],
        d_share: &[Lane],
        tape: &mut LayerTape,
        d_context: &mut [Lane],
        mut gradient: Option<&mut LayerGradient>,
    ) {
        let net = &self.net[0];
        let inner = net.share_len();
        let d_inner = &mut tape.lanes[inner..2 * inner];
        d_inner.fill(Lane::ZERO);
        let net_tape = &mut tape.nets[0];
        let own = gradient.as_deref_mut().map(|nets| &mut nets[0]);
        net.backward(&[], d_share, net_tape, &mut [], d_inner, own);
        let own = gradient.map(|nets| &mut nets[0]);
        net.backward_share(context, d_inner, net_tape, d_context, own);
    }
}

/// Index of b_ij (j < i) among the parameters.
#[inline(always)]
pub(crate) fn below_diagonal(dim: usize, i: usize, j: usize) -> usize {
    2 * dim + i * (i - 1) / 2 + j
}

#[inline(always)]
fn load<S: Simd>(simd: S, lane: &Lane) -> f32x16<S> {
    f32x16::load_array_ref(simd, &lane.0)
}

/// v ↦ A(v − μ), keeping v − μ; adds Σ a_i.
#[inline(always)]
fn triangle_forward<S: Simd>(
    simd: S,
    share: &[Lane],
    v: &mut [Lane],
    centred: &mut [Lane],
    log_det: &mut Lane,
) {
    let dim = v.len();
    let mut sum = load(simd, log_det);
    for i in 0..dim {
        let difference = load(simd, &v[i]) - load(simd, &share[i]);
        difference.store_array(&mut centred[i].0);
        let scale = load(simd, &share[dim + i]);
        sum += scale;
        let left = regressed(simd, share, centred, i);
        (math::exp(scale) * left).store_array(&mut v[i].0);
    }
    sum.store_array(&mut log_det.0);
}

/// Σ_{j ≤ i} b_ij (v_j − μ_j).
#[inline(always)]
fn regressed<S: Simd>(simd: S, share: &[Lane], centred: &[Lane], i: usize) -> f32x16<S> {
    let dim = centred.len();
    let mut left = load(simd, &centred[i]);
    for (j, centred) in centred[..i].iter().enumerate() {
        let b = load(simd, &share[below_diagonal(dim, i, j)]);
        left = b.mul_add(load(simd, centred), left);
    }
    left
}

#[inline(always)]
fn triangle_inverse<S: Simd>(simd: S, share: &[Lane], v: &mut [Lane]) {
    let dim = v.len();
    for i in 0..dim {
        let scale = math::exp(-load(simd, &share[dim + i]));
        let mut value = load(simd, &v[i]).mul_add(scale, load(simd, &share[i]));
        for j in 0..i {
            let b = load(simd, &share[below_diagonal(dim, i, j)]);
            let centred = load(simd, &v[j]) - load(simd, &share[j]);
            value -= b * centred;
        }
        value.store_array(&mut v[i].0);
    }
}

/// g ↦ A⁻ᵀ g.
#[inline(always)]
fn triangle_solve_transposed<S: Simd>(simd: S, share: &[Lane], g: &mut [Lane]) {
    let dim = g.len();
    for j in (0..dim).rev() {
        let mut rest = load(simd, &g[j]);
        for i in j + 1..dim {
            rest -= load(simd, &share[below_diagonal(dim, i, j)]) * load(simd, &g[i]);
        }
        rest.store_array(&mut g[j].0);
    }
    for (j, g) in g.iter_mut().enumerate() {
        (load(simd, g) * math::exp(-load(simd, &share[dim + j]))).store_array(&mut g.0);
    }
}

#[inline(always)]
fn triangle_backward<S: Simd>(
    simd: S,
    share: &[Lane],
    centred: &[Lane],
    d_v: &mut [Lane],
    d_log_det: &Lane,
    d_share: &mut [Lane],
) {
    let dim = d_v.len();
    let d_log_det = load(simd, d_log_det);
    let add = |lane: &mut Lane, value: f32x16<S>| {
        (load(simd, lane) + value).store_array(&mut lane.0);
    };
    for (i, d_u) in d_v.iter_mut().enumerate() {
        let scaled = load(simd, d_u) * math::exp(load(simd, &share[dim + i]));
        let left = regressed(simd, share, centred, i);
        add(&mut d_share[dim + i], scaled.mul_add(left, d_log_det));
        scaled.store_array(&mut d_u.0);
    }
    for j in 0..dim {
        let centre = load(simd, &centred[j]);
        let mut d_centred = load(simd, &d_v[j]);
        for (i, scaled) in d_v.iter().enumerate().skip(j + 1) {
            let at = below_diagonal(dim, i, j);
            let scaled = load(simd, scaled);
            add(&mut d_share[at], scaled * centre);
            d_centred = scaled.mul_add(load(simd, &share[at]), d_centred);
        }
        add(&mut d_share[j], -d_centred);
        d_centred.store_array(&mut d_v[j].0);
    }
}
