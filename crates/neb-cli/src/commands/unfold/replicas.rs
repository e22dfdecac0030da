//! Replicas on disk: each a file of its own, written when it is finished and never computed again.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use neb::surrogate::SurrogateConfig;
use neb::unfold::{
    Events, Folding, Refit, UnfoldOptions, data_replicas, simulation_replica, training_replica,
};
use neb_data::{Array, Dataset};

use super::uncertainty::Replicas;
use crate::args;

/// Data replicas fitted in the same passes.
const AT_ONCE: u64 = 20;

/// Where replicas are, and what they are made of.
pub(super) struct Maker<'a> {
    pub(super) folder: PathBuf,
    pub(super) events: &'a Events,
    pub(super) folding: &'a Folding,
    pub(super) surrogate: &'a SurrogateConfig,
    pub(super) refit: Refit<'a>,
}

impl Maker<'_> {
    /// Makes what is missing and reads the rest.
    pub(super) fn all(&self, args: &args::Unfold, options: &mut UnfoldOptions) -> Result<Replicas> {
        std::fs::create_dir_all(&self.folder)
            .with_context(|| format!("cannot create {}", self.folder.display()))?;
        for first in (0..args.replicas).step_by(AT_ONCE as usize) {
            let numbers = first..args.replicas.min(first + AT_ONCE);
            if numbers.clone().all(|n| self.file("data", n).exists()) {
                continue;
            }
            let (events, folding) = (self.events, self.folding);
            let seed = options.seed;
            let made = data_replicas(events, folding, numbers.clone(), seed, &self.refit)?;
            for (number, weights) in numbers.zip(made) {
                self.write("data", number, &weights)?;
            }
        }
        for number in 0..args.simulation_replicas {
            if !self.file("simulation", number).exists() {
                let made =
                    simulation_replica(self.events, self.folding, number, &self.refit, options)?;
                self.write("simulation", number, &made)?;
            }
        }
        for number in 0..args.training_replicas {
            if !self.file("training", number).exists() {
                let made =
                    training_replica(self.events, self.surrogate, number, &self.refit, options)?;
                self.write("training", number, &made)?;
            }
        }
        Ok(Replicas {
            data: self.read("data", args.replicas)?,
            simulation: self.read("simulation", args.simulation_replicas)?,
            training: self.read("training", args.training_replicas)?,
        })
    }

    fn file(&self, what: &str, number: u64) -> PathBuf {
        self.folder.join(format!("{what}-{number:03}.npz"))
    }

    fn write(&self, what: &str, number: u64, weights: &[f32]) -> Result<()> {
        let path = self.file(what, number);
        let array = Array::new("weight", &[weights.len()], weights);
        Ok(neb_data::write(&path, true, &[array])?)
    }

    fn read(&self, what: &str, count: u64) -> Result<Vec<Vec<f32>>> {
        let rows = self.events.produced.rows();
        let one = |path: &Path| -> Result<Vec<f32>> {
            let values = Dataset::open(path)?.array("weight")?.values;
            anyhow::ensure!(
                values.len() == rows,
                "{}: {} weights for {rows} simulated events: it belongs to another run",
                path.display(),
                values.len()
            );
            Ok(values)
        };
        (0..count)
            .map(|number| one(&self.file(what, number)))
            .collect()
    }
}
