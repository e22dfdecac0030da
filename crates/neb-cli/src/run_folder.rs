//! The folder of a run. It is written beside its place under another name and moved there when it is complete, so that a
//! run is there whole or not at all; where a run is replaced, file by file, so that other files in the folder stay.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::failure::Failure;

/// The settings and where each comes from.
pub(crate) const CONFIG: &str = "config.toml";
/// q(y|x).
pub(crate) const SURROGATE: &str = "surrogate.safetensors";
/// q(x).
pub(crate) const SOURCE: &str = "source.safetensors";
/// q(x|y), where the source was fitted with a variational bound.
pub(crate) const RECOGNITION: &str = "recognition.safetensors";
/// x of the pairs with their weights, where these were fitted.
pub(crate) const PARTICLES: &str = "particles.npz";
/// Every epoch of every training.
pub(crate) const HISTORY: &str = "history.csv";
/// What was tried and what was kept.
pub(crate) const SUMMARY: &str = "summary.json";
/// Calibration of its posteriors, where it was checked.
pub(crate) const CALIBRATION: &str = "calibration.json";

const FILES: [&str; 7] = [
    CONFIG,
    SURROGATE,
    SOURCE,
    RECOGNITION,
    PARTICLES,
    HISTORY,
    SUMMARY,
];

/// The file of a model: `path` itself, or the file `name` of the run in the folder `path`.
pub(crate) fn model_of(path: &Path, name: &str) -> Result<PathBuf> {
    if !path.is_dir() {
        return Ok(path.to_owned());
    }
    let file = path.join(name);
    if file.exists() {
        return Ok(file);
    }
    let shown = path.display();
    Err(if name == PARTICLES && path.join(SOURCE).exists() {
        Failure::input(
            format!("{shown}: this run has no {name}: its source is not made of particles"),
            "fit with `source = auto` or `particles` to have them",
        )
    } else if path.join(SURROGATE).exists() {
        Failure::input(
            format!("{shown}: this run has no {name}: its second stage was not finished"),
            format!("neb source {shown} --pairs FILE --observations FILE -o {shown} --force"),
        )
    } else {
        Failure::input(
            format!("{shown}: this folder is no run: it has no {name}"),
            "name the folder of a run, or the file of a model",
        )
    })
}

/// Refuses a folder that cannot be written: call it before hours of work, not after.
pub(crate) fn check_target(target: &Path, force: bool) -> Result<()> {
    let shown = target.display();
    if !target.is_dir() {
        if target.exists() {
            return Err(Failure::input(
                format!("{shown}: is a file; a run is a folder"),
                "choose another name",
            ));
        }
        return Ok(neb_data::check_target(target, false)?);
    }
    let is_run = target.join(SURROGATE).exists() || target.join(SOURCE).exists();
    let is_empty = fs::read_dir(target)
        .with_context(|| format!("{shown}: cannot be read"))?
        .next()
        .is_none();
    if !is_run && !is_empty {
        Err(Failure::input(
            format!("{shown}: this folder exists and is no run; it was not touched"),
            "choose another name",
        ))
    } else if !force {
        Err(Failure::input(
            format!("{shown}: exists already and was not touched"),
            "choose another name, or pass --force to replace it",
        ))
    } else {
        Ok(neb_data::check_target(target.join(SUMMARY), true)?)
    }
}

/// A run that is being written. Dropped before it is finished or kept, it vanishes.
pub(crate) struct PartialRun {
    target: PathBuf,
    /// None once moved to its place.
    partial: Option<PathBuf>,
}

impl PartialRun {
    /// Begins a run that is to be at `target`.
    pub(crate) fn create(target: &Path) -> Result<Self> {
        let mut name = target.file_name().unwrap_or_default().to_owned();
        name.push(format!(".partial-{}", std::process::id()));
        let partial = target.with_file_name(name);
        fs::create_dir(&partial).with_context(|| format!("cannot create {}", partial.display()))?;
        Ok(Self {
            target: target.to_owned(),
            partial: Some(partial),
        })
    }

    /// Where a file is to be written for now.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.partial.as_ref().unwrap_or(&self.target).join(name)
    }

    /// Writes a file of text.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<()> {
        Ok(neb_data::write_atomically(self.path(name), true, |file| {
            file.write_all(text.as_bytes())
        })?)
    }

    /// Moves the whole run to its place.
    pub(crate) fn finish(mut self) -> Result<()> {
        let Some(partial) = self.partial.take() else {
            return Ok(());
        };
        let failed = || format!("the run is complete in {}", partial.display());
        if !self.target.exists() {
            return fs::rename(&partial, &self.target).with_context(failed);
        }
        for name in FILES {
            let (new, old) = (partial.join(name), self.target.join(name));
            if new.exists() {
                fs::rename(new, old).with_context(failed)?;
            } else if old.exists() {
                // Of the run that is replaced; this one has no such part.
                fs::remove_file(old).with_context(failed)?;
            }
        }
        fs::remove_dir(&partial).with_context(failed)
    }

    /// Keeps what there is of a run that cannot be finished, and says where: in its place, or beside it where there is
    /// another run, which stays whole.
    pub(crate) fn keep(mut self) -> PathBuf {
        match self.partial.take() {
            Some(partial)
                if self.target.exists() || fs::rename(&partial, &self.target).is_err() =>
            {
                partial
            }
            _ => self.target.clone(),
        }
    }
}

impl Drop for PartialRun {
    fn drop(&mut self) {
        if let Some(partial) = &self.partial {
            // A failure to tidy up must not hide the one that led here.
            let _ = fs::remove_dir_all(partial);
        }
    }
}
