//! Draws of which half come from a wider law: more of them where the source is thin.
//!
//! L_K of an observation in a tail of the source rests on the few samples that reach it. A source that is too wide sends more
//! there, so where the likelihood is narrow L_K rewards width, and its leading correction does not take off all of that. Half
//! of the normal base noise z is therefore widened by a factor c, and a sample of the mixture ½φ + ½φ_c counts with the
//! importance weight
//!
//! w_k = φ(z_k) / (½ φ(z_k) + ½ φ_c(z_k)) ≤ 2.
//!
//! x_k = G_θ(z_k) as before, and w_k does not depend on θ: (1/K) Σ_k w_k q(y|x_k) estimates the same q_θ(y). In the middle of
//! the source up to half of the samples are lost, in the tails many times as many are won.

use super::Source;
use crate::estimator::Samples;
use crate::{Matrix, Noise};

/// How far out the wider half is: in D dimensions the radius of z is √D ± 0.7, and the wider half is typically three deviations
/// further out.
const FURTHER_OUT: f32 = 2.0;

/// Base noise, what the source makes of it, and how each row counts.
#[derive(Clone, Debug)]
pub struct Draws {
    /// The base noise z.
    pub z: Matrix,
    /// x = G_θ(z).
    pub x: Matrix,
    /// log w; none where every row counts alike.
    pub log_weights: Option<Vec<f32>>,
}

impl Draws {
    /// So many draws of the source.
    pub fn plain(source: &dyn Source, rows: usize, noise: Noise) -> Self {
        Self::pushed(source, source.base(rows, noise), None)
    }

    /// So many draws, every other one from the wider law; plain ones where the base noise has no tails.
    pub fn tailed(source: &dyn Source, rows: usize, noise: Noise) -> Self {
        let mut z = source.base(rows, noise);
        let columns = source.normal_columns();
        let log_weights = columns.map(|columns| widen(&mut z, columns));
        Self::pushed(source, z, log_weights)
    }

    fn pushed(source: &dyn Source, z: Matrix, log_weights: Option<Vec<f32>>) -> Self {
        let x = source.push(z.view());
        Self { z, x, log_weights }
    }

    /// As an estimator takes them.
    pub fn samples(&self) -> Samples<'_> {
        match &self.log_weights {
            Some(log_weights) => Samples::Weighted(self.x.view(), log_weights),
            None => Samples::Shared(self.x.view()),
        }
    }
}

/// Widens the first columns of every other row; returns log w of every row.
fn widen(z: &mut Matrix, columns: usize) -> Vec<f32> {
    let dim = columns as f32;
    let wide = 1.0 + FURTHER_OUT / dim.sqrt();
    (0..z.rows())
        .map(|row| {
            let z = &mut z.row_mut(row)[..columns];
            if row % 2 == 1 {
                z.iter_mut().for_each(|z| *z *= wide);
            }
            let square: f32 = z.iter().map(|z| z * z).sum();
            // log φ_c(z)/φ(z), and log w = log 2 − log (1 + that ratio).
            let ratio = 0.5 * square * (1.0 - 1.0 / (wide * wide)) - dim * wide.ln();
            2f32.ln() - ratio.max(0.0) - (-ratio.abs()).exp().ln_1p()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Affine, Base};
    use super::*;
    use crate::Purpose;
    use crate::estimator::corrected_log_marginal_values;
    use crate::estimator::testing::GaussianModel;

    fn noise(step: u64) -> Noise {
        Noise::new(5, Purpose::Test, step)
    }

    fn normal(dim: usize) -> Affine {
        Affine::new(
            Base::Normal,
            &vec![0.0; dim],
            &vec![1.0; dim],
            &vec![false; dim],
        )
    }

    /// Weighted means of 1, z_1 and z_1² in one to six dimensions: bound 4.5 standard errors (false-alarm rate 7e-6 each).
    #[test]
    fn weights_give_the_law_back() {
        for dim in 1..=6 {
            let draws = Draws::tailed(&normal(dim), 40_000, noise(dim as u64));
            let log_weights = draws.log_weights.as_ref().unwrap();
            for (power, expected) in [(0, 1.0), (1, 0.0), (2, 1.0)] {
                let terms = log_weights.iter().enumerate();
                let terms: Vec<f64> = terms
                    .map(|(row, &log)| {
                        f64::from(log).exp() * f64::from(draws.x.row(row)[0]).powi(power)
                    })
                    .collect();
                let n = terms.len() as f64;
                let mean = terms.iter().sum::<f64>() / n;
                let variance = terms.iter().map(|t| (t - mean).powi(2)).sum::<f64>() / n;
                let error = (variance / n).sqrt();
                assert!(error < 0.02, "{dim}: {error}");
                assert!(
                    (mean - expected).abs() < 4.5 * error,
                    "{dim}: {mean} ± {error}"
                );
            }
            assert!(log_weights.iter().all(|&log| log <= 2f32.ln()));
        }
    }

    /// Mean squared error of log q(y) at K = 200 over 300 repeats, y = 3.5 (3.1 deviations out) and y = 0: by a factor of more
    /// than 4 smaller in the tail, and at most 3 times as large in the middle. The ratios found are 17 and 0.53, their
    /// relative errors below 20 %: false-alarm rate below 1e-5.
    #[test]
    fn tails_are_seen_better() {
        let model = GaussianModel::STANDARD;
        let source = normal(1);
        for (y, least, most) in [(3.5, 4.0, f64::INFINITY), (0.0, 1.0 / 3.0, 3.0)] {
            let exact = model.log_marginal(y);
            let y = Matrix::from_vec(vec![y as f32], 1);
            let square_error = |draw: fn(&dyn Source, usize, Noise) -> Draws| -> f64 {
                (0..300)
                    .map(|repeat| {
                        let draws = draw(&source, 200, noise(100 + repeat));
                        let likelihood = model.likelihood();
                        let values =
                            corrected_log_marginal_values(&likelihood, y.view(), draws.samples());
                        (values.unwrap()[0] - exact).powi(2)
                    })
                    .sum()
            };
            let ratio = square_error(Draws::plain) / square_error(Draws::tailed);
            assert!(ratio > least && ratio < most, "{y:?}: {ratio}");
        }
    }

    #[test]
    fn a_law_without_tails_is_left_alone() {
        let uniform = Affine::new(Base::Uniform, &[0.0], &[1.0], &[false]);
        let tailed = Draws::tailed(&uniform, 50, noise(1));
        assert!(tailed.log_weights.is_none());
        assert_eq!(tailed.x, Draws::plain(&uniform, 50, noise(1)).x);
    }
}
