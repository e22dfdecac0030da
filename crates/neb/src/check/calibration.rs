//! Calibration of posteriors: does the truth fall where they say?
//!
//! If x_i is drawn from the prior and y_i from the simulator, x_i is one more draw of the exact posterior p(x|y_i): its rank
//! among the posterior's draws is uniform on (0, 1) in every dimension (simulation-based calibration). Too narrow posteriors
//! send the ranks to the ends, too wide ones to the middle, shifted ones to one side.
//!
//! Every marginal can be calibrated while the joint is not. So also the rank of |x_i − r_i| among the draws' distances from a
//! reference point r_i that knows nothing of x_i: for the exact posterior it is uniform as well, wherever r_i lies (TARP,
//! Lemos et al. 2023); and the ranks along fixed directions that mix all dimensions.
//!
//! A posterior that ignores the data and returns the prior passes all of this: calibration says nothing about sharpness.

mod kolmogorov;
mod ranks;

use rayon::prelude::*;
use statrs::distribution::{Binomial, ChiSquared, ContinuousCDF, DiscreteCDF};

use super::sample::{check_finite, check_weights};
use super::{Band, Draw};
use crate::{Error, Matrix, Result, Rows};

/// Chance that a verdict of exact posteriors is bad luck.
const FALSE_ALARM: f64 = 0.05;
/// Fewest events from which anything can be said.
const FEWEST_EVENTS: usize = 20;

/// Posterior draws of many events, and the true x of each.
#[derive(Clone, Copy, Debug)]
pub struct Posteriors<'a> {
    /// Draws of the first event, then those of the second, and so on; the same number for each.
    pub draws: Rows<'a>,
    /// One weight per draw, none of them negative; without weights each draw counts once.
    pub weights: Option<&'a [f32]>,
    /// The true x, one row per event.
    pub truth: Rows<'a>,
}

/// Settings of a calibration check.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CalibrationOptions {
    /// Seed of the reference points, the directions, and the ranks of ties.
    pub seed: u64,
    /// Bins of the rank histograms; fewer where less than ten events would fall into a bin.
    pub bins: usize,
    /// Steps of the curves between 0 and 1.
    pub steps: usize,
    /// Directions that mix all dimensions, beside the marginals; none in one dimension.
    pub directions: usize,
}

impl Default for CalibrationOptions {
    fn default() -> Self {
        Self {
            seed: 0,
            bins: 20,
            steps: 50,
            directions: 8,
        }
    }
}

/// Fractions of events whose rank lies below each level, and their distance from the diagonal.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct RankCurve {
    /// Fraction of events below each of [`Calibration::levels`].
    pub below: Vec<f64>,
    /// Kolmogorov-Smirnov distance from the diagonal.
    pub ks: f64,
    /// Chance of at least this distance if the posteriors are exact.
    pub p_value: f64,
}

/// What the ranks say about posteriors that are not calibrated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RankShape {
    /// Nothing in particular.
    Flat,
    /// The truth lies at the ends too often: the posteriors are too narrow.
    TooNarrow,
    /// The truth lies in the middle too often: the posteriors are too wide.
    TooWide,
    /// The truth lies above the draws too often: the posteriors are too low.
    TooLow,
    /// The truth lies below the draws too often: the posteriors are too high.
    TooHigh,
}

/// Calibration of one dimension.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Marginal {
    /// Rank in (0, 1) of each event's truth among the draws of its posterior.
    #[serde(default)]
    pub ranks: Vec<f64>,
    /// The curve of this dimension's ranks.
    pub curve: RankCurve,
    /// Events per bin of the rank, bins of equal width.
    pub histogram: Vec<u64>,
    /// Chance of at least this unevenness of the histogram (χ²) if the posteriors are exact.
    pub histogram_p_value: f64,
    /// In which way the ranks are off, judged by their mean and spread (three deviations or more).
    pub shape: RankShape,
}

/// The outcome of [`calibrate`]. Each of the three verdicts is wrong for exact posteriors with probability 0.05; `calibrated`,
/// which asks more of each of them, too.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Calibration {
    /// Number of events.
    pub events: usize,
    /// Posterior draws per event.
    pub draws: usize,
    /// Levels of the curves, from 0 to 1.
    pub levels: Vec<f64>,
    /// Each dimension by itself.
    pub marginals: Vec<Marginal>,
    /// Greatest Kolmogorov-Smirnov distance of all dimensions.
    pub ks: f64,
    /// What exact posteriors reach in `ks`, at most, with probability 0.95.
    pub ks_limit: f64,
    /// What a single curve deviates from the diagonal, at most, with probability 0.95: half the width of its band.
    pub curve_limit: f64,
    /// Events per bin of a rank histogram, with probability 0.95 for each bin (binomial).
    pub histogram_band: Band,
    /// Coverage of the joint law: ranks of distances from random points (TARP).
    pub coverage: RankCurve,
    /// Ranks along random directions.
    pub directions: Vec<RankCurve>,
    /// Whether `ks` is within its limit.
    pub marginals_agree: bool,
    /// Whether no rank histogram is too uneven.
    pub histograms_agree: bool,
    /// Whether the coverage and the curves along directions are close enough to the diagonal.
    pub joint_agrees: bool,
    /// The verdict on everything.
    pub calibrated: bool,
}

/// Checks posteriors against the truth of each event.
///
/// # Errors
/// Tables that do not fit each other, values or weights that cannot be used, or fewer than 20 events.
pub fn calibrate(posteriors: Posteriors, options: &CalibrationOptions) -> Result<Calibration> {
    posteriors.check(options)?;
    let events = posteriors.truth.rows();
    let dims = posteriors.truth.cols();
    let ranks = Ranker::new(posteriors, options).ranks();
    let levels: Vec<f64> = (0..=options.steps)
        .map(|step| step as f64 / options.steps as f64)
        .collect();
    let bins = options.bins.min(events / 10).max(2);
    let curves: Vec<RankCurve> = ranks.iter().map(|ranks| curve(ranks, &levels)).collect();
    let marginals: Vec<Marginal> = ranks[..dims]
        .iter()
        .zip(&curves)
        .map(|(ranks, curve)| {
            let histogram = histogram(ranks, bins);
            Marginal {
                ranks: ranks.clone(),
                curve: curve.clone(),
                histogram_p_value: unevenness(&histogram, events),
                histogram,
                shape: shape(ranks),
            }
        })
        .collect();
    let ks = curves[..dims]
        .iter()
        .fold(0.0, |ks, curve| curve.ks.max(ks));
    let p_values = [
        least(curves[..dims].iter().map(|curve| curve.p_value)),
        least(marginals.iter().map(|marginal| marginal.histogram_p_value)),
        least(curves[dims..].iter().map(|curve| curve.p_value)),
    ];
    let [marginals_agree, histograms_agree, joint_agrees] = p_values.map(|p| p >= FALSE_ALARM);
    let single = FALSE_ALARM / dims as f64;
    Ok(Calibration {
        events,
        draws: posteriors.draws.rows() / events,
        levels,
        marginals,
        ks,
        ks_limit: kolmogorov::critical(single, events),
        curve_limit: kolmogorov::critical(FALSE_ALARM, events),
        histogram_band: binomial_band(events, bins),
        coverage: curves[dims].clone(),
        directions: curves[dims + 1..].to_vec(),
        marginals_agree,
        histograms_agree,
        joint_agrees,
        calibrated: least(p_values.into_iter()) >= FALSE_ALARM,
    })
}

/// The least of several p-values as a p-value of its own (Bonferroni): times their number.
fn least(p_values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = p_values.len() as f64;
    (count * p_values.fold(1.0, f64::min)).min(1.0)
}

impl Posteriors<'_> {
    fn check(&self, options: &CalibrationOptions) -> Result<()> {
        let (events, dims) = (self.truth.rows(), self.truth.cols());
        if self.draws.cols() != dims {
            return Err(Error::input(
                format!(
                    "posterior draws of {} columns for true x of {dims}",
                    self.draws.cols()
                ),
                "give draws and truth the same columns in the same order",
            ));
        }
        if events < FEWEST_EVENTS {
            return Err(Error::input(
                format!("calibration of {events} events"),
                format!("give at least {FEWEST_EVENTS} events; several hundred say more"),
            ));
        }
        if self.draws.rows() == 0 || !self.draws.rows().is_multiple_of(events) {
            return Err(Error::input(
                format!("{} posterior draws for {events} events", self.draws.rows()),
                "give the same number of draws for each event",
            ));
        }
        if options.steps == 0 {
            return Err(Error::input(
                "calibration curves of 0 steps",
                "use at least one step, such as 50",
            ));
        }
        check_finite(self.truth, "true x")?;
        check_finite(self.draws, "posterior draws")?;
        let Some(weights) = self.weights else {
            return Ok(());
        };
        check_weights(weights, self.draws.rows(), "posterior draws")?;
        let mut events = weights.chunks(self.draws.rows() / events);
        match events.position(|weights| weights.iter().all(|&w| w == 0.0)) {
            Some(event) => Err(Error::input(
                format!("posterior draws: every weight of event {event} is zero"),
                "leave out this event, or draw its posterior again",
            )),
            None => Ok(()),
        }
    }
}

/// Ranks of every event: in each dimension, from its reference point, along each direction.
struct Ranker<'a> {
    posteriors: Posteriors<'a>,
    /// One over the deviation of the true x in each dimension: what distances are measured in.
    scale: Vec<f64>,
    references: Matrix,
    directions: Matrix,
    seed: u64,
}

impl<'a> Ranker<'a> {
    fn new(posteriors: Posteriors<'a>, options: &CalibrationOptions) -> Self {
        let truth = posteriors.truth;
        let (events, dims) = (truth.rows(), truth.cols());
        let mut references = Draw::References
            .noise(options.seed, 0)
            .uniform(events, dims);
        let mut scale = Vec::with_capacity(dims);
        for col in 0..dims {
            let column: Vec<f64> = (0..events)
                .map(|row| f64::from(truth.row(row)[col]))
                .collect();
            let mean = column.iter().sum::<f64>() / events as f64;
            let variance = column.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / events as f64;
            scale.push(if variance > 0.0 {
                variance.sqrt().recip()
            } else {
                1.0
            });
            let low = column.iter().copied().fold(f64::INFINITY, f64::min);
            let high = column.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            for row in 0..events {
                let place = &mut references.row_mut(row)[col];
                *place = (low + (high - low) * f64::from(*place)) as f32;
            }
        }
        let directions = if dims == 1 { 0 } else { options.directions };
        Self {
            posteriors,
            scale,
            references,
            directions: Draw::Directions
                .noise(options.seed, 0)
                .normal(directions, dims),
            seed: options.seed,
        }
    }

    /// One list of ranks, in the order of the events, for each dimension, for the distance, for each direction.
    fn ranks(&self) -> Vec<Vec<f64>> {
        let events = self.posteriors.truth.rows();
        let by_event: Vec<Vec<f64>> = (0..events)
            .into_par_iter()
            .map(|event| self.ranks_of(event))
            .collect();
        (0..by_event[0].len())
            .map(|list| by_event.iter().map(|ranks| ranks[list]).collect())
            .collect()
    }

    fn ranks_of(&self, event: usize) -> Vec<f64> {
        let count = self.posteriors.draws.rows() / self.posteriors.truth.rows();
        let draws = event * count..(event + 1) * count;
        let truth = self.posteriors.truth.row(event);
        let mut stream = Draw::Ranks.noise(self.seed, 0).stream(event as u64);
        let mut rank_by = |value: &dyn Fn(&[f32]) -> f64| {
            let weighted = draws.clone().map(|draw| {
                let weight = self
                    .posteriors
                    .weights
                    .map_or(1.0, |weights| f64::from(weights[draw]));
                (value(self.posteriors.draws.row(draw)), weight)
            });
            ranks::rank(weighted, value(truth), stream.uniform())
        };
        let mut ranks: Vec<f64> = (0..truth.len())
            .map(|col| rank_by(&|x| f64::from(x[col])))
            .collect();
        let reference = self.references.row(event);
        ranks.push(rank_by(&|x| {
            let sides = x.iter().zip(reference).zip(&self.scale);
            sides
                .map(|((&x, &r), scale)| ((f64::from(x) - f64::from(r)) * scale).powi(2))
                .sum()
        }));
        for direction in 0..self.directions.rows() {
            let direction = self.directions.row(direction);
            ranks.push(rank_by(&|x| {
                let sides = x.iter().zip(direction).zip(&self.scale);
                sides
                    .map(|((&x, &u), scale)| f64::from(x) * f64::from(u) * scale)
                    .sum()
            }));
        }
        ranks
    }
}

fn curve(ranks: &[f64], levels: &[f64]) -> RankCurve {
    let count = ranks.len();
    let below = |level: &f64| ranks.iter().filter(|rank| *rank <= level).count() as f64;
    let ks = kolmogorov::distance(ranks);
    RankCurve {
        below: levels
            .iter()
            .map(|level| below(level) / count as f64)
            .collect(),
        ks,
        p_value: kolmogorov::p_value(ks, count),
    }
}

fn histogram(ranks: &[f64], bins: usize) -> Vec<u64> {
    let mut counts = vec![0; bins];
    for rank in ranks {
        counts[((rank * bins as f64) as usize).min(bins - 1)] += 1;
    }
    counts
}

/// p-value of Pearson's χ² against equal bins.
fn unevenness(histogram: &[u64], events: usize) -> f64 {
    let expected = events as f64 / histogram.len() as f64;
    let square: f64 = histogram
        .iter()
        .map(|&count| (count as f64 - expected).powi(2) / expected)
        .sum();
    ChiSquared::new((histogram.len() - 1) as f64)
        .expect("at least two bins")
        .sf(square)
}

fn binomial_band(events: usize, bins: usize) -> Band {
    let law = Binomial::new(1.0 / bins as f64, events as u64).expect("a probability");
    Band {
        low: law.inverse_cdf(0.025) as f64,
        high: law.inverse_cdf(0.975) as f64,
    }
}

/// Judges the mean (½ with variance 1/12n) and the squared distance from ½ (1/12 with variance 1/180n) of uniform ranks.
fn shape(ranks: &[f64]) -> RankShape {
    let count = ranks.len() as f64;
    let mean = ranks.iter().sum::<f64>() / count;
    let square = ranks.iter().map(|rank| (rank - 0.5).powi(2)).sum::<f64>() / count;
    let shift = (mean - 0.5) * (12.0 * count).sqrt();
    let spread = (square - 1.0 / 12.0) * (180.0 * count).sqrt();
    match (shift.abs() >= spread.abs(), shift, spread) {
        (true, 3.0.., _) => RankShape::TooLow,
        (true, ..=-3.0, _) => RankShape::TooHigh,
        (false, _, 3.0..) => RankShape::TooNarrow,
        (false, _, ..=-3.0) => RankShape::TooWide,
        _ => RankShape::Flat,
    }
}

#[cfg(test)]
mod tests;
