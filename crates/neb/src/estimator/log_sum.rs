//! log Σ_k exp ℓ_k over `f32` values, summed in `f64`.
//!
//! Every exponential is taken relative to the largest value. Terms below e^−80 of it count as zero:
//! they could not change the sum, and the denormal numbers they lead to would take most of the time.

/// Independent partial results of one pass, so that the compiler can use vector registers.
const LANES: usize = 16;

/// Exponents below this give zero.
const LOWEST_EXPONENT: f32 = -80.0;

/// e^t for t ≤ 0 to 2e-7 relative, without branches; zero below t = −80, NaN for NaN.
#[inline(always)]
pub(crate) fn exp_or_zero(t: f32) -> f32 {
    // Adding 1.5·2²³ rounds to a whole number and leaves it in the low bits.
    const ROUND: f32 = 12_582_912.0;
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    let shifted = t * std::f32::consts::LOG2_E + ROUND;
    let power = shifted - ROUND;
    let rest = (t - power * LN_2_HIGH) - power * LN_2_LOW;
    // Minimax polynomial of e^rest on ±½ ln 2, from the Cephes library.
    let tail = ((((1.987_569_1e-4 * rest + 1.398_2e-3) * rest + 8.333_452e-3) * rest
        + 4.166_579_6e-2)
        * rest
        + 1.666_666_5e-1)
        * rest
        + 0.5;
    let fraction = tail * rest * rest + rest + 1.0;
    let scale = f32::from_bits((shifted.to_bits() << 23).wrapping_add(0x3f80_0000));
    if t < LOWEST_EXPONENT {
        0.0
    } else {
        fraction * scale
    }
}

/// The largest value, NaN ignored; −∞ where there is none.
pub(crate) fn largest(values: &[f32]) -> f32 {
    let larger = |a: f32, b: f32| if b > a { b } else { a };
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let (blocks, rest) = values.as_chunks::<LANES>();
    for block in blocks {
        for (lane, &value) in lanes.iter_mut().zip(block) {
            *lane = larger(*lane, value);
        }
    }
    lanes
        .iter()
        .chain(rest)
        .fold(f32::NEG_INFINITY, |a, &b| larger(a, b))
}

/// Running log Σ exp ℓ and the effective number of terms.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogSum {
    largest: f32,
    sum: f64,
    sum_of_squares: f64,
}

impl LogSum {
    /// The sum of no terms.
    pub(crate) const EMPTY: Self = Self {
        largest: f32::NEG_INFINITY,
        sum: 0.0,
        sum_of_squares: 0.0,
    };

    /// The sum over `values`; NaN if one of them is NaN or +∞.
    pub(crate) fn of(values: &[f32]) -> Self {
        let largest = largest(values);
        if largest == f32::NEG_INFINITY {
            let sum = values.iter().find(|value| value.is_nan());
            return Self {
                sum: sum.map_or(0.0, |_| f64::NAN),
                ..Self::EMPTY
            };
        }
        let mut sum = [0.0; LANES];
        let mut sum_of_squares = [0.0; LANES];
        let (blocks, rest) = values.as_chunks::<LANES>();
        for block in blocks {
            for lane in 0..LANES {
                let term = f64::from(exp_or_zero(block[lane] - largest));
                sum[lane] += term;
                sum_of_squares[lane] += term * term;
            }
        }
        for (lane, &value) in rest.iter().enumerate() {
            let term = f64::from(exp_or_zero(value - largest));
            sum[lane] += term;
            sum_of_squares[lane] += term * term;
        }
        Self {
            largest,
            sum: sum.iter().sum(),
            sum_of_squares: sum_of_squares.iter().sum(),
        }
    }

    /// The sum over the terms of both.
    pub(crate) fn merge(self, other: Self) -> Self {
        let (high, low) = if other.largest > self.largest {
            (other, self)
        } else {
            (self, other)
        };
        let ratio = if low.largest == high.largest {
            1.0
        } else {
            (f64::from(low.largest) - f64::from(high.largest)).exp()
        };
        Self {
            largest: high.largest,
            sum: high.sum + ratio * low.sum,
            sum_of_squares: high.sum_of_squares + ratio * ratio * low.sum_of_squares,
        }
    }

    /// log Σ exp ℓ; −∞ if no term is above −∞.
    pub(crate) fn value(&self) -> f64 {
        if self.largest == f32::NEG_INFINITY {
            if self.sum.is_nan() {
                f64::NAN
            } else {
                f64::NEG_INFINITY
            }
        } else {
            f64::from(self.largest) + self.sum.ln()
        }
    }

    /// (Σ e)² / Σ e² = 1 / Σ w² of the normalised terms w: one if a single term rules, their number if all are equal.
    pub(crate) fn effective_terms(&self) -> f64 {
        self.sum * self.sum / self.sum_of_squares
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_to_2e_minus_7() {
        for step in 0..800_000 {
            let t = -step as f32 * 1e-4;
            let exact = f64::from(t).exp();
            let error = (f64::from(exp_or_zero(t)) - exact).abs() / exact;
            assert!(error < 2e-7, "exp({t}) is off by {error:e}");
        }
        assert_eq!(exp_or_zero(-80.1), 0.0);
        assert_eq!(exp_or_zero(f32::NEG_INFINITY), 0.0);
        assert!(exp_or_zero(f32::NAN).is_nan());
    }

    #[test]
    fn sums_of_any_length_and_split() {
        for n in [1, 15, 16, 17, 100] {
            let values: Vec<f32> = (0..n).map(|k| ((k * 37) % 11) as f32 - 1000.0).collect();
            let terms = || values.iter().map(|&v| (f64::from(v) + 1000.0).exp());
            let (sum, squares) = (terms().sum::<f64>(), terms().map(|t| t * t).sum::<f64>());
            let whole = LogSum::of(&values);
            let (left, right) = values.split_at(n / 3);
            for total in [whole, LogSum::of(left).merge(LogSum::of(right))] {
                assert!((total.value() - (sum.ln() - 1000.0)).abs() < 1e-6);
                assert!((total.effective_terms() - sum * sum / squares).abs() < 1e-5);
            }
        }
    }

    #[test]
    fn nothing_nan_and_infinity_stay_visible() {
        let none = f32::NEG_INFINITY;
        assert_eq!(LogSum::EMPTY.value(), f64::NEG_INFINITY);
        assert_eq!(LogSum::of(&[none, none]).value(), f64::NEG_INFINITY);
        assert_eq!(
            LogSum::of(&[none]).merge(LogSum::of(&[none])).value(),
            f64::NEG_INFINITY
        );
        assert_eq!(LogSum::of(&[none]).merge(LogSum::of(&[2.0])).value(), 2.0);
        for bad in [f32::NAN, f32::INFINITY] {
            assert!(LogSum::of(&[bad]).value().is_nan());
            assert!(LogSum::of(&[bad, 1.0]).value().is_nan());
            assert!(
                LogSum::of(&[1.0])
                    .merge(LogSum::of(&[bad]))
                    .value()
                    .is_nan()
            );
        }
    }
}
