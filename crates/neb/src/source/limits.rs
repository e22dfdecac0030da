//! Settings and numbers of rows the ladder cannot work with, refused before anything is computed.

use super::ladder::LadderConfig;
use crate::flow::spline::MAX_BINS;
use crate::{Error, Result};

/// Fewest held-out observations: a gain needs a standard error.
const FEWEST_HELD_OUT: usize = 10;

impl LadderConfig {
    /// Refuses settings that make no sense, or that so many observations and points cannot be used with.
    ///
    /// # Errors
    /// Names the first such setting, its value, and what to change.
    pub fn check(&self, observations: usize, points: usize) -> Result<()> {
        self.flow.train.check()?;
        let sizes = [
            ("affine-k", self.affine_k),
            ("refine-k", self.refine_k),
            ("judge-k", self.judge_k),
            ("batch", self.batch),
            ("particles", self.particles),
            ("refine-epochs", self.refine_epochs),
            ("flow-layers", self.flow.layers),
            (
                "flow-hidden",
                self.flow.hidden.iter().copied().min().unwrap_or(0),
            ),
        ];
        for (key, value) in sizes {
            if value == 0 {
                return Err(Error::input(
                    format!("source: {key} is 0 or empty"),
                    "set it to 1 or more",
                ));
            }
        }
        let amounts = [
            ("effective-samples", self.effective_samples),
            ("refine-effective-samples", self.refine_effective_samples),
            ("entropy", self.entropy),
            ("pull", self.pull),
        ];
        for (key, value) in amounts {
            if !(value.is_finite() && value >= 0.0) {
                return Err(Error::input(
                    format!("source: {key} is {value}"),
                    "set it to 0 or more",
                ));
            }
        }
        let bins = self.flow.bins;
        if bins == 1 || bins > MAX_BINS {
            return Err(Error::input(
                format!("source: flow-bins is {bins}"),
                format!("use 2 to {MAX_BINS}, or 0 for affine couplings"),
            ));
        }
        if !(self.flow.bound.is_finite() && self.flow.bound > 0.0) {
            return Err(Error::input(
                format!("source: flow-bound is {}", self.flow.bound),
                "set it to 4 or so",
            ));
        }
        if !(self.held_out > 0.0 && self.held_out < 1.0) {
            return Err(Error::input(
                format!(
                    "source: held-out is {}; sources are judged by held-out observations",
                    self.held_out
                ),
                "set it between 0 and 1, 0.1 say",
            ));
        }
        self.check_rows(observations, points)
    }

    fn check_rows(&self, observations: usize, points: usize) -> Result<()> {
        let held = (observations as f64 * self.held_out).round() as usize;
        if held < FEWEST_HELD_OUT || held == observations {
            return Err(Error::input(
                format!(
                    "of {observations} observations {held} would be held out to judge sources by and {} fitted to; at least \
                     {FEWEST_HELD_OUT} and 1 are needed",
                    observations - held
                ),
                "give more observations, or change `held-out` of the source",
            ));
        }
        let particles = points.min(self.particles);
        let train = &self.flow.train;
        let left = particles - (particles as f64 * train.held_out).round() as usize;
        if left < train.batch {
            return Err(Error::input(
                format!(
                    "{particles} points leave {left} to train a flow with, fewer than one batch of {}",
                    train.batch
                ),
                "give more pairs, or a smaller `flow-batch`",
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_and_rows_that_cannot_be_used_are_named() {
        let refused = |change: fn(&mut LadderConfig), rows, points| {
            let mut config = LadderConfig::default();
            change(&mut config);
            config.check(rows, points).err().map(|e| e.to_string())
        };
        assert_eq!(refused(|_| {}, 100, 284), None);
        let named = |message: Option<String>, words: &str| {
            let message = message.unwrap();
            assert!(message.contains(words), "{words}: {message}");
        };
        named(refused(|c| c.judge_k = 0, 100, 1000), "judge-k");
        named(refused(|c| c.flow.hidden.clear(), 100, 1000), "flow-hidden");
        named(refused(|c| c.pull = f64::NAN, 100, 1000), "pull is NaN");
        named(refused(|c| c.flow.bins = 1, 100, 1000), "flow-bins is 1");
        named(refused(|c| c.held_out = 0.0, 100, 1000), "held-out is 0");
        named(refused(|_| {}, 94, 1000), "of 94 observations 9 would");
        named(refused(|_| {}, 100, 283), "leave 255");
    }
}
