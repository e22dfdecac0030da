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

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;
    use std::path::Path;
    use std::time::Duration;

    use super::*;
    use crate::simulator::{self, Proposal};
    use crate::surrogate::ModelConfig;
    use crate::train::{CheckpointPolicy, Progress};

    fn small(activation: crate::nn::activation::Activation) -> SurrogateConfig {
        let coupling = ModelConfig::Coupling {
            layers: 2,
            hidden: vec![8],
            head: Vec::new(),
            activation,
        };
        let mixture = ModelConfig::Mixture {
            components: 2,
            hidden: vec![8],
            noise: None,
        };
        let mut config = SurrogateConfig::auto();
        config.candidates.truncate(2);
        for (candidate, model) in config.candidates.iter_mut().zip([mixture, coupling]) {
            candidate.model = model;
            candidate.train.epochs = 3;
            candidate.train.batch = 64;
        }
        config
    }

    fn run(
        seed_of_data: u64,
        config: &SurrogateConfig,
        folder: Option<&Path>,
        watch: &mut dyn FnMut(usize, &Progress) -> ControlFlow<()>,
    ) -> Result<(Surrogate, Report)> {
        let problem = simulator::by_name("two-moons")?;
        let (x, y) = problem.pairs(Proposal::Covering, 500, seed_of_data);
        let names = ["1".to_owned(), "2".to_owned()];
        let pairs = Pairs {
            x: x.view(),
            y: y.view(),
            x_names: &names,
            y_names: &names,
        };
        let checkpoints = folder.map(|folder| CheckpointPolicy {
            path: folder.join("run.safetensors"),
            every: Duration::from_secs(3600),
        });
        let options = FitOptions {
            seed: 3,
            checkpoints,
            watch,
        };
        fit(pairs, config, options)
    }

    fn bytes(surrogate: &Surrogate, folder: &Path) -> Vec<u8> {
        let path = folder.join("surrogate.safetensors");
        surrogate.save(&path).unwrap();
        std::fs::read(path).unwrap()
    }

    /// Stops in the middle of an epoch of the second candidate.
    fn stopped(config: &SurrogateConfig, folder: &Path) {
        let error = run(1, config, Some(folder), &mut |number, progress| {
            if (number, progress.step) == (1, 10) {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        assert!(matches!(error, Err(Error::Cancelled { steps: 10 })));
    }

    #[test]
    fn a_resumed_run_repeats_nothing_and_ends_in_the_same_bits() {
        let folder = tempfile::tempdir().unwrap();
        let config = small(crate::nn::activation::Activation::Silu);
        stopped(&config, folder.path());
        let mut first = None;
        let (resumed, report) = run(1, &config, Some(folder.path()), &mut |number, progress| {
            first.get_or_insert((number, progress.step));
            ControlFlow::Continue(())
        })
        .unwrap();
        assert_eq!(first, Some((1, 11)));
        let (whole, expected) =
            run(1, &config, None, &mut |_, _| ControlFlow::Continue(())).unwrap();
        assert_eq!(bytes(&resumed, folder.path()), bytes(&whole, folder.path()));
        let held_out =
            |report: &Report| report.tried.iter().map(|t| t.held_out).collect::<Vec<_>>();
        assert_eq!(held_out(&report), held_out(&expected));
    }

    #[test]
    fn the_checkpoint_of_another_run_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let config = small(crate::nn::activation::Activation::Silu);
        stopped(&config, folder.path());
        let resume = |data, config: &SurrogateConfig| {
            let resumed = run(data, config, Some(folder.path()), &mut |_, _| {
                ControlFlow::Continue(())
            });
            resumed.unwrap_err().to_string()
        };
        let message = resume(2, &config);
        assert!(message.contains("other data or another model"), "{message}");
        let mut longer = config.clone();
        longer.candidates[0].train.epochs = 4;
        let message = resume(1, &longer);
        assert!(message.contains("its settings are"), "{message}");
        let message = resume(1, &small(crate::nn::activation::Activation::Tanh));
        assert!(message.contains("run.1.safetensors"), "{message}");
        assert!(message.contains("other data or another model"), "{message}");
    }
}
