//! What each rung scored, and why the winner won.

use serde::{Deserialize, Serialize};

use super::super::view::Width;
use crate::train::Epoch;

/// One rung's result.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Rung {
    /// Its name.
    pub name: String,
    /// Mean held-out log-marginal likelihood.
    pub held_out: f64,
    /// How much better than the best rung before it, per observation; NaN for the first.
    pub gain: f64,
    /// The gain's standard error, paired over observations.
    pub standard_error: f64,
    /// Whether it became the best so far.
    pub kept: bool,
    /// Seconds it took.
    pub seconds: f64,
    /// Median effective sample size of the weights at the end of its training; NaN where nothing was trained with L_K.
    pub effective_samples: f64,
    /// Its last training with L_K, epoch by epoch.
    pub history: Vec<Epoch>,
}

/// How the ladder was climbed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LadderReport {
    /// Every rung, in order.
    pub rungs: Vec<Rung>,
    /// Index of the winner.
    pub winner: usize,
    /// By how much the likelihood was widened when rungs were judged.
    pub width: Width,
    /// Effective number of particles after expectation-maximisation, and its iterations.
    pub particles: (f64, usize),
}

impl LadderReport {
    /// Why the winner won, in words.
    pub fn reason(&self) -> String {
        let winner = &self.rungs[self.winner];
        let later = &self.rungs[self.winner + 1..];
        let before = self.rungs[..self.winner]
            .iter()
            .rev()
            .find(|rung| rung.kept);
        let closest = later.iter().max_by(|a, b| a.gain.total_cmp(&b.gain));
        let gain = |rung: &Rung| format!("{:+.4} ± {:.4}", rung.gain, rung.standard_error);
        let won = match before {
            Some(before) if winner.gain > 2.0 * winner.standard_error => format!(
                "{} explains each held-out observation better than {}, by {}",
                winner.name,
                before.name,
                gain(winner)
            ),
            Some(before) => format!(
                "{} explains held-out observations as well as {} ({})",
                winner.name,
                before.name,
                gain(winner)
            ),
            None => format!("{} is the simplest source", winner.name),
        };
        match closest {
            Some(closest) => format!(
                "{won}; no more flexible source is better by two standard errors (closest: {}, {})",
                closest.name,
                gain(closest)
            ),
            None => won,
        }
    }
}
