//! The program for other front ends, of which the Python package is one: the same settings by the same names, the same two
//! stages, the same folders, the same words when something is wrong. Nothing here prints.

mod models;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{Parser, ValueEnum};
use neb::Rows;
use neb::posterior::Method;
use neb::source::ladder::LadderWatch;
use neb::source::{Observations, Recognition, load_source, save_source};
use neb::surrogate::{Pairs, Report, Surrogate};
use neb::train::CheckpointPolicy;
use neb::unfold::UnfoldWatch;

pub use models::{FittedSource, Posteriors, log_likelihood, log_marginal, push};

use crate::args::{self, PosteriorMethod, Stages};
use crate::commands::stage2::{self, Data};
use crate::commands::summary::Finished;
use crate::commands::{Session, climbing, report, training, unfold};
use crate::config::Config;
use crate::failure::{self, Failure};
use crate::files::{self, Address, Group};
use crate::output::Output;
use crate::run_folder::{self, CONFIG, EFFICIENCY, PartialRun, RECOGNITION, SOURCE, SURROGATE};

/// Seconds between two checkpoints.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(30);

/// Why a call failed, in the program's words.
#[derive(Debug)]
pub struct Refusal {
    /// What was found, and where.
    pub message: String,
    /// What to do next.
    pub hint: Option<String>,
    /// Which kind of failure it is.
    pub kind: RefusalKind,
}

/// The kinds of failure; the program has an exit code for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalKind {
    /// Data or settings that cannot be used.
    Input,
    /// A computation that went wrong.
    Computation,
    /// Stopped on request.
    Interrupted,
}

impl From<anyhow::Error> for Refusal {
    fn from(error: anyhow::Error) -> Self {
        let (message, hint, code) = failure::explain(&error);
        Self {
            message,
            hint: hint.map(str::to_owned),
            kind: match code {
                failure::FAILED => RefusalKind::Computation,
                failure::INTERRUPTED => RefusalKind::Interrupted,
                _ => RefusalKind::Input,
            },
        }
    }
}

impl From<Refusal> for anyhow::Error {
    fn from(refusal: Refusal) -> Self {
        let hint = refusal.hint.unwrap_or_default();
        match refusal.kind {
            RefusalKind::Input => Failure::input(refusal.message, hint),
            RefusalKind::Computation => Failure::computation(refusal.message, hint),
            RefusalKind::Interrupted => Failure::interrupted(refusal.message, hint),
        }
    }
}

impl From<neb::Error> for Refusal {
    fn from(error: neb::Error) -> Self {
        anyhow::Error::from(error).into()
    }
}

/// The result of every call here.
pub type Result<T> = std::result::Result<T, Refusal>;

/// The stage that settings are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// q(y|x).
    Surrogate,
    /// q(x).
    Source,
}

/// Settings of one stage, resolved.
#[derive(Clone, Debug)]
pub struct Settings(Config);

impl Settings {
    /// The settings that the text of a configuration file gives; `name` is where its values are said to come from.
    ///
    /// # Errors
    /// Keys that do not exist and values that make no sense.
    pub fn parse(text: &str, name: &str, stage: Stage) -> Result<Self> {
        let stages = match stage {
            Stage::Surrogate => Stages::Surrogate,
            Stage::Source => Stages::Source,
        };
        Ok(Self(Config::parse(text, name, stages)?))
    }

    /// Every setting with its origin, as `neb config` prints them.
    pub fn to_toml(&self) -> String {
        self.0.to_toml()
    }
}

/// Stage 1 when it is done.
pub struct Stage1 {
    /// q(y|x).
    pub surrogate: Surrogate,
    /// What was tried.
    pub report: Report,
    /// The settings, with the transforms of columns that were found.
    pub settings: Settings,
    /// What was done without being asked for.
    pub notes: Vec<String>,
}

/// Stage 1. With a `file`, checkpoints lie beside it as those of `neb surrogate` do: the same call goes on from there, and
/// removes them when the surrogate is written. With `force` it starts anew and replaces a file that is there.
///
/// # Errors
/// Pairs that cannot be used, a loss that is not finite, a stop on request, or a file that cannot be written.
pub fn fit_surrogate(
    pairs: Pairs,
    settings: &Settings,
    file: Option<&Path>,
    force: bool,
    watch: &mut LadderWatch,
) -> Result<Stage1> {
    let mut config = settings.0.clone();
    let checkpoints = file.map(|file| CheckpointPolicy {
        path: file.with_extension("checkpoint.safetensors"),
        every: CHECKPOINT_EVERY,
    });
    let candidates = config.surrogate.candidates.len();
    let remove = |checkpoints: &CheckpointPolicy| {
        (0..candidates).try_for_each(|number| checkpoints.numbered(number).remove())
    };
    if let (Some(file), Some(checkpoints)) = (file, &checkpoints) {
        files::check_model_target(file, force)?;
        if force {
            remove(checkpoints)?;
        }
    }
    let group = |rows: Rows, names: &[String]| Group::plain(rows.to_matrix(), names.to_vec());
    let (x, y) = (group(pairs.x, pairs.x_names), group(pairs.y, pairs.y_names));
    let chosen = config.choose_transforms_of(&x, &y, None)?;
    let noise = Address::PairsX.noise(config.seed);
    let x = models::seen(&chosen.x, pairs.x, pairs.x_names, noise)?;
    let noise = Address::PairsY.noise(config.seed);
    let y = models::seen(&chosen.y, pairs.y, pairs.y_names, noise)?;
    let pairs = Pairs {
        x: x.view(),
        y: y.view(),
        ..pairs
    };
    let (surrogate, report) = training::fit_watched(
        pairs,
        &config.surrogate,
        config.seed,
        checkpoints.clone(),
        watch,
    )?;
    let surrogate = surrogate.with_transforms(chosen.x, chosen.y);
    if let (Some(file), Some(checkpoints)) = (file, &checkpoints) {
        surrogate.save(file)?;
        remove(checkpoints)?;
    }
    Ok(Stage1 {
        surrogate,
        report,
        settings: Settings(config),
        notes: chosen.notes,
    })
}

/// What stage 2 is to do.
pub struct SourceTask<'a> {
    /// q(y|x).
    pub surrogate: &'a Surrogate,
    /// How it was learned and with which settings, where that is known.
    pub stage1: Option<(&'a Report, &'a Settings)>,
    /// x of the pairs.
    pub x: Rows<'a>,
    /// What the source is to explain.
    pub observations: Observations<'a>,
    /// Settings of stage 2.
    pub settings: &'a Settings,
    /// The folder of the run.
    pub output: &'a Path,
    /// Replace a run that is there, and start anew one that was stopped.
    pub force: bool,
}

/// Stage 2, from a surrogate to the whole folder of a run. A run that was stopped goes on where it was.
///
/// # Errors
/// Data or settings that cannot be used, a loss that is not finite, a folder that cannot be written, or a stop on request.
pub fn fit_source(task: SourceTask, watch: &mut LadderWatch) -> Result<()> {
    let SourceTask {
        surrogate,
        output,
        force,
        ..
    } = task;
    let started = Instant::now();
    let config = match task.stage1 {
        Some((_, stage1)) => task.settings.0.clone().with_stage1(&stage1.0),
        None => task.settings.0.clone(),
    };
    run_folder::check_target(output, force)?;
    let group = |rows: Rows, names: &[String]| Group::plain(rows.to_matrix(), names.to_vec());
    let y = group(task.observations.y, surrogate.y_names());
    let (to_x, to_y) = (surrogate.x_transforms(), surrogate.y_transforms());
    let ranges = to_y.user_ranges(surrogate.y_range());
    let outside = climbing::check_range(None, &y, &ranges)?;
    let noise = Address::Observations.noise(config.seed);
    let y = models::seen(to_y, task.observations.y, surrogate.y_names(), noise)?;
    let noise = Address::PairsX.noise(config.seed);
    let x = models::seen(to_x, task.x, surrogate.x_names(), noise)?;
    let x = Group {
        transforms: to_x.clone(),
        ..group(x.view(), surrogate.x_names())
    };
    let stage = config.stage2(&x, y.view().rows())?;
    let resume = run_folder::partial_of(output).exists() && !force;
    let run = PartialRun::create_by(Vec::new(), output, resume, force)?;
    run.write(CONFIG, format!("{}\n", config.to_toml()))?;
    surrogate.save(&run.path(SURROGATE))?;
    let data = Data {
        surrogate,
        y: y.view(),
        weights: task.observations.weights,
        x: &x,
        seed: config.seed,
        checkpoints: Some(run.checkpoints("source", CHECKPOINT_EVERY)),
    };
    let outcome = match stage2::run_watched(stage, data, watch) {
        Ok(outcome) => outcome,
        Err(error) => return Err(run.stopped(error).into()),
    };
    let finished = Finished {
        surrogate,
        stage1: task.stage1.map(|(report, _)| report),
        from: None,
        outcome: &outcome,
        x: &x,
        observations: y.view().rows(),
        data: None,
        seed: config.seed,
        warnings: outside.into_iter().collect(),
        seconds: started.elapsed().as_secs_f64(),
        output,
    };
    finished.save(run, silent(force))?;
    Ok(())
}

/// What is to be unfolded.
pub struct UnfoldTask<'a> {
    /// Words of `neb unfold`, but for the folder.
    pub options: &'a [String],
    /// The folder.
    pub output: &'a Path,
    /// Stands for options and data: a run that was stopped goes on if it was begun with the same.
    pub identity: &'a str,
    /// Makes the run repeatable.
    pub seed: u64,
    /// Start anew a run that was stopped.
    pub force: bool,
}

/// Unfolds, as `neb unfold` does.
///
/// # Errors
/// Options or data that cannot be used, a loss that is not finite, a folder that cannot be written, or a stop on request.
pub fn unfold(task: UnfoldTask, watch: &mut UnfoldWatch) -> Result<()> {
    let output = [OsStr::new("--output"), task.output.as_os_str()];
    let words = ["neb", "unfold"].map(OsStr::new).into_iter();
    let words = words
        .chain(task.options.iter().map(OsStr::new))
        .chain(output);
    let parsed = args::Args::try_parse_from(words).map_err(|error| {
        let text = error.to_string();
        let text = text.trim_start_matches("error: ").lines().next();
        neb::Error::input(text.unwrap_or_default(), "see `help(neb.unfold)`")
    })?;
    let args::Command::Unfold(mut args) = parsed.command else {
        unreachable!("the first word is `unfold`");
    };
    args.resume = run_folder::partial_of(&args.output).exists() && !task.force;
    let session = Session {
        seed_flag: Some(task.seed),
        ..silent(task.force)
    };
    let begun_by = vec!["neb".to_owned(), task.identity.to_owned()];
    let task = unfold::Task::read(&args, begun_by, session)?;
    unfold::unfold_and_write(task, session, watch)?;
    Ok(())
}

/// What the report of a run is made from, besides its folder.
#[derive(Clone, Debug, Default)]
pub struct ReportFiles {
    /// Rows of the true source, where it is known.
    pub truth: Option<PathBuf>,
    /// Observations; those of the fit if absent.
    pub observations: Option<PathBuf>,
    /// Pairs; those of the fit if absent.
    pub pairs: Option<PathBuf>,
}

/// Writes the page of a run, in its folder or to `output`; where it is, and its verdict, as JSON.
///
/// # Errors
/// A folder that is no run; files that cannot be read or written.
pub fn write_report(
    run: &Path,
    data: ReportFiles,
    output: Option<&Path>,
    force: bool,
) -> Result<String> {
    let args = args::Report {
        run: run.to_owned(),
        truth: data.truth,
        observations: data.observations,
        pairs: data.pairs,
        output: output.map(Path::to_owned),
        ..args::Report::default()
    };
    let written = report::write(&args, silent(force))?;
    Ok(serde_json::to_string(&written).map_err(anyhow::Error::from)?)
}

/// The top of that page, its title and verdict, as HTML for a notebook; at most `rows` observations are judged, to be quick.
///
/// # Errors
/// As for the page.
pub fn report_top(run: &Path, observations: Option<PathBuf>, rows: usize) -> Result<String> {
    let args = args::Report {
        run: run.to_owned(),
        observations,
        ..args::Report::default()
    };
    Ok(report::top(&args, rows)?)
}

/// Writes the folder of a run, whole or not at all: both models, and other files by their names as they are.
///
/// # Errors
/// A folder that is there, unless it is a run and `force` is given; whatever the system refuses.
pub fn save_run(
    target: &Path,
    force: bool,
    fitted: Posteriors,
    others: &[(String, Vec<u8>)],
) -> Result<()> {
    let Posteriors { source, surrogate } = fitted;
    run_folder::check_target(target, force)?;
    let run = PartialRun::create_by(Vec::new(), target, false, force)?;
    surrogate.save(&run.path(SURROGATE))?;
    source.save(&run.path(SOURCE))?;
    if let Some(recognition) = &source.recognition {
        recognition.save(&source.names, surrogate.y_names(), &run.path(RECOGNITION))?;
    }
    for (name, content) in others {
        run.write(name, content)?;
    }
    Ok(run.finish()?)
}

impl FittedSource {
    /// Reads the file of a source, or the files in the folder of a run.
    ///
    /// # Errors
    /// A folder without them; files that cannot be read.
    pub fn load(path: &Path) -> Result<Self> {
        let (model, names, transforms) = load_source(&run_folder::model_of(path, SOURCE)?)?;
        let network = path.join(RECOGNITION);
        let recognition = match path.is_dir() && network.exists() {
            true => Some(Recognition::load(&network)?),
            false => None,
        };
        let folder = match path.is_dir() {
            true => path,
            false => path.parent().unwrap_or(Path::new("")),
        };
        Ok(Self {
            model,
            names,
            transforms,
            recognition,
            behind_efficiency: folder.join(EFFICIENCY).exists(),
        })
    }

    /// Writes the file of the source alone.
    ///
    /// # Errors
    /// Whatever the system refuses.
    pub fn save(&self, path: &Path) -> neb::Result<()> {
        save_source(&self.model, &self.names, &self.transforms, path)
    }
}

/// Reads the file of a surrogate, or the one in the folder of a run.
///
/// # Errors
/// A folder without it; a file that cannot be read.
pub fn load_surrogate(path: &Path) -> Result<Surrogate> {
    Ok(files::load_surrogate(path)?)
}

/// The method of drawing posteriors that the program calls so; none for `auto`.
///
/// # Errors
/// A name that is none.
pub fn posterior_method(name: &str) -> Result<Option<Method>> {
    let known = PosteriorMethod::from_str(name, false).map_err(|_| {
        let names = PosteriorMethod::value_variants().iter();
        let names =
            names.filter_map(|method| Some(method.to_possible_value()?.get_name().to_owned()));
        let names: Vec<String> = names.collect();
        neb::Error::input(
            format!("there is no method `{name}`"),
            format!("choose one of {}", names.join(", ")),
        )
    })?;
    Ok(known.named())
}

/// Refuses a folder that a run cannot be written to.
///
/// # Errors
/// A file of this name; a folder that is no run; a run, unless `force`.
pub fn check_run_target(target: &Path, force: bool) -> Result<()> {
    Ok(run_folder::check_target(target, force)?)
}

/// Refuses a table whose values cannot all become finite `f32`, with the words used for a file; `role` is `x` or `y`.
///
/// # Errors
/// The first such value.
pub fn check_values(role: &str, values: &[f64], names: &[String]) -> Result<()> {
    match neb_data::flaw_of(&format!("array `{role}`"), values, names) {
        Some((message, hint)) => Err(neb::Error::input(message, hint).into()),
        None => Ok(()),
    }
}

/// A session that says nothing.
fn silent(force: bool) -> Session {
    Session {
        seed_flag: None,
        force,
        resuming: false,
        output: Output {
            quiet: true,
            json: false,
        },
    }
}
