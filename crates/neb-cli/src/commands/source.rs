//! `neb source`: stage 2 alone, with a surrogate that exists.

use std::path::Path;
use std::time::Instant;

use anyhow::Result;

use super::stage2::{self, Data};
use super::summary::{DataFiles, Finished};
use super::{Session, climbing, resume};
use crate::args;
use crate::config::Config;
use crate::files::{self, Address};
use crate::interrupt;
use crate::run_folder::{self, CONFIG, PartialRun, SURROGATE};

/// Runs the command.
pub(crate) fn run(args: &args::Source, session: Session) -> Result<()> {
    if let Some(run) = &args.stops.resume {
        return resume::run(run, session);
    }
    let (Some(from), Some(pairs), Some(observations_path), Some(output)) = (
        &args.surrogate,
        &args.pairs,
        &args.observations,
        &args.output,
    ) else {
        return Err(resume::needed());
    };
    let mut config = Config::resolve(
        session.seed_flag,
        args::Stages::Source,
        &args.config,
        &args::SurrogateKeys::default(),
        &args.source,
    )?;
    config.leave_transforms()?;
    let every = resume::interval(args.stops.checkpoint_seconds)?;
    run_folder::check_target(output, session.force)?;
    let surrogate = files::load_surrogate(from)?;
    let x = files::read_points(pairs, args.columns.x.as_deref())?;
    files::check_columns("x", pairs, &x, &surrogate)?;
    let (y, weights) = files::read_observations(observations_path, args.columns.y.as_deref())?;
    files::check_columns("y", observations_path, &y, &surrogate)?;
    let observations = y.values.rows();
    let (x_transforms, y_transforms) = (surrogate.x_transforms(), surrogate.y_transforms());
    let ranges = y_transforms.user_ranges(surrogate.y_range());
    let outside = climbing::check_range(Some(observations_path), &y, &ranges)?;
    let warnings: Vec<String> = outside.into_iter().collect();
    let seed = config.seed;
    let x = x.transformed(x_transforms, Address::PairsX.noise(seed), pairs)?;
    let noise = Address::Observations.noise(seed);
    let y = y.transformed(y_transforms, noise, observations_path)?;
    let stage = config.stage2(&x, observations)?;
    climbing::warn(&warnings, session);

    interrupt::listen()?;
    let started = Instant::now();
    let run = PartialRun::create(output, session.resuming, session.force)?;
    run.write(CONFIG, format!("{}\n", config.to_toml()))?;
    surrogate.save(&run.path(SURROGATE))?;
    let data = Data {
        surrogate: &surrogate,
        y: y.values.view(),
        weights: weights.as_deref(),
        x: &x,
        seed,
        checkpoints: Some(run.checkpoints("source", every)),
    };
    let outcome = match stage2::run(stage, data, session) {
        Ok(outcome) => outcome,
        Err(error) => return Err(run.stopped(error)),
    };
    Finished {
        surrogate: &surrogate,
        stage1: None,
        from: Some(from),
        outcome: &outcome,
        x: &x,
        observations,
        data: Some(DataFiles::new(pairs, observations_path, &args.columns)),
        seed,
        warnings,
        seconds: started.elapsed().as_secs_f64(),
        output,
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
