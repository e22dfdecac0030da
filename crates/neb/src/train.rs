//! The one training loop: shuffled minibatches, held-out rows, early stopping with the best weights restored,
//! checkpoints and exact resume.
//!
//! Everything random is addressed by (seed, purpose, epoch or step), and the loop's whole state is in its
//! [`Checkpoint`]: a run that was stopped and resumed ends in the same bits as one that was not.

mod checkpoint;
#[cfg(test)]
mod tests;

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

pub use checkpoint::Checkpoint;
use checkpoint::Identity;

use crate::flow::umnn::Quadrature;
use crate::nn::adam::{Adam, AdamConfig};
use crate::nn::schedule::Schedule;
use crate::{Error, Noise, Purpose, Result};

/// Rows whose loss at the initial parameters tells one run's data and model from another's.
const PROBED_ROWS: usize = 256;

/// What is minimised: a mean over rows, with parameters.
pub trait Objective {
    /// Number of rows to train on, held-out ones included.
    fn rows(&self) -> usize;

    /// The parameters.
    fn parameters(&self) -> &[f32];

    /// Changes the parameters in place and brings everything derived from them up to date.
    fn update(&mut self, change: &mut dyn FnMut(&mut [f32]));

    /// Mean loss over these rows; writes its gradient. `step` addresses whatever is random in it.
    fn loss(&mut self, rows: &[u32], step: u64, gradient: &mut [f32]) -> Result<f64>;

    /// Mean loss over held-out rows, free of randomness that could favour an epoch.
    fn held_out_loss(&mut self, rows: &[u32]) -> Result<f64>;

    /// Takes integrals, if there are any, by this rule, or with `None` by the model's own.
    fn set_quadrature(&mut self, _rule: Option<Quadrature>) {}

    /// Effective number of samples behind the last loss, where it is a Monte Carlo estimate.
    fn effective_samples(&self) -> Option<f64> {
        None
    }
}

/// Settings of the loop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrainConfig {
    /// Passes over the training rows.
    pub epochs: usize,
    /// Rows in a minibatch.
    pub batch: usize,
    /// Learning rate before the schedule.
    pub rate: f64,
    /// How the rate changes.
    pub schedule: Schedule,
    /// Optimiser.
    pub adam: AdamConfig,
    /// Share of the rows held out.
    pub held_out: f64,
    /// Stop after so many epochs without a better held-out value; 0 never stops early.
    pub patience: usize,
}

/// One epoch's entry in the history.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Epoch {
    /// Counted from 1.
    pub epoch: usize,
    /// Mean training loss while its steps were made.
    pub train: f64,
    /// Mean held-out loss after it; NaN where nothing is held out.
    pub held_out: f64,
    /// Learning rate of its last step.
    pub rate: f64,
    /// Mean norm of the gradient.
    pub gradient_norm: f64,
    /// Mean effective number of samples behind its losses, where they are Monte Carlo estimates.
    pub effective_samples: Option<f64>,
    /// Seconds since training began, waiting between sessions not counted.
    pub seconds: f64,
}

/// How far training is, told to the caller after every step.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// Steps made.
    pub step: u64,
    /// Steps there will be at most.
    pub steps: u64,
    /// Finished epochs.
    pub history: &'a [Epoch],
}

/// Asked after every step; `Break` stops training with a checkpoint.
pub type Watch<'a> = dyn FnMut(&Progress) -> ControlFlow<()> + 'a;

/// Where the state is saved, and how often.
///
/// The state is saved once more when training ends, and stays until its owner removes it: only the owner knows when the
/// result is safe, and a run of several trainings resumes without repeating the finished ones.
#[derive(Clone, Debug)]
pub struct CheckpointPolicy {
    /// The file; replaced atomically.
    pub path: PathBuf,
    /// Time between two savings.
    pub every: Duration,
}

impl CheckpointPolicy {
    /// The same for one of several trainings: `run.safetensors` becomes `run.0.safetensors`, `run.1.safetensors`, ...
    pub fn numbered(&self, number: usize) -> Self {
        Self {
            path: self.path.with_extension(format!("{number}.safetensors")),
            every: self.every,
        }
    }

    /// Removes the file, if there is one.
    ///
    /// # Errors
    /// Whatever the operating system refuses.
    pub fn remove(&self) -> Result<()> {
        match std::fs::remove_file(&self.path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::io(&self.path, e)),
            _ => Ok(()),
        }
    }
}

/// How training went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Every epoch.
    pub history: Vec<Epoch>,
    /// The epoch whose weights were kept, 0 for the start; the last one where nothing is held out.
    pub best_epoch: usize,
    /// Its held-out loss (its training loss where nothing is held out).
    pub best_loss: f64,
    /// Whether the patience ran out before the epochs did.
    pub stopped_early: bool,
}

/// Rows for training and rows held out, chosen at random by the seed.
pub fn split_rows(rows: usize, held_out: f64, seed: u64) -> (Vec<u32>, Vec<u32>) {
    let order = Noise::new(seed, Purpose::HoldOut, 0).permutation(rows);
    let held = (rows as f64 * held_out).round() as usize;
    let (held, train) = order.split_at(held);
    (train.to_vec(), held.to_vec())
}

/// Minimises the objective; its parameters end at the best held-out value, which may be the one they started with.
///
/// With a checkpoint policy, an existing checkpoint file is resumed.
pub fn train(
    objective: &mut dyn Objective,
    config: &TrainConfig,
    seed: u64,
    checkpoints: Option<&CheckpointPolicy>,
    watch: &mut Watch,
) -> Result<Outcome> {
    let (train_rows, held_rows) = split_rows(objective.rows(), config.held_out, seed);
    check_sizes(config, train_rows.len())?;
    let batches = train_rows.len() / config.batch;
    let initial_loss = match checkpoints {
        Some(_) => objective.held_out_loss(&train_rows[..train_rows.len().min(PROBED_ROWS)])?,
        None => f64::NAN,
    };
    let identity = Identity {
        config,
        seed,
        initial_loss,
    };
    let mut state = match checkpoints {
        Some(policy) if policy.path.exists() => {
            Checkpoint::load(&policy.path, objective.parameters().len(), &identity)?
        }
        _ => {
            let start = match held_rows.as_slice() {
                [] => f64::INFINITY,
                held => objective.held_out_loss(held)?,
            };
            Checkpoint::start(objective.parameters(), start)
        }
    };
    let resumed = state.parameters.clone();
    objective.update(&mut |parameters| parameters.copy_from_slice(&resumed));
    let mut run = Run {
        config,
        seed,
        identity,
        steps: (config.epochs * batches) as u64,
        batches,
        train_rows,
        held_rows,
        started: Instant::now(),
        saved: Instant::now(),
        progressed: false,
        checkpoints,
    };
    while !run.finished(&state) {
        run.progressed = true;
        run.epoch(objective, &mut state, watch)?;
    }
    if run.progressed {
        run.maybe_save(objective, &mut state, true)?;
    }
    let best = std::mem::take(&mut state.best_parameters);
    objective.update(&mut |parameters| parameters.copy_from_slice(&best));
    Ok(Outcome {
        best_epoch: state.best_epoch,
        best_loss: state.best_loss,
        stopped_early: state.history.len() < config.epochs,
        history: state.history,
    })
}

impl TrainConfig {
    /// Refuses settings that cannot train anything.
    ///
    /// # Errors
    /// Names the first setting that makes no sense, and its value.
    pub fn check(&self) -> Result<()> {
        if self.batch == 0 || self.epochs == 0 {
            return Err(Error::input(
                format!(
                    "batch = {} and epochs = {}: both must be at least 1",
                    self.batch, self.epochs
                ),
                "set them to 1 or more",
            ));
        }
        if !(self.rate.is_finite() && self.rate > 0.0) {
            return Err(Error::input(
                format!("the learning rate is {}; it must be positive", self.rate),
                "set `rate` to 3e-3 or so",
            ));
        }
        if !(0.0..1.0).contains(&self.held_out) {
            return Err(Error::input(
                format!("the held-out share is {}, outside 0 to 1", self.held_out),
                "set `held-out` to 0.1 or so",
            ));
        }
        Ok(())
    }
}

fn check_sizes(config: &TrainConfig, train_rows: usize) -> Result<()> {
    config.check()?;
    if train_rows < config.batch {
        return Err(Error::input(
            format!(
                "{train_rows} rows are left for training, fewer than one batch of {}",
                config.batch
            ),
            "give more rows, or a smaller batch",
        ));
    }
    Ok(())
}

/// One call of [`train`]: what stays the same from step to step.
struct Run<'a> {
    config: &'a TrainConfig,
    seed: u64,
    identity: Identity<'a>,
    steps: u64,
    batches: usize,
    train_rows: Vec<u32>,
    held_rows: Vec<u32>,
    started: Instant,
    saved: Instant,
    /// Whether this call trained at all, or found the training finished.
    progressed: bool,
    checkpoints: Option<&'a CheckpointPolicy>,
}

impl Run<'_> {
    fn finished(&self, state: &Checkpoint) -> bool {
        let done = state.history.len();
        let idle = done.saturating_sub(state.best_epoch);
        done >= self.config.epochs || (self.config.patience > 0 && idle >= self.config.patience)
    }

    fn rate(&self, state: &Checkpoint) -> f64 {
        let factor = self
            .config
            .schedule
            .factor(state.adam.steps, self.steps, state.reductions);
        self.config.rate * factor
    }

    fn epoch(
        &mut self,
        objective: &mut dyn Objective,
        state: &mut Checkpoint,
        watch: &mut Watch,
    ) -> Result<()> {
        let epoch = state.history.len();
        let order = Noise::new(self.seed, Purpose::Shuffle, epoch as u64)
            .permutation(self.train_rows.len());
        let mut gradient = vec![0.0; objective.parameters().len()];
        let mut rows = Vec::with_capacity(self.config.batch);
        let first = (state.adam.steps - (epoch * self.batches) as u64) as usize;
        for batch in first..self.batches {
            let batch_order = &order[batch * self.config.batch..(batch + 1) * self.config.batch];
            rows.clear();
            rows.extend(batch_order.iter().map(|&i| self.train_rows[i as usize]));
            let step = state.adam.steps;
            let loss = objective.loss(&rows, step, &mut gradient)?;
            let rate = self.rate(state) as f32;
            let adam = &mut state.adam;
            let mut norm = 0.0;
            self.check_finite("the loss", loss, step, batch)?;
            objective.update(&mut |parameters| {
                norm = adam.step(&self.config.adam, rate, parameters, &mut gradient);
            });
            self.check_finite("the norm of the gradient", norm, step, batch)?;
            state.epoch_loss += loss / self.batches as f64;
            state.epoch_norm += norm / self.batches as f64;
            let effective = objective.effective_samples().unwrap_or(f64::NAN);
            state.epoch_effective += effective / self.batches as f64;
            let progress = Progress {
                step: state.adam.steps,
                steps: self.steps,
                history: &state.history,
            };
            let stop = watch(&progress).is_break();
            self.maybe_save(objective, state, stop)?;
            if stop {
                return Err(Error::Cancelled {
                    steps: state.adam.steps,
                });
            }
        }
        self.close_epoch(objective, state)
    }

    fn close_epoch(&self, objective: &mut dyn Objective, state: &mut Checkpoint) -> Result<()> {
        let held_out = if self.held_rows.is_empty() {
            f64::NAN
        } else {
            let loss = objective.held_out_loss(&self.held_rows)?;
            self.check_finite("the held-out loss", loss, state.adam.steps, self.batches)?;
            loss
        };
        let judged = if self.held_rows.is_empty() {
            state.epoch_loss
        } else {
            held_out
        };
        let epoch = state.history.len() + 1;
        state.history.push(Epoch {
            epoch,
            train: state.epoch_loss,
            held_out,
            rate: self.rate(state),
            gradient_norm: state.epoch_norm,
            effective_samples: Some(state.epoch_effective).filter(|samples| !samples.is_nan()),
            seconds: state.seconds + self.started.elapsed().as_secs_f64(),
        });
        state.epoch_loss = 0.0;
        state.epoch_norm = 0.0;
        state.epoch_effective = 0.0;
        if judged < state.best_loss || self.held_rows.is_empty() {
            state.best_loss = judged;
            state.best_epoch = epoch;
            state.last_reduction = epoch;
            state
                .best_parameters
                .copy_from_slice(objective.parameters());
        } else if let Schedule::Plateau { patience, .. } = self.config.schedule
            && epoch - state.last_reduction.max(state.best_epoch) >= patience
        {
            state.reductions += 1;
            state.last_reduction = epoch;
        }
        Ok(())
    }

    fn maybe_save(
        &mut self,
        objective: &dyn Objective,
        state: &mut Checkpoint,
        now: bool,
    ) -> Result<()> {
        let Some(policy) = self.checkpoints else {
            return Ok(());
        };
        if !now && self.saved.elapsed() < policy.every {
            return Ok(());
        }
        state.parameters.copy_from_slice(objective.parameters());
        state.seconds += self.started.elapsed().as_secs_f64();
        self.started = Instant::now();
        state.save(&policy.path, &self.identity)?;
        self.saved = Instant::now();
        Ok(())
    }

    fn check_finite(&self, what: &str, value: f64, step: u64, batch: usize) -> Result<()> {
        if value.is_finite() {
            return Ok(());
        }
        let epoch = step as usize / self.batches.max(1) + 1;
        let saved = match self.checkpoints {
            Some(policy) if policy.path.exists() => {
                format!("the last good state is in {}", policy.path.display())
            }
            _ => "no checkpoint was asked for".to_owned(),
        };
        Err(Error::non_finite(
            format!("{what} became {value} at step {step} (epoch {epoch}, batch {batch}); {saved}"),
            "lower the learning rate, clip the gradient (clip_norm = 5), or look for outliers in the data",
        ))
    }
}

impl Checkpoint {
    /// Nothing done yet; the start is what is kept if no epoch has a lower loss.
    fn start(parameters: &[f32], held_out: f64) -> Self {
        Self {
            parameters: parameters.to_vec(),
            best_parameters: parameters.to_vec(),
            adam: Adam::new(parameters.len()),
            best_epoch: 0,
            best_loss: if held_out.is_nan() {
                f64::INFINITY
            } else {
                held_out
            },
            reductions: 0,
            last_reduction: 0,
            epoch_loss: 0.0,
            epoch_norm: 0.0,
            epoch_effective: 0.0,
            seconds: 0.0,
            history: Vec::new(),
        }
    }
}
