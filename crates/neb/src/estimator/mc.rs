//! The Monte Carlo estimate L_K(y) = log (1/K) Σ_k q(y|x_k), x_k ~ q_θ.
//!
//! With r = E[w²]/E[w]² − 1, w = q(y|x): mean log q(y) − r/2K + O(1/K²), variance r/K. Its gradient
//! with respect to x_k weights ∂ log q(y|x_k)/∂x_k by the softmax share w_k = q(y|x_k) / Σ_j q(y|x_j).

use super::log_sum::LogSum;
use super::pairs::{Block, RowTerm, estimate};
use super::{Batch, Estimate, Gradient, Samples};
use crate::{Likelihood, Result};

/// L_K of every observation, their mean, and its gradient with respect to the samples.
///
/// An observation that no sample can have produced (log q(y|x_k) = −∞ for every k) has no gradient
/// to learn from and no finite value; it is an error that names the row, never a silent floor.
///
/// # Errors
/// If shapes do not match, or the value of an observation is not finite.
pub fn mc(
    likelihood: &dyn Likelihood,
    batch: Batch,
    samples: Samples,
    gradient: Gradient,
) -> Result<Estimate> {
    let row = |log_probs: &[f32]| {
        let sum = LogSum::of(log_probs);
        RowTerm {
            value: sum.value() - (log_probs.len() as f64).ln(),
            effective_samples: sum.effective_terms(),
            blocks: vec![Block {
                log_sum: sum.value(),
                factor: 1.0,
                square: 0.0,
            }],
        }
    };
    estimate(likelihood, batch, samples, gradient, row, |_| 0)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{
        AdditiveNoise, GaussianModel, PointMass, finite_differences, log_mean_exp, with_threads,
    };
    use super::super::{log_marginal, log_marginal_values};
    use super::*;
    use crate::{Matrix, Noise, Purpose};

    /// (y, log q(y), r) of the standard model.
    const EXACT: [(f64, f64, f64); 3] = [
        (0.0, -1.030510, 0.666667),
        (1.0, -1.430510, 1.378289),
        (2.0, -2.630510, 5.910540),
    ];

    fn noise(step: u64) -> Noise {
        Noise::new(11, Purpose::Test, step)
    }

    /// L_K for `repeats` independent sets of samples.
    fn repeated(y: f64, k: usize, repeats: usize, step: u64) -> Vec<f64> {
        let model = GaussianModel::STANDARD;
        let y = Matrix::from_vec(vec![y as f32; repeats], 1);
        let x = model.samples(noise(step), repeats * k);
        let samples = Samples::Independent(x.view());
        let batch = Batch::from(y.view());
        mc(&model.likelihood(), batch, samples, Gradient::Sparse)
            .unwrap()
            .values
    }

    fn mean_and_variance(values: &[f64]) -> (f64, f64) {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n;
        (mean, variance)
    }

    /// E[wᵖ] / E[w]ᵖ of w = q(y|x), x ~ N(0, 1), noise 0.5: a Gaussian integral.
    fn relative_moment(y: f64, p: f64) -> f64 {
        let raw = |p: f64| {
            let s2 = 0.25;
            let norm = (std::f64::consts::TAU * s2).powf(-p / 2.0);
            norm * (s2 / (s2 + p)).sqrt() * (-p * y * y / (2.0 * (s2 + p))).exp()
        };
        raw(p) / raw(1.0).powf(p)
    }

    /// Mean and variance of L_K against their expansions to order 1/K², from the moments of w.
    /// With 20 000 repeats the bias r/2K is 7 to 11 standard errors, and the next order is below half of
    /// one. Bound on the mean: 4 standard errors (false-alarm rate 6e-5 each); on the variance 6 %, at
    /// least 4 of its standard errors.
    #[test]
    fn mean_and_variance_follow_the_expansion() {
        let repeats = 20_000;
        for (step, ((y, log_q, r), k)) in EXACT.into_iter().zip([64, 64, 256]).enumerate() {
            let exact_r = relative_moment(y, 2.0) - 1.0;
            assert!((GaussianModel::STANDARD.log_marginal(y) - log_q).abs() < 1e-6);
            assert!((exact_r - r).abs() < 1e-6);
            let third = relative_moment(y, 3.0) - 3.0 * relative_moment(y, 2.0) + 2.0;
            let kf = k as f64;
            let bias = -r / (2.0 * kf) + (third / 3.0 - 0.75 * r * r) / (kf * kf);
            let expected = r / kf + (2.5 * r * r - third) / (kf * kf);

            let (mean, variance) = mean_and_variance(&repeated(y, k, repeats, step as u64));
            let error = (variance / repeats as f64).sqrt();
            assert!(r / (2.0 * kf) > 6.0 * error);
            assert!(
                (mean - log_q - bias).abs() < 4.0 * error,
                "y = {y}: bias {} is not {bias}",
                mean - log_q
            );
            assert!(
                (variance / expected - 1.0).abs() < 0.06,
                "y = {y}: variance {variance} is not {expected}"
            );
        }
    }

    /// Each gap of E L_K is more than 6 standard errors wide, so a reversal by chance is below 1e-8.
    #[test]
    fn the_mean_rises_with_k() {
        for (y, log_q, _) in EXACT {
            let mut last = f64::NEG_INFINITY;
            for k in [1, 4, 16, 64] {
                let (mean, variance) = mean_and_variance(&repeated(y, k, 10_000, 50 + k as u64));
                let error = (variance / 10_000.0).sqrt();
                assert!(mean > last + 4.0 * error, "y = {y}, K = {k}");
                last = mean;
            }
            assert!(last < log_q);
        }
    }

    fn plane(rows: usize, scale: f32, step: u64) -> Matrix {
        let z = noise(step).normal(rows, 2);
        Matrix::from_fn(rows, 2, |row, col| scale * z.row(row)[col])
    }

    const PLANE: AdditiveNoise = AdditiveNoise {
        dim: 2,
        deviation: 0.5,
    };

    #[test]
    fn gradient_is_the_derivative_of_the_closed_form() {
        let y = plane(5, 1.0, 100);
        let event_weights = [1.0, 0.5, 2.0, 1.0, 0.3];
        let total: f64 = event_weights.iter().map(|&v| f64::from(v)).sum();
        let batch = Batch {
            weights: Some(&event_weights),
            ..Batch::from(y.view())
        };
        let k = 300;
        for independent in [false, true] {
            let x = plane(if independent { 5 * k } else { k }, 1.0, 101);
            let samples = if independent {
                Samples::Independent(x.view())
            } else {
                Samples::Shared(x.view())
            };
            let found = mc(&PLANE, batch, samples, Gradient::Dense).unwrap();
            let value = |x: &[f64]| -> f64 {
                (0..5)
                    .map(|row| {
                        let x = if independent {
                            &x[row * 2 * k..(row + 1) * 2 * k]
                        } else {
                            x
                        };
                        f64::from(event_weights[row]) / total * log_mean_exp(y.row(row), x, 0.5)
                    })
                    .sum()
            };
            let at: Vec<f64> = x.values().iter().map(|&v| f64::from(v)).collect();
            assert!((found.value - value(&at)).abs() < 1e-6);
            finite_differences(value, &at, found.grad_x.values(), 1e-6);
        }
    }

    /// Norm of the difference relative to the norm.
    fn relative_difference(a: &Matrix, b: &Matrix) -> f64 {
        let norm = |values: &mut dyn Iterator<Item = f32>| {
            values.map(|v| f64::from(v).powi(2)).sum::<f64>().sqrt()
        };
        let pairs = a.values().iter().zip(b.values());
        norm(&mut pairs.map(|(a, b)| a - b)) / norm(&mut a.values().iter().copied())
    }

    #[test]
    fn sparse_gradient_is_the_dense_one_to_1e_minus_5() {
        let y = plane(64, 1.0, 110);
        let x = plane(64 * 128, 2.0, 111);
        let narrow = AdditiveNoise {
            dim: 2,
            deviation: 0.1,
        };
        for samples in [Samples::Shared(x.view()), Samples::Independent(x.view())] {
            let gradient = |mode| {
                mc(&narrow, Batch::from(y.view()), samples, mode)
                    .unwrap()
                    .grad_x
            };
            let (sparse, dense) = (gradient(Gradient::Sparse), gradient(Gradient::Dense));
            assert_ne!(sparse, dense);
            let difference = relative_difference(&dense, &sparse);
            assert!(difference < 1e-5, "{difference:e}");
        }
    }

    /// dL/dm and dL/dt of the source N(m, t²) through x = m + t·z, mean over 800 repeats.
    /// Bound: 4 standard errors of the difference, false-alarm rate 6e-5 each.
    #[test]
    fn shared_and_independent_samples_agree_on_average() {
        let model = GaussianModel::STANDARD;
        let (b, k, repeats) = (16, 32, 800);
        let y = model.likelihood().sample(
            model.samples(noise(120), b).view(),
            Noise::new(12, Purpose::Test, 0),
        );
        let slopes = |independent: bool, repeat: u64| {
            let n = if independent { b * k } else { k };
            let x = model.samples(noise(1000 + 2 * repeat + u64::from(independent)), n);
            let samples = if independent {
                Samples::Independent(x.view())
            } else {
                Samples::Shared(x.view())
            };
            let batch = Batch::from(y.view());
            let found = mc(&model.likelihood(), batch, samples, Gradient::Sparse).unwrap();
            let grad = found.grad_x.values();
            let sum = |values: &mut dyn Iterator<Item = f32>| values.map(f64::from).sum::<f64>();
            [
                sum(&mut grad.iter().copied()),
                sum(&mut grad.iter().zip(x.values()).map(|(g, z)| g * z)),
            ]
        };
        let all = [false, true].map(|independent| -> Vec<[f64; 2]> {
            (0..repeats)
                .map(|repeat| slopes(independent, repeat))
                .collect()
        });
        for parameter in 0..2 {
            let statistics = |independent: bool| {
                let all = &all[usize::from(independent)];
                let values: Vec<f64> = all.iter().map(|slopes| slopes[parameter]).collect();
                mean_and_variance(&values)
            };
            let ((shared, v1), (independent, v2)) = (statistics(false), statistics(true));
            let error = ((v1 + v2) / repeats as f64).sqrt();
            assert!(error < 0.02, "{error} {shared}");
            assert!(
                (shared - independent).abs() < 4.0 * error,
                "{shared} {independent} ± {error}"
            );
        }
    }

    #[test]
    fn effective_samples_between_one_and_all() {
        let x = Matrix::from_vec(vec![0.0, 0.0, 0.0, 100.0], 1);
        let y = Matrix::from_vec(vec![0.0, 0.0, 100.0], 1);
        let likelihood = GaussianModel::STANDARD.likelihood();
        let batch = Batch::from(y.view());
        let found = mc(
            &likelihood,
            batch,
            Samples::Shared(x.view()),
            Gradient::Sparse,
        )
        .unwrap();
        assert!((found.effective_samples.mean - 7.0 / 3.0).abs() < 1e-6);
        assert!((found.effective_samples.median - 3.0).abs() < 1e-6);
    }

    #[test]
    fn an_impossible_observation_is_named_and_evaluates_to_minus_infinity() {
        let y = Matrix::from_vec(vec![1.0, 5.0, 2.0], 1);
        let x = Matrix::from_vec(vec![1.0, 2.0], 1);
        let batch = Batch {
            row_numbers: Some(&[7, 137, 9]),
            ..Batch::from(y.view())
        };
        let error = mc(
            &PointMass,
            batch,
            Samples::Shared(x.view()),
            Gradient::Sparse,
        )
        .unwrap_err();
        assert!(error.to_string().contains("row 137"), "{error}");
        assert!(error.to_string().contains("-inf"), "{error}");
        let values = log_marginal_values(&PointMass, y.view(), x.view()).unwrap();
        let half = -2f64.ln();
        assert_eq!(values, [half, f64::NEG_INFINITY, half]);
    }

    #[test]
    fn nan_is_an_error() {
        let y = Matrix::from_vec(vec![0.0, 1.0], 1);
        let x = Matrix::from_vec(vec![0.0, f32::NAN], 1);
        let likelihood = GaussianModel::STANDARD.likelihood();
        let error = log_marginal(&likelihood, y.view(), x.view()).unwrap_err();
        assert!(error.to_string().contains("row 0"), "{error}");
        assert!(error.to_string().contains("NaN"), "{error}");
    }

    #[test]
    fn shapes_and_weights_are_checked() {
        let y = Matrix::zeros(3, 2);
        let x = Matrix::zeros(4, 2);
        let run = |batch, samples| mc(&PLANE, batch, samples, Gradient::Sparse).map(|_| ());
        let all = Batch::from(y.view());
        assert!(run(all, Samples::Shared(x.view())).is_ok());
        assert!(run(all, Samples::Independent(x.view())).is_err());
        let wide = Matrix::zeros(4, 3);
        assert!(run(all, Samples::Shared(wide.view())).is_err());
        assert!(run(all, Samples::Shared(x.view().slice(0..0))).is_err());
        assert!(run(Batch::from(y.view().slice(0..0)), Samples::Shared(x.view())).is_err());
        for weights in [&[1.0, 1.0][..], &[1.0, -1.0, 0.0], &[1.0, f32::NAN, 1.0]] {
            let batch = Batch {
                weights: Some(weights),
                ..all
            };
            assert!(run(batch, Samples::Shared(x.view())).is_err());
        }
    }

    /// 300 rows × 70 000 samples is more than one group of pairs.
    #[test]
    fn groups_of_observations_add_up_and_values_agree() {
        let model = GaussianModel::STANDARD;
        let y = noise(130).normal(300, 1);
        let x = model.samples(noise(131), 70_000);
        let likelihood = model.likelihood();
        let estimate = |y: crate::Rows| {
            let samples = Samples::Shared(x.view());
            mc(&likelihood, Batch::from(y), samples, Gradient::Sparse).unwrap()
        };
        let whole = estimate(y.view());
        let halves = [
            estimate(y.view().slice(0..100)),
            estimate(y.view().slice(100..300)),
        ];
        assert_eq!(
            whole.values,
            [&halves[0].values[..], &halves[1].values].concat()
        );
        let combined = Matrix::from_fn(70_000, 1, |row, _| {
            (halves[0].grad_x.row(row)[0] + 2.0 * halves[1].grad_x.row(row)[0]) / 3.0
        });
        assert!(relative_difference(&whole.grad_x, &combined) < 1e-5);
        let values = log_marginal_values(&likelihood, y.view(), x.view()).unwrap();
        for (value, expected) in values.iter().zip(&whole.values) {
            assert!((value - expected).abs() < 1e-6);
        }
    }

    #[test]
    fn the_number_of_threads_changes_no_bit() {
        let y = plane(77, 1.0, 140);
        let x = plane(77 * 40, 1.0, 141);
        for independent in [false, true] {
            let results = with_threads(|| {
                let samples = if independent {
                    Samples::Independent(x.view())
                } else {
                    Samples::Shared(x.view())
                };
                let batch = Batch::from(y.view());
                let found = mc(&PLANE, batch, samples, Gradient::Sparse).unwrap();
                let values = log_marginal_values(&PLANE, y.view(), x.view()).unwrap();
                (found.value, found.values, found.grad_x, values)
            });
            assert!(results.iter().all(|result| *result == results[0]));
        }
    }
}
