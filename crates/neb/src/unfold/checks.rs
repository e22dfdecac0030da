//! Trust checks that need no truth: closure and stress.
//!
//! Half of the simulation plays the data, the other half is weighted, with the surrogate, efficiency and number of iterations of
//! the nominal fit. **Closure**: the pseudo-data are the simulation itself, so every weight should be 1. **Stress**: the pseudo-data
//! are reweighted by a known function of x, 1 + ½ tanh z of the first column's standard score z, which the weights should
//! find again. Each column of x is compared in ten bins of equal content; errors are those of bootstrap replicas of the pseudo-data and
//! of the events that the expected spectrum is made of, which are others: both halves fluctuate.

use serde::{Deserialize, Serialize};

use super::events::Events;
use super::fit::Folding;
use super::replicas::{Repeated, multiplicities};
use super::{Binning, Covariance, Histogram};
use crate::check::spread_rows;
use crate::source::particles::{Observed, ReplicaSettings, fit_replicas};
use crate::{Result, Rows};

/// Most events of either half.
const MOST: usize = 5000;
/// Replicas behind the covariance.
const REPLICAS: u64 = 25;
/// Bins of each column.
const BINS: usize = 10;

/// How one column came out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recovered {
    /// The column.
    pub name: String,
    /// Unfolded over expected, bin by bin.
    pub ratios: Vec<f64>,
    /// Standard errors of these.
    pub errors: Vec<f64>,
    /// Simulated over expected: the same before unfolding.
    pub before: Vec<f64>,
    /// Σ (ratio − 1)² / error² over the bins.
    pub chi_square: f64,
    /// Number of bins.
    pub bins: usize,
    /// Largest distance of the expected spectrum from the simulation's, as a ratio: what there was to find.
    pub shift: f64,
    /// Largest distance of the unfolded spectrum from the expected one.
    pub rest: f64,
}

/// Both checks, column by column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrustChecks {
    /// Simulation unfolded with itself.
    pub closure: Vec<Recovered>,
    /// A reweighted simulation.
    pub stress: Vec<Recovered>,
}

/// At most [`MOST`] of these, spread evenly: events that were missed come last.
fn spread<T: Copy>(rows: Vec<T>) -> Vec<T> {
    let chosen = spread_rows(rows.len(), MOST).into_iter();
    chosen.map(|at| rows[at as usize]).collect()
}

/// Runs both checks with what the nominal fit learned.
///
/// # Errors
/// As the fit of the weights.
pub fn trust_checks(
    events: &Events,
    folding: &Folding,
    names: &[String],
    (iterations, memory_limit): (usize, usize),
    seed: u64,
) -> Result<TrustChecks> {
    let rows = events.matched_rows();
    // Rows of even number play the data, those of odd number the simulation.
    let is_even = |&at: &usize| rows[at].is_multiple_of(2);
    let even = spread((0..rows.len()).filter(is_even).collect());
    let pseudo: Vec<u32> = even.iter().map(|&at| at as u32).collect();
    let pseudo_x = events
        .produced
        .view()
        .gather(&even.iter().map(|&at| rows[at]).collect::<Vec<u32>>());
    let y = events.matched.view().gather(&pseudo);
    // The other half, with the events that were missed in proportion.
    let odd = (0..events.produced.rows() as u32).filter(|row| row % 2 == 1);
    let others = spread(odd.collect());
    let x = events.produced.view().gather(&others);
    let start: Vec<f32> = others
        .iter()
        .map(|&row| folding.start[row as usize])
        .collect();
    let tilt = Tilt::of(events.produced.view());
    let weights_of = |rows: &[u32]| -> Vec<f32> {
        rows.iter()
            .map(|&row| folding.start[row as usize])
            .collect()
    };
    let own: Vec<u32> = even.iter().map(|&at| rows[at]).collect();
    let pseudo_weights = weights_of(&own);
    let settings = ReplicaSettings {
        initial: Some(&start),
        iterations,
        memory_limit,
    };
    let check = |tilted: bool| -> Result<Vec<Recovered>> {
        let factor = |x: Rows, row: usize| if tilted { tilt.at(x.row(row)[0]) } else { 1.0 };
        let nominal: Vec<f32> = (0..y.rows())
            .map(|row| factor(pseudo_x.view(), row))
            .collect();
        let mut factors = vec![nominal.clone()];
        factors.extend((0..REPLICAS).map(|number| {
            let counts = multiplicities(Repeated::Data, y.rows(), seed, 1 << 20 | number);
            counts.iter().zip(&nominal).map(|(k, n)| k * n).collect()
        }));
        let observed = Observed {
            y: y.view(),
            weights: Some(&pseudo_weights),
            background: None,
        };
        let fitted = fit_replicas(
            &*folding.likelihood(),
            observed,
            &factors,
            x.view(),
            settings,
        )?;
        let shares: Vec<Vec<f32>> = fitted
            .into_iter()
            .map(|replica| replica.weights.iter().map(|&w| w as f32).collect())
            .collect();
        let expected: Vec<f32> = (0..x.rows())
            .map(|row| start[row] * factor(x.view(), row))
            .collect();
        let columns = names.iter().enumerate();
        columns
            .map(|(column, name)| recovered(name, x.view(), column, &shares, &expected, &start))
            .collect()
    };
    Ok(TrustChecks {
        closure: check(false)?,
        stress: check(true)?,
    })
}

/// 1 + ½ tanh z of the first column.
struct Tilt {
    mean: f64,
    deviation: f64,
}

impl Tilt {
    fn of(x: Rows) -> Self {
        let n = x.rows() as f64;
        let values = || (0..x.rows()).map(|row| f64::from(x.row(row)[0]));
        let mean = values().sum::<f64>() / n;
        let variance = values().map(|v| (v - mean).powi(2)).sum::<f64>() / n;
        Self {
            mean,
            deviation: variance.sqrt().max(f64::MIN_POSITIVE),
        }
    }

    fn at(&self, value: f32) -> f32 {
        (1.0 + 0.5 * ((f64::from(value) - self.mean) / self.deviation).tanh()) as f32
    }
}

/// Compares weighted spectra of a column: the first of `shares` is the nominal one, the others are replicas.
fn recovered(
    name: &str,
    x: Rows,
    column: usize,
    shares: &[Vec<f32>],
    expected: &[f32],
    start: &[f32],
) -> Result<Recovered> {
    let mut values: Vec<f32> = (0..x.rows()).map(|row| x.row(row)[column]).collect();
    values.sort_unstable_by(f32::total_cmp);
    let last = values.len() - 1;
    let mut edges: Vec<f64> = (0..=BINS)
        .map(|bin| f64::from(values[bin * last / BINS]))
        .collect();
    edges.dedup();
    let axes = [Binning::new(edges)?];
    let spectrum = |weights: &[f32]| -> Result<Vec<f64>> {
        let histogram = Histogram::of(x, &[column], Some(weights), &axes)?;
        let total = histogram.positive_inside()?;
        Ok(histogram.inside().iter().map(|sum| sum / total).collect())
    };
    let exact = spectrum(expected)?;
    let ratio = |spectrum: Vec<f64>| -> Vec<f64> {
        spectrum
            .iter()
            .zip(&exact)
            .map(|(found, exact)| found / exact)
            .collect()
    };
    let before = ratio(spectrum(start)?);
    let all: Vec<Vec<f64>> = shares
        .iter()
        .map(|weights| spectrum(weights).map(ratio))
        .collect::<Result<_>>()?;
    let ratios = all[0].clone();
    let expected = Histogram::of(x, &[column], Some(expected), &axes)?;
    let squares = expected.inside_squares().into_iter();
    let relative = squares
        .zip(expected.inside())
        .map(|(s, sum)| s.sqrt() / sum);
    let replicas = Covariance::of_replicas(&all[1..])?.errors();
    let errors: Vec<f64> = replicas
        .iter()
        .zip(relative)
        .map(|(a, b)| a.hypot(b))
        .collect();
    let pulls = ratios
        .iter()
        .zip(&errors)
        .filter(|(_, error)| **error > 0.0);
    let largest = |values: &[f64]| values.iter().fold(0.0, |a: f64, b| a.max((b - 1.0).abs()));
    Ok(Recovered {
        name: name.to_owned(),
        chi_square: pulls
            .map(|(ratio, error)| ((ratio - 1.0) / error).powi(2))
            .sum(),
        bins: ratios.len(),
        shift: largest(&before),
        rest: largest(&ratios),
        ratios,
        errors,
        before,
    })
}
