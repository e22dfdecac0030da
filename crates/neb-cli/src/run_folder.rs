//! The folder of a run. It is written beside its place under another name and moved there when it is complete, so that a
//! run is there whole or not at all; where a run is replaced, file by file, so that other files in the folder stay.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use neb::train::CheckpointPolicy;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// The settings and where each comes from.
pub(crate) const CONFIG: &str = "config.toml";
/// q(y|x).
pub(crate) const SURROGATE: &str = "surrogate.safetensors";
/// q(x).
pub(crate) const SOURCE: &str = "source.safetensors";
/// ε(x), where an unfolding has events that were not reconstructed.
pub(crate) const EFFICIENCY: &str = "efficiency.safetensors";
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

/// While a run is under way: the command that started it.
const STARTED: &str = "started.json";
/// While a run is under way: the state of its trainings.
const CHECKPOINTS: &str = "checkpoints";

const FILES: [&str; 9] = [
    CONFIG,
    SURROGATE,
    SOURCE,
    RECOGNITION,
    PARTICLES,
    HISTORY,
    SUMMARY,
    CALIBRATION,
    EFFICIENCY,
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

/// A run that is being written, in a folder beside its place (`RUN.partial`). Dropped before it is finished or kept, it
/// vanishes, unless it was begun by an earlier command.
pub(crate) struct PartialRun {
    target: PathBuf,
    /// None once moved to its place, or kept.
    partial: Option<PathBuf>,
    resumed: bool,
}

/// The command that started a run, to go on with it.
#[derive(Serialize, Deserialize)]
pub(crate) struct Started {
    /// Its words; none where it was no command but a call from another program.
    pub(crate) words: Vec<String>,
    /// Where it was typed: paths are seen from there.
    pub(crate) folder: PathBuf,
}

/// Where a run is until it is complete.
pub(crate) fn partial_of(target: &Path) -> PathBuf {
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(".partial");
    target.with_file_name(name)
}

/// The command that started the unfinished run of `target`.
pub(crate) fn started(target: &Path) -> Result<Started> {
    let file = partial_of(target).join(STARTED);
    let shown = file.display();
    let text = fs::read_to_string(&file).map_err(|_| {
        Failure::input(
            format!("{}: there is no unfinished run to resume: {shown} cannot be read", target.display()),
            "name the folder that was given with -o; a run that was never begun is started without --resume",
        )
    })?;
    serde_json::from_str(&text).with_context(|| format!("{shown} is damaged"))
}

impl PartialRun {
    /// Begins a run that is to be at `target`; or, with `resume`, goes on with the one that was begun.
    pub(crate) fn create(target: &Path, resume: bool, force: bool) -> Result<Self> {
        Self::create_by(std::env::args().collect(), target, resume, force)
    }

    /// The same for a run that these words start.
    pub(crate) fn create_by(
        words: Vec<String>,
        target: &Path,
        resume: bool,
        force: bool,
    ) -> Result<Self> {
        let partial = partial_of(target);
        let shown = target.display();
        if partial.exists() && !resume {
            if !force {
                return Err(Failure::input(
                    format!("{}: an earlier run was not finished", partial.display()),
                    format!(
                        "continue it with `neb fit --resume {shown}`, or start anew with --force"
                    ),
                ));
            }
            fs::remove_dir_all(&partial)
                .with_context(|| format!("cannot remove {}", partial.display()))?;
        }
        let checkpoints = partial.join(CHECKPOINTS);
        fs::create_dir_all(&checkpoints)
            .with_context(|| format!("cannot create {}", checkpoints.display()))?;
        let run = Self {
            target: target.to_owned(),
            partial: Some(partial),
            resumed: resume,
        };
        if !resume {
            let started = Started {
                words,
                folder: std::env::current_dir()?,
            };
            run.write(STARTED, serde_json::to_string_pretty(&started)?)?;
        }
        Ok(run)
    }

    /// Where a file is to be written for now.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.partial.as_ref().unwrap_or(&self.target).join(name)
    }

    /// Checkpoints of the trainings of one stage.
    pub(crate) fn checkpoints(&self, stage: &str, every: Duration) -> CheckpointPolicy {
        CheckpointPolicy {
            path: self.path(CHECKPOINTS).join(format!("{stage}.safetensors")),
            every,
        }
    }

    /// Writes a file.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> Result<()> {
        Ok(neb_data::write_atomically(self.path(name), true, |file| {
            file.write_all(content.as_ref())
        })?)
    }

    /// Moves the whole run to its place.
    pub(crate) fn finish(mut self) -> Result<()> {
        let Some(partial) = self.partial.take() else {
            return Ok(());
        };
        let failed = || format!("the run is complete in {}", partial.display());
        fs::remove_dir_all(partial.join(CHECKPOINTS)).with_context(failed)?;
        fs::remove_file(partial.join(STARTED)).with_context(failed)?;
        if !self.target.exists() {
            return fs::rename(&partial, &self.target).with_context(failed);
        }
        for name in FILES {
            let (new, old) = (partial.join(name), self.target.join(name));
            if new.exists() {
                fs::rename(new, old).with_context(failed)?;
            } else if old.exists() {
                fs::remove_file(old).with_context(failed)?;
            }
        }
        fs::remove_dir(&partial).with_context(failed)
    }

    /// The failure when a run ended early. What was computed is kept, unless the data were refused.
    pub(crate) fn stopped(self, error: neb::Error) -> anyhow::Error {
        let again = format!("neb fit --resume {}", self.target.display());
        self.stopped_with(error, &again)
    }

    /// The same with the words of the command that goes on.
    pub(crate) fn stopped_with(mut self, error: neb::Error, again: &str) -> anyhow::Error {
        match error {
            neb::Error::Cancelled { .. } => {
                let kept = self.partial.take().unwrap_or_default();
                Failure::interrupted(
                    format!(
                        "interrupted; what was learned is kept in {}",
                        kept.display()
                    ),
                    format!("continue with: {again}"),
                )
            }
            neb::Error::NonFinite { .. } => {
                let hint = error.hint().unwrap_or_default().to_owned();
                let kept = self.partial.take().unwrap_or_default();
                Failure::computation(
                    format!("{error}; what was learned is kept in {}", kept.display()),
                    format!("{hint}; --force starts anew"),
                )
            }
            other => other.into(),
        }
    }
}

impl Drop for PartialRun {
    fn drop(&mut self) {
        if let Some(partial) = self.partial.as_ref().filter(|_| !self.resumed) {
            // A failure to tidy up must not hide the one that led here.
            let _ = fs::remove_dir_all(partial);
        }
    }
}
