//! Fits against closed forms; the laws every source keeps are in `laws`, what they are tried on in `models`.

mod laws;
mod models;
mod settings;

use std::ops::ControlFlow;

use super::*;
use crate::Purpose;
use crate::nn::adam::AdamConfig;
use crate::nn::schedule::Schedule;
use crate::surrogate::GaussianNoise;
use crate::train::{TrainConfig, train};

fn noise(step: u64) -> Noise {
    Noise::new(21, Purpose::Test, step)
}

fn training(epochs: usize, batch: usize, rate: f64) -> TrainConfig {
    TrainConfig {
        epochs,
        batch,
        rate,
        schedule: Schedule::Cosine { warm_up: 0.02 },
        adam: AdamConfig::default(),
        held_out: 0.1,
        patience: 0,
    }
}

/// Source N(m, t²), noise s, both known: the fitted variance tends to Var(y) − s² and the mean to ȳ. Standard errors with
/// N = 4000: of the mean √(t²+s²)/√N = 0.019, of the variance (t²+s²)√(2/N) = 0.031; the Monte Carlo error of the fit adds
/// about as much, so the bounds are 4·√2 of these (false-alarm rate 1e-4 each, seed fixed).
#[test]
fn a_gaussian_source_is_recovered() {
    let (m, t, s) = (0.7f32, 1.1f32, 0.5f32);
    let rows = 4000;
    let z = noise(11).normal(rows, 2);
    let y = Matrix::from_fn(rows, 1, |i, _| m + t * z.row(i)[0] + s * z.row(i)[1]);
    let likelihood = GaussianNoise::new(Rows::new(&[s * s], 1)).expect("positive");
    let mean = y.values().iter().sum::<f32>() / rows as f32;
    let variance = y.values().iter().map(|v| (v - mean).powi(2)).sum::<f32>() / rows as f32;
    let mut source = Affine::new(Base::Normal, &[0.0], &[2.0], &[false]);
    let mut objective = MarginalObjective {
        source: &mut source,
        likelihood: &likelihood,
        y: y.view(),
        weights: None,
        estimator: Estimator::Shared { k: 2048 },
        pull: Pull::NONE,
        held_out_k: 2048,
        seed: 2,
        effective_samples: None,
    };
    let watch = &mut |_: &crate::train::Progress| ControlFlow::Continue(());
    train(&mut objective, &training(12, 200, 3e-2), 2, None, watch).unwrap();
    let fitted = source.deviation(0).powi(2);
    let wanted = variance - s * s;
    assert!(
        (fitted - wanted).abs() < 0.18,
        "variance {fitted} for {wanted}"
    );
    assert!(
        (source.mean(0) - mean).abs() < 0.11,
        "mean {} for {mean}",
        source.mean(0)
    );
}

/// A fit in other units is the same fit: x, y and the noise in thousandths, same bits up to rounding.
#[test]
fn units_do_not_matter() {
    let y = noise(13).normal(500, 1);
    let fit = |unit: f32| {
        let y = Matrix::from_fn(500, 1, |i, _| unit * (2.0 + y.row(i)[0]));
        let variance = (0.5 * unit).powi(2);
        let likelihood = GaussianNoise::new(Rows::new(&[variance], 1)).expect("positive");
        let mut source = Affine::new(Base::Normal, &[0.0], &[2.0 * unit], &[false]);
        let mut objective = MarginalObjective {
            source: &mut source,
            likelihood: &likelihood,
            y: y.view(),
            weights: None,
            estimator: Estimator::Shared { k: 256 },
            pull: Pull::NONE,
            held_out_k: 256,
            seed: 2,
            effective_samples: None,
        };
        let watch = &mut |_: &crate::train::Progress| ControlFlow::Continue(());
        train(&mut objective, &training(10, 50, 3e-2), 2, None, watch).unwrap();
        (source.mean(0) / unit, source.deviation(0) / unit)
    };
    let (one, thousandth) = (fit(1.0), fit(1e-3));
    assert!(
        (one.0 - thousandth.0).abs() < 1e-3,
        "{one:?} {thousandth:?}"
    );
    assert!(
        (one.1 - thousandth.1).abs() < 1e-3,
        "{one:?} {thousandth:?}"
    );
    assert!((one.0 - 2.0).abs() < 0.5, "{one:?}: the fit went nowhere");
}

/// Every kind fitted to points of a correlated normal law reaches their mean log-density, −log 2π − log |L| − 1, where it can
/// represent it; the plain affine map misses the correlation by exactly ½ log(1 − ρ²).
#[test]
fn every_density_is_fitted_to_points() {
    let (rows, correlation) = (4000, 0.6f32);
    let z = noise(12).normal(rows, 2);
    let slope = (1.0 - correlation * correlation).sqrt();
    let points = Matrix::from_fn(rows, 2, |i, d| {
        let z = z.row(i);
        [
            1.0 + 0.5 * z[0],
            -2.0 + 2.0 * (correlation * z[0] + slope * z[1]),
        ][d]
    });
    let exact = -(2.0 * std::f64::consts::PI).ln() - 1.0 - f64::from(slope).ln();
    let missed = f64::from(slope).ln();
    for (name, config) in models::kinds() {
        if config.kind == SourceKind::Mlp || config.base == Base::Uniform {
            continue;
        }
        let mut model = config.build(&[0.8, -1.0], &[1.0, 1.5], 3).unwrap();
        let watch = &mut |_: &crate::train::Progress| ControlFlow::Continue(());
        let train = training(12, 100, 1e-2);
        model
            .fit_points(points.view(), &train, 4, None, watch)
            .unwrap();
        let mut out = vec![0.0; rows];
        model.density().unwrap().log_prob(points.view(), &mut out);
        let mean = out.iter().map(|&v| f64::from(v)).sum::<f64>() / rows as f64;
        let wanted = match config.kind {
            SourceKind::Affine => exact + missed,
            _ => exact,
        };
        // The points' own entropy differs from the law's by 1/√rows (two degrees of freedom, variance ½ each).
        assert!((mean - wanted).abs() < 0.08, "{name}: {mean} for {wanted}");
    }
}

#[test]
fn a_source_without_density_says_so() {
    let mut model = SourceConfig::new(SourceKind::Mlp)
        .build(&[0.0], &[1.0], 1)
        .unwrap();
    assert!(model.density().is_none());
    let error = model.require_density("log-prob").err().unwrap();
    assert!(error.to_string().starts_with("log-prob needs"), "{error}");
    assert!(error.hint().unwrap().contains("spline"));
    let points = noise(1).normal(100, 1);
    let watch = &mut |_: &crate::train::Progress| ControlFlow::Continue(());
    let refused = model.fit_points(points.view(), &training(1, 10, 1e-3), 1, None, watch);
    assert!(refused.is_err());
}
