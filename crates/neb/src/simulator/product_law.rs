//! Laws of x with independent dimensions: the sources and proposals of the built-in problems.

use std::f64::consts::TAU;

use super::draw_rows;
use crate::{Matrix, Noise};

/// A distribution of x centred at zero, with independent dimensions.
#[derive(Clone, Debug, PartialEq)]
pub enum ProductLaw {
    /// Uniform on the cube (−`half_width`, `half_width`)^`dim`.
    Uniform {
        /// Half the edge of the cube.
        half_width: f64,
        /// Number of dimensions.
        dim: usize,
    },
    /// Normal with mean zero.
    Normal {
        /// Standard deviation of each dimension.
        deviations: Vec<f64>,
    },
}

impl ProductLaw {
    /// Uniform on (−`half_width`, `half_width`)^`dim`.
    pub fn uniform(half_width: f64, dim: usize) -> Self {
        Self::Uniform { half_width, dim }
    }

    /// Normal with these standard deviations.
    pub fn normal(deviations: &[f64]) -> Self {
        Self::Normal {
            deviations: deviations.to_vec(),
        }
    }

    /// Number of dimensions.
    pub fn dim(&self) -> usize {
        match self {
            Self::Uniform { dim, .. } => *dim,
            Self::Normal { deviations } => deviations.len(),
        }
    }

    /// `n` draws; row r is the same whatever `n` is.
    pub fn draw(&self, n: usize, noise: Noise) -> Matrix {
        draw_rows(n, self.dim(), noise, |_, stream, x| match self {
            Self::Uniform { half_width, .. } => {
                for value in x {
                    *value = half_width * (2.0 * stream.uniform() - 1.0);
                }
            }
            Self::Normal { deviations } => {
                for (value, deviation) in x.iter_mut().zip(deviations) {
                    *value = deviation * stream.normal();
                }
            }
        })
    }

    /// log p(x); −∞ outside the cube of a uniform law.
    pub fn log_density(&self, x: &[f64]) -> f64 {
        match self {
            Self::Uniform { half_width, dim } => {
                if x.iter().all(|value| value.abs() <= *half_width) {
                    -(*dim as f64) * (2.0 * half_width).ln()
                } else {
                    f64::NEG_INFINITY
                }
            }
            Self::Normal { deviations } => x
                .iter()
                .zip(deviations)
                .map(|(x, s)| -0.5 * (x / s).powi(2) - 0.5 * TAU.ln() - s.ln())
                .sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Purpose;

    const NOISE: Noise = Noise {
        seed: 3,
        purpose: Purpose::Test,
        step: 0,
    };

    /// Each bound is 5 standard errors; 12 bounds: false alarm below 1e-5, seed fixed.
    #[test]
    fn mean_and_deviation_of_each_dimension() {
        let n = 40_000;
        let cases = [
            (ProductLaw::uniform(1.5, 2), vec![1.5 / 3f64.sqrt(); 2], 1.8),
            (
                ProductLaw::normal(&[0.25, 0.5, 2.0, 1.0]),
                vec![0.25, 0.5, 2.0, 1.0],
                3.0,
            ),
        ];
        for (law, deviations, kurtosis) in cases {
            let x = law.draw(n, NOISE);
            for (col, deviation) in deviations.iter().enumerate() {
                let moment = |power| {
                    let values = (0..n).map(|row| f64::from(x.row(row)[col]).powi(power));
                    values.sum::<f64>() / n as f64
                };
                let root = (n as f64).sqrt();
                assert!(moment(1).abs() < 5.0 * deviation / root);
                let variance = deviation * deviation;
                let bound = 5.0 * variance * f64::sqrt(kurtosis - 1.0) / root;
                assert!((moment(2) - variance).abs() < bound);
            }
        }
    }

    #[test]
    fn uniform_draws_fill_the_cube_and_stay_inside() {
        let x = ProductLaw::uniform(4.0, 5).draw(20_000, NOISE);
        let largest = x.values().iter().fold(0f32, |m, v| m.max(v.abs()));
        assert!(largest < 4.0 && largest > 3.999, "{largest}");
    }

    /// Midpoint rule on a grid, over a square that reaches 8 standard deviations.
    #[test]
    fn densities_integrate_to_one() {
        for law in [
            ProductLaw::uniform(1.0, 2),
            ProductLaw::normal(&[0.25, 0.5]),
        ] {
            let (half, steps) = (4.0, 800);
            let cell = 2.0 * half / f64::from(steps);
            let at = |i: i32| (f64::from(i) + 0.5) * cell - half;
            let mut integral = 0.0;
            for i in 0..steps {
                for j in 0..steps {
                    integral += law.log_density(&[at(i), at(j)]).exp() * cell * cell;
                }
            }
            assert!((integral - 1.0).abs() < 1e-10, "{integral}");
        }
    }
}
