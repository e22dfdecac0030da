//! The loop on an objective whose answers are known.

use super::*;

/// Mean of (p − row)²/2 over rows of a known table; the held-out loss can be steered by epoch (0 for the start) and p, and the
/// loss broken, at will.
struct Parabola {
    values: Vec<f32>,
    parameters: Vec<f32>,
    held_out: Box<dyn Fn(usize, f32) -> f64>,
    evaluations: usize,
    broken_step: u64,
}

impl Parabola {
    fn new(held_out: impl Fn(usize, f32) -> f64 + 'static) -> Self {
        Self {
            values: (0..200).map(|i| 3.0 + (i % 7) as f32 * 0.1).collect(),
            parameters: vec![0.0],
            held_out: Box::new(held_out),
            evaluations: 0,
            broken_step: u64::MAX,
        }
    }
}

impl Objective for Parabola {
    fn rows(&self) -> usize {
        self.values.len()
    }

    fn parameters(&self) -> &[f32] {
        &self.parameters
    }

    fn update(&mut self, change: &mut dyn FnMut(&mut [f32])) {
        change(&mut self.parameters);
    }

    fn loss(&mut self, rows: &[u32], step: u64, gradient: &mut [f32]) -> Result<f64> {
        if step == self.broken_step {
            return Ok(f64::NAN);
        }
        let n = rows.len() as f32;
        let differences = || {
            rows.iter()
                .map(|&r| self.parameters[0] - self.values[r as usize])
        };
        gradient[0] = differences().sum::<f32>() / n;
        Ok(differences().map(|d| f64::from(d * d)).sum::<f64>() / (2.0 * f64::from(n)))
    }

    fn held_out_loss(&mut self, _rows: &[u32]) -> Result<f64> {
        let epoch = self.evaluations;
        self.evaluations += 1;
        Ok((self.held_out)(epoch, self.parameters[0]))
    }
}

fn config() -> TrainConfig {
    TrainConfig {
        epochs: 30,
        batch: 20,
        rate: 0.1,
        schedule: Schedule::Constant,
        adam: AdamConfig::default(),
        held_out: 0.1,
        patience: 0,
    }
}

fn go_on(_: &Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

#[test]
fn finds_the_minimum() {
    let mut objective = Parabola::new(|_, p| f64::from((p - 3.3).powi(2)));
    let outcome = train(&mut objective, &config(), 1, None, &mut go_on).unwrap();
    assert!((objective.parameters[0] - 3.3).abs() < 0.05);
    assert_eq!(outcome.history.len(), 30);
    assert!(!outcome.stopped_early);
}

/// The held-out loss falls to epoch 4 and rises from there: with patience 3 the loop ends after epoch 7, at the weights of 4.
#[test]
fn stops_early_with_the_best_weights() {
    let rises = |epoch: usize, _| (epoch as f64 - 4.0).abs();
    let patient = TrainConfig {
        patience: 3,
        ..config()
    };
    let mut objective = Parabola::new(rises);
    let outcome = train(&mut objective, &patient, 1, None, &mut go_on).unwrap();
    assert_eq!((outcome.best_epoch, outcome.history.len()), (4, 7));
    assert!(outcome.stopped_early);
    let mut four = Parabola::new(rises);
    let short = TrainConfig {
        epochs: 4,
        ..config()
    };
    train(&mut four, &short, 1, None, &mut go_on).unwrap();
    assert_eq!(objective.parameters, four.parameters);
}

/// No epoch is better than the start: the loop ends when patience does, where it began. A start that has no loss is not kept.
#[test]
fn a_start_that_is_never_bettered_is_kept() {
    let patient = TrainConfig {
        patience: 3,
        ..config()
    };
    let mut objective = Parabola::new(|_, p| f64::from(p));
    objective.parameters = vec![0.25];
    let outcome = train(&mut objective, &patient, 1, None, &mut go_on).unwrap();
    assert_eq!((outcome.best_epoch, outcome.history.len()), (0, 3));
    assert_eq!(
        (outcome.best_loss, objective.parameters),
        (0.25, vec![0.25])
    );
    let mut objective = Parabola::new(|epoch, p| if epoch == 0 { f64::NAN } else { f64::from(p) });
    let outcome = train(&mut objective, &patient, 1, None, &mut go_on).unwrap();
    assert_eq!(outcome.best_epoch, 1);
}

#[test]
fn a_stopped_run_resumes_to_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    let policy = CheckpointPolicy {
        path: folder.path().join("checkpoint.safetensors"),
        every: Duration::from_secs(3600),
    };
    let objective = || Parabola::new(|_, p| f64::from((p - 3.3).powi(2)));
    let mut whole = objective();
    let expected = train(&mut whole, &config(), 1, None, &mut go_on).unwrap();
    let mut stopped = objective();
    let error = train(&mut stopped, &config(), 1, Some(&policy), &mut |progress| {
        if progress.step == 133 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })
    .unwrap_err();
    assert!(matches!(error, Error::Cancelled { steps: 133 }), "{error}");
    let mut resumed = objective();
    let outcome = train(&mut resumed, &config(), 1, Some(&policy), &mut go_on).unwrap();
    assert_eq!(resumed.parameters, whole.parameters);
    assert_eq!(outcome.best_epoch, expected.best_epoch);
    for (a, b) in outcome.history.iter().zip(&expected.history) {
        assert_eq!((a.train, a.held_out), (b.train, b.held_out));
    }
    let error = train(&mut objective(), &config(), 2, Some(&policy), &mut go_on).unwrap_err();
    assert!(error.to_string().contains("seed"), "{error}");
}

#[test]
fn a_loss_that_is_not_finite_stops_with_step_and_batch() {
    let mut objective = Parabola::new(|_, _| 0.0);
    objective.broken_step = 12;
    let error = train(&mut objective, &config(), 1, None, &mut go_on).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("the loss became NaN at step 12 (epoch 2, batch 3)"),
        "{text}"
    );
    assert!(error.hint().is_some());
}

#[test]
fn a_plateau_lowers_the_rate() {
    let mut objective = Parabola::new(|epoch, _| if epoch == 0 { 2.0 } else { 1.0 });
    let schedule = Schedule::Plateau {
        factor: 0.5,
        patience: 2,
    };
    let settings = TrainConfig {
        epochs: 6,
        schedule,
        ..config()
    };
    let outcome = train(&mut objective, &settings, 1, None, &mut go_on).unwrap();
    let rates: Vec<f64> = outcome.history.iter().map(|epoch| epoch.rate).collect();
    assert_eq!(rates, [0.1, 0.1, 0.1, 0.05, 0.05, 0.025]);
}

#[test]
fn fewer_rows_than_a_batch_are_refused() {
    let mut objective = Parabola::new(|_, _| 0.0);
    let large = TrainConfig {
        batch: 190,
        ..config()
    };
    let error = train(&mut objective, &large, 1, None, &mut go_on).unwrap_err();
    assert!(error.to_string().contains("180 rows"), "{error}");
}
