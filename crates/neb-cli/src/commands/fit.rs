//! `neb fit`: both stages, from simulated pairs and observations to the folder of a run.

use std::time::Instant;

use anyhow::Result;

use super::stage2::{self, Data};
use super::summary::{DataFiles, Finished};
use super::{Session, climbing, resume, source, training};
use crate::args;
use crate::config::Config;
use crate::failure;
use crate::files::{self, Address, PairsFile};
use crate::interrupt;
use crate::run_folder::{self, CONFIG, PartialRun, SURROGATE};

/// Runs the command.
pub(crate) fn run(args: &args::Fit, session: Session) -> Result<()> {
    if let Some(run) = &args.stops.resume {
        return resume::run(run, session);
    }
    let (Some(pairs_path), Some(observations_path), Some(output)) =
        (&args.pairs, &args.observations, &args.output)
    else {
        return Err(resume::needed());
    };
    let mut config = Config::resolve(
        session.seed_flag,
        args::Stages::Fit,
        &args.config,
        &args.keys,
        &args.source,
    )?;
    let every = resume::interval(args.stops.checkpoint_seconds)?;
    run_folder::check_target(output, session.force)?;
    let pairs = PairsFile::read(pairs_path, &args.columns)?;
    let (y, weights) = files::read_observations(observations_path, args.columns.y.as_deref())?;
    files::check_names("y", observations_path, &y, &pairs.y.names, "the pairs have")?;
    let observations = y.values.rows();
    let ranges = climbing::ranges(pairs.y.values.view());
    let outside = climbing::check_range(Some(observations_path), &y, &ranges)?;
    let warnings: Vec<String> = outside.into_iter().collect();
    let seed = config.seed;
    let chosen = config.choose_transforms(&pairs, Some(&y))?;
    let pairs = pairs.transformed(&chosen.x, &chosen.y, seed)?;
    let y = y.transformed(
        &chosen.y,
        Address::Observations.noise(seed),
        observations_path,
    )?;
    let stage = config.stage2(&pairs.x, observations)?;
    climbing::warn(&warnings, session);
    source::note_weights(pairs.has_weight(), pairs_path, session);
    climbing::say(&chosen.notes, session);

    interrupt::listen()?;
    let started = Instant::now();
    let run = PartialRun::create(output, session.resuming, session.force)?;
    run.write(CONFIG, format!("{}\n", config.to_toml()))?;
    let checkpoints = Some(run.checkpoints("surrogate", every));
    let fitted = training::fit(pairs.pairs(), &config.surrogate, seed, checkpoints, session);
    let (surrogate, report) = match fitted {
        Ok(fitted) => fitted,
        Err(error @ neb::Error::Input { .. }) => {
            return Err(failure::in_file(pairs.path(), error));
        }
        Err(error) => return Err(run.stopped(error)),
    };
    let surrogate = surrogate.with_transforms(chosen.x, chosen.y);
    surrogate.save(&run.path(SURROGATE))?;
    let data = Data {
        surrogate: &surrogate,
        y: y.values.view(),
        weights: weights.as_deref(),
        x: &pairs.x,
        seed,
        checkpoints: Some(run.checkpoints("source", every)),
    };
    let outcome = match stage2::run(stage, data, session) {
        Ok(outcome) => outcome,
        Err(error) => return Err(run.stopped(error)),
    };
    Finished {
        surrogate: &surrogate,
        stage1: Some(&report),
        from: None,
        outcome: &outcome,
        x: &pairs.x,
        observations,
        data: Some(DataFiles::new(pairs_path, observations_path, &args.columns)),
        seed,
        warnings,
        seconds: started.elapsed().as_secs_f64(),
        output,
    }
    .write(run, session)
}
