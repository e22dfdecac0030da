//! The triangular discriminator, by which unfolded spectra are compared with a truth.
//!
//! Δ = ½ Σ_b (p_b − q_b)²/(p_b + q_b), with p and q the shares of the bins: 0 for equal spectra, 1 for spectra without a common
//! bin. Two samples of one law are not at 0 but, on average, at the noise floor (B/4)(1/n₁ + 1/n₂), with B bins and the effective
//! numbers of entries n₁ and n₂.

use serde::{Deserialize, Serialize};

use super::Histogram;
use crate::{Error, Result};

/// A triangular discriminator, times 1000.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Triangular {
    /// Δ × 10³.
    pub value: f64,
    /// What samples of one law have on average.
    pub noise_floor: f64,
}

/// Compares two spectra in the same bins; under- and overflow are left out.
///
/// ```
/// use neb::unfold::{Binning, Histogram, triangular};
/// use neb::Matrix;
///
/// let bins = [Binning::uniform(0.0, 3.0, 3)?];
/// let of = |values: &[f32]| {
///     let rows = Matrix::from_vec(values.to_vec(), 1);
///     Histogram::of(rows.view(), &[0], None, &bins)
/// };
/// let delta = triangular(&of(&[0.5, 1.5])?, &of(&[1.5, 2.5])?)?;
/// assert_eq!(delta.value, 500.0);
/// # Ok::<(), neb::Error>(())
/// ```
///
/// # Errors
/// Other bins, or bins that hold nothing.
pub fn triangular(p: &Histogram, q: &Histogram) -> Result<Triangular> {
    if p.axes() != q.axes() {
        return Err(Error::input(
            "the two spectra have different bins",
            "fill both in the same bins",
        ));
    }
    let (total_p, total_q) = (p.positive_inside()?, q.positive_inside()?);
    let bins: Vec<(f64, f64)> = p
        .inside()
        .into_iter()
        .zip(q.inside())
        .map(|(p, q)| (p.max(0.0) / total_p, q.max(0.0) / total_q))
        .filter(|(p, q)| p + q > 0.0)
        .collect();
    let terms = bins.iter().map(|(p, q)| (p - q).powi(2) / (p + q));
    let rates = 1.0 / p.effective_entries() + 1.0 / q.effective_entries();
    Ok(Triangular {
        value: 500.0 * terms.sum::<f64>(),
        noise_floor: 250.0 * bins.len() as f64 * rates,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unfold::Binning;
    use crate::{Matrix, Noise, Purpose};

    fn of(values: Matrix, weights: Option<&[f32]>) -> Histogram {
        let bins = [Binning::uniform(0.0, 1.0, 20).unwrap()];
        Histogram::of(values.view(), &[0], weights, &bins).unwrap()
    }

    #[test]
    fn by_hand() {
        let bins = [Binning::uniform(0.0, 2.0, 2).unwrap()];
        let empty = Histogram::new(&bins).unwrap();
        let with = |low: f64, high: f64| {
            let sums = vec![7.0, low, high, 9.0];
            empty.with_contents(sums.clone(), sums)
        };
        // Shares (0.25, 0.75) and (0.5, 0.5): ½ (1/16 / 0.75 + 1/16 / 1.25).
        let delta = triangular(&with(1.0, 3.0), &with(10.0, 10.0)).unwrap();
        assert!((delta.value - 500.0 * (0.0625 / 0.75 + 0.0625 / 1.25)).abs() < 1e-9);
        assert!((delta.noise_floor - 500.0 * (1.0 / 4.0 + 1.0 / 20.0)).abs() < 1e-9);
        assert!(triangular(&with(1.0, 3.0), &empty).is_err());
    }

    /// Two samples of one law are at the floor, times (B − 1)/B since shares add up to 1. Over 200 pairs of samples the mean of 20 bins
    /// has a relative standard error of √(2/20/200) = 2.2 %; four of them (false-alarm rate below 1e-4; the seed is fixed).
    #[test]
    fn equal_laws_are_at_the_noise_floor() {
        let (mut sum, mut floor) = (0.0, 0.0);
        for pair in 0..200 {
            let draw = |n, step| Noise::new(9, Purpose::Test, step).uniform(n, 1);
            // Weights of mean 1 and mean square 1.25: effective entries are 4/5 of the rows.
            let weights: Vec<f32> = (0..1000).map(|row| [0.5, 1.5][row % 2]).collect();
            let p = of(draw(1000, 2 * pair), Some(&weights));
            let delta = triangular(&p, &of(draw(500, 2 * pair + 1), None)).unwrap();
            sum += delta.value;
            floor += delta.noise_floor;
        }
        assert!((floor / 200.0 - 5000.0 * (1.25 / 1000.0 + 1.0 / 500.0)).abs() < 1e-6);
        assert!((sum / floor - 0.95).abs() < 0.09, "{}", sum / floor);
    }
}
