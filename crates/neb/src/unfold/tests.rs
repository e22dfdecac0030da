//! A Gaussian source behind a logistic efficiency, with a flat background: known answers.

use std::ops::ControlFlow;

use super::*;
use crate::estimator::testing::{AdditiveNoise, finite_differences};
use crate::estimator::{Batch, Gradient, Samples, mc};
use crate::source::particles::{
    KnownBackground, Observed, ParticleSettings, ReplicaSettings, fit_particles_to, fit_replicas,
};
use crate::train::Progress;
use crate::{
    Acceptance, Dims, Likelihood, Matrix, MatrixMut, Noise, PairWeights, Purpose, Rows, Stream,
};

/// Noise of the detector.
const NOISE: f64 = 0.5;
/// Where the flat background lies.
const FLAT: (f64, f64) = (-4.0, 5.0);
/// So many that the fit has all but converged.
const ITERATIONS: usize = 150;
/// Mean and deviation of nature; the simulation is N(0, 1).
const NATURE: (f64, f64) = (0.6, 0.8);

/// ε(x) = 1/(1 + e^(−(x + 1))), in closed form.
fn efficiency(x: f64) -> f64 {
    1.0 / (1.0 + (-(x + 1.0)).exp())
}

/// y = x + 0.5·N(0, 1), seen with probability ε(x).
struct Exact;

const ADDITIVE: AdditiveNoise = AdditiveNoise {
    dim: 1,
    deviation: NOISE,
};

impl Acceptance for Exact {
    fn log_acceptance(&self, x: Rows, out: &mut [f32]) {
        for (out, x) in out.iter_mut().zip(x.values()) {
            *out = efficiency(f64::from(*x)).ln() as f32;
        }
    }

    fn add_gradient(&self, x: Rows, weight: &[f32], dx: MatrixMut) {
        let each = dx.into_values().iter_mut().zip(weight).zip(x.values());
        for ((dx, weight), x) in each {
            *dx += weight * (1.0 - efficiency(f64::from(*x))) as f32;
        }
    }
}

impl Likelihood for Exact {
    fn dims(&self) -> Dims {
        ADDITIVE.dims()
    }

    fn log_prob(&self, y: Rows, x: Rows, out: &mut [f32]) {
        ADDITIVE.log_prob(y, x, out);
        for (out, x) in out.iter_mut().zip(x.values()) {
            *out += efficiency(f64::from(*x)).ln() as f32;
        }
    }

    fn log_prob_pairs(&self, y: Rows, x: Rows, mut out: MatrixMut) {
        for row in 0..y.rows() {
            let repeated = Matrix::from_vec(vec![y.row(row)[0]; x.rows()], 1);
            self.log_prob(repeated.view(), x, out.row_mut(row));
        }
    }

    fn grad_x_pairs(&self, y: Rows, x: Rows, weights: &PairWeights, dx: MatrixMut) {
        let values = dx.into_values();
        ADDITIVE.grad_x_pairs(y, x, weights, MatrixMut::new(values, 1));
        let ends = weights.starts.windows(2);
        let sums: Vec<f32> = ends
            .map(|ends| weights.weight[ends[0]..ends[1]].iter().sum())
            .collect();
        self.add_gradient(x, &sums, MatrixMut::new(values, 1));
    }

    fn sample(&self, x: Rows, noise: Noise) -> Matrix {
        ADDITIVE.sample(x, noise)
    }

    fn acceptance(&self) -> Option<&dyn Acceptance> {
        Some(self)
    }
}

fn normal(stream: &mut Stream, (mean, deviation): (f64, f64)) -> f32 {
    (mean + deviation * stream.normal()) as f32
}

/// Produced events of a source: x, whether each was reconstructed, and y of those that were.
fn produce(source: (f64, f64), rows: usize, step: u64) -> (Vec<f32>, Vec<bool>, Vec<f32>) {
    let mut stream = Noise::new(71, Purpose::Test, step).stream(0);
    let (mut x, mut seen, mut y) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rows {
        let value = normal(&mut stream, source);
        let is_seen = stream.uniform() < efficiency(f64::from(value));
        x.push(value);
        seen.push(is_seen);
        if is_seen {
            y.push(normal(&mut stream, (f64::from(value), NOISE)));
        }
    }
    (x, seen, y)
}

fn flat(rows: usize, step: u64) -> Vec<f32> {
    let mut stream = Noise::new(72, Purpose::Test, step).stream(0);
    let (low, high) = FLAT;
    (0..rows)
        .map(|_| (low + (high - low) * stream.uniform()) as f32)
        .collect()
}

fn column(values: Vec<f32>) -> Matrix {
    Matrix::from_vec(values, 1)
}

/// Mean and deviation of weighted x.
fn moments(x: &[f32], weights: impl Iterator<Item = f64> + Clone) -> [f64; 2] {
    let total: f64 = weights.clone().sum();
    let moment = |power: i32| -> f64 {
        let each = x.iter().zip(weights.clone());
        each.map(|(&x, w)| w * f64::from(x).powi(power))
            .sum::<f64>()
            / total
    };
    let mean = moment(1);
    [mean, (moment(2) - mean * mean).sqrt()]
}

/// Standard deviation of each entry over replicas.
fn spread(replicas: &[Vec<f64>]) -> Vec<f64> {
    let n = replicas.len() as f64;
    let of = |entry: usize| {
        let values = replicas.iter().map(|replica| replica[entry]);
        let mean = values.clone().sum::<f64>() / n;
        (values.map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt()
    };
    (0..replicas[0].len()).map(of).collect()
}

/// Everything but the source in closed form: mean, deviation and number of the produced events are recovered within four
/// standard errors (of 24 bootstrap replicas; false-alarm rate below 1e-3 for the three together, seed fixed). The errors are
/// near 0.07, 0.05 and 100: a fit that forgot the efficiency would miss 800 events, one that forgot the background would find
/// 1200 too many and a deviation above 1.3.
#[test]
fn a_gaussian_behind_an_efficiency_and_a_flat_background() {
    let produced = 4000;
    let (_, _, mut y) = produce(NATURE, produced, 1);
    let signal = y.len();
    y.extend(flat(1000, 2));
    let share = 1000.0 / y.len() as f64;
    let y = column(y);
    let (low, high) = FLAT;
    let log_density = vec![-((high - low).ln()) as f32; y.rows()];
    let observed = Observed {
        y: y.view(),
        weights: None,
        background: Some(KnownBackground {
            share,
            log_density: &log_density,
        }),
    };
    // Particles on a grid, so that no noise but the data's is left.
    let x: Vec<f32> = (0..61).map(|k| -3.0 + 0.1 * k as f32).collect();
    let points = column(x.clone());
    let simulation: Vec<f32> = x.iter().map(|x| (-0.5 * x * x).exp()).collect();
    let settings = ParticleSettings {
        max_iterations: ITERATIONS,
        held_out: 0.0,
        ..ParticleSettings::default()
    };
    let never = &mut |_: &Progress| ControlFlow::Continue(());
    let start = Some(&simulation[..]);
    let fit = fit_particles_to(&Exact, observed, points.view(), start, &settings, never).unwrap();
    let steps: Vec<f64> = fit.history.iter().map(|step| step.train).collect();
    assert!(steps.windows(2).all(|pair| pair[1] >= pair[0] - 1e-9));

    let number = |weights: &[f64], signal: f64, events: f64| {
        let pairs = weights.iter().zip(&x);
        let accepted: f64 = pairs.map(|(w, &x)| w * efficiency(f64::from(x))).sum();
        events * signal / accepted
    };
    let results = |weights: &[f64], signal: f64, events: f64| {
        let [mean, deviation] = moments(&x, weights.iter().copied());
        vec![mean, deviation, number(weights, signal, events)]
    };
    let found = results(&fit.weights, fit.signal, y.rows() as f64);
    let factors: Vec<Vec<f32>> = (0..24)
        .map(|replica| multiplicities(Repeated::Data, y.rows(), 5, replica))
        .collect();
    let settings = ReplicaSettings {
        initial: Some(&simulation),
        iterations: ITERATIONS,
        memory_limit: 1 << 30,
    };
    let replicas = fit_replicas(&Exact, observed, &factors, points.view(), settings).unwrap();
    let replicas: Vec<Vec<f64>> = replicas
        .iter()
        .zip(&factors)
        .map(|(replica, factors)| {
            let events = factors.iter().map(|&f| f64::from(f)).sum();
            results(&replica.weights, replica.signal, events)
        })
        .collect();
    let errors = spread(&replicas);
    let truth = [NATURE.0, NATURE.1, produced as f64];
    for ((found, truth), error) in found.iter().zip(truth).zip(&errors) {
        assert!(
            (found - truth).abs() < 4.0 * error,
            "{found} ± {error}, not {truth}"
        );
    }
    // The bootstrap's error of the mean is above that of a Gaussian without efficiency and background, and of its size.
    let simple = NATURE.1.hypot(NOISE) / (signal as f64).sqrt();
    assert!(
        (simple..8.0 * simple).contains(&errors[0]),
        "{} {simple}",
        errors[0]
    );
    // One replica of factors 1 is the nominal fit.
    let ones = vec![vec![1.0; y.rows()]];
    let again = fit_replicas(&Exact, observed, &ones, points.view(), settings).unwrap();
    for (a, b) in again[0].weights.iter().zip(&fit.weights) {
        assert!((a - b).abs() < 1e-9);
    }
}

/// The gradient of L_K with its norm over accepted samples, with and without importance weights, against finite differences of
/// the closed form.
#[test]
fn the_norm_of_what_is_accepted_has_the_right_gradient() {
    let y = column(vec![-0.5, 0.3, 1.2]);
    let x = Noise::new(73, Purpose::Test, 0).normal(12, 1);
    let log_weights = Noise::new(74, Purpose::Test, 0).normal(12, 1);
    for samples in [
        Samples::Shared(x.view()),
        Samples::Weighted(x.view(), log_weights.values()),
    ] {
        let found = mc(&Exact, Batch::from(y.view()), samples, Gradient::Dense).unwrap();
        let weight = |k: usize| {
            samples
                .log_weights()
                .map_or(1.0, |logs| f64::from(logs[k]).exp())
        };
        let value = |x: &[f64]| -> f64 {
            let seen = |(k, &x): (usize, &f64)| weight(k) * efficiency(x);
            let accepted: f64 = x.iter().enumerate().map(seen).sum();
            let each = y.values().iter().map(|&y| {
                let terms = x.iter().enumerate().map(|(k, x)| {
                    let z = (f64::from(y) - x) / NOISE;
                    let density = (-0.5 * z * z).exp() / (NOISE * std::f64::consts::TAU.sqrt());
                    seen((k, x)) * density
                });
                (terms.sum::<f64>() / accepted).ln()
            });
            each.sum::<f64>() / 3.0
        };
        let at: Vec<f64> = x.values().iter().map(|&x| f64::from(x)).collect();
        assert!((found.value - value(&at)).abs() < 1e-5);
        finite_differences(value, &at, found.grad_x.values(), 1e-3);
    }
}

/// ε(x) learned from 6000 events against the closed form: root-mean-square error over the simulation below 0.04, twice what
/// 6000 coin throws in some ten independent regions allow (√(¼ · 10/6000) = 0.02). A mask the wrong way round would be off by 0.4.
#[test]
fn a_learned_efficiency_is_the_closed_form() {
    let (x, seen, _) = produce((0.0, 1.0), 6000, 3);
    let x = column(x);
    let learned = Efficiency::fit(x.view(), &seen, 1).unwrap();
    let exact = x.values().iter().map(|&x| efficiency(f64::from(x)));
    let found = learned.of(x.view()).into_iter().map(f64::from);
    let square: f64 = found.zip(exact).map(|(a, b)| (a - b).powi(2)).sum();
    let error = (square / 6000.0).sqrt();
    assert!(error < 0.04, "{error}");
    // Its gradient, by differences.
    let at = column(vec![-1.0, 0.0, 0.7]);
    let mut gradient = Matrix::zeros(3, 1);
    learned.add_gradient(at.view(), &[1.0; 3], gradient.view_mut());
    let log = |shift: f32| {
        let moved = Matrix::from_fn(3, 1, |row, _| at.row(row)[0] + shift);
        let mut log = vec![0.0; 3];
        learned.log_acceptance(moved.view(), &mut log);
        log
    };
    let (above, below) = (log(0.01), log(-0.01));
    for row in 0..3 {
        let slope = (above[row] - below[row]) / 0.02;
        assert!((gradient.row(row)[0] - slope).abs() < 0.01, "{slope}");
    }
}

/// 300 fakes beside 900 matched events and a background of weight 200 in 1000 data: β = [200 + ¼ (1000 − 200)]/1000 = 0.4;
/// and both are flat, so the density is 1/9 away from its edges.
#[test]
fn contamination_has_the_share_and_density_of_its_parts() {
    let events = Events {
        produced: Matrix::zeros(900, 1),
        produced_weights: vec![1.0; 900],
        reconstructed: vec![true; 900],
        matched: Matrix::zeros(900, 1),
        fakes: column(flat(300, 5)),
        fake_weights: vec![1.0; 300],
        background: column(flat(800, 6)),
        background_weights: vec![0.25; 800],
        data: column(flat(1000, 7)),
        data_weights: vec![1.0; 1000],
    };
    let names = ["y".to_owned()];
    let found = Contamination::fit(&events, &names, 1).unwrap().unwrap();
    assert!((found.share - 0.4).abs() < 1e-6, "{}", found.share);
    let points = Matrix::from_fn(61, 1, |row, _| -2.5 + 0.1 * row as f32);
    let log = found.log_density(points.view()).unwrap();
    let mean = log.iter().map(|&log| f64::from(log).exp()).sum::<f64>() / 61.0;
    // 1100 points: the mean over two thirds of the range has a statistical error below 3 %; bound five of these.
    assert!((mean * 9.0 - 1.0).abs() < 0.15, "{mean}");
}
