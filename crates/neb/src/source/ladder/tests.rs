//! Which rungs are climbed, and who wins.

use super::*;
use crate::source::Source;
use crate::surrogate::GaussianNoise;
use crate::{Matrix, Noise, Purpose};

fn noise(step: u64) -> Noise {
    Noise::new(33, Purpose::Test, step)
}

/// Climbs with observations of the given x through noise of deviation 0.3, and particles uniform on [−3, 3]².
fn climbed(x: &Matrix) -> LadderOutcome {
    let deviation = 0.3f32;
    let error = noise(1).normal(x.rows(), 2);
    let y = Matrix::from_fn(x.rows(), 2, |i, d| {
        x.row(i)[d] + deviation * error.row(i)[d]
    });
    let variance = deviation * deviation;
    let likelihood =
        GaussianNoise::new(Rows::new(&[variance, 0.0, 0.0, variance], 2)).expect("positive");
    let mut points = noise(2).uniform(3000, 2);
    points
        .values_mut()
        .iter_mut()
        .for_each(|v| *v = 6.0 * *v - 3.0);
    let observations = Observations {
        y: y.view(),
        weights: None,
    };
    let config = LadderConfig {
        affine_k: 256,
        refine_k: 256,
        judge_k: 2048,
        refine_epochs: 1,
        ..LadderConfig::default()
    };
    let options = LadderOptions {
        seed: 4,
        checkpoints: None,
        watch: &mut |_: &str, _: &train::Progress| ControlFlow::Continue(()),
    };
    climb(&likelihood, observations, points.view(), &config, options).unwrap()
}

fn names(report: &LadderReport) -> Vec<&str> {
    report.rungs.iter().map(|rung| rung.name.as_str()).collect()
}

/// Two peaks of deviation 0.2 at x1 = ±1.5: no affine source has them. Of 3000 draws of a law with both peaks, those between
/// −0.5 and 0.5 would be none; a normal law of the same variance has a quarter there.
#[test]
fn two_peaks_take_a_flow_and_its_own_particles() {
    let mut x = noise(3).normal(3000, 2);
    for (row, x) in x.values_mut().chunks_exact_mut(2).enumerate() {
        x[0] = if row % 2 == 0 { -1.5 } else { 1.5 } + 0.2 * x[0];
    }
    let outcome = climbed(&x);
    let rungs = names(&outcome.report);
    assert!(
        rungs.contains(&"spline on particles of the flow"),
        "{rungs:?}"
    );
    assert!(
        rungs[outcome.report.winner].starts_with("spline"),
        "{rungs:?}"
    );
    let draws = outcome.source.sample(3000, noise(4));
    let between = draws.values().chunks_exact(2).filter(|x| x[0].abs() < 0.5);
    let share = between.count() as f64 / 3000.0;
    assert!(share < 0.05, "{share} of the draws lie between the peaks");
}

/// A normal source is affine; no flow is better by two standard errors (false-alarm rate 2 % for each of four flows, seed
/// fixed), and none gives particles.
#[test]
fn a_normal_source_stays_affine() {
    let outcome = climbed(&noise(5).normal(3000, 2));
    let rungs = names(&outcome.report);
    assert!(
        rungs[outcome.report.winner].starts_with("affine of normal"),
        "{rungs:?}"
    );
    assert!(
        !rungs.contains(&"spline on particles of the flow"),
        "{rungs:?}"
    );
}
