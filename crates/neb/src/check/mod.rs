//! Checks: whether two samples follow the same law, and whether posteriors are calibrated.
//!
//! - [`compare`] sets two samples side by side: how well a classifier tells them apart (ROC AUC, accuracy), how far
//!   apart they lie (sliced Wasserstein distance), and a kernel test (MMD), each beside what it would be if nothing
//!   differed.
//! - [`calibrate`] asks of posteriors whether the truth falls where they say: ranks, quantile curves, rank
//!   histograms, and coverage of the joint law.

mod auc;
mod boosted_trees;
mod calibration;
mod classifier;
mod mmd;
mod network;
mod null;
mod sample;
#[cfg(test)]
mod testing;
mod two_sample;
mod wasserstein;

pub use auc::{Scored, accuracy, auc};
pub use boosted_trees::BoostedTrees;
pub use calibration::{
    Calibration, CalibrationOptions, Marginal, Posteriors, RankCurve, RankShape, calibrate,
};
pub use classifier::{Classifier, Scorer};
pub use mmd::Mmd;
pub(crate) use network::Committee;
pub use network::Network;
pub(crate) use sample::check_finite;
pub use sample::{Sample, spread_rows};
pub use two_sample::{CompareOptions, Comparison, Separation, compare, compare_with, separate};
pub use wasserstein::SlicedWasserstein;

use crate::{Noise, Purpose};

/// An interval, ends included.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Band {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Band {
    /// Whether `value` lies in the interval.
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

/// A measured value, its error, and where it would be if nothing differed.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Estimate {
    /// The value.
    pub value: f64,
    /// Its standard error.
    pub standard_error: f64,
    /// Interval that holds the value with probability 0.95 or more if nothing differs.
    pub null: Band,
}

/// What the random numbers of a check are for; with a repetition it forms the step of their address.
#[derive(Clone, Copy, Debug)]
enum Draw {
    Folds = 1,
    ClassifierSeed,
    Subsample,
    Null,
    Directions,
    Frequencies,
    Bandwidth,
    Ranks,
    References,
}

impl Draw {
    fn noise(self, seed: u64, repetition: u64) -> Noise {
        Noise::new(seed, Purpose::Check, (self as u64) << 32 | repetition)
    }
}
