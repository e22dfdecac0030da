//! `neb source`: stage 2 alone, with a surrogate that exists.

use std::path::Path;
use std::time::Instant;

use anyhow::Result;

use super::stage2::{self, Data};
use super::summary::{DataFiles, Finished};
use super::surrogate::quoted;
use super::{Session, climbing};
use crate::args;
use crate::config::Config;
use crate::failure::Failure;
use crate::files;
use crate::interrupt;
use crate::run_folder::{self, CONFIG, PartialRun, SURROGATE};

/// Runs the command.
pub(crate) fn run(args: &args::Source, session: Session) -> Result<()> {
    let config = Config::resolve(
        session.seed_flag,
        args::Stages::Source,
        &args.config,
        &args::SurrogateKeys::default(),
        &args.source,
    )?;
    run_folder::check_target(&args.output, session.force)?;
    let surrogate = files::load_surrogate(&args.surrogate)?;
    let x = files::read_points(&args.pairs, args.columns.x.as_deref())?;
    files::check_columns("x", &args.pairs, &x, &surrogate)?;
    let (y, weights) = files::read_observations(&args.observations, args.columns.y.as_deref())?;
    files::check_columns("y", &args.observations, &y, &surrogate)?;
    let observations = y.values.rows();
    let stage = config.stage2(&x, observations)?;
    let outside = climbing::check_range(&args.observations, &y, surrogate.y_range())?;
    let warnings: Vec<String> = outside.into_iter().collect();
    climbing::warn(&warnings, session);
    let weighted = weights.is_some() && !stage2::uses_weights(&stage);
    note_weights(weighted, &args.observations, session);

    interrupt::listen()?;
    let (started, seed) = (Instant::now(), config.seed);
    let run = PartialRun::create(&args.output)?;
    run.write(CONFIG, &format!("{}\n", config.to_toml()))?;
    surrogate.save(&run.path(SURROGATE))?;
    let data = Data {
        surrogate: &surrogate,
        y: y.values.view(),
        weights: weights.as_deref(),
        x: &x,
        seed,
    };
    let outcome = stage2::run(stage, data, session);
    let outcome = outcome.map_err(|error| match error {
        neb::Error::Cancelled { .. } => Failure::interrupted(
            "interrupted; nothing was written",
            "stage 2 cannot be resumed yet: the same command starts it again from the beginning",
        ),
        other => other.into(),
    })?;
    Finished {
        surrogate: &surrogate,
        stage1: None,
        from: Some(&args.surrogate),
        outcome: &outcome,
        x: &x,
        observations,
        data: DataFiles::new(&args.pairs, &args.observations, &args.columns),
        seed,
        warnings,
        seconds: started.elapsed().as_secs_f64(),
        output: &args.output,
    }
    .write(run, session)
}

/// Says that weights of rows are not used, where there are any.
pub(super) fn note_weights(weighted: bool, path: &Path, session: Session) {
    if weighted {
        session.output.note(format!(
            "note: {}: `weight` is not used: all rows count alike",
            path.display()
        ));
    }
}

/// The failure when stage 2 of `neb fit` ended early: its surrogate is kept, unless the data were refused.
pub(super) fn stopped(error: neb::Error, run: PartialRun, restart: &[String]) -> anyhow::Error {
    let cancelled = matches!(error, neb::Error::Cancelled { .. });
    if !cancelled && !matches!(error, neb::Error::NonFinite { .. }) {
        return error.into();
    }
    let kept = run.keep();
    let surrogate = kept.join(SURROGATE);
    let words: Vec<String> = restart.iter().map(|word| quoted(word)).collect();
    let again = format!(
        "neb source {} {} --force",
        quoted(&kept.display().to_string()),
        words.join(" ")
    );
    if cancelled {
        Failure::interrupted(
            format!(
                "interrupted during stage 2; the surrogate is kept as {}, the unfinished source is lost",
                surrogate.display()
            ),
            format!("stage 2 cannot be resumed yet; start it again with: {again}"),
        )
    } else {
        let hint = error.hint().unwrap_or_default();
        Failure::computation(
            format!("{error}; the surrogate is kept as {}", surrogate.display()),
            format!("{hint}; stage 2 alone: {again}"),
        )
    }
}
