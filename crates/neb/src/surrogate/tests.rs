//! Learned surrogates against closed forms, and their parts against each other.

use std::ops::ControlFlow;

use super::*;
use crate::column::{Transform, Transforms};
use crate::{Likelihood, Matrix, Noise, PairWeights, Purpose, Result};

/// y = (x1 + x2, x1 − 2) + N(0, 0.3²), x ~ N(0, I): log q(y|x) is known.
const NOISE: f32 = 0.3;

fn linear_pairs(rows: usize, seed: u64) -> (Matrix, Matrix) {
    let x = Noise::new(seed, Purpose::Test, 0).normal(rows, 2);
    let e = Noise::new(seed, Purpose::Test, 1).normal(rows, 2);
    let y = Matrix::from_fn(rows, 2, |i, d| {
        let mean = [x.row(i)[0] + x.row(i)[1], x.row(i)[0] - 2.0][d];
        mean + NOISE * e.row(i)[d]
    });
    (x, y)
}

fn names(letter: &str) -> Vec<String> {
    vec![format!("{letter}1"), format!("{letter}2")]
}

fn quick(model: ModelConfig, epochs: usize) -> SurrogateConfig {
    let mut config = SurrogateConfig::single(model);
    config.candidates[0].train.epochs = epochs;
    config
}

fn small_models() -> Vec<ModelConfig> {
    let activation = crate::nn::activation::Activation::Silu;
    vec![
        ModelConfig::Mixture {
            components: 2,
            hidden: vec![16],
            noise: None,
        },
        ModelConfig::Mixture {
            components: 1,
            hidden: vec![16],
            noise: Some(NoiseScale {
                smallest: 1e-2,
                largest: 0.5,
            }),
        },
        ModelConfig::Coupling {
            layers: 2,
            hidden: vec![16],
            head: vec![16],
            activation,
        },
        ModelConfig::Spline {
            layers: 2,
            hidden: vec![16],
            head: Vec::new(),
            bins: 5,
            bound: 4.0,
            activation,
        },
    ]
}

fn fit(x: &Matrix, y: &Matrix, config: &SurrogateConfig) -> Result<(Surrogate, Report)> {
    let pairs = Pairs {
        x: x.view(),
        y: y.view(),
        x_names: &names("x"),
        y_names: &names("y"),
    };
    let options = FitOptions {
        seed: 5,
        checkpoints: None,
        watch: &mut |_, _| ControlFlow::Continue(()),
    };
    Surrogate::fit(pairs, config, options)
}

/// The exact mean log-likelihood is −log(2π 0.09) − 1 = −0.4299; its standard error over 4000 fresh pairs is 0.016.
#[test]
fn every_form_learns_a_linear_gaussian() {
    let (x, y) = linear_pairs(4000, 1);
    let (fresh_x, fresh_y) = linear_pairs(4000, 2);
    let exact = -(2.0 * std::f64::consts::PI * f64::from(NOISE).powi(2)).ln() - 1.0;
    for model in small_models() {
        let name = model.name();
        let (surrogate, report) = fit(&x, &y, &quick(model, 25)).unwrap();
        let mut out = vec![0.0; 4000];
        surrogate.log_prob(fresh_y.view(), fresh_x.view(), &mut out);
        let mean = out.iter().map(|&v| f64::from(v)).sum::<f64>() / 4000.0;
        assert!((mean - exact).abs() < 0.12, "{name}: {mean} for {exact}");
        assert!((report.best().held_out - exact).abs() < 0.2, "{name}");
    }
}

#[test]
fn pairs_rows_and_gradients_agree() {
    let (x, y) = linear_pairs(600, 3);
    for model in small_models() {
        let name = model.name();
        let (surrogate, _) = fit(&x, &y, &quick(model, 3)).unwrap();
        let (ys, xs) = (y.view().slice(0..37), x.view().slice(100..183));
        let mut pairs = Matrix::zeros(ys.rows(), xs.rows());
        surrogate.log_prob_pairs(ys, xs, pairs.view_mut());
        let mut starts = vec![0];
        let (mut y_row, mut weight) = (Vec::new(), Vec::new());
        for k in 0..xs.rows() {
            for i in (k % 5..ys.rows()).step_by(7) {
                y_row.push(i as u32);
                weight.push(0.1 + (i + k) as f32 * 0.01);
            }
            starts.push(y_row.len());
        }
        let weights = PairWeights {
            starts,
            y_row,
            weight,
        };
        let mut dx = Matrix::zeros(xs.rows(), 2);
        surrogate.grad_x_pairs(ys, xs, &weights, dx.view_mut());
        let objective = |xs: &Matrix, k: usize| {
            let range = weights.starts[k]..weights.starts[k + 1];
            let entries = range.clone().count();
            let rows: Vec<u32> = weights.y_row[range.clone()].to_vec();
            let one = Matrix::from_fn(entries, 2, |_, d| xs.row(k)[d]);
            let mut out = vec![0.0; entries];
            surrogate.log_prob(ys.gather(&rows).view(), one.view(), &mut out);
            let products = out.iter().zip(&weights.weight[range]);
            products
                .map(|(&l, &w)| f64::from(l) * f64::from(w))
                .sum::<f64>()
        };
        let mut moved = xs.to_matrix();
        let (mut error, mut size) = (0.0, 0.0);
        for k in 0..xs.rows() {
            let mut out = [0.0];
            surrogate.log_prob(ys.slice(3..4), xs.slice(k..k + 1), &mut out);
            assert!((out[0] - pairs.row(3)[k]).abs() < 1e-4, "{name}");
            for d in 0..2 {
                let h = 2e-3;
                let kept = moved.row(k)[d];
                moved.row_mut(k)[d] = kept + h;
                let up = objective(&moved, k);
                moved.row_mut(k)[d] = kept - h;
                let down = objective(&moved, k);
                moved.row_mut(k)[d] = kept;
                let numeric = (up - down) / (2.0 * f64::from(h));
                error += (f64::from(dx.row(k)[d]) - numeric).powi(2);
                size += numeric.powi(2);
            }
        }
        assert!(error < 1e-4 * size, "{name}: {:.1e}", (error / size).sqrt());
    }
}

/// Means within four standard errors (false-alarm rate 1e-4 each) of the surrogate's own mean, taken from its log-density
/// by quadrature on a grid of y at one x.
#[test]
fn draws_follow_the_density() {
    let (x, y) = linear_pairs(2000, 4);
    for model in small_models() {
        let name = model.name();
        let (surrogate, _) = fit(&x, &y, &quick(model, 10)).unwrap();
        let at = [0.4f32, -0.3];
        let grid = 120;
        let node = |i: usize| -6.0 + (i as f32 + 0.5) * 0.1;
        let points = Matrix::from_fn(grid * grid, 2, |p, d| {
            if d == 0 {
                node(p / grid)
            } else {
                node(p % grid)
            }
        });
        let repeated = Matrix::from_fn(grid * grid, 2, |_, d| at[d]);
        let mut logs = vec![0.0; grid * grid];
        surrogate.log_prob(points.view(), repeated.view(), &mut logs);
        let (mut total, mut moments) = (0.0, [0.0f64; 4]);
        for (p, &log) in logs.iter().enumerate() {
            let mass = f64::from(log).exp() * 0.01;
            total += mass;
            for d in 0..2 {
                let v = f64::from(points.row(p)[d]);
                moments[d] += mass * v;
                moments[2 + d] += mass * v * v;
            }
        }
        assert!((total - 1.0).abs() < 0.01, "{name}: ∫ q = {total}");
        let n = 20_000;
        let many = Matrix::from_fn(n, 2, |_, d| at[d]);
        let draws = surrogate.sample(many.view(), Noise::new(9, Purpose::DrawY, 0));
        for d in 0..2 {
            let mean = moments[d] / total;
            let variance = moments[2 + d] / total - mean * mean;
            let sum: f64 = (0..n).map(|i| f64::from(draws.row(i)[d])).sum();
            let error = (variance / n as f64).sqrt();
            let off = (sum / n as f64 - mean).abs();
            assert!(off < 4.0 * error, "{name}: off by {off}, error {error}");
        }
    }
}

#[test]
fn files_come_back_bit_by_bit() {
    let folder = tempfile::tempdir().unwrap();
    let (x, y) = linear_pairs(600, 6);
    for model in small_models() {
        let (surrogate, _) = fit(&x, &y, &quick(model, 2)).unwrap();
        let path = folder.path().join("surrogate.safetensors");
        let of_x = Transforms::new(vec![Transform::Log; x.cols()]);
        let surrogate = surrogate.with_transforms(of_x.clone(), Transforms::plain());
        surrogate.save(&path).unwrap();
        let back = Surrogate::load(&path).unwrap();
        assert_eq!(*back.x_transforms(), of_x);
        assert!(back.y_transforms().is_plain());
        let (mut before, mut after) = (vec![0.0; 600], vec![0.0; 600]);
        surrogate.log_prob(y.view(), x.view(), &mut before);
        back.log_prob(y.view(), x.view(), &mut after);
        assert_eq!(before, after);
        assert_eq!(back.y_range(), surrogate.y_range());
    }
}

/// One-dimensional x and y, through every form.
#[test]
fn one_dimension_each() {
    let (x2, _) = linear_pairs(600, 7);
    let column = |d: usize| Matrix::from_fn(600, 1, |i, _| x2.row(i)[d]);
    let (x, e) = (column(0), column(1));
    let y = Matrix::from_fn(600, 1, |i, _| x.row(i)[0] + 0.5 * e.row(i)[0]);
    for model in small_models() {
        let name = model.name();
        let pairs = Pairs {
            x: x.view(),
            y: y.view(),
            x_names: &["x1".to_owned()],
            y_names: &["y1".to_owned()],
        };
        let options = FitOptions {
            seed: 5,
            checkpoints: None,
            watch: &mut |_, _| ControlFlow::Continue(()),
        };
        let (surrogate, _) = Surrogate::fit(pairs, &quick(model, 80), options).unwrap();
        let mut out = vec![0.0; 600];
        surrogate.log_prob(y.view(), x.view(), &mut out);
        let mean = out.iter().sum::<f32>() / 600.0;
        // The exact value is −log(0.5 √(2πe)) = −0.726.
        assert!((mean + 0.726).abs() < 0.12, "{name}: {mean}");
    }
}

#[test]
fn constant_columns_and_unequal_rows_are_refused() {
    let (x, mut y) = linear_pairs(300, 8);
    for row in 0..300 {
        y.row_mut(row)[1] = 4.0;
    }
    let error = fit(&x, &y, &SurrogateConfig::fast()).unwrap_err();
    assert!(error.to_string().contains("`y2`"), "{error}");
    let (short, _) = linear_pairs(200, 8);
    let error = fit(&short, &y, &SurrogateConfig::fast()).unwrap_err();
    assert!(error.to_string().contains("200"), "{error}");
}

/// Widening by τ is exact for a Gaussian: the surrogate of a linear problem, asked for the density of y + τ·noise, must agree
/// with the closed form at the wider deviation.
#[test]
fn widened_density_is_that_of_noisier_observations() {
    let (x, y) = linear_pairs(4000, 9);
    let model = ModelConfig::Mixture {
        components: 1,
        hidden: vec![32],
        noise: Some(NoiseScale {
            smallest: 1e-2,
            largest: 0.5,
        }),
    };
    let (surrogate, _) = fit(&x, &y, &quick(model, 100)).unwrap();
    let widening = surrogate.widening().expect("trained with noise");
    let tau = 0.4;
    let scales = widening.deviations().to_vec();
    let noise = Noise::new(3, Purpose::Test, 7).normal(4000, 2);
    let noisy = Matrix::from_fn(4000, 2, |i, d| {
        y.row(i)[d] + tau * scales[d] * noise.row(i)[d]
    });
    let mut out = vec![0.0; 4000];
    let wide = widening.widened(tau);
    wide.log_prob(noisy.view(), x.view(), &mut out);
    let mean = out.iter().map(|&v| f64::from(v)).sum::<f64>() / 4000.0;
    let exact: f64 = scales
        .iter()
        .map(|s| {
            let variance = f64::from(NOISE).powi(2) + f64::from(tau * s).powi(2);
            -0.5 * (2.0 * std::f64::consts::PI * variance).ln() - 0.5
        })
        .sum();
    assert!((mean - exact).abs() < 0.08, "{mean} for {exact}");
}
