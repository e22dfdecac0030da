//! exp, log, atan, tanh, softplus and their kin on 16 lanes, by range reduction and polynomials.
//!
//! Worst relative error 2e-6 over the whole range of `f32` (tested against `f64`). Results that would be
//! denormal are flushed to zero: they carry nothing and slow every later operation down.

use fearless_simd::prelude::*;
use fearless_simd::{Simd, f32x16, i32x16, mask32x16};

const LN_2: f32 = std::f32::consts::LN_2;
/// ln 2 = `LN_2_HIGH` + `LN_2_LOW`, the first exact in few bits so that n·`LN_2_HIGH` is exact.
const LN_2_HIGH: f32 = 0.693_359_4;
const LN_2_LOW: f32 = -2.121_944_4e-4;
/// Below this, e^x is denormal.
const EXP_UNDERFLOW: f32 = -87.336_54;
/// Above this, e^x overflows.
const EXP_OVERFLOW: f32 = 88.722_83;

#[inline(always)]
fn horner<S: Simd>(x: f32x16<S>, coefficients: &[f32]) -> f32x16<S> {
    let mut value = f32x16::splat(x.simd, coefficients[0]);
    for &c in &coefficients[1..] {
        value = value.mul_add(x, c);
    }
    value
}

/// 2^n for whole numbers n in −126 ..= 127.
#[inline(always)]
fn power_of_two<S: Simd>(n: f32x16<S>) -> f32x16<S> {
    let exponent: i32x16<S> = n.to_int();
    ((exponent + 127) << 23).bitcast()
}

/// e^x; zero below −87.3, infinite above 88.7.
#[inline(always)]
pub(crate) fn exp<S: Simd>(x: f32x16<S>) -> f32x16<S> {
    let simd = x.simd;
    let bounded = x.max(EXP_UNDERFLOW).min(EXP_OVERFLOW);
    let n = (bounded * std::f32::consts::LOG2_E).round_ties_even();
    let r = n.mul_add(-LN_2_HIGH, bounded);
    let r = n.mul_add(-LN_2_LOW, r);
    let p = horner(
        r,
        &[
            1.987_569_1e-4,
            1.398_199_9e-3,
            8.333_452e-3,
            4.166_579_6e-2,
            1.666_666_6e-1,
            0.5,
        ],
    );
    let value = (r * r).mul_add(p, r) + 1.0;
    // In two factors, since 2^128 is no f32 although e^88.7 is.
    let half = (n * 0.5).floor();
    let value = value * power_of_two(half) * power_of_two(n - half);
    let value = x
        .simd_lt(EXP_UNDERFLOW)
        .select(f32x16::splat(simd, 0.0), value);
    let value = x
        .simd_gt(EXP_OVERFLOW)
        .select(f32x16::splat(simd, f32::INFINITY), value);
    keep_nan(x, value)
}

#[inline(always)]
fn keep_nan<S: Simd>(x: f32x16<S>, value: f32x16<S>) -> f32x16<S> {
    x.simd_eq(x).select(value, x)
}

/// log(1 + f) for f in (√½ − 1, √2 − 1), with relative precision at f → 0.
#[inline(always)]
fn log_near_one<S: Simd>(f: f32x16<S>) -> f32x16<S> {
    let p = horner(
        f,
        &[
            7.037_683_6e-2,
            -1.151_461e-1,
            1.167_699_9e-1,
            -1.242_014_1e-1,
            1.424_932_3e-1,
            -1.666_805_7e-1,
            2.000_071_5e-1,
            -2.499_999_4e-1,
            3.333_333e-1,
        ],
    );
    let square = f * f;
    (square * f).mul_add(p, square * -0.5) + f
}

/// Natural logarithm; −∞ at zero, NaN below.
#[inline(always)]
pub(crate) fn log<S: Simd>(x: f32x16<S>) -> f32x16<S> {
    let simd = x.simd;
    let tiny = x.simd_lt(f32::MIN_POSITIVE);
    let scaled = tiny.select(x * 33_554_432.0, x);
    let shift = tiny.select(f32x16::splat(simd, -25.0), f32x16::splat(simd, 0.0));
    let bits: i32x16<S> = scaled.bitcast();
    let exponent: f32x16<S> = ((bits >> 23) - 126).to_float();
    let mantissa: f32x16<S> = ((bits & 0x007f_ffff) | 0x3f00_0000).bitcast();
    // The mantissa lies in [½, 1); below √½ it is doubled.
    let low = mantissa.simd_lt(std::f32::consts::FRAC_1_SQRT_2);
    let f = low.select(mantissa + mantissa, mantissa) - 1.0;
    let exponent = low.select(exponent - 1.0, exponent) + shift;
    let value = exponent.mul_add(LN_2_LOW, log_near_one(f));
    let value = exponent.mul_add(LN_2_HIGH, value);
    let value = x
        .simd_eq(f32::INFINITY)
        .select(f32x16::splat(simd, f32::INFINITY), value);
    let value = x
        .simd_eq(0.0)
        .select(f32x16::splat(simd, f32::NEG_INFINITY), value);
    let value = x.simd_lt(0.0).select(f32x16::splat(simd, f32::NAN), value);
    keep_nan(x, value)
}

/// log(1 + u) for u in [0, 1].
#[inline(always)]
fn log_one_plus_unit<S: Simd>(u: f32x16<S>) -> f32x16<S> {
    let high = u.simd_gt(0.414_213_57);
    let value = log_near_one(high.select((u - 1.0) * 0.5, u));
    high.select(value + LN_2, value)
}

/// log(1 + e^x), without overflow and with relative precision for x → −∞.
#[inline(always)]
pub(crate) fn softplus<S: Simd>(x: f32x16<S>) -> f32x16<S> {
    let value = x.max(0.0) + log_one_plus_unit(exp(-x.abs()));
    keep_nan(x, value)
}

/// 1 / (1 + e^−x).
#[inline(always)]
pub(crate) fn sigmoid<S: Simd>(x: f32x16<S>) -> f32x16<S> {
    let small = exp(-x.abs());
    let above = f32x16::splat(x.simd, 1.0) / (small + 1.0);
    x.simd_lt(0.0).select(small * above, above)
}

/// Hyperbolic tangent.
#[inline(always)]
pub(crate) fn tanh<S: Simd>(x: f32x16<S>) -> f32x16<S> {
    let simd = x.simd;
    let size = x.abs();
    let square = x * x;
    let p = horner(
        square,
        &[
            -5.704_988_7e-3,
            2.063_909e-2,
            -5.373_971_5e-2,
            1.333_144_2e-1,
            -3.333_328e-1,
        ],
    );
    let near = (square * x).mul_add(p, x);
    let e = exp(size * 2.0);
    let far = f32x16::splat(simd, 1.0) - f32x16::splat(simd, 2.0) / (e + 1.0);
    keep_nan(x, size.simd_lt(0.625).select(near, far.copysign(x)))
}

/// Inverse tangent.
#[inline(always)]
pub(crate) fn atan<S: Simd>(x: f32x16<S>) -> f32x16<S> {
    let simd = x.simd;
    let zero = f32x16::splat(simd, 0.0);
    let one = f32x16::splat(simd, 1.0);
    let size = x.abs();
    // Three ranges, reduced by atan(x) = π/2 + atan(−1/x) and π/4 + atan((x−1)/(x+1)).
    let far: mask32x16<S> = size.simd_gt(2.414_213_7);
    let middle: mask32x16<S> = size.simd_gt(0.414_213_57);
    let numerator = far.select(zero - one, middle.select(size - 1.0, size));
    let denominator = far.select(size, middle.select(size + 1.0, one));
    let offset = far.select(
        f32x16::splat(simd, std::f32::consts::FRAC_PI_2),
        middle.select(f32x16::splat(simd, std::f32::consts::FRAC_PI_4), zero),
    );
    let t = numerator / denominator;
    let square = t * t;
    let p = horner(
        square,
        &[8.053_744_5e-2, -1.387_768_6e-1, 1.997_771e-1, -3.333_295e-1],
    );
    let value = (square * t).mul_add(p, t) + offset;
    keep_nan(x, value.copysign(x))
}

#[cfg(test)]
mod tests {
    use fearless_simd::dispatch;

    use super::*;
    use crate::kernel::level;

    macro_rules! on_lanes {
        ($function:ident) => {
            |input: [f32; 16]| -> [f32; 16] {
                dispatch!(level(), simd => super::$function(f32x16::load_array(simd, input)).to_array())
            }
        };
    }

    /// Every 2^stride-th bit pattern of `f32`, both signs, and their neighbourhoods of 0 and ±1.
    fn sweep() -> impl Iterator<Item = f32> {
        (0..=u32::MAX / 2003)
            .map(|i| f32::from_bits(i * 2003))
            .chain((-4000..4000).map(|i| i as f32 * 1e-3))
            .filter(|x| x.is_finite())
    }

    fn worst_error(
        function: impl Fn([f32; 16]) -> [f32; 16],
        exact: impl Fn(f64) -> f64,
        domain: impl Fn(f32) -> bool,
    ) -> f64 {
        let inputs: Vec<f32> = sweep().filter(|&x| domain(x)).collect();
        assert!(inputs.len() > 100_000);
        let mut worst = 0.0f64;
        for chunk in inputs.chunks_exact(16) {
            let chunk: [f32; 16] = chunk.try_into().unwrap();
            for (x, value) in chunk.into_iter().zip(function(chunk)) {
                let exact = exact(f64::from(x));
                let rounded = exact as f32;
                let error = if rounded.is_infinite() || rounded.abs() < f32::MIN_POSITIVE {
                    // Flushed or overflowed: accept the flush, the rounding, and its neighbour.
                    let close = value == rounded
                        || value.abs() <= 1.2 * f32::MIN_POSITIVE
                        || (rounded.is_infinite() && value.abs() > 3.4e38);
                    if close { 0.0 } else { f64::INFINITY }
                } else {
                    ((f64::from(value) - exact) / exact).abs()
                };
                assert!(!error.is_nan(), "NaN at {x}");
                if error > worst {
                    worst = error;
                }
            }
        }
        worst
    }

    #[test]
    fn relative_errors_over_the_whole_range() {
        let all = |_: f32| true;
        let positive = |x: f32| x > 0.0;
        let bound = 2e-6;
        let exp_error = worst_error(on_lanes!(exp), f64::exp, |x| x > EXP_UNDERFLOW);
        assert!(exp_error < bound, "exp {exp_error:e}");
        let log_error = worst_error(on_lanes!(log), f64::ln, positive);
        assert!(log_error < bound, "log {log_error:e}");
        let atan_error = worst_error(on_lanes!(atan), f64::atan, all);
        assert!(atan_error < bound, "atan {atan_error:e}");
        let tanh_error = worst_error(on_lanes!(tanh), f64::tanh, all);
        assert!(tanh_error < bound, "tanh {tanh_error:e}");
        let softplus = |x: f64| x.max(0.0) + (-x.abs()).exp().ln_1p();
        let softplus_error = worst_error(on_lanes!(softplus), softplus, |x| x > EXP_UNDERFLOW);
        assert!(softplus_error < bound, "softplus {softplus_error:e}");
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        let sigmoid_error = worst_error(on_lanes!(sigmoid), sigmoid, |x| x > EXP_UNDERFLOW);
        assert!(sigmoid_error < bound, "sigmoid {sigmoid_error:e}");
    }

    #[test]
    fn special_values() {
        let at = |f: &dyn Fn([f32; 16]) -> [f32; 16], x: f32| f([x; 16])[0];
        let exp = on_lanes!(exp);
        assert_eq!(at(&exp, f32::NEG_INFINITY), 0.0);
        assert_eq!(at(&exp, -100.0), 0.0);
        assert_eq!(at(&exp, f32::INFINITY), f32::INFINITY);
        assert!(at(&exp, f32::NAN).is_nan());
        let log = on_lanes!(log);
        assert_eq!(at(&log, 0.0), f32::NEG_INFINITY);
        assert_eq!(at(&log, 1.0), 0.0);
        assert_eq!(at(&log, f32::INFINITY), f32::INFINITY);
        assert!(at(&log, -1.0).is_nan());
        let atan = on_lanes!(atan);
        assert_eq!(at(&atan, f32::INFINITY), std::f32::consts::FRAC_PI_2);
        assert!(at(&atan, f32::NAN).is_nan());
        let tanh = on_lanes!(tanh);
        assert_eq!(at(&tanh, f32::NEG_INFINITY), -1.0);
        assert!(at(&tanh, f32::NAN).is_nan());
        let softplus = on_lanes!(softplus);
        assert_eq!(at(&softplus, f32::INFINITY), f32::INFINITY);
        assert_eq!(at(&softplus, f32::NEG_INFINITY), 0.0);
    }
}
