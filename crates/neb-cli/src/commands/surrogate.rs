//! `neb surrogate`: stage 1, from simulated pairs to a file with q(y|x).

use std::path::Path;

use anyhow::Result;
use neb::surrogate::Report;
use neb::train::CheckpointPolicy;
use serde::Serialize;

use super::{Session, climbing, resume, training};
use crate::args;
use crate::config::Config;
use crate::failure::{self, Failure};
use crate::files::{self, PairsFile};
use crate::interrupt;

#[derive(Serialize)]
struct Fitted<'a> {
    kept: &'a str,
    held_out: f64,
    pairs: usize,
    seed: u64,
    output: &'a Path,
    report: &'a Report,
}

/// Runs the command.
pub(crate) fn run(args: &args::Surrogate, session: Session) -> Result<()> {
    let mut config = Config::resolve(
        session.seed_flag,
        args::Stages::Surrogate,
        &args.config,
        &args.keys,
        &args::SourceFlags::default(),
    )?;
    files::check_model_target(&args.output, session.force)?;
    let checkpoints = checkpoint_policy(args)?;
    let pairs = PairsFile::read(&args.pairs, &args.columns)?;
    if pairs.has_weight() {
        session.output.note(format!(
            "note: {}: `weight` is not used: q(y|x) is learned from all pairs alike",
            pairs.path().display()
        ));
    }
    let seed = config.seed;
    let chosen = config.choose_transforms(&pairs, None)?;
    climbing::say(&chosen.notes, session);
    let pairs = pairs.transformed(&chosen.x, &chosen.y, seed)?;
    prepare(&checkpoints, args.resume, session)?;

    interrupt::listen()?;
    let fitted = training::fit(
        pairs.pairs(),
        &config.surrogate,
        seed,
        Some(checkpoints.clone()),
        session,
    );
    let (surrogate, report) = fitted.map_err(|error| match error {
        neb::Error::Cancelled { .. } => interrupted(args),
        other => failure::in_file(pairs.path(), other),
    })?;

    neb_data::check_target(&args.output, session.force)?;
    let surrogate = surrogate.with_transforms(chosen.x, chosen.y);
    surrogate.save(&args.output)?;
    for file in present(&checkpoints) {
        file.remove()?;
    }
    let fitted = Fitted {
        kept: &report.best().name,
        held_out: report.best().held_out,
        pairs: pairs.x.values.rows(),
        seed,
        output: &args.output,
        report: &report,
    };
    session.output.result(&fitted, |fitted| {
        format!(
            "{}\n{}: {}, from {} pairs, seed {}",
            training::table(fitted.report),
            fitted.output.display(),
            fitted.kept,
            fitted.pairs,
            fitted.seed
        )
    })
}

/// Checkpoints live beside the output: `surrogate.checkpoint.0.safetensors` and so on.
fn checkpoint_policy(args: &args::Surrogate) -> Result<CheckpointPolicy> {
    let every = resume::interval(args.checkpoint_seconds)?;
    Ok(CheckpointPolicy {
        path: args.output.with_extension("checkpoint.safetensors"),
        every,
    })
}

/// The checkpoints that exist, one per candidate begun.
fn present(checkpoints: &CheckpointPolicy) -> Vec<CheckpointPolicy> {
    (0..)
        .map(|number| checkpoints.numbered(number))
        .take_while(|file| file.path.exists())
        .collect()
}

/// Decides what becomes of checkpoints that an earlier run left.
fn prepare(checkpoints: &CheckpointPolicy, resume: bool, session: Session) -> Result<()> {
    let found = present(checkpoints);
    match found.first() {
        None if resume => session
            .output
            .note("note: there is no checkpoint to resume; starting from the beginning"),
        Some(first) if !resume && !session.force => {
            return Err(Failure::input(
                format!("{}: an earlier run was not finished", first.path.display()),
                "continue it with --resume, or start anew with --force",
            ));
        }
        Some(_) if !resume => {
            for file in found {
                file.remove()?;
            }
        }
        _ => {}
    }
    Ok(())
}

fn interrupted(args: &args::Surrogate) -> anyhow::Error {
    let mut command: Vec<String> = std::env::args().map(|arg| quoted(&arg)).collect();
    command[0] = "neb".to_owned();
    if !args.resume {
        command.push("--resume".to_owned());
    }
    Failure::interrupted(
        "interrupted; what was learned is in a checkpoint beside the output",
        format!("continue with: {}", command.join(" ")),
    )
}

/// An argument as it can be pasted into a shell.
pub(super) fn quoted(argument: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:+@%".contains(c);
    if !argument.is_empty() && argument.chars().all(plain) {
        argument.to_owned()
    } else {
        format!("'{}'", argument.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn arguments_survive_a_shell() {
        assert_eq!(quoted("runs/a-1.npz"), "runs/a-1.npz");
        assert_eq!(quoted("my file"), "'my file'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
