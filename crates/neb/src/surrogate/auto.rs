//! Trains every candidate on the same pairs and keeps the one with the best held-out log-likelihood.

use serde::{Deserialize, Serialize};

use super::config::SurrogateConfig;
use super::learned::{FitOptions, Pairs, Standardised, Surrogate};
use crate::train::Epoch;
use crate::{Error, Result};

/// One candidate's result.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Tried {
    /// Its name.
    pub name: String,
    /// Number of parameters.
    pub parameters: usize,
    /// Mean log q(y|x) over the held-out pairs, in the user's units; the training pairs' where none are held out.
    pub held_out: f64,
    /// The epoch whose weights were kept.
    pub best_epoch: usize,
    /// Seconds of training, waiting between sessions not counted.
    pub seconds: f64,
    /// Every epoch.
    pub history: Vec<Epoch>,
}

/// What was tried, and what won.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// Every candidate, in the order of the configuration.
    pub tried: Vec<Tried>,
    /// Index of the winner.
    pub winner: usize,
}

impl Report {
    /// The winner.
    pub fn best(&self) -> &Tried {
        &self.tried[self.winner]
    }

    /// How much better the winner is than the next best, in mean held-out log-likelihood.
    pub fn margin(&self) -> Option<f64> {
        self.tried
            .iter()
            .enumerate()
            .filter(|(index, _)| *index != self.winner)
            .map(|(_, tried)| self.best().held_out - tried.held_out)
            .reduce(f64::min)
    }
}

pub(super) fn fit(
    pairs: Pairs,
    config: &SurrogateConfig,
    options: FitOptions,
) -> Result<(Surrogate, Report)> {
    config.check()?;
    let held_out = config.candidates[0].train.held_out;
    let data = Standardised::new(pairs, held_out, options.seed)?;
    let volume = data.y.log_volume();
    let mut best: Option<Surrogate> = None;
    let mut report = Report {
        tried: Vec::new(),
        winner: 0,
    };
    for (number, candidate) in config.candidates.iter().enumerate() {
        let checkpoints = options
            .checkpoints
            .as_ref()
            .map(|policy| policy.numbered(number));
        let (surrogate, outcome) = Surrogate::fit_candidate(
            &data,
            candidate,
            options.seed,
            checkpoints.as_ref(),
            &mut |progress| (options.watch)(number, progress),
        )?;
        let held_out = -outcome.best_loss - volume;
        let parameters = surrogate.parameters();
        if best.is_none() || held_out > report.best().held_out {
            report.winner = number;
            best = Some(surrogate);
        }
        report.tried.push(Tried {
            name: candidate.model.name(),
            parameters,
            held_out,
            best_epoch: outcome.best_epoch,
            seconds: outcome.history.last().map_or(0.0, |epoch| epoch.seconds),
            history: outcome.history,
        });
    }
    let best = best.ok_or_else(|| Error::input("no candidate was trained", "report this"))?;
    Ok((best, report))
}
