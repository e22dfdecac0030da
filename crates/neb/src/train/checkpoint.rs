//! The training loop's whole state, as a file.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Epoch, TrainConfig};
use crate::nn::adam::Adam;
use crate::store::{Store, TensorData};
use crate::{Error, Result};

/// Everything [`super::train`] needs to go on as if it had never stopped.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    pub(super) parameters: Vec<f32>,
    pub(super) best_parameters: Vec<f32>,
    pub(super) adam: Adam,
    pub(super) best_epoch: usize,
    pub(super) best_loss: f64,
    pub(super) reductions: u32,
    pub(super) last_reduction: usize,
    pub(super) epoch_loss: f64,
    pub(super) epoch_norm: f64,
    pub(super) epoch_effective: f64,
    pub(super) seconds: f64,
    pub(super) history: Vec<Epoch>,
}

/// What a checkpoint must have in common with the run that resumes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Identity<'a> {
    pub config: &'a TrainConfig,
    pub seed: u64,
    /// Mean loss of some rows at the initial parameters: another file of data or another model has another.
    pub initial_loss: f64,
}

/// Relative difference of initial losses that another processor's rounding can explain.
const ROUNDING: f64 = 1e-4;

/// The part of the state that is not a tensor. Floats as bits: JSON has no infinity and may round.
#[derive(Serialize, Deserialize)]
struct Scalars {
    seed: u64,
    config: TrainConfig,
    initial_loss: u64,
    steps: u64,
    best_epoch: usize,
    best_loss: u64,
    reductions: u32,
    last_reduction: usize,
    epoch_loss: u64,
    epoch_norm: u64,
    epoch_effective: u64,
    seconds: f64,
    history: Vec<[u64; 7]>,
}

const KIND: &str = "checkpoint";

impl Checkpoint {
    /// Writes the state, replacing an older one atomically.
    pub(super) fn save(&self, path: &Path, identity: &Identity) -> Result<()> {
        let scalars = Scalars {
            seed: identity.seed,
            config: identity.config.clone(),
            initial_loss: identity.initial_loss.to_bits(),
            steps: self.adam.steps,
            best_epoch: self.best_epoch,
            best_loss: self.best_loss.to_bits(),
            reductions: self.reductions,
            last_reduction: self.last_reduction,
            epoch_loss: self.epoch_loss.to_bits(),
            epoch_norm: self.epoch_norm.to_bits(),
            epoch_effective: self.epoch_effective.to_bits(),
            seconds: self.seconds,
            history: self.history.iter().map(pack_epoch).collect(),
        };
        let mut store = Store::new(KIND, &scalars)?;
        let tensors = [
            ("parameters", &self.parameters),
            ("best", &self.best_parameters),
            ("adam.mean", &self.adam.mean),
            ("adam.square", &self.adam.square),
        ];
        for (name, values) in tensors {
            store.push(TensorData::flat(name, values));
        }
        store.save(path)
    }

    /// Reads a state and checks that it belongs to this data, model, configuration and seed.
    pub(super) fn load(path: &Path, parameters: usize, identity: &Identity) -> Result<Self> {
        let mut store = Store::load(path, KIND)?;
        let scalars: Scalars = store.config()?;
        if let Some(difference) = scalars.difference(identity) {
            return Err(Error::file(
                path,
                format!("this checkpoint belongs to another run: {difference}"),
                "resume with the data and settings it was started with, or delete it to start anew",
            ));
        }
        let mut take = |name: &str| store.take(name, &[parameters]);
        Ok(Self {
            parameters: take("parameters")?,
            best_parameters: take("best")?,
            adam: Adam {
                mean: take("adam.mean")?,
                square: take("adam.square")?,
                steps: scalars.steps,
            },
            best_epoch: scalars.best_epoch,
            best_loss: f64::from_bits(scalars.best_loss),
            reductions: scalars.reductions,
            last_reduction: scalars.last_reduction,
            epoch_loss: f64::from_bits(scalars.epoch_loss),
            epoch_norm: f64::from_bits(scalars.epoch_norm),
            epoch_effective: f64::from_bits(scalars.epoch_effective),
            seconds: scalars.seconds,
            history: scalars.history.iter().map(unpack_epoch).collect(),
        })
    }
}

impl Scalars {
    /// What tells the run of this checkpoint from another, if anything does.
    fn difference(&self, run: &Identity) -> Option<String> {
        if self.seed != run.seed {
            return Some(format!(
                "its seed is {}, this run's {}",
                self.seed, run.seed
            ));
        }
        if self.config != *run.config {
            return Some(format!(
                "its settings are {:?}, this run's {:?}",
                self.config, run.config
            ));
        }
        let (own, other) = (f64::from_bits(self.initial_loss), run.initial_loss);
        let same =
            own.to_bits() == other.to_bits() || (own - other).abs() <= ROUNDING * (1.0 + own.abs());
        (!same).then(|| {
            format!("its loss before training was {own}, this run's is {other}: other data or another model")
        })
    }
}

fn pack_epoch(epoch: &Epoch) -> [u64; 7] {
    [
        epoch.epoch as u64,
        epoch.train.to_bits(),
        epoch.held_out.to_bits(),
        epoch.rate.to_bits(),
        epoch.gradient_norm.to_bits(),
        epoch.seconds.to_bits(),
        epoch.effective_samples.unwrap_or(f64::NAN).to_bits(),
    ]
}

fn unpack_epoch(bits: &[u64; 7]) -> Epoch {
    Epoch {
        epoch: bits[0] as usize,
        train: f64::from_bits(bits[1]),
        held_out: f64::from_bits(bits[2]),
        rate: f64::from_bits(bits[3]),
        gradient_norm: f64::from_bits(bits[4]),
        seconds: f64::from_bits(bits[5]),
        effective_samples: Some(f64::from_bits(bits[6])).filter(|samples| !samples.is_nan()),
    }
}
