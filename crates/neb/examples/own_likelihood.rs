//! A source fitted through your own likelihood, without a surrogate: `cargo run --release --example own_likelihood`.
//!
//! A detector counts: y is one of 0, 1, 2, ..., Poisson with mean eˣ. All that is needed is log p(y|x), its derivative with
//! respect to x, and draws. The hidden x are N(1, 0.5²); the fit finds that from 2000 counts.

use std::ops::ControlFlow;

use neb::source::{
    EstimatorKind, Observations, SingleConfig, SingleOptions, Source, SourceKind, fit_single,
};
use neb::{Dims, Likelihood, Matrix, MatrixMut, Noise, PairWeights, Purpose, Rows};

/// p(y|x) = e^(xy − eˣ) / y!
struct Counter;

fn log_prob(y: f32, x: f32) -> f32 {
    let log_factorial: f32 = (1..=y as u32).map(|n| (n as f32).ln()).sum();
    x * y - x.exp() - log_factorial
}

impl Likelihood for Counter {
    fn dims(&self) -> Dims {
        Dims { dx: 1, dy: 1 }
    }

    fn log_prob(&self, y: Rows, x: Rows, out: &mut [f32]) {
        for (row, out) in out.iter_mut().enumerate() {
            *out = log_prob(y.row(row)[0], x.row(row)[0]);
        }
    }

    fn log_prob_pairs(&self, y: Rows, x: Rows, mut out: MatrixMut) {
        for i in 0..y.rows() {
            for (k, out) in out.row_mut(i).iter_mut().enumerate() {
                *out = log_prob(y.row(i)[0], x.row(k)[0]);
            }
        }
    }

    /// ∂ log p(y|x)/∂x = y − eˣ, summed with the weights of the observations that matter to x_k.
    fn grad_x_pairs(&self, y: Rows, x: Rows, weights: &PairWeights, mut dx: MatrixMut) {
        for k in 0..x.rows() {
            let entries = weights.starts[k]..weights.starts[k + 1];
            let slope = |y: f32| y - x.row(k)[0].exp();
            dx.row_mut(k)[0] = entries
                .map(|at| weights.weight[at] * slope(y.row(weights.y_row[at] as usize)[0]))
                .sum();
        }
    }

    fn sample(&self, x: Rows, noise: Noise) -> Matrix {
        Matrix::from_fn(x.rows(), 1, |row, _| {
            let mut stream = noise.stream(row as u64);
            let (mut count, mut time) = (0.0, 0.0);
            loop {
                time -= stream.uniform().ln();
                if time > f64::from(x.row(row)[0].exp()) {
                    return count;
                }
                count += 1.0;
            }
        })
    }
}

/// Mean and deviation of the fitted source.
fn fit() -> neb::Result<(f64, f64)> {
    let z = Noise::new(1, Purpose::DrawX, 0).normal(2000, 1);
    let x = Matrix::from_fn(2000, 1, |row, _| 1.0 + 0.5 * z.row(row)[0]);
    let y = Counter.sample(x.view(), Noise::new(1, Purpose::DrawY, 0));

    let mut config = SingleConfig::fast(EstimatorKind::Mc);
    config.k = 512;
    config.judge_k = 2048;
    config.train.epochs = 20;
    config.train.rate = 1e-2;
    let mut source =
        SingleConfig::source(EstimatorKind::Mc, SourceKind::Affine).build(&[0.0], &[1.0], 1)?;
    let observations = Observations {
        y: y.view(),
        weights: None,
    };
    let options = SingleOptions {
        seed: 1,
        checkpoints: None,
        domain: None,
        towards: None,
        watch: &mut |_, _| ControlFlow::Continue(()),
    };
    fit_single(&mut source, &Counter, observations, &config, options)?;

    let draws = source.sample(20_000, Noise::new(1, Purpose::SourceSample, 0));
    let values = || draws.values().iter().map(|&v| f64::from(v));
    let mean = values().sum::<f64>() / 20_000.0;
    let variance = values().map(|v| (v - mean).powi(2)).sum::<f64>() / 20_000.0;
    Ok((mean, variance.sqrt()))
}

fn main() -> neb::Result<()> {
    let (mean, deviation) = fit()?;
    println!("q(x) has mean {mean:.3} and deviation {deviation:.3}; the truth 1 and 0.5");
    Ok(())
}

/// The counts alone determine mean and deviation of x to about 0.02 and 0.02 (2000 events, half of the variance of log y is
/// noise); five times that.
#[test]
fn finds_the_hidden_law() {
    let (mean, deviation) = fit().unwrap();
    assert!((mean - 1.0).abs() < 0.1, "{mean}");
    assert!((deviation - 0.5).abs() < 0.1, "{deviation}");
}
