//! The linear-Gaussian problem, whose posterior is known: prior N(0, I), y|x ~ N(x − 1, 0.3 I), so
//! x|y ~ N((y + 1)/1.3, 0.3/1.3 I).

use super::*;
use crate::{Noise, Purpose};

const EVENTS: usize = 1000;
const DRAWS: usize = 100;
const DIMS: usize = 3;
const DEVIATION: f32 = 0.480_384_5;

struct Problem {
    truth: Matrix,
    draws: Matrix,
}

impl Problem {
    /// Draws N(mean + shift, (width · deviation)²) for each event.
    fn new(seed: u64, events: usize, shift: f32, width: f32) -> Self {
        let normal = |step, rows| Noise::new(seed, Purpose::Test, step).normal(rows, DIMS);
        let truth = normal(0, events);
        let noise = normal(1, events);
        let z = normal(2, events * DRAWS);
        let draws = Matrix::from_fn(events * DRAWS, DIMS, |row, col| {
            let event = row / DRAWS;
            let y = truth.row(event)[col] - 1.0 + 0.3f32.sqrt() * noise.row(event)[col];
            (y + 1.0) / 1.3 + shift + width * DEVIATION * z.row(row)[col]
        });
        Self { truth, draws }
    }

    fn check(&self, weights: Option<&[f32]>) -> Calibration {
        let posteriors = Posteriors {
            draws: self.draws.view(),
            weights,
            truth: self.truth.view(),
        };
        calibrate(posteriors, &CalibrationOptions::default()).unwrap()
    }
}

/// False-alarm rate 5 % by construction; the seed is fixed.
#[test]
fn the_exact_posterior_passes() {
    let found = Problem::new(1, EVENTS, 0.0, 1.0).check(None);
    assert!(found.calibrated, "{found:?}");
    assert!(found.ks < found.ks_limit);
    for marginal in &found.marginals {
        assert_eq!(marginal.shape, RankShape::Flat);
        assert_eq!(marginal.histogram.iter().sum::<u64>(), EVENTS as u64);
    }
    assert_eq!(found.coverage.below[0], 0.0);
    assert_eq!(found.coverage.below[50], 1.0);
}

/// Each verdict must fail for the exact posterior in 5 % of repetitions at most (Bonferroni's bound, nearly reached by KS and
/// χ²): of 200 repetitions 10 expected, 3.1 their deviation; more than 22 would be four deviations.
#[test]
fn false_alarms_are_as_rare_as_stated() {
    let mut alarms = [0; 4];
    for seed in 0..200 {
        let found = Problem::new(100 + seed, 100, 0.0, 1.0).check(None);
        let verdicts = [
            found.marginals_agree,
            found.histograms_agree,
            found.joint_agrees,
            found.calibrated,
        ];
        for (alarms, verdict) in alarms.iter_mut().zip(verdicts) {
            *alarms += usize::from(!verdict);
        }
    }
    assert!(alarms.iter().all(|&count| count <= 22), "{alarms:?}");
    assert!(alarms[0] >= 1 && alarms[1] >= 1, "{alarms:?}");
}

#[test]
fn wrong_widths_and_shifts_are_seen() {
    let cases = [
        (0.0, 0.25, RankShape::TooNarrow),
        (0.0, 4.0, RankShape::TooWide),
        (0.2, 1.0, RankShape::TooHigh),
        (-0.2, 1.0, RankShape::TooLow),
    ];
    for (shift, width, shape) in cases {
        let found = Problem::new(2, EVENTS, shift, width).check(None);
        assert!(!found.calibrated && !found.marginals_agree && !found.histograms_agree);
        assert!(!found.joint_agrees, "shift {shift} width {width}");
        assert!(found.ks > 2.0 * found.ks_limit);
        for marginal in &found.marginals {
            assert_eq!(marginal.shape, shape, "shift {shift} width {width}");
        }
    }
}

/// For draws w times too wide the rank is Φ(z / w), z normal: F(t) = Φ(w Φ⁻¹(t)). The curve must follow it within 0.06,
/// well outside the KS band of 1000 events (0.043, plus 0.01 for the finite number of draws).
#[test]
fn curves_follow_the_closed_form() {
    let normal = statrs::distribution::Normal::standard();
    for width in [0.25, 4.0f32] {
        let found = Problem::new(3, EVENTS, 0.0, width).check(None);
        for (level, below) in found.levels.iter().zip(&found.marginals[1].curve.below) {
            let expected = normal.cdf(f64::from(width) * normal.inverse_cdf(*level));
            assert!(
                (below - expected).abs() < 0.06,
                "{level} {below} {expected}"
            );
        }
    }
}

/// The exact posterior couples two dimensions with correlation 0.9; draws with the right marginals but independent.
#[test]
fn right_marginals_with_the_wrong_joint_are_seen() {
    let normal = |step, rows| Noise::new(4, Purpose::Test, step).normal(rows, 2);
    let centre = normal(0, EVENTS);
    let z = normal(1, EVENTS);
    let truth = Matrix::from_fn(EVENTS, 2, |row, col| {
        let z = z.row(row);
        centre.row(row)[col] + [z[0], 0.9 * z[0] + 0.19f32.sqrt() * z[1]][col]
    });
    let noise = normal(2, EVENTS * DRAWS);
    let draws = Matrix::from_fn(EVENTS * DRAWS, 2, |row, col| {
        centre.row(row / DRAWS)[col] + noise.row(row)[col]
    });
    let found = Problem { truth, draws }.check(None);
    assert!(found.marginals_agree && found.histograms_agree, "{found:?}");
    assert!(!found.joint_agrees && !found.calibrated);
}

/// Draws twice too wide, weighted back to the exact posterior by w = N(d; 0, 1) / N(d; 0, 2²) with d in its deviations.
#[test]
fn weights_repair_a_posterior() {
    let problem = Problem::new(5, EVENTS, 0.0, 2.0);
    let z = Noise::new(5, Purpose::Test, 2).normal(EVENTS * DRAWS, DIMS);
    let weights: Vec<f32> = (0..EVENTS * DRAWS)
        .map(|row| z.row(row).iter().map(|z| (-1.5 * z * z).exp()).product())
        .collect();
    assert!(!problem.check(None).calibrated);
    let found = problem.check(Some(&weights));
    assert!(found.marginals_agree && found.histograms_agree, "{found:?}");
    assert!(found.joint_agrees, "{found:?}");
}

#[test]
fn unusable_input_is_named() {
    let problem = Problem::new(6, 40, 0.0, 1.0);
    let fails = |draws: &Matrix, weights: Option<&[f32]>, truth: Rows| {
        let posteriors = Posteriors {
            draws: draws.view(),
            weights,
            truth,
        };
        calibrate(posteriors, &CalibrationOptions::default())
            .unwrap_err()
            .to_string()
    };
    let truth = problem.truth.view();
    let few = fails(&problem.draws, None, truth.slice(0..10));
    assert_eq!(few, "calibration of 10 events");
    let uneven = fails(&problem.draws, None, truth.slice(0..37));
    assert_eq!(uneven, "4000 posterior draws for 37 events");
    let mut weights = vec![1.0; 40 * DRAWS];
    weights[300..400].fill(0.0);
    let zero = fails(&problem.draws, Some(&weights), truth);
    assert!(zero.contains("every weight of event 3 is zero"), "{zero}");
    weights[7] = -1.0;
    let negative = fails(&problem.draws, Some(&weights), truth);
    assert!(negative.contains("the weight of row 7 is -1"), "{negative}");
    let mut broken = problem.draws.clone();
    broken.row_mut(5)[1] = f32::NAN;
    let nan = fails(&broken, None, truth);
    assert!(nan.contains("NaN at row 5, column 1"), "{nan}");
}
