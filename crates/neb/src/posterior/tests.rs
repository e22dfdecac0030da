//! Every method against posteriors known in closed form.

use super::*;
use crate::check::{CalibrationOptions, CompareOptions, Posteriors, calibrate, compare};
use crate::estimator::testing::{AdditiveNoise, GaussianModel};
use crate::simulator;
use crate::source::{Affine, Base};
use crate::surrogate::Exact;
use crate::{Noise, Purpose};

fn options(draws: usize) -> PosteriorOptions {
    PosteriorOptions {
        draws,
        ..PosteriorOptions::default()
    }
}

fn normal_prior(dim: usize, deviation: f32) -> Affine {
    Affine::new(
        Base::Normal,
        &vec![0.0; dim],
        &vec![deviation; dim],
        &vec![false; dim],
    )
}

/// The exact recognition network of prior N(0, 1) and y = x + N(0, s²): N(gain·y, gain·s²).
struct ExactRecognition {
    dim: usize,
    gain: f32,
    deviation: f32,
}

impl Recognise for ExactRecognition {
    fn dim(&self) -> usize {
        self.dim
    }

    fn draw(&self, y: Rows, k: usize, noise: Noise) -> (Matrix, Vec<f32>) {
        let z = noise.normal(y.rows() * k, self.dim);
        let x = Matrix::from_fn(z.rows(), self.dim, |row, d| {
            self.gain * y.row(row / k)[d] + self.deviation * z.row(row)[d]
        });
        let log = |z: &[f32]| {
            z.iter()
                .map(|z| -0.5 * z * z - self.deviation.ln() - 0.9189385)
                .sum()
        };
        let logs = (0..z.rows()).map(|row| log(z.row(row))).collect();
        (x, logs)
    }
}

/// Draws of every method for these observations.
fn every_method(
    prior: &Affine,
    likelihood: &AdditiveNoise,
    recognition: &ExactRecognition,
    y: Rows,
    draws: usize,
) -> Vec<Draws> {
    let posterior = Posterior::new(prior, likelihood).unwrap();
    let options = options(draws);
    vec![
        posterior.rejection(y, &options).unwrap(),
        posterior.importance(y, &options).unwrap(),
        posterior.annealed(y, &options).unwrap(),
        posterior
            .nuts(y, &options, &NutsOptions::default())
            .unwrap(),
        posterior.importance_from(recognition, y, &options).unwrap(),
        direct(recognition, y, &options).unwrap(),
    ]
}

/// Source of deviation 1, noise 0.5: posterior N(0.8 y, 0.2). 4000 draws: the mean's error is 0.2^½/4000^½ = 0.0071, the
/// variance's 0.2·(2/4000)^½ = 0.0045; five of each is a false alarm of 6e-7 per bound. Chains and banks know less than
/// their draws suggest, so the errors are those of the effective number.
#[test]
fn the_gaussian_posterior_by_every_method() {
    let model = GaussianModel::STANDARD;
    let y = Matrix::from_vec(vec![0.0, 1.0, -2.5], 1);
    let recognition = ExactRecognition {
        dim: 1,
        gain: 0.8,
        deviation: 0.2f32.sqrt(),
    };
    let prior = normal_prior(1, 1.0);
    let all = every_method(&prior, &model.likelihood(), &recognition, y.view(), 4000);
    for draws in all {
        assert!(draws.complete() && draws.stopped.is_none());
        for row in 0..3 {
            let (mean, deviation) = model.posterior(f64::from(y.row(row)[0]));
            assert!((mean - 0.8 * f64::from(y.row(row)[0])).abs() < 1e-6);
            let count = draws.ess[row].min(4000.0);
            let values = draws.of(row).values().iter().map(|&x| f64::from(x));
            let found = values.clone().sum::<f64>() / 4000.0;
            let variance = values.map(|x| (x - found).powi(2)).sum::<f64>() / 4000.0;
            let error = 5.0 * deviation / count.sqrt();
            assert!(
                (found - mean).abs() < error,
                "{:?} {row}: {found}",
                draws.method
            );
            let error = 5.0 * 0.2 * (2.0 / count).sqrt();
            assert!(
                (variance - 0.2).abs() < error,
                "{:?} {row}: {variance}",
                draws.method
            );
        }
    }
}

/// sbi's cases: prior N(0, I) in three dimensions, y|x ~ N(x − 1, c I), y = 0. Posterior N(1/(1 + c), c/(1 + c) I), that is
/// N(0.76923, 0.230769 I) for c = 0.3 and N(0.55556, 0.44444 I) for c = 0.8. The C2ST of 2000 draws against 2000 of the
/// closed form has a deviation of about 0.011; 0.1 is sbi's own tolerance.
#[test]
fn linear_gaussian_posteriors_pass_a_classifier() {
    for (covariance, mean, variance) in [(0.3f64, 0.76923, 0.230769), (0.8, 0.55556, 0.44444)] {
        let likelihood = AdditiveNoise {
            dim: 3,
            deviation: covariance.sqrt(),
        };
        // y = 0 with x − 1 is y = 1 with x.
        let y = Matrix::from_vec(vec![1.0; 3], 3);
        let gain = 1.0 / (1.0 + covariance);
        let recognition = ExactRecognition {
            dim: 3,
            gain: gain as f32,
            deviation: (gain * covariance).sqrt() as f32,
        };
        let prior = normal_prior(3, 1.0);
        let exact = Noise::new(8, Purpose::Test, 0).normal(2000, 3);
        let exact = Matrix::from_fn(2000, 3, |row, d| {
            (mean + f64::from(exact.row(row)[d]) * f64::sqrt(variance)) as f32
        });
        for draws in every_method(&prior, &likelihood, &recognition, y.view(), 2000) {
            let found = compare(draws.x.view(), exact.view(), &CompareOptions::default()).unwrap();
            let value = found.accuracy.value;
            assert!((value - 0.5).abs() < 0.1, "{:?}: {value}", draws.method);
        }
    }
}

/// A uniform prior on ±1 in two dimensions and an observation beyond its corner: no draw leaves the box, and the density is zero
/// outside.
#[test]
fn nothing_lies_outside_the_domain() {
    let deviation = 1.0 / 3f32.sqrt();
    let prior = Affine::new(Base::Uniform, &[0.0; 2], &[deviation; 2], &[false; 2]);
    let likelihood = AdditiveNoise {
        dim: 2,
        deviation: 0.3,
    };
    let posterior = Posterior::new(&prior, &likelihood).unwrap();
    let y = Matrix::from_vec(vec![1.2, 1.2], 2);
    for draws in [
        posterior.rejection(y.view(), &options(500)).unwrap(),
        posterior.importance(y.view(), &options(500)).unwrap(),
        posterior.annealed(y.view(), &options(500)).unwrap(),
        posterior
            .nuts(y.view(), &options(500), &NutsOptions::default())
            .unwrap(),
    ] {
        assert!(draws.complete());
        let inside = |x: &f32| x.abs() <= 1.0 + 1e-4;
        assert!(draws.x.values().iter().all(inside), "{:?}", draws.method);
    }
    let mut logs = [0.0; 2];
    let x = Matrix::from_vec(vec![0.9, 0.9, 1.1, 0.9], 2);
    let y = Matrix::from_vec(vec![1.2; 4], 2);
    posterior.log_prob(y.view(), x.view(), &mut logs).unwrap();
    assert!(logs[0].is_finite());
    assert_eq!(logs[1], f32::NEG_INFINITY);
}

/// The best x of prior N(0, 1) and noise 0.5 is the posterior's mean, 0.8 y; its height is known too.
#[test]
fn the_maximum_of_a_gaussian_posterior() {
    let model = GaussianModel::STANDARD;
    let (prior, likelihood) = (normal_prior(1, 1.0), model.likelihood());
    let posterior = Posterior::new(&prior, &likelihood).unwrap();
    let y = Matrix::from_vec(vec![0.3, -1.7], 1);
    let found = posterior.maximum(y.view(), 1).unwrap();
    for row in 0..2 {
        let y = f64::from(y.row(row)[0]);
        assert!((f64::from(found.x.row(row)[0]) - 0.8 * y).abs() < 2e-2);
        let (_, deviation) = model.posterior(y);
        let peak = -deviation.ln() - 0.5 * std::f64::consts::TAU.ln();
        let expected = model.log_marginal(y) + peak;
        assert!((f64::from(found.log_prob[row]) - expected).abs() < 2e-3);
    }
}

/// Two moons: with the exact likelihood and the exact prior the posterior is a pair of crescents, mirror images about
/// x1 + x2 = 0 (the simulator sees |x1 + x2|), so each holds half of the mass. 5 % of half is 0.025; a share of 3000 draws has
/// a deviation of 0.0091 (importance: of its effective number, several hundred), so all is averaged over four observations.
#[test]
fn both_crescents_hold_half_of_the_mass() {
    let likelihood = Exact::new(simulator::by_name("two-moons").unwrap());
    let deviation = 1.0 / 3f32.sqrt();
    let prior = Affine::new(Base::Uniform, &[0.0; 2], &[deviation; 2], &[false; 2]);
    let posterior = Posterior::new(&prior, &likelihood).unwrap();
    // Both crescents inside the box.
    let y = Matrix::from_vec(vec![-0.3, 0.0, -0.4, 0.2, -0.2, -0.1, -0.3, 0.1], 2);
    let asked = options(1000);
    for draws in [
        posterior.rejection(y.view(), &asked).unwrap(),
        posterior.importance(y.view(), &asked).unwrap(),
        posterior.annealed(y.view(), &asked).unwrap(),
    ] {
        assert!(draws.complete());
        let x = draws.x.view();
        let above = (0..x.rows()).filter(|&row| x.row(row)[0] + x.row(row)[1] > 0.0);
        let share = above.count() as f64 / x.rows() as f64;
        assert!((share - 0.5).abs() < 0.025, "{:?}: {share}", draws.method);
    }
}

/// 300 events of the linear-Gaussian problem: rejection and importance pass, false-alarm rate 5 % each (seed fixed).
#[test]
fn posteriors_of_the_true_model_are_calibrated() {
    let likelihood = AdditiveNoise {
        dim: 2,
        deviation: 0.3f64.sqrt(),
    };
    let prior = normal_prior(2, 1.0);
    let truth = Noise::new(3, Purpose::Test, 0).normal(300, 2);
    let y = likelihood.sample(truth.view(), Noise::new(3, Purpose::Test, 1));
    let posterior = Posterior::new(&prior, &likelihood).unwrap();
    for draws in [
        posterior.rejection(y.view(), &options(100)).unwrap(),
        posterior.importance(y.view(), &options(100)).unwrap(),
        posterior.annealed(y.view(), &options(100)).unwrap(),
    ] {
        let posteriors = Posteriors {
            draws: draws.x.view(),
            weights: None,
            truth: truth.view(),
        };
        let found = calibrate(posteriors, &CalibrationOptions::default()).unwrap();
        assert!(found.calibrated, "{:?}: {found:?}", draws.method);
    }
}

#[test]
fn budgets_end_a_hopeless_search_with_what_was_found() {
    let likelihood = AdditiveNoise {
        dim: 2,
        deviation: 0.01,
    };
    let prior = normal_prior(2, 1.0);
    let posterior = Posterior::new(&prior, &likelihood).unwrap();
    let y = Matrix::from_vec(vec![0.0, 0.0, 0.5, 0.5], 2);
    let mut few = options(1000);
    few.budget.max_samples = 100_001;
    let draws = posterior.rejection(y.view(), &few).unwrap();
    assert_eq!(draws.stopped, Some(Stopped::Samples));
    assert_eq!(draws.samples, 100_001);
    assert!(!draws.complete());
    // Acceptance is p(y)/max q: (0.01/1)² to a part in ten thousand at y = 0, so about ten draws.
    assert!((1..40).contains(&draws.found[0]), "{:?}", draws.found);
    assert_eq!(draws.of(0).rows(), draws.found[0]);
    assert!(draws.of(0).values().iter().all(|x| x.abs() < 0.1));
    assert!(draws.x.row(999)[0].is_nan() && draws.weights()[999] == 0.0);
    let mut none = options(1000);
    none.budget.max_seconds = 0.0;
    let draws = posterior.rejection(y.view(), &none).unwrap();
    assert_eq!(draws.stopped, Some(Stopped::Seconds));
    assert_eq!(draws.found, [0, 0]);
}

/// y = x + noise of two deviations: nearly always that of a spike, once in a million 1. Far from the spike the wide noise is all
/// there is, and its slope leads nowhere near.
struct Spike {
    deviation: f64,
    tau: f64,
}

const SPIKE: Spike = Spike {
    deviation: 1e-4,
    tau: 0.0,
};
const WIDE_SHARE: f64 = 1e-6;

impl Spike {
    /// log q and ∂ log q/∂x for y − x = u in two dimensions.
    fn value_and_slope(&self, u: [f64; 2]) -> (f64, [f64; 2]) {
        let parts = [(1.0 - WIDE_SHARE, self.deviation), (WIDE_SHARE, 1.0)];
        let square = u[0] * u[0] + u[1] * u[1];
        let terms = parts.map(|(share, deviation)| {
            let variance = deviation * deviation + self.tau * self.tau;
            let log =
                share.ln() - (std::f64::consts::TAU * variance).ln() - 0.5 * square / variance;
            (log, variance)
        });
        let largest = terms[0].0.max(terms[1].0);
        let weights = terms.map(|(log, _)| (log - largest).exp());
        let total = weights[0] + weights[1];
        let pull = weights[0] / terms[0].1 + weights[1] / terms[1].1;
        (largest + total.ln(), u.map(|u| u * pull / total))
    }

    fn difference(y: &[f32], x: &[f32]) -> [f64; 2] {
        [0, 1].map(|d| f64::from(y[d]) - f64::from(x[d]))
    }
}

impl Likelihood for Spike {
    fn dims(&self) -> crate::Dims {
        crate::Dims { dx: 2, dy: 2 }
    }

    fn log_prob(&self, y: Rows, x: Rows, out: &mut [f32]) {
        for (row, out) in out.iter_mut().enumerate() {
            *out = self
                .value_and_slope(Self::difference(y.row(row), x.row(row)))
                .0 as f32;
        }
    }

    fn log_prob_pairs(&self, y: Rows, x: Rows, out: crate::MatrixMut) {
        for (row, out) in out.into_values().chunks_exact_mut(x.rows()).enumerate() {
            for (k, out) in out.iter_mut().enumerate() {
                *out = self
                    .value_and_slope(Self::difference(y.row(row), x.row(k)))
                    .0 as f32;
            }
        }
    }

    fn grad_x_pairs(&self, y: Rows, x: Rows, weights: &crate::PairWeights, dx: crate::MatrixMut) {
        for (k, dx) in dx.into_values().chunks_exact_mut(2).enumerate() {
            dx.fill(0.0);
            for at in weights.starts[k]..weights.starts[k + 1] {
                let y = y.row(weights.y_row[at] as usize);
                let slope = self.value_and_slope(Self::difference(y, x.row(k))).1;
                for (dx, slope) in dx.iter_mut().zip(slope) {
                    *dx += weights.weight[at] * slope as f32;
                }
            }
        }
    }

    fn sample(&self, x: Rows, noise: Noise) -> Matrix {
        let z = noise.normal(x.rows(), 2);
        Matrix::from_fn(x.rows(), 2, |row, d| {
            x.row(row)[d] + self.deviation as f32 * z.row(row)[d]
        })
    }

    fn widening(&self) -> Option<&dyn crate::Widening> {
        Some(self)
    }
}

impl crate::Widening for Spike {
    fn largest_scale(&self) -> f32 {
        0.5
    }

    fn widened(&self, tau: f32) -> Box<dyn Likelihood + '_> {
        let tau = f64::from(tau);
        Box::new(Spike { tau, ..*self })
    }

    fn deviations(&self) -> &[f32] {
        &[1.0, 1.0]
    }
}

/// A peak that no sample of the bank meets, over a floor that all of them see: the maximum is that of the peak, rejection finds
/// nothing rather than the floor, and annealing follows the noise down to N(y, s²). The deviation of 200 draws in two dimensions
/// has a standard error of 4 %, of 11 % if they have but 20 ancestors that matter; bound 25 %, false-alarm rate 2 % at worst.
#[test]
fn a_narrow_peak_over_a_floor_is_found() {
    let prior = normal_prior(2, 1.0);
    let posterior = Posterior::new(&prior, &SPIKE).unwrap();
    let y = Matrix::from_vec(vec![0.3, -0.2, 1.0, 0.5], 2);
    let mut asked = options(200);
    asked.budget.max_samples = 200_000;
    let peak = SPIKE.value_and_slope([0.0, 0.0]).0 as f32;
    let maximum = posterior.maximum(y.view(), 1).unwrap();
    for (row, found) in maximum.log_prob.iter().enumerate() {
        let [a, b] = [0, 1].map(|d| f64::from(y.row(row)[d]));
        let prior = -0.5 * (a * a + b * b) - std::f64::consts::TAU.ln();
        assert!((found - peak - prior as f32).abs() < 0.02, "{found} {peak}");
    }
    let rejected = posterior.rejection(y.view(), &asked).unwrap();
    assert!(rejected.found.iter().all(|&found| found < 5));
    assert!(
        rejected
            .max_log_likelihood
            .iter()
            .all(|max| (max - peak).abs() < 0.02)
    );
    assert_eq!(
        posterior.suggested_method(y.view(), &asked).unwrap(),
        Method::Annealed
    );
    let draws = posterior.annealed(y.view(), &asked).unwrap();
    for row in 0..2 {
        let draws = draws.of(row);
        let mut squares = 0.0;
        for draw in 0..draws.rows() {
            let u = Spike::difference(y.row(row), draws.row(draw));
            squares += u[0] * u[0] + u[1] * u[1];
        }
        let deviation = (squares / (2 * draws.rows()) as f64).sqrt();
        assert!(
            (deviation / SPIKE.deviation - 1.0).abs() < 0.25,
            "{deviation}"
        );
    }
    let easy = AdditiveNoise {
        dim: 2,
        deviation: 0.3,
    };
    let posterior = Posterior::new(&prior, &easy).unwrap();
    assert_eq!(
        posterior.suggested_method(y.view(), &asked).unwrap(),
        Method::Rejection
    );
}

/// A search that would not end in a lifetime is stopped from another thread; one that ends has told of every observation.
#[test]
fn a_tracker_counts_and_stops() {
    let prior = normal_prior(2, 1.0);
    let y = Matrix::from_vec(vec![0.0, 0.0, 0.5, 0.5], 2);
    let likelihood = |deviation| AdditiveNoise { dim: 2, deviation };
    let (wide, narrow) = (likelihood(0.5), likelihood(1e-9));
    let tracker = Tracker::default();
    let posterior = Posterior::new(&prior, &wide).unwrap().tracked(&tracker);
    assert!(
        posterior
            .rejection(y.view(), &options(10))
            .unwrap()
            .complete()
    );
    assert_eq!(tracker.progress(), (2, 2));
    let mut endless = options(1000);
    endless.budget.max_samples = u64::MAX;
    let posterior = Posterior::new(&prior, &narrow).unwrap().tracked(&tracker);
    let draws = std::thread::scope(|scope| {
        let search = scope.spawn(|| posterior.rejection(y.view(), &endless).unwrap());
        while tracker.progress() != (0, 2) {
            std::thread::yield_now();
        }
        tracker.stop();
        search.join().unwrap()
    });
    assert!(tracker.is_stopped() && !draws.complete());
}

#[test]
fn bits_do_not_depend_on_the_threads() {
    let likelihood = Exact::new(simulator::by_name("two-moons").unwrap());
    let deviation = 1.0 / 3f32.sqrt();
    let prior = Affine::new(Base::Uniform, &[0.0; 2], &[deviation; 2], &[false; 2]);
    let posterior = Posterior::new(&prior, &likelihood).unwrap();
    let y = Matrix::from_vec(vec![-0.3, 0.0, -0.4, 0.2], 2);
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        pool.unwrap().install(|| {
            (
                posterior.rejection(y.view(), &options(50)).unwrap(),
                posterior.importance(y.view(), &options(50)).unwrap(),
                posterior.annealed(y.view(), &options(50)).unwrap(),
                posterior
                    .nuts(y.view(), &options(50), &NutsOptions::default())
                    .unwrap(),
            )
        })
    };
    assert_eq!(run(1), run(3));
}
