//! Covariance of the bins of a spectrum: from replicas, through linear maps, as correlation, and as a χ².

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// A symmetric matrix of covariances, row by row.
///
/// ```
/// use neb::unfold::Covariance;
///
/// let replicas = [vec![9.0, 4.0], vec![11.0, 6.0], vec![10.0, 5.0]];
/// let covariance = Covariance::of_replicas(&replicas)?;
/// assert_eq!(covariance.errors(), [1.0, 1.0]);
/// assert_eq!(covariance.correlation(), [1.0, 1.0, 1.0, 1.0]);
/// # Ok::<(), neb::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Covariance {
    size: usize,
    values: Vec<f64>,
}

impl Covariance {
    /// No covariance at all.
    pub fn zeros(size: usize) -> Self {
        Self {
            size,
            values: vec![0.0; size * size],
        }
    }

    /// Independent bins of these variances.
    pub fn diagonal(variances: &[f64]) -> Self {
        let mut covariance = Self::zeros(variances.len());
        for (bin, variance) in variances.iter().enumerate() {
            covariance.values[bin * variances.len() + bin] = *variance;
        }
        covariance
    }

    /// The sample covariance Σ_r (h_r − h̄)(h_r − h̄)ᵀ / (R − 1) of the same spectrum in R replicas.
    ///
    /// # Errors
    /// Fewer than two replicas, or replicas of different lengths.
    pub fn of_replicas(replicas: &[Vec<f64>]) -> Result<Self> {
        let size = replicas.first().map_or(0, Vec::len);
        if replicas.len() < 2 || replicas.iter().any(|replica| replica.len() != size) {
            return Err(Error::input(
                format!("{} replicas give no covariance", replicas.len()),
                "give at least two replicas of the same bins",
            ));
        }
        let count = replicas.len() as f64;
        let mean = |bin: usize| replicas.iter().map(|replica| replica[bin]).sum::<f64>() / count;
        let means: Vec<f64> = (0..size).map(mean).collect();
        let mut covariance = Self::zeros(size);
        for (i, row) in covariance.values.chunks_exact_mut(size.max(1)).enumerate() {
            for (j, value) in row.iter_mut().enumerate() {
                let product =
                    |replica: &Vec<f64>| (replica[i] - means[i]) * (replica[j] - means[j]);
                *value = replicas.iter().map(product).sum::<f64>() / (count - 1.0);
            }
        }
        Ok(covariance)
    }

    /// J V Jᵀ of independent inputs of these variances; `jacobian` has one row for each bin.
    pub(super) fn propagated(jacobian: &[f64], variances: &[f64]) -> Self {
        let inputs = variances.len();
        let size = jacobian.len().checked_div(inputs).unwrap_or(0);
        let mut covariance = Self::zeros(size);
        let row = |bin: usize| &jacobian[bin * inputs..(bin + 1) * inputs];
        let rows = covariance.values.par_chunks_mut(size.max(1));
        rows.enumerate().for_each(|(i, out)| {
            let weighted: Vec<f64> = row(i).iter().zip(variances).map(|(j, v)| j * v).collect();
            for (j, value) in out.iter_mut().enumerate() {
                *value = weighted.iter().zip(row(j)).map(|(a, b)| a * b).sum();
            }
        });
        covariance
    }

    /// Number of bins.
    pub fn size(&self) -> usize {
        self.size
    }

    /// All values, row by row.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Covariance of two bins.
    pub fn at(&self, i: usize, j: usize) -> f64 {
        self.values[i * self.size + j]
    }

    /// Standard error of each bin.
    pub fn errors(&self) -> Vec<f64> {
        let error = |bin: usize| self.at(bin, bin).max(0.0).sqrt();
        (0..self.size).map(error).collect()
    }

    /// Correlations, row by row; 0 where a bin has no variance, 1 on the diagonal.
    pub fn correlation(&self) -> Vec<f64> {
        let errors = self.errors();
        let correlation = |place: usize| {
            let (i, j) = (place / self.size, place % self.size);
            let product = errors[i] * errors[j];
            match (i == j, product > 0.0) {
                (true, _) => 1.0,
                (false, true) => (self.values[place] / product).clamp(-1.0, 1.0),
                (false, false) => 0.0,
            }
        };
        (0..self.values.len()).map(correlation).collect()
    }

    /// The covariance of some of the bins, in this order.
    pub fn restricted(&self, bins: &[usize]) -> Self {
        let pairs = bins.iter().flat_map(|&i| bins.iter().map(move |&j| (i, j)));
        Self {
            size: bins.len(),
            values: pairs.map(|(i, j)| self.at(i, j)).collect(),
        }
    }

    /// The covariance of the bins times these factors.
    ///
    /// # Panics
    /// If there is not one factor for each bin.
    pub fn scaled(&self, factors: &[f64]) -> Self {
        assert_eq!(factors.len(), self.size, "one factor for each bin");
        let scale = |(place, value): (usize, &f64)| {
            value * factors[place / self.size] * factors[place % self.size]
        };
        Self {
            size: self.size,
            values: self.values.iter().enumerate().map(scale).collect(),
        }
    }

    /// The covariance of h/Σh, for a spectrum h with this covariance: J C Jᵀ, J = (1 − p 1ᵀ)/Σh, p = h/Σh.
    ///
    /// # Panics
    /// If the spectrum has another number of bins.
    pub fn normalised(&self, spectrum: &[f64]) -> Self {
        assert_eq!(spectrum.len(), self.size, "one value for each bin");
        let total: f64 = spectrum.iter().sum();
        let rows = || self.values.chunks_exact(self.size.max(1));
        let row_sums: Vec<f64> = rows().map(|row| row.iter().sum()).collect();
        let sum: f64 = row_sums.iter().sum();
        let value = |place: usize| {
            let (i, j) = (place / self.size, place % self.size);
            let (p, q) = (spectrum[i] / total, spectrum[j] / total);
            (self.values[place] - p * row_sums[j] - q * row_sums[i] + p * q * sum) / (total * total)
        };
        Self {
            size: self.size,
            values: (0..self.values.len()).map(value).collect(),
        }
    }

    /// The covariance of the sum of two independent quantities.
    ///
    /// # Panics
    /// If the sizes differ.
    pub fn plus(&self, other: &Self) -> Self {
        assert_eq!(self.size, other.size, "covariances of the same bins");
        let sum = self.values.iter().zip(&other.values).map(|(a, b)| a + b);
        Self {
            size: self.size,
            values: sum.collect(),
        }
    }

    /// dᵀ C⁻¹ d; none where C cannot be inverted.
    ///
    /// # Panics
    /// If there is not one difference for each bin.
    pub fn chi_square(&self, difference: &[f64]) -> Option<f64> {
        assert_eq!(difference.len(), self.size, "one difference for each bin");
        let n = self.size;
        let mut factor = vec![0.0; n * n];
        let mut solved = vec![0.0; n];
        for i in 0..n {
            for j in 0..=i {
                let dot: f64 = (0..j).map(|k| factor[i * n + k] * factor[j * n + k]).sum();
                let rest = self.at(i, j) - dot;
                if i != j {
                    factor[i * n + j] = rest / factor[j * n + j];
                } else if rest > 1e-12 * self.at(i, i) {
                    factor[i * n + i] = rest.sqrt();
                } else {
                    return None;
                }
            }
            let dot: f64 = (0..i).map(|k| factor[i * n + k] * solved[k]).sum();
            solved[i] = (difference[i] - dot) / factor[i * n + i];
        }
        Some(solved.iter().map(|value| value * value).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Noise, Purpose};

    /// Replicas of known covariance: h = A z with A = [[2, 0], [1, 1]], so C = [[4, 2], [2, 2]]. 4000 replicas: each entry has a
    /// standard error of at most 4 · √(2/4000) = 0.09; false-alarm rate below 1e-3 in all (the seed is fixed).
    #[test]
    fn replicas_give_their_covariance() {
        let noise = Noise::new(2, Purpose::Test, 0).normal(4000, 2);
        let replica = |row: usize| {
            let [a, b] = [0, 1].map(|column| f64::from(noise.row(row)[column]));
            vec![5.0 + 2.0 * a, a + b]
        };
        let replicas: Vec<Vec<f64>> = (0..4000).map(replica).collect();
        let covariance = Covariance::of_replicas(&replicas).unwrap();
        for (value, expected) in covariance.values().iter().zip([4.0, 2.0, 2.0, 2.0]) {
            assert!((value - expected).abs() < 0.36, "{covariance:?}");
        }
        let correlation = covariance.correlation();
        assert!((correlation[1] - 0.5f64.sqrt()).abs() < 0.04);
        assert_eq!((correlation[0], correlation[3]), (1.0, 1.0));
        assert!(Covariance::of_replicas(&replicas[..1]).is_err());
    }

    /// [[4, 2], [2, 2]]⁻¹ = [[½, −½], [−½, 1]].
    #[test]
    fn chi_square_is_the_quadratic_form_of_the_inverse() {
        let covariance = Covariance {
            size: 2,
            values: vec![4.0, 2.0, 2.0, 2.0],
        };
        let square = covariance.chi_square(&[1.0, 3.0]).unwrap();
        assert!((square - (0.5 - 3.0 + 9.0)).abs() < 1e-12, "{square}");
        let singular = Covariance {
            size: 2,
            values: vec![1.0; 4],
        };
        assert!(singular.chi_square(&[1.0, 1.0]).is_none());
    }

    /// Of independent Poisson counts h, h/Σh has the covariance of a multinomial: (p δ − p pᵀ)/n.
    #[test]
    fn normalised_counts_are_multinomial() {
        let counts = [10.0, 30.0, 60.0];
        let covariance = Covariance::diagonal(&counts).normalised(&counts);
        for i in 0..3 {
            for j in 0..3 {
                let (p, q) = (counts[i] / 100.0, counts[j] / 100.0);
                let same = if i == j { p } else { 0.0 };
                assert!((covariance.at(i, j) - (same - p * q) / 100.0).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn parts_scales_and_sums() {
        let covariance = Covariance::diagonal(&[1.0, 4.0, 9.0]);
        let part = covariance.restricted(&[2, 0]).scaled(&[2.0, 3.0]);
        assert_eq!(part.values(), [36.0, 0.0, 0.0, 9.0]);
        assert_eq!(part.plus(&part).errors(), [72f64.sqrt(), 18f64.sqrt()]);
    }
}
