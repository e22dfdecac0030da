//! Coupling layer: one half of the vector moves the other half, monotonically, dimension by dimension.
//!
//! The halves swap first (the leading ⌊d/2⌋ values go last); then the leading ⌊d/2⌋ values stay and, with the
//! context, feed the networks that move the rest. Two movers:
//! - [`Mover::Affine`] (the paper's): u = v·e^s + t with s soft-clamped, s = (2α/π)·atan(r/α), and r, t from two
//!   networks;
//! - [`Mover::Spline`]: a rational-quadratic spline whose knots come from one network.

use fearless_simd::prelude::*;
use fearless_simd::{Simd, dispatch, f32x16};

use super::spline::{self, Spline};
use super::{Bijection, LayerGradient, LayerTape};
use crate::kernel::{Lane, level, math};
use crate::nn::activation::Activation;
use crate::nn::mlp::{Mlp, Shape};
use crate::nn::parameters::Layout;

/// The paper's soft clamp of the log-scale, α.
pub(crate) const CLAMP: f32 = 1.9;

/// How the moving half moves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Mover {
    /// Scale and shift.
    Affine,
    /// Monotone rational-quadratic spline.
    Spline(Spline),
}

/// Sizes of a coupling layer.
#[derive(Clone, Debug)]
pub(crate) struct CouplingShape {
    /// Dimension of the vector; at least 1 (then nothing stays and only the context steers).
    pub dim: usize,
    /// Dimension of the context.
    pub context: usize,
    /// Hidden units of the networks.
    pub hidden: Vec<usize>,
    /// Function between their layers.
    pub activation: Activation,
    /// How the moving half moves.
    pub mover: Mover,
}

/// A coupling layer.
#[derive(Clone, Debug)]
pub(crate) struct Coupling {
    dim: usize,
    stay: usize,
    mover: Mover,
    /// Affine: r, t. Spline: the knots.
    nets: Vec<Mlp>,
}

/// Where things are in the tape's lanes.
struct Places {
    stay: usize,
    moving: usize,
    raw: usize,
}

impl Coupling {
    /// Lays out a layer's networks under `name`, as `name.s.0.weight`.
    pub(crate) fn new(shape: CouplingShape, layout: &mut Layout, name: &str) -> Self {
        let stay = shape.dim / 2;
        let moving = shape.dim - stay;
        let net = |outputs: usize, layout: &mut Layout, part: &str| {
            let sizes = Shape {
                free: stay,
                context: shape.context,
                hidden: shape.hidden.clone(),
                outputs,
                activation: shape.activation,
            };
            Mlp::new(sizes, layout, |l| format!("{name}.{part}.{}", 2 * l))
        };
        let nets = match shape.mover {
            Mover::Affine => vec![net(moving, layout, "s"), net(moving, layout, "t")],
            Mover::Spline(spline) => {
                vec![net(moving * spline.parameters(), layout, "knots")]
            }
        };
        Self {
            dim: shape.dim,
            stay,
            mover: shape.mover,
            nets,
        }
    }

    fn moving(&self) -> usize {
        self.dim - self.stay
    }

    /// Outputs of all networks together.
    fn raw_len(&self) -> usize {
        self.nets.iter().map(|net| net.shape().outputs).sum()
    }

    /// Tape: the staying half, the moving half, slopes, raw network outputs, their gradient.
    fn places(&self) -> Places {
        let moving = self.stay;
        Places {
            stay: 0,
            moving,
            raw: moving + 2 * self.moving(),
        }
    }

    fn swap(&self, v: &mut [Lane]) {
        v.rotate_left(self.dim / 2);
    }

    fn swap_back(&self, v: &mut [Lane]) {
        v.rotate_right(self.dim / 2);
    }

    fn run_nets(&self, share: &[Lane], tape: &mut LayerTape, taped: bool) {
        let places = self.places();
        let (front, raw) = tape.lanes.split_at_mut(places.raw);
        let free = &front[places.stay..self.stay];
        let mut share = share;
        let mut raw = raw;
        for (net, net_tape) in self.nets.iter().zip(&mut tape.nets) {
            let (this_share, rest) = share.split_at(net.share_len());
            let (out, rest_raw) = raw.split_at_mut(net.shape().outputs);
            net.forward(free, this_share, out, net_tape, taped);
            share = rest;
            raw = rest_raw;
        }
    }
}

impl Coupling {
    /// Through the movers: `d_moved` from u to v in place, and the gradient of the networks' outputs onto the tape.
    fn move_backward(&self, d_moved: &mut [Lane], d_log_det: &Lane, tape: &mut LayerTape) {
        let places = self.places();
        let (front, raw) = tape.lanes.split_at_mut(places.raw);
        let (raw, rest) = raw.split_at_mut(self.raw_len());
        let d_raw = &mut rest[..self.raw_len()];
        let moving = &front[places.moving..places.moving + self.moving()];
        dispatch!(level(), simd => match self.mover {
            Mover::Affine => affine_backward(simd, raw, moving, d_moved, d_log_det, d_raw),
            Mover::Spline(spline) => {
                spline::backward(simd, spline, raw, moving, d_moved, d_log_det, d_raw);
            }
        });
    }

    /// Through the networks, from the gradient of their outputs on the tape: adds to the staying half of `d_v`.
    fn nets_backward(
        &self,
        d_v: &mut [Lane],
        tape: &mut LayerTape,
        d_share: &mut [Lane],
        mut gradient: Option<&mut LayerGradient>,
    ) {
        let places = self.places();
        let (front, rest) = tape.lanes.split_at_mut(places.raw + self.raw_len());
        let free = &front[places.stay..self.stay];
        let mut d_raw = &rest[..self.raw_len()];
        let d_stay = &mut d_v[..self.stay];
        let mut d_share = d_share;
        for (n, (net, net_tape)) in self.nets.iter().zip(&mut tape.nets).enumerate() {
            let (this_share, rest) = d_share.split_at_mut(net.share_len());
            let (d_out, rest_raw) = d_raw.split_at(net.shape().outputs);
            let gradient = gradient.as_deref_mut().map(|nets| &mut nets[n]);
            net.backward(free, d_out, net_tape, d_stay, this_share, gradient);
            d_share = rest;
            d_raw = rest_raw;
        }
    }
}

impl Bijection for Coupling {
    fn boxed_clone(&self) -> Box<dyn Bijection> {
        Box::new(self.clone())
    }

    fn nets(&self) -> &[Mlp] {
        &self.nets
    }

    fn nets_mut(&mut self) -> &mut [Mlp] {
        &mut self.nets
    }

    fn share_len(&self) -> usize {
        self.nets.iter().map(Mlp::share_len).sum()
    }

    fn tape_lanes(&self) -> usize {
        self.places().raw + 2 * self.raw_len()
    }

    fn share(&self, context: &[Lane], share: &mut [Lane], _tape: &mut LayerTape, _taped: bool) {
        let mut share = share;
        for net in &self.nets {
            let (this, rest) = share.split_at_mut(net.share_len());
            net.share(context, this);
            share = rest;
        }
    }

    fn forward(
        &self,
        v: &mut [Lane],
        share: &[Lane],
        log_det: &mut Lane,
        tape: &mut LayerTape,
        taped: bool,
    ) {
        self.swap(v);
        let places = self.places();
        tape.lanes[..self.dim].copy_from_slice(v);
        self.run_nets(share, tape, taped);
        let raw = &tape.lanes[places.raw..places.raw + self.raw_len()];
        let moved = &mut v[self.stay..];
        dispatch!(level(), simd => match self.mover {
            Mover::Affine => affine_forward(simd, raw, moved, log_det),
            Mover::Spline(spline) => spline::forward(simd, spline, raw, moved, log_det),
        });
    }

    fn inverse(&self, v: &mut [Lane], share: &[Lane], tape: &mut LayerTape) {
        let places = self.places();
        tape.lanes[..self.stay].copy_from_slice(&v[..self.stay]);
        self.run_nets(share, tape, false);
        let raw = &tape.lanes[places.raw..places.raw + self.raw_len()];
        let moved = &mut v[self.stay..];
        dispatch!(level(), simd => match self.mover {
            Mover::Affine => affine_inverse(simd, raw, moved),
            Mover::Spline(spline) => spline::inverse(simd, spline, raw, moved),
        });
        self.swap_back(v);
    }

    fn backward(
        &self,
        d_v: &mut [Lane],
        share: &[Lane],
        d_log_det: &Lane,
        tape: &mut LayerTape,
        d_share: &mut [Lane],
        gradient: Option<&mut LayerGradient>,
    ) {
        debug_assert_eq!(share.len(), self.share_len());
        self.move_backward(&mut d_v[self.stay..], d_log_det, tape);
        self.nets_backward(d_v, tape, d_share, gradient);
        self.swap_back(d_v);
    }

    fn backward_inverse(
        &self,
        d_v: &mut [Lane],
        tape: &mut LayerTape,
        d_share: &mut [Lane],
        gradient: Option<&mut LayerGradient>,
    ) {
        self.swap(d_v);
        let places = self.places();
        let moving = places.moving..places.moving + self.moving();
        let slopes = places.raw - self.moving()..places.raw;
        tape.lanes.copy_within(moving, slopes.start);
        let raw = places.raw..places.raw + self.raw_len();
        let (front, back) = tape.lanes.split_at_mut(places.raw);
        let slope = &mut front[slopes];
        let raw = &back[..raw.len()];
        let d_moved = &mut d_v[self.stay..];
        dispatch!(level(), simd => {
            match self.mover {
                Mover::Affine => affine_slopes(simd, raw, slope),
                Mover::Spline(spline) => spline::slopes(simd, spline, raw, slope),
            }
            for (d, slope) in d_moved.iter_mut().zip(slope.iter()) {
                let slope = f32x16::load_array_ref(simd, &slope.0);
                let value = f32x16::load_array_ref(simd, &d.0) / slope;
                value.store_array(&mut d.0);
            }
        });
        let mut opposite: Vec<Lane> = d_moved.iter().map(|l| Lane(l.0.map(|g| -g))).collect();
        self.move_backward(&mut opposite, &Lane::ZERO, tape);
        self.nets_backward(d_v, tape, d_share, gradient);
    }

    fn backward_share(
        &self,
        context: &[Lane],
        d_share: &[Lane],
        tape: &mut LayerTape,
        d_context: &mut [Lane],
        mut gradient: Option<&mut LayerGradient>,
    ) {
        let mut d_share = d_share;
        for (n, (net, net_tape)) in self.nets.iter().zip(&mut tape.nets).enumerate() {
            let (this, rest) = d_share.split_at(net.share_len());
            let gradient = gradient.as_deref_mut().map(|nets| &mut nets[n]);
            net.backward_share(context, this, net_tape, d_context, gradient);
            d_share = rest;
        }
    }
}

/// s = (2α/π)·atan(r/α).
#[inline(always)]
fn soft_clamp<S: Simd>(r: f32x16<S>) -> f32x16<S> {
    math::atan(r * (1.0 / CLAMP)) * (2.0 * CLAMP * std::f32::consts::FRAC_1_PI)
}

#[inline(always)]
fn affine_forward<S: Simd>(simd: S, raw: &[Lane], moved: &mut [Lane], log_det: &mut Lane) {
    let (r, t) = raw.split_at(moved.len());
    let mut sum = f32x16::load_array_ref(simd, &log_det.0);
    for ((v, r), t) in moved.iter_mut().zip(r).zip(t) {
        let s = soft_clamp(f32x16::load_array_ref(simd, &r.0));
        let value = f32x16::load_array_ref(simd, &v.0);
        let t = f32x16::load_array_ref(simd, &t.0);
        value.mul_add(math::exp(s), t).store_array(&mut v.0);
        sum += s;
    }
    sum.store_array(&mut log_det.0);
}

/// v ↦ ∂u/∂v in place.
#[inline(always)]
fn affine_slopes<S: Simd>(simd: S, raw: &[Lane], moving: &mut [Lane]) {
    for (v, r) in moving.iter_mut().zip(raw) {
        let s = soft_clamp(f32x16::load_array_ref(simd, &r.0));
        math::exp(s).store_array(&mut v.0);
    }
}

#[inline(always)]
fn affine_inverse<S: Simd>(simd: S, raw: &[Lane], moved: &mut [Lane]) {
    let (r, t) = raw.split_at(moved.len());
    for ((v, r), t) in moved.iter_mut().zip(r).zip(t) {
        let s = soft_clamp(f32x16::load_array_ref(simd, &r.0));
        let value = f32x16::load_array_ref(simd, &v.0) - f32x16::load_array_ref(simd, &t.0);
        (value * math::exp(-s)).store_array(&mut v.0);
    }
}

#[inline(always)]
fn affine_backward<S: Simd>(
    simd: S,
    raw: &[Lane],
    moving: &[Lane],
    d_moved: &mut [Lane],
    d_log_det: &Lane,
    d_raw: &mut [Lane],
) {
    let d_log_det = f32x16::load_array_ref(simd, &d_log_det.0);
    let (d_r, d_t) = d_raw.split_at_mut(moving.len());
    for d in 0..moving.len() {
        let r = f32x16::load_array_ref(simd, &raw[d].0);
        let d_u = f32x16::load_array_ref(simd, &d_moved[d].0);
        let v = f32x16::load_array_ref(simd, &moving[d].0);
        let scaled = d_u * math::exp(soft_clamp(r));
        let d_s = scaled.mul_add(v, d_log_det);
        let q = r * (1.0 / CLAMP);
        let slope = f32x16::splat(simd, 2.0 * std::f32::consts::FRAC_1_PI) / (q * q + 1.0);
        (d_s * slope).store_array(&mut d_r[d].0);
        d_u.store_array(&mut d_t[d].0);
        scaled.store_array(&mut d_moved[d].0);
    }
}
