//! `neb fit`: both stages, from simulated pairs and observations to the folder of a run.

use std::time::Instant;

use anyhow::Result;

use super::stage2::{self, Data};
use super::summary::{DataFiles, Finished};
use super::{Session, climbing, source, training};
use crate::args;
use crate::config::Config;
use crate::failure::{self, Failure};
use crate::files::{self, PairsFile};
use crate::interrupt;
use crate::run_folder::{self, CONFIG, PartialRun, SURROGATE};

/// Runs the command.
pub(crate) fn run(args: &args::Fit, session: Session) -> Result<()> {
    let config = Config::resolve(
        session.seed_flag,
        args::Stages::Fit,
        &args.config,
        &args.keys,
        &args.source,
    )?;
    run_folder::check_target(&args.output, session.force)?;
    let pairs = PairsFile::read(&args.pairs, &args.columns)?;
    let (y, weights) = files::read_observations(&args.observations, args.columns.y.as_deref())?;
    files::check_names(
        "y",
        &args.observations,
        &y,
        &pairs.y.names,
        "the pairs have",
    )?;
    let observations = y.values.rows();
    let stage = config.stage2(&pairs.x, observations)?;
    let ranges = climbing::ranges(pairs.y.values.view());
    let outside = climbing::check_range(&args.observations, &y, &ranges)?;
    let warnings: Vec<String> = outside.into_iter().collect();
    climbing::warn(&warnings, session);
    source::note_weights(pairs.has_weight(), &args.pairs, session);
    let weighted = weights.is_some() && !stage2::uses_weights(&stage);
    source::note_weights(weighted, &args.observations, session);

    interrupt::listen()?;
    let (started, seed) = (Instant::now(), config.seed);
    let fitted = training::fit(pairs.pairs(), &config.surrogate, seed, None, session);
    let (surrogate, report) = fitted.map_err(|error| match error {
        neb::Error::Cancelled { .. } => Failure::interrupted(
            "interrupted during stage 1; nothing was written",
            "`neb surrogate` saves checkpoints and can be resumed; `neb source` then does stage 2",
        ),
        other => failure::in_file(pairs.path(), other),
    })?;

    let run = PartialRun::create(&args.output)?;
    run.write(CONFIG, &format!("{}\n", config.to_toml()))?;
    surrogate.save(&run.path(SURROGATE))?;
    let data = Data {
        surrogate: &surrogate,
        y: y.values.view(),
        weights: weights.as_deref(),
        x: &pairs.x,
        seed,
    };
    let outcome = stage2::run(stage, data, session);
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(error) => return Err(source::stopped(error, run, &restart(args, seed))),
    };
    Finished {
        surrogate: &surrogate,
        stage1: Some(&report),
        from: None,
        outcome: &outcome,
        x: &pairs.x,
        observations,
        data: DataFiles::new(&args.pairs, &args.observations, &args.columns),
        seed,
        warnings,
        seconds: started.elapsed().as_secs_f64(),
        output: &args.output,
    }
    .write(run, session)
}

/// The arguments of `neb source` that do stage 2 of this run.
fn restart(args: &args::Fit, seed: u64) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut option = |name: &str, value: Option<String>| {
        words.extend(value.into_iter().flat_map(|value| [name.to_owned(), value]));
    };
    let shown = |path: &std::path::PathBuf| path.display().to_string();
    option("--pairs", Some(shown(&args.pairs)));
    option("--observations", Some(shown(&args.observations)));
    option("-o", Some(shown(&args.output)));
    option("--x", args.columns.x.clone());
    option("--y", args.columns.y.clone());
    option("--config", args.config.config.as_ref().map(shown));
    let preset = args.config.preset.map(name);
    option("--preset", preset);
    let source = &args.source;
    option("--source", source.source.map(name));
    option("--estimator", source.estimator.map(name));
    option("--k", source.k.map(|k| k.to_string()));
    option("--samples", source.samples.map(name));
    option("--levels", source.levels.map(name));
    option("--base", source.base.map(name));
    option("--domain", source.domain.clone());
    option("--symmetric", source.symmetric.clone());
    option("--seed", Some(seed.to_string()));
    words
}

/// A choice as it is typed.
fn name(choice: impl clap::ValueEnum) -> String {
    let value = choice.to_possible_value();
    value.map_or(String::new(), |value| value.get_name().to_owned())
}
