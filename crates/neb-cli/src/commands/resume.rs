//! `--resume RUN` of `neb fit` and `neb source`: the command that started the run, once more, from its checkpoints.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Parser;

use super::{Session, fit, source};
use crate::args::{Args, Command};
use crate::failure::Failure;
use crate::run_folder;

/// Goes on with an unfinished run; how much is said is up to this session.
pub(super) fn run(target: &Path, session: Session) -> Result<()> {
    let started = run_folder::started(target)?;
    if started.words.is_empty() {
        return Err(Failure::input(
            format!(
                "{}: this run was started from another program",
                target.display()
            ),
            "in Python, call fit again with the same data and the same output",
        ));
    }
    let args = Args::try_parse_from(&started.words)
        .with_context(|| format!("{}: cannot read the command", target.display()))?;
    std::env::set_current_dir(&started.folder).with_context(|| {
        format!(
            "the run was started in {}, which cannot be entered",
            started.folder.display()
        )
    })?;
    let session = Session {
        seed_flag: args.common.seed,
        force: args.common.force,
        resuming: true,
        ..session
    };
    match args.command {
        Command::Fit(args) => fit::run(&args, session),
        Command::Source(args) => source::run(&args, session),
        _ => Err(Failure::input(
            format!(
                "{}: this run was not started by fit or source",
                target.display()
            ),
            "start it anew",
        )),
    }
}

/// Time between two checkpoints.
pub(super) fn interval(seconds: f64) -> Result<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|_| {
        Failure::input(
            format!("--checkpoint-seconds {seconds} is no duration"),
            "give 0 (after every step) or more",
        )
    })
}

/// The failure when a file a command needs was not named.
pub(super) fn needed() -> anyhow::Error {
    Failure::input(
        "the files of this run were not named",
        "see `neb fit --help` and `neb source --help`",
    )
}
