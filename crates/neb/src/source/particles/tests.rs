use std::ops::ControlFlow;

use super::*;
use crate::Matrix;
use crate::estimator::testing::{GaussianModel, PointMass, with_threads};

/// As [`super::fit_particles`], never stopped.
fn fit_particles(
    likelihood: &dyn Likelihood,
    y: Rows,
    event_weights: Option<&[f32]>,
    x: Rows,
    initial: Option<&[f32]>,
    settings: &ParticleSettings,
) -> Result<ParticleWeights> {
    let watch = &mut |_: &Progress| ControlFlow::Continue(());
    super::fit_particles(likelihood, y, event_weights, x, initial, settings, watch)
}

fn noise(step: u64) -> Noise {
    Noise::new(41, Purpose::Test, step)
}

/// Every iteration is made and none is chosen by held-out observations.
fn iterations(max_iterations: usize) -> ParticleSettings {
    ParticleSettings {
        max_iterations,
        held_out: 0.0,
        ..ParticleSettings::default()
    }
}

/// Observations of a source with two peaks, and particles from N(0, 1.5²).
fn two_peaks(n: usize, particles: usize) -> (Matrix, Matrix) {
    let peaks = Matrix::from_fn(n, 1, |row, _| if row % 3 == 0 { -1.5 } else { 1.0 });
    let y = GaussianModel::STANDARD
        .likelihood()
        .sample(peaks.view(), noise(1));
    let z = noise(2).normal(particles, 1);
    let x = Matrix::from_fn(particles, 1, |row, _| 1.5 * z.row(row)[0]);
    (y, x)
}

#[test]
fn the_marginal_likelihood_never_falls() {
    let (y, x) = two_peaks(500, 800);
    let event_weights: Vec<f32> = (0..500).map(|row| (row % 5) as f32).collect();
    let initial: Vec<f32> = (0..800).map(|row| (row % 4) as f32).collect();
    let likelihood = GaussianModel::STANDARD.likelihood();
    let (events, start) = (Some(&event_weights[..]), Some(&initial[..]));
    let fit = fit_particles(
        &likelihood,
        y.view(),
        events,
        x.view(),
        start,
        &iterations(200),
    )
    .unwrap();
    assert_eq!((fit.history.len(), fit.iteration), (201, 200));
    for pair in fit.history.windows(2) {
        assert!(pair[1].train >= pair[0].train - 1e-12, "{pair:?}");
    }
    assert!(fit.history[200].train > fit.history[0].train + 0.05);
    assert!((fit.weights.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    assert!(fit.weights.iter().step_by(4).all(|&weight| weight == 0.0));
}

/// One iteration from N(m, t²): the mixture of the posteriors N(m + g(y_i − m), g s²) over the
/// observations, g = t²/(t² + s²). With P = 20 000 particles the weighted moments have standard
/// errors of about t'/√P and √2 t'²/√P, enlarged by the spread of the weights (P over their effective
/// number, below 3 here); the bounds are 4 of them: false-alarm rate 6e-5 each.
#[test]
fn one_iteration_of_gaussians_has_the_known_moments() {
    let model = GaussianModel {
        mean: 0.5,
        deviation: 1.0,
        noise: 0.7,
    };
    let (particles, n) = (20_000, 1000);
    let x = model.samples(noise(10), particles);
    let z = noise(11).normal(n, 1);
    let y = Matrix::from_fn(n, 1, |row, _| 1.2 + 0.8 * z.row(row)[0]);
    let moments = |values: &Matrix, weights: &dyn Fn(usize) -> f64| {
        let sum = |f: &dyn Fn(f64) -> f64| -> f64 {
            let values = values.values().iter().enumerate();
            values.map(|(row, &v)| weights(row) * f(f64::from(v))).sum()
        };
        let mean = sum(&|v| v);
        (mean, sum(&|v| (v - mean).powi(2)))
    };
    let (y_mean, y_variance) = moments(&y, &|_| 1.0 / n as f64);
    let gain = 1.0 / (1.0 + 0.49);
    let exact_mean = 0.5 + gain * (y_mean - 0.5);
    let exact_variance = gain * 0.49 + gain * gain * y_variance;

    let likelihood = model.likelihood();
    let fit = fit_particles(&likelihood, y.view(), None, x.view(), None, &iterations(1)).unwrap();
    let effective = fit.effective_particles();
    assert!(effective > particles as f64 / 3.0 && effective < particles as f64);
    let (mean, variance) = moments(&x, &|row| fit.weights[row]);
    let error = (exact_variance / effective).sqrt();
    assert!(
        (exact_mean - 0.5).abs() > 20.0 * error,
        "the iteration must matter"
    );
    assert!((mean - exact_mean).abs() < 4.0 * error);
    let error = exact_variance * (2.0 / effective).sqrt();
    assert!((exact_variance - 1.0).abs() > 10.0 * error);
    assert!((variance - exact_variance).abs() < 4.0 * error);
}

#[test]
fn point_masses_return_the_empirical_distribution() {
    let y = Matrix::from_vec(vec![3.0, 1.0, 3.0, 2.0, 3.0, 1.0], 1);
    let x = Matrix::from_vec(vec![0.0, 1.0, 2.0, 3.0, 4.0], 1);
    let run = |events| {
        let fit = fit_particles(&PointMass, y.view(), events, x.view(), None, &iterations(2));
        fit.unwrap().weights
    };
    let close = |found: Vec<f64>, exact: [f64; 5]| {
        let pairs = found.iter().zip(exact);
        pairs.for_each(|(found, exact)| assert!((found - exact).abs() < 1e-14));
    };
    close(run(None), [0.0, 2.0 / 6.0, 1.0 / 6.0, 3.0 / 6.0, 0.0]);
    let events = [1.0, 2.0, 1.0, 4.0, 0.0, 2.0];
    close(run(Some(&events)), [0.0, 0.4, 0.4, 0.2, 0.0]);
}

/// Particles three times too wide, 350 observations with small noise: the first iterations help, but
/// fitted to the end the weights gather at the observations.
#[test]
fn the_weights_at_the_held_out_peak_are_returned() {
    let model = GaussianModel {
        noise: 0.1,
        ..GaussianModel::STANDARD
    };
    let likelihood = model.likelihood();
    let y = likelihood.sample(model.samples(noise(30), 500).view(), noise(31));
    let (_, narrow) = two_peaks(1, 3000);
    let x = Matrix::from_fn(3000, 1, |row, _| 2.0 * narrow.row(row)[0]);
    let settings = ParticleSettings {
        held_out: 0.3,
        max_iterations: 500,
        seed: 5,
        ..ParticleSettings::default()
    };
    let run =
        |settings| fit_particles(&likelihood, y.view(), None, x.view(), None, &settings).unwrap();
    let fit = run(settings);
    let held_out: Vec<f64> = fit.history.iter().map(|s| s.held_out.unwrap()).collect();
    let peak = held_out[fit.iteration];
    assert!(held_out.iter().all(|&value| value <= peak));
    assert_eq!(held_out.len(), fit.iteration + settings.patience + 1);
    assert!(fit.iteration > 0);
    let to_the_end = run(ParticleSettings {
        patience: 1000,
        ..settings
    });
    let last = to_the_end.history.last().unwrap();
    assert!(last.held_out.unwrap() < peak, "{last:?}");
    assert_eq!(to_the_end.weights, fit.weights);
    let stopped_there = run(ParticleSettings {
        max_iterations: fit.iteration,
        ..settings
    });
    assert_eq!(stopped_there.weights, fit.weights);

    // Tolerance moves the choice from the peak to the last iteration that was made.
    let chosen = |tolerance| {
        run(ParticleSettings {
            tolerance,
            ..settings
        })
        .iteration
    };
    assert_eq!(chosen(1e-9), fit.iteration);
    assert_eq!(chosen(f64::INFINITY), fit.iteration + settings.patience);
    let between = [chosen(0.2), chosen(1.0)];
    assert!(fit.iteration <= between[0] && between[0] <= between[1]);
}

#[test]
fn memory_and_threads_change_no_bit() {
    let (y, x) = two_peaks(700, 1500);
    let likelihood = GaussianModel::STANDARD.likelihood();
    let run = |memory_limit| {
        let settings = ParticleSettings {
            memory_limit,
            max_iterations: 4,
            ..ParticleSettings::default()
        };
        fit_particles(&likelihood, y.view(), None, x.view(), None, &settings).unwrap()
    };
    let reference = run(1 << 30);
    for memory_limit in [1 << 30, 700 * 1500 * 4 - 1, 20_000] {
        for fit in with_threads(|| run(memory_limit)) {
            assert_eq!(fit, reference);
        }
    }
}

/// Each particle is drawn n·w_j times, rounded up or down, and the order is not that of the particles.
#[test]
fn resampling_follows_the_weights() {
    let (y, x) = two_peaks(300, 400);
    let likelihood = GaussianModel::STANDARD.likelihood();
    let settings = ParticleSettings::default();
    let fit = fit_particles(&likelihood, y.view(), None, x.view(), None, &settings).unwrap();
    let n = 5000;
    let drawn = fit.resample(n, noise(20));
    assert_eq!(drawn.len(), n);
    let mut counts = vec![0; 400];
    drawn.iter().for_each(|&j| counts[j as usize] += 1);
    for (&count, weight) in counts.iter().zip(&fit.weights) {
        assert!((f64::from(count) - weight * n as f64).abs() < 1.0 + 1e-6);
    }
    assert!(!drawn.is_sorted());
    assert_ne!(drawn, fit.resample(n, noise(21)));
}

#[test]
fn unusable_input_is_named() {
    let y = Matrix::from_vec(vec![1.0, 5.0], 1);
    let x = Matrix::from_vec(vec![1.0, 2.0], 1);
    let message = |y: &Matrix, events: Option<&[f32]>, initial: Option<&[f32]>| {
        let settings = iterations(1);
        let result = fit_particles(&PointMass, y.view(), events, x.view(), initial, &settings);
        result.unwrap_err().to_string()
    };
    assert!(message(&y, None, None).contains("observation row 1"));
    assert!(message(&x, Some(&[1.0, -1.0]), None).contains("row 1 has weight -1"));
    assert!(message(&x, None, Some(&[f32::NAN, 1.0])).contains("particle row 0"));
    assert!(message(&x, None, Some(&[0.0, 0.0])).contains("zero"));
    assert!(message(&x, Some(&[1.0]), None).contains("1 observation weights for 2 rows"));
    assert!(message(&Matrix::zeros(2, 3), None, None).contains("3 columns"));
}

#[test]
fn a_stop_is_heeded() {
    let (y, x) = two_peaks(50, 80);
    let likelihood = GaussianModel::STANDARD.likelihood();
    let mut seen = 0;
    let stopped = super::fit_particles(
        &likelihood,
        y.view(),
        None,
        x.view(),
        None,
        &iterations(200),
        &mut |progress| {
            seen = progress.step;
            if progress.step == 3 {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        },
    );
    assert!(matches!(stopped, Err(Error::Cancelled { steps: 3 })));
    assert_eq!(seen, 3);
}
