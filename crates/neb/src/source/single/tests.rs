//! Fits whose answers are known, and resuming them.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::time::Duration;

use super::super::{
    Affine, Base, Direction, FlowFit, FlowSource, Model, RecognitionConfig, SourceConfig,
    SourceKind,
};
use super::*;
use crate::Matrix;
use crate::nn::adam::AdamConfig;
use crate::nn::schedule::Schedule;
use crate::surrogate::GaussianNoise;
use crate::train::Progress;

const NOISE: f32 = 0.6;

fn likelihood() -> GaussianNoise {
    GaussianNoise::new(Rows::new(&[NOISE * NOISE], 1)).unwrap()
}

/// y = 0.8 + 1.2·z + noise.
fn observations(n: usize) -> Matrix {
    let z = Noise::new(12, Purpose::Test, 0).normal(n, 2);
    Matrix::from_fn(n, 1, |i, _| 0.8 + 1.2 * z.row(i)[0] + NOISE * z.row(i)[1])
}

fn config(estimator: EstimatorKind) -> SingleConfig {
    SingleConfig {
        k: match estimator {
            EstimatorKind::Elbo | EstimatorKind::Iw => 4,
            _ => 256,
        },
        judge_k: 1024,
        least_steps: 1,
        recognition: RecognitionConfig::Spline {
            layers: 1,
            hidden: vec![4],
            head: vec![16],
            bins: 4,
            bound: 4.0,
        },
        train: TrainConfig {
            epochs: 30,
            batch: 90,
            rate: 2e-2,
            schedule: Schedule::Cosine { warm_up: 0.02 },
            adam: AdamConfig::default(),
            held_out: 0.1,
            patience: 0,
        },
        ..SingleConfig::fast(estimator)
    }
}

fn go_on(_: &str, _: &Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn fit(
    source: &mut dyn Source,
    likelihood: &dyn Likelihood,
    y: &Matrix,
    weights: Option<&[f32]>,
    config: &SingleConfig,
) -> Result<SingleOutcome> {
    let observations = Observations {
        y: y.view(),
        weights,
    };
    let options = SingleOptions {
        seed: 3,
        checkpoints: None,
        domain: None,
        towards: None,
        watch: &mut go_on,
    };
    fit_single(source, likelihood, observations, config, options)
}

/// Gaussian source and noise s: the likelihood is greatest at the weighted mean of y and its weighted variance − s². Bounds are
/// four standard errors of these over the 1000 rows (1.7 as wide for unequal weights), all of which training sees but for the
/// tenth held out: a false alarm less than once in 10 000.
#[test]
fn every_estimator_finds_mean_and_variance() {
    let n = 1000;
    let y = observations(n);
    // Rows above 0.8 count four times: mean and variance are not those without weights.
    let weights: Vec<f32> = y
        .values()
        .iter()
        .map(|&y| if y > 0.8 { 4.0 } else { 1.0 })
        .collect();
    let kinds = [
        (EstimatorKind::Mc, Sampling::Shared, Levels::Doubling),
        (EstimatorKind::Mc, Sampling::Independent, Levels::Doubling),
        (EstimatorKind::Roulette, Sampling::Shared, Levels::Doubling),
        (EstimatorKind::Roulette, Sampling::Shared, Levels::Single),
        (EstimatorKind::Elbo, Sampling::Shared, Levels::Doubling),
        (EstimatorKind::Iw, Sampling::Shared, Levels::Doubling),
    ];
    for (estimator, samples, levels) in kinds {
        let config = SingleConfig {
            samples,
            levels,
            ..config(estimator)
        };
        let mut source = Affine::new(Base::Normal, &[0.5], &[1.0], &[false]);
        let outcome = fit(&mut source, &likelihood(), &y, Some(&weights), &config).unwrap();
        let (mean, variance) = moments(&y, &weights);
        let (found, spread) = (source.mean(0), source.deviation(0).powi(2));
        let error = 1.7 * (variance / n as f64).sqrt();
        assert!(
            (f64::from(found) - mean).abs() < 4.0 * error,
            "{estimator:?} {samples:?} {levels:?}: mean {found}, expected {mean}"
        );
        let error = 1.7 * variance * (2.0 / n as f64).sqrt();
        let expected = variance - f64::from(NOISE * NOISE);
        assert!(
            (f64::from(spread) - expected).abs() < 4.0 * error,
            "{estimator:?} {samples:?} {levels:?}: variance {spread}, expected {expected}"
        );
        assert_eq!(outcome.last().width, Width::None);
        assert_eq!(outcome.recognition.is_some(), estimator.bound().is_some());
        let history = &outcome.last().outcome.history;
        let effective = history[0].effective_samples;
        assert_eq!(effective.is_some(), estimator != EstimatorKind::Elbo);
        assert!(outcome.notes.is_empty(), "{:?}", outcome.notes);
    }
}

fn moments(y: &Matrix, weights: &[f32]) -> (f64, f64) {
    let rows = || {
        y.values()
            .iter()
            .zip(weights)
            .map(|(&y, &v)| (f64::from(y), f64::from(v)))
    };
    let total: f64 = rows().map(|(_, v)| v).sum();
    let mean = rows().map(|(y, v)| v * y).sum::<f64>() / total;
    let variance = rows().map(|(y, v)| v * (y - mean).powi(2)).sum::<f64>() / total;
    (mean, variance)
}

/// Stopped in the middle of a round (the third step of the second of several, where the likelihood is widened) and resumed: the
/// same bits as without a stop.
#[test]
fn a_stopped_fit_resumes_to_the_same_bits() {
    let y = observations(300);
    let narrow = GaussianNoise::new(Rows::new(&[1e-6], 1)).unwrap();
    let wide = likelihood();
    let cases: [(EstimatorKind, &dyn Likelihood, usize); 4] = [
        (EstimatorKind::Mc, &narrow, 2),
        (EstimatorKind::Roulette, &wide, 1),
        (EstimatorKind::Iw, &wide, 1),
        (EstimatorKind::Iw, &wide, 2),
    ];
    for (estimator, likelihood, least_rounds) in cases {
        let mut config = config(estimator);
        config.train.epochs = 6;
        if estimator == EstimatorKind::Iw {
            config.rounds = least_rounds;
        }
        let folder = tempfile::tempdir().unwrap();
        let policy = CheckpointPolicy {
            path: folder.path().join("checkpoint.safetensors"),
            every: Duration::from_secs(3600),
        };
        let observations = Observations {
            y: y.view(),
            weights: None,
        };
        let run = |stop_at: usize, policy: Option<&CheckpointPolicy>| {
            let shape = FlowFit {
                layers: 2,
                hidden: vec![8],
                bins: 4,
                bound: 4.0,
                train: config.train.clone(),
            };
            let mut source = FlowSource::new(&shape.config(), &[0.0], &[1.0], 5);
            let steps = Cell::new(0);
            let mut watch = |_: &str, _: &Progress| {
                steps.set(steps.get() + 1);
                if steps.get() == stop_at {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            };
            let options = SingleOptions {
                seed: 3,
                checkpoints: policy.cloned(),
                domain: None,
                towards: None,
                watch: &mut watch,
            };
            let outcome = fit_single(&mut source, likelihood, observations, &config, options);
            outcome.map(|outcome| {
                let psi = outcome
                    .recognition
                    .as_ref()
                    .map(|r| r.parameters().to_vec());
                let losses: Vec<(u64, u64)> = outcome
                    .rounds
                    .iter()
                    .flat_map(|round| &round.outcome.history)
                    .map(|e| (e.train.to_bits(), e.held_out.to_bits()))
                    .collect();
                (
                    source.parameters().to_vec(),
                    psi,
                    losses,
                    outcome.rounds.len(),
                )
            })
        };
        let whole = run(usize::MAX, None).unwrap();
        assert!(whole.3 >= least_rounds, "{estimator:?}: {} rounds", whole.3);
        // A round has three batches an epoch; a widened one has one epoch, one of fewer draws all six.
        let first = if estimator == EstimatorKind::Iw {
            18
        } else {
            3
        };
        let stopped = run(first * (least_rounds - 1) + 8, Some(&policy));
        assert!(matches!(stopped, Err(Error::Cancelled { .. })));
        assert_eq!(
            run(usize::MAX, Some(&policy)).unwrap(),
            whole,
            "{estimator:?}"
        );
        remove_checkpoints(&policy).unwrap();
        assert_eq!(folder.path().read_dir().unwrap().count(), 0);
    }
}

#[test]
fn what_cannot_be_fitted_is_refused() {
    let y = observations(30);
    let source = || Affine::new(Base::Normal, &[0.0], &[0.5], &[false]);
    let refused = |y: &Matrix, weights: Option<&[f32]>, change: fn(&mut SingleConfig)| {
        let mut config = config(EstimatorKind::Mc);
        change(&mut config);
        let error = fit(&mut source(), &likelihood(), y, weights, &config).unwrap_err();
        error.to_string()
    };
    assert!(refused(&y, None, |c| c.k = 0).contains("k is 0"));
    assert!(refused(&y, None, |c| c.entropy = -1.0).contains("entropy is -1"));
    let both = |c: &mut SingleConfig| {
        c.estimator = EstimatorKind::Iw;
        c.samples = Sampling::Independent;
    };
    assert!(refused(&y, None, both).contains("independent samples"));
    assert!(
        refused(&y, None, |c| c.rounds = 3).contains("3 rounds are a setting of the estimator iw")
    );
    assert!(refused(&y, None, |c| c.training_nodes = 21).contains("training-nodes is 21"));
    assert!(refused(&y, None, |c| c.rounds = 0).contains("rounds is 0"));
    assert!(refused(&y, Some(&[1.0; 3]), |_| {}).contains("3 event weights for 30"));
    assert!(refused(&Matrix::zeros(0, 1), None, |_| {}).contains("no observation"));
    assert!(refused(&Matrix::zeros(4, 2), None, |_| {}).contains("the observations have 2"));
    let mut broken = y.clone();
    broken.row_mut(7)[0] = f32::NAN;
    assert!(refused(&broken, None, |_| {}).contains("NaN at row 7"));
}

/// Fewer observations than a batch: the batch is lowered, and this is said.
#[test]
fn a_batch_larger_than_the_data_is_lowered() {
    let y = observations(50);
    let mut source = Affine::new(Base::Normal, &[0.0], &[0.5], &[false]);
    let outcome = fit(
        &mut source,
        &likelihood(),
        &y,
        None,
        &config(EstimatorKind::Mc),
    )
    .unwrap();
    assert!(
        outcome.notes[0].contains("batch lowered from 90 to 45"),
        "{:?}",
        outcome.notes
    );
}

/// Rounds of ever more draws, each from where the one before ended; the source leaves with its own rule.
#[test]
fn a_bound_tightens_in_rounds_and_integrals_are_exact_in_the_end() {
    let y = observations(300);
    let umnn = SourceConfig {
        direction: Direction::ToNoise,
        layers: 1,
        hidden: vec![8],
        integrand_hidden: vec![8],
        embedding: 2,
        ..SourceConfig::new(SourceKind::Umnn)
    };
    let build = || umnn.build(&[0.5], &[1.5], 3).unwrap();
    let mut source = build();
    let config = SingleConfig {
        k: 32,
        rounds: 3,
        training_nodes: 3,
        ..config(EstimatorKind::Iw)
    };
    let outcome = fit(&mut source, &likelihood(), &y, None, &config).unwrap();
    let draws: Vec<usize> = outcome.rounds.iter().map(|round| round.k).collect();
    assert_eq!(draws, [2, 8, 32]);
    let rates = outcome.rounds.iter().map(|r| r.outcome.history[0].rate);
    let rates: Vec<f64> = rates.collect();
    assert!((rates[0] / rates[2] - 3.0).abs() < 1e-12 && rates[1] == rates[2]);
    let starts = outcome.rounds.iter().map(|r| r.outcome.history[0].train);
    let starts: Vec<f64> = starts.collect();
    assert!(starts[1] < starts[0] && starts[2] < starts[0], "{starts:?}");
    let mut again = build();
    again.update(&mut |parameters| parameters.copy_from_slice(source.parameters()));
    let points = y.view();
    let density = |model: &Model| {
        let mut out = vec![0.0; points.rows()];
        model.density().unwrap().log_prob(points, &mut out);
        out
    };
    assert_eq!(density(&source), density(&again));
}
