//! Sources against closed forms and finite differences.

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

fn spline() -> FlowFit {
    FlowFit {
        layers: 3,
        hidden: vec![12],
        bins: 5,
        bound: 4.0,
        train: training(20, 100, 5e-3),
    }
}

/// Every source, away from its starting point.
fn sources() -> Vec<(&'static str, Box<dyn Source>)> {
    let (mean, deviation) = ([0.3, -1.0], [0.7, 1.6]);
    let affine = |base| Affine::new(base, &mean, &deviation, &[false, true]);
    let mut flow = FlowSource::new(&spline(), &mean, &deviation, 3);
    let mut step = noise(5).stream(0);
    flow.update(&mut |parameters| {
        for p in parameters {
            *p += 0.2 * step.normal() as f32;
        }
    });
    vec![
        ("affine of normal", Box::new(affine(Base::Normal))),
        ("affine of uniform", Box::new(affine(Base::Uniform))),
        ("spline", Box::new(flow)),
        (
            "pushed coupling",
            Box::new(PushSource::coupling(3, &[12], &mean, &deviation, 4)),
        ),
        (
            "pushed umnn",
            Box::new(PushSource::umnn(&mean, &deviation, false, 4)),
        ),
    ]
}

/// d/dθ of Σ c·G_θ(z), and d/dθ, d/dx of Σ c·log q(x), against central differences; good to 5 % of the norm, which no wrong
/// term survives (kinks of splines and rectifiers, rounding).
#[test]
fn gradients() {
    for (name, mut source) in sources() {
        let rows = 40;
        let z = source.base(rows, noise(1));
        let c = noise(2).normal(rows, 2);
        let x = source.push(z.view());
        let mut gradient = vec![0.0; source.parameters().len()];
        source.backward(z.view(), x.view(), c.view(), &mut gradient);
        let chosen: Vec<usize> = (0..gradient.len())
            .step_by(gradient.len() / 40 + 1)
            .collect();
        let value = |source: &dyn Source| {
            let x = source.push(z.view());
            let products = x.values().iter().zip(c.values());
            products
                .map(|(&x, &c)| f64::from(x) * f64::from(c))
                .sum::<f64>()
        };
        let error = compare(&mut *source, &gradient, &chosen, value);
        assert!(error < 0.05, "{name}: push off by {error}");

        let weight: Vec<f32> = (0..rows).map(|i| c.row(i)[0]).collect();
        let mut dx = Matrix::zeros(rows, 2);
        gradient.fill(0.0);
        let density = source.density().expect("all of these have one");
        density.backward_log_prob(x.view(), &weight, dx.view_mut(), Some(&mut gradient));
        let log = |source: &dyn Source, x: &Matrix| {
            let mut out = vec![0.0; rows];
            source
                .density()
                .expect("has one")
                .log_prob(x.view(), &mut out);
            let products = out.iter().zip(&weight);
            products
                .map(|(&l, &w)| f64::from(l) * f64::from(w))
                .sum::<f64>()
        };
        let error = compare(&mut *source, &gradient, &chosen, |s| log(s, &x));
        // UMNN's log-Jacobian is the integrand, not the derivative of its 20-step quadrature, and differences see the latter;
        // the flows' laws check its gradients with 80 steps.
        let bound = if name == "pushed umnn" { 0.2 } else { 0.05 };
        assert!(error < bound, "{name}: log q off by {error}");
        if matches!(name, "affine of uniform" | "pushed umnn") {
            continue;
        }
        let mut moved = x.clone();
        let (mut error, mut size) = (0.0, 0.0);
        for row in 0..rows {
            for d in 0..2 {
                let h = 2e-3;
                let kept = moved.row(row)[d];
                moved.row_mut(row)[d] = kept + h;
                let up = log(&*source, &moved);
                moved.row_mut(row)[d] = kept - h;
                let down = log(&*source, &moved);
                moved.row_mut(row)[d] = kept;
                let numeric = (up - down) / (2.0 * f64::from(h));
                error += (numeric - f64::from(dx.row(row)[d])).powi(2);
                size += numeric.powi(2);
            }
        }
        assert!(
            error < 2.5e-3 * size,
            "{name}: d log q/dx off by {}",
            (error / size).sqrt()
        );
    }
}

/// Relative deviation of some entries of a gradient from central differences.
fn compare(
    source: &mut dyn Source,
    gradient: &[f32],
    chosen: &[usize],
    value: impl Fn(&dyn Source) -> f64,
) -> f64 {
    let h = 2e-3;
    let (mut error, mut size) = (0.0, 0.0);
    for &p in chosen {
        let mut at = |shift: f32| {
            let kept = source.parameters()[p];
            source.update(&mut |parameters| parameters[p] = kept + shift);
            let value = value(source);
            source.update(&mut |parameters| parameters[p] = kept);
            value
        };
        let numeric = (at(h) - at(-h)) / (2.0 * f64::from(h));
        // A symmetric dimension's shift is held: its gradient is zero by design.
        if gradient[p] == 0.0 {
            continue;
        }
        error += (numeric - f64::from(gradient[p])).powi(2);
        size += numeric.powi(2);
    }
    (error / size).sqrt()
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
        estimator: Estimator::Shared { k: 2048 },
        pull: Pull::NONE,
        held_out_k: 2048,
        seed: 2,
        effective_samples: Vec::new(),
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

/// The density of a flow fitted to points of N((1, −2), diag(0.5, 2)²) has their mean log-density, −log(2π·0.5·2) − 1.
#[test]
fn a_flow_is_fitted_to_points() {
    let z = noise(12).normal(4000, 2);
    let points = Matrix::from_fn(4000, 2, |i, d| [1.0, -2.0][d] + [0.5, 2.0][d] * z.row(i)[d]);
    let mut flow = FlowSource::new(&spline(), &[0.8, -1.0], &[1.0, 1.5], 3);
    let watch = &mut |_: &crate::train::Progress| ControlFlow::Continue(());
    flow.fit_points(points.view(), 4, watch).unwrap();
    let mut out = vec![0.0; 4000];
    flow.log_prob(points.view(), &mut out);
    let mean = out.iter().map(|&v| f64::from(v)).sum::<f64>() / 4000.0;
    let exact = -(2.0 * std::f64::consts::PI).ln() - 1.0;
    assert!((mean - exact).abs() < 0.08, "{mean} for {exact}");
}

#[test]
fn files_come_back_bit_by_bit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("source.safetensors");
    let names = ["a".to_owned(), "b".to_owned()];
    let fitted = [
        ladder::Fitted::Affine(Affine::new(
            Base::Uniform,
            &[0.3, 1.0],
            &[0.5, 2.0],
            &[false, true],
        )),
        ladder::Fitted::Flow(Box::new(FlowSource::new(
            &spline(),
            &[0.0, 1.0],
            &[1.0, 2.0],
            6,
        ))),
    ];
    for source in fitted {
        save_source(&source, &names, &path).unwrap();
        let (back, back_names) = load_source(&path).unwrap();
        assert_eq!(back_names, names);
        let draw = |fitted: &ladder::Fitted| fitted.source().sample(100, noise(3));
        assert_eq!(draw(&source), draw(&back));
    }
}
