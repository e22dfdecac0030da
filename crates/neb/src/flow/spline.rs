//! Monotone rational-quadratic splines (Durkan et al. 2019), one per moving dimension.
//!
//! On [−B, B] the map has K bins with widths w_j, heights h_j and slopes δ_j at the knots; outside it is the
//! identity. In bin k, with ξ = (v − x_k)/w_k, s = h_k/w_k and p = ξ(1 − ξ):
//!
//! u = y_k + h_k (s ξ² + δ_k p) / D,  D = s + (δ_{k+1} + δ_k − 2s) p,
//! ∂u/∂v = s² (δ_{k+1} ξ² + 2 s p + δ_k (1 − ξ)²) / D².
//!
//! Widths and heights are softmaxes bounded below, slopes a softplus, one at both ends: raw parameters of
//! zero give the identity.

use fearless_simd::prelude::*;
use fearless_simd::{Simd, f32x16};

use crate::kernel::{Lane, math};

/// Most bins a spline may have.
pub(crate) const MAX_BINS: usize = 16;
/// Smallest width and height of a bin, as a share of the interval.
const MIN_SHARE: f32 = 1e-3;
/// Smallest slope at a knot.
const MIN_SLOPE: f32 = 1e-3;
/// softplus(`SLOPE_OFFSET`) + `MIN_SLOPE` = 1.
const SLOPE_OFFSET: f32 = 0.539_742_4;

/// Size of a spline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spline {
    /// Number of bins K, 2 to [`MAX_BINS`].
    pub bins: usize,
    /// Half-width B of the interval.
    pub bound: f32,
}

impl Spline {
    /// Raw parameters per dimension: K widths, K heights, K − 1 slopes.
    pub(crate) fn parameters(&self) -> usize {
        3 * self.bins - 1
    }
}

/// One bin of a spline, a different one in each lane.
struct Bin<S: Simd> {
    x: f32x16<S>,
    y: f32x16<S>,
    w: f32x16<S>,
    h: f32x16<S>,
    slope: f32x16<S>,
    next_slope: f32x16<S>,
    /// Index of the bin.
    index: f32x16<S>,
}

/// A dimension's knots in all lanes.
struct Knots<S: Simd> {
    width: [f32x16<S>; MAX_BINS],
    height: [f32x16<S>; MAX_BINS],
    /// Slopes at the K + 1 knots.
    slope: [f32x16<S>; MAX_BINS + 1],
}

#[inline(always)]
fn load<S: Simd>(simd: S, lane: &Lane) -> f32x16<S> {
    f32x16::load_array_ref(simd, &lane.0)
}

/// Shares of a softmax bounded below by `MIN_SHARE`, times 2B; and the plain softmax.
#[inline(always)]
fn shares<S: Simd>(
    simd: S,
    spline: Spline,
    raw: &[Lane],
) -> ([f32x16<S>; MAX_BINS], [f32x16<S>; MAX_BINS]) {
    let zero = f32x16::splat(simd, 0.0);
    let mut soft = [zero; MAX_BINS];
    let mut largest = load(simd, &raw[0]);
    for lane in &raw[1..] {
        largest = largest.max(load(simd, lane));
    }
    let mut sum = zero;
    for (value, lane) in soft.iter_mut().zip(raw) {
        *value = math::exp(load(simd, lane) - largest);
        sum += *value;
    }
    let norm = f32x16::splat(simd, 1.0) / sum;
    let mut share = [zero; MAX_BINS];
    let free = 2.0 * spline.bound * (1.0 - MIN_SHARE * spline.bins as f32);
    let least = f32x16::splat(simd, 2.0 * spline.bound * MIN_SHARE);
    for j in 0..spline.bins {
        soft[j] *= norm;
        share[j] = soft[j].mul_add(free, least);
    }
    (share, soft)
}

#[inline(always)]
fn knots<S: Simd>(simd: S, spline: Spline, raw: &[Lane]) -> Knots<S> {
    let bins = spline.bins;
    let one = f32x16::splat(simd, 1.0);
    let (width, _) = shares(simd, spline, &raw[..bins]);
    let (height, _) = shares(simd, spline, &raw[bins..2 * bins]);
    let mut slope = [one; MAX_BINS + 1];
    for j in 1..bins {
        let raw = load(simd, &raw[2 * bins + j - 1]);
        slope[j] = math::softplus(raw + SLOPE_OFFSET) + MIN_SLOPE;
    }
    Knots {
        width,
        height,
        slope,
    }
}

/// The bin in which `value` lies along x (or along y, for the inverse).
#[inline(always)]
fn find<S: Simd>(
    simd: S,
    spline: Spline,
    knots: &Knots<S>,
    value: f32x16<S>,
    along_y: bool,
) -> Bin<S> {
    let start = f32x16::splat(simd, -spline.bound);
    let mut bin = Bin {
        x: start,
        y: start,
        w: knots.width[0],
        h: knots.height[0],
        slope: knots.slope[0],
        next_slope: knots.slope[1],
        index: f32x16::splat(simd, 0.0),
    };
    let (mut x, mut y) = (start, start);
    for j in 1..spline.bins {
        x += knots.width[j - 1];
        y += knots.height[j - 1];
        let beyond = value.simd_ge(if along_y { y } else { x });
        bin.x = beyond.select(x, bin.x);
        bin.y = beyond.select(y, bin.y);
        bin.w = beyond.select(knots.width[j], bin.w);
        bin.h = beyond.select(knots.height[j], bin.h);
        bin.slope = beyond.select(knots.slope[j], bin.slope);
        bin.next_slope = beyond.select(knots.slope[j + 1], bin.next_slope);
        bin.index = beyond.select(f32x16::splat(simd, j as f32), bin.index);
    }
    bin
}

/// v ↦ u for every moving dimension; adds log ∂u/∂v.
#[inline(always)]
pub(crate) fn forward<S: Simd>(
    simd: S,
    spline: Spline,
    raw: &[Lane],
    moved: &mut [Lane],
    log_det: &mut Lane,
) {
    let one = f32x16::splat(simd, 1.0);
    let zero = f32x16::splat(simd, 0.0);
    let mut sum = load(simd, log_det);
    for (v, raw) in moved.iter_mut().zip(raw.chunks_exact(spline.parameters())) {
        let value = load(simd, v);
        let inside = value.abs().simd_le(spline.bound);
        let knots = knots(simd, spline, raw);
        let bin = find(simd, spline, &knots, value, false);
        let s = bin.h / bin.w;
        let a = ((value - bin.x) / bin.w).max(0.0).min(1.0);
        let b = one - a;
        let p = a * b;
        let denominator = (bin.slope + bin.next_slope - s * 2.0).mul_add(p, s);
        let numerator = bin.h * (s * a * a + bin.slope * p);
        let u = bin.y + numerator / denominator;
        let t = bin.next_slope * a * a + s * p * 2.0 + bin.slope * b * b;
        let ratio = s / denominator;
        let log_slope = math::log(ratio * ratio * t);
        inside.select(u, value).store_array(&mut v.0);
        sum += inside.select(log_slope, zero);
    }
    sum.store_array(&mut log_det.0);
}

/// v ↦ ∂u/∂v in place.
#[inline(always)]
pub(crate) fn slopes<S: Simd>(simd: S, spline: Spline, raw: &[Lane], moving: &mut [Lane]) {
    for (v, raw) in moving.iter_mut().zip(raw.chunks_exact(spline.parameters())) {
        let mut log_slope = Lane::ZERO;
        forward(simd, spline, raw, std::slice::from_mut(v), &mut log_slope);
        math::exp(load(simd, &log_slope)).store_array(&mut v.0);
    }
}

/// u ↦ v: the root of the quadratic of each bin, in the form that does not cancel.
#[inline(always)]
pub(crate) fn inverse<S: Simd>(simd: S, spline: Spline, raw: &[Lane], moved: &mut [Lane]) {
    for (u, raw) in moved.iter_mut().zip(raw.chunks_exact(spline.parameters())) {
        let value = load(simd, u);
        let inside = value.abs().simd_le(spline.bound);
        let knots = knots(simd, spline, raw);
        let bin = find(simd, spline, &knots, value, true);
        let s = bin.h / bin.w;
        let rise = value - bin.y;
        let q = bin.slope + bin.next_slope - s * 2.0;
        let a = bin.h * (s - bin.slope) + rise * q;
        let b = bin.h * bin.slope - rise * q;
        let c = -s * rise;
        let root = (b * b - a * c * 4.0).max(0.0).sqrt();
        let share = (c * 2.0 / (-b - root)).max(0.0).min(1.0);
        inside
            .select(share.mul_add(bin.w, bin.x), value)
            .store_array(&mut u.0);
    }
}

/// Reverse of [`forward`]: `d_moved` from u to v in place; writes the gradient of the raw parameters.
#[inline(always)]
pub(crate) fn backward<S: Simd>(
    simd: S,
    spline: Spline,
    raw: &[Lane],
    moving: &[Lane],
    d_moved: &mut [Lane],
    d_log_det: &Lane,
    d_raw: &mut [Lane],
) {
    let one = f32x16::splat(simd, 1.0);
    let zero = f32x16::splat(simd, 0.0);
    let d_log = load(simd, d_log_det);
    let bins = spline.bins;
    let raws = raw.chunks_exact(spline.parameters());
    let d_raws = d_raw.chunks_exact_mut(spline.parameters());
    for ((v, d_v), (raw, d_raw)) in moving.iter().zip(d_moved).zip(raws.zip(d_raws)) {
        let value = load(simd, v);
        let d_out = load(simd, d_v);
        let inside = value.abs().simd_le(spline.bound);
        let knots = knots(simd, spline, raw);
        let bin = find(simd, spline, &knots, value, false);
        let (g_u, g_log) = (inside.select(d_out, zero), inside.select(d_log, zero));

        let (w, h, d0, d1) = (bin.w, bin.h, bin.slope, bin.next_slope);
        let s = h / w;
        let a = ((value - bin.x) / w).max(0.0).min(1.0);
        let b = one - a;
        let p = a * b;
        let q = d0 + d1 - s * 2.0;
        let denominator = q.mul_add(p, s);
        let m = s * a * a + d0 * p;
        let t = d1 * a * a + s * p * 2.0 + d0 * b * b;

        let inverse = one / denominator;
        let g_n = g_u * inverse;
        let g_d = -(g_n * h * m + g_log * 2.0) * inverse;
        let g_t = g_log / t;
        let g_m = g_n * h;
        let g_q = g_d * p;
        let g_s = g_log * 2.0 / s + g_m * a * a + g_d - g_q * 2.0 + g_t * p * 2.0;
        let g_p = g_m * d0 + g_d * q + g_t * s * 2.0;
        let g_b = g_t * d0 * b * 2.0 + g_p * a;
        let g_a = g_m * s * a * 2.0 + g_t * d1 * a * 2.0 + g_p * b - g_b;
        let g_d0 = g_m * p + g_q + g_t * b * b;
        let g_d1 = g_q + g_t * a * a;
        let per_width = one / w;
        let g_h = g_n * m + g_s * per_width;
        let g_v = g_a * per_width;
        let g_w = -(g_s * s + g_a * a) * per_width;

        inside.select(g_v, d_out).store_array(&mut d_v.0);
        let (d_widths, rest) = d_raw.split_at_mut(bins);
        let (d_heights, d_slopes) = rest.split_at_mut(bins);
        // x_k is the sum of the widths before it: they feel −g_v, the bin's own width feels g_w.
        shares_backward(simd, spline, &raw[..bins], bin.index, -g_v, g_w, d_widths);
        shares_backward(
            simd,
            spline,
            &raw[bins..2 * bins],
            bin.index,
            g_u,
            g_h,
            d_heights,
        );
        for j in 1..bins {
            let here = bin.index.simd_eq(j as f32).select(g_d0, zero);
            let left = bin.index.simd_eq(j as f32 - 1.0).select(g_d1, zero);
            let raw = load(simd, &raw[2 * bins + j - 1]);
            let slope = math::sigmoid(raw + SLOPE_OFFSET);
            ((here + left) * slope).store_array(&mut d_slopes[j - 1].0);
        }
    }
}

/// Gradient through [`shares`]: `before` is felt by every share before bin `index`, `own` by that bin's.
#[inline(always)]
fn shares_backward<S: Simd>(
    simd: S,
    spline: Spline,
    raw: &[Lane],
    index: f32x16<S>,
    before: f32x16<S>,
    own: f32x16<S>,
    d_raw: &mut [Lane],
) {
    let zero = f32x16::splat(simd, 0.0);
    let (_, soft) = shares(simd, spline, raw);
    let felt = |j: usize| {
        let j = j as f32;
        let is_before = index.simd_gt(j).select(before, zero);
        index.simd_eq(j).select(own, is_before)
    };
    let mut mean = zero;
    for (j, &share) in soft.iter().enumerate().take(spline.bins) {
        mean = share.mul_add(felt(j), mean);
    }
    let free = 2.0 * spline.bound * (1.0 - MIN_SHARE * spline.bins as f32);
    for (j, d_raw) in d_raw.iter_mut().enumerate() {
        (soft[j] * (felt(j) - mean) * free).store_array(&mut d_raw.0);
    }
}
