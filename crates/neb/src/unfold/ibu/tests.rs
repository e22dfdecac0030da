//! Known answers: two bins, a diagonal response, Gaussian iterates, efficiencies and fakes, the covariance by differences.

use super::*;
use crate::unfold::{Binning, Histogram};
use crate::{Noise, Purpose, Rows};

fn two_bins() -> Response {
    Response::new(&[vec![0.9, 0.1], vec![0.1, 0.9]]).unwrap()
}

fn after(iterations: usize) -> Ibu<'static> {
    Ibu {
        iterations,
        ..Ibu::default()
    }
}

/// The values of the published example, to the places it gives.
#[test]
fn two_bins_after_four_iterations() {
    let data = [100.0, 150.0];
    let unfolded = after(4).unfold(&two_bins(), &data, &data).unwrap();
    assert!((unfolded.spectrum[0] - 94.32086967).abs() < 5e-9);
    assert!((unfolded.spectrum[1] - 155.67913033).abs() < 5e-9);
    // Without losses, no event is lost.
    assert!((unfolded.spectrum.iter().sum::<f64>() - 250.0).abs() < 1e-9);
    assert_eq!(unfolded.unexplained, 0.0);
}

#[test]
fn a_diagonal_response_returns_its_input() {
    let response = Response::new(&[vec![1.0, 0.0], vec![0.0, 1.0]]).unwrap();
    let data = [3.0, 11.0];
    let unfolded = after(1).unfold(&response, &data, &[5.0, 7.0]).unwrap();
    assert_eq!(unfolded.spectrum, data);
    assert_eq!(unfolded.covariance.unwrap().values(), [5.0, 0.0, 0.0, 7.0]);
    // With efficiencies ½ and ¼, twice and four times as much.
    let response = Response::new(&[vec![0.5, 0.0], vec![0.0, 0.25]]).unwrap();
    let unfolded = after(7).unfold(&response, &data, &[5.0, 7.0]).unwrap();
    assert!(
        (unfolded.spectrum[0] - 6.0).abs() < 1e-12 && (unfolded.spectrum[1] - 44.0).abs() < 1e-12
    );
    let covariance = unfolded.covariance.unwrap();
    assert!(
        (covariance.at(0, 0) - 20.0).abs() < 1e-9 && (covariance.at(1, 1) - 112.0).abs() < 1e-9
    );
}

/// A normal prior N(m, t²), resolution s and normal data stay normal: m' = m + g(ȳ − m), t'² = g s² + g² Var(y), g = t²/(t² + s²).
/// In bins of 0.1 the moments agree to the bins' own variance, 0.1²/12 at worst.
#[test]
fn gaussian_iterates() {
    let (s, mean_y, var_y) = (0.8, 1.0, 2.0);
    let bins = Binning::uniform(-12.0, 12.0, 240).unwrap();
    let centres: Vec<f64> = bins
        .edges()
        .windows(2)
        .map(|e| (e[0] + e[1]) / 2.0)
        .collect();
    let normal = |x: f64, mean: f64, variance: f64| (-(x - mean).powi(2) / (2.0 * variance)).exp();
    let rows: Vec<Vec<f64>> = {
        let column = |j: usize| {
            let weights: Vec<f64> = centres
                .iter()
                .map(|&y| normal(y, centres[j], s * s))
                .collect();
            let sum: f64 = weights.iter().sum();
            weights
                .into_iter()
                .map(move |w| w / sum)
                .collect::<Vec<f64>>()
        };
        let columns: Vec<Vec<f64>> = (0..centres.len()).map(column).collect();
        (0..centres.len())
            .map(|i| columns.iter().map(|column| column[i]).collect())
            .collect()
    };
    let response = Response::new(&rows).unwrap();
    let data: Vec<f64> = centres.iter().map(|&y| normal(y, mean_y, var_y)).collect();
    let prior: Vec<f64> = centres.iter().map(|&x| normal(x, 0.0, 1.0)).collect();
    let (mut m, mut t2) = (0.0, 1.0);
    for iterations in 1..=5 {
        let g = t2 / (t2 + s * s);
        m += g * (mean_y - m);
        t2 = g * s * s + g * g * var_y;
        let ibu = Ibu {
            prior: Some(&prior),
            covariance: false,
            iterations,
        };
        let spectrum = ibu.unfold(&response, &data, &data).unwrap().spectrum;
        let total: f64 = spectrum.iter().sum();
        let moment = |power: i32, about: f64| -> f64 {
            let each = spectrum.iter().zip(&centres);
            each.map(|(t, x)| t * (x - about).powi(power)).sum::<f64>() / total
        };
        assert!(
            (moment(1, 0.0) - m).abs() < 1e-3,
            "{iterations}: {} {m}",
            moment(1, 0.0)
        );
        assert!(
            (moment(2, m) - t2).abs() < 2e-3,
            "{iterations}: {} {t2}",
            moment(2, m)
        );
    }
}

/// ∂t/∂d by symmetric differences of the whole procedure, with losses, in 2 true and 3 seen cells; then J V Jᵀ by hand.
#[test]
fn the_covariance_follows_the_data_through_every_iteration() {
    let response = Response::new(&[vec![0.5, 0.1], vec![0.3, 0.2], vec![0.1, 0.5]]).unwrap();
    let (data, variances) = ([40.0, 25.0, 60.0], [40.0, 30.0, 90.0]);
    let prior = [2.0, 3.0];
    let ibu = Ibu {
        iterations: 4,
        prior: Some(&prior),
        covariance: true,
    };
    let unfold = |data: &[f64]| ibu.unfold(&response, data, &variances).unwrap();
    let slope = |j: usize, i: usize| {
        let step = 1e-3;
        let moved = |by: f64| {
            let mut data = data;
            data[i] += by;
            unfold(&data).spectrum[j]
        };
        (moved(step) - moved(-step)) / (2.0 * step)
    };
    let covariance = unfold(&data).covariance.unwrap();
    for a in 0..2 {
        for b in 0..2 {
            let expected: f64 = (0..3)
                .map(|i| slope(a, i) * slope(b, i) * variances[i])
                .sum();
            assert!(
                (covariance.at(a, b) / expected - 1.0).abs() < 1e-6,
                "{a} {b}"
            );
        }
    }
}

/// Two observables, with losses and fakes and negative weights: data drawn from the simulation's own law unfold to its truth.
/// 40 000 events; the test unfolds the simulation's own histogram, so the answer is exact.
#[test]
fn two_observables_close_on_themselves() {
    let axes = [
        Binning::uniform(-2.0, 2.0, 4).unwrap(),
        Binning::uniform(-2.0, 2.0, 4).unwrap(),
    ];
    let empty = Histogram::new(&axes).unwrap();
    let n = 40_000;
    let z = Noise::new(4, Purpose::Test, 0).normal(n, 4);
    let u = Noise::new(4, Purpose::Test, 1).uniform(n, 2);
    let cell = |a: f32, b: f32| empty.cells_of(Rows::new(&[a, b], 2), &[0, 1]).unwrap()[0];
    let event = |row: usize| {
        let (z, u) = (z.row(row), u.row(row));
        let truth = cell(z[0], z[1]);
        let seen = cell(z[0] + 0.5 * z[2], z[1] + 0.5 * z[3]);
        SimulatedEvent {
            truth: (u[0] < 0.95).then_some(truth),
            seen: (u[1] < 0.7 || u[0] >= 0.95).then_some(seen),
            // Negative where many events are, so that no cell of the response is.
            weight: if truth == seen && row % 20 == 7 {
                -1.0
            } else {
                1.0
            },
        }
    };
    let events: Vec<SimulatedEvent> = (0..n).map(event).collect();
    let cells = empty.sums().len();
    let response = Response::of_events(cells, cells, events.iter().copied()).unwrap();
    let (mut data, mut truth) = (vec![0.0f64; cells], vec![0.0f64; cells]);
    for event in &events {
        event.seen.into_iter().for_each(|i| data[i] += event.weight);
        event
            .truth
            .into_iter()
            .for_each(|j| truth[j] += event.weight);
    }
    for value in data.iter_mut().chain(&mut truth) {
        *value = value.max(0.0);
    }
    assert!(response.fakes().iter().any(|&f| f > 0.02));
    assert!((response.efficiency()[14] - 0.7).abs() < 0.1);
    let unfolded = after(3).unfold(&response, &data, &data).unwrap();
    for (cell, (found, expected)) in unfolded.spectrum.iter().zip(&truth).enumerate() {
        assert!(
            (found - expected).abs() < 1e-6 * expected.max(1.0),
            "{cell}: {found} {expected}"
        );
    }
    for (folded, seen) in response.fold(&truth).iter().zip(&data) {
        assert!((folded - seen).abs() < 1e-6 * seen.max(1.0));
    }
}

#[test]
fn what_cannot_be_unfolded_is_refused() {
    let response = two_bins();
    let refused = |data: &[f64], words: &str| {
        let error = after(1)
            .unfold(&response, data, data)
            .unwrap_err()
            .to_string();
        assert!(error.contains(words), "{error}");
    };
    refused(&[1.0], "1 values for 2 cells");
    refused(&[1.0, -2.0], "cell 1 holds -2");
    refused(&[1.0, f64::NAN], "cell 1 holds NaN");
    refused(&[0.0, 0.0], "all cells are empty");
    assert!(Response::new(&[vec![0.9, 0.4], vec![0.3, 0.4]]).is_err());
    assert!(Response::new(&[vec![0.9], vec![0.1, 0.2]]).is_err());
    let nowhere = SimulatedEvent {
        truth: Some(0),
        seen: None,
        weight: 1.0,
    };
    assert!(Response::of_events(2, 2, [nowhere]).is_err());
    // Data where nothing is ever seen are counted as lost.
    let response = Response::new(&[vec![1.0], vec![0.0]]).unwrap();
    let unfolded = after(2)
        .unfold(&response, &[4.0, 6.0], &[4.0, 6.0])
        .unwrap();
    assert_eq!((unfolded.spectrum[0], unfolded.unexplained), (4.0, 6.0));
}
