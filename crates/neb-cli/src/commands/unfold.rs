//! `neb unfold`: data corrected for a detector, with uncertainties, beside the binned method.
//!
//! Whatever the truth is compared with is written before the truth is read: it cannot influence the fit.

mod baseline;
mod bins;
mod bottom_line;
mod input;
mod replicas;
mod score;
mod spectra;
mod summary;
mod uncertainty;

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use neb::nn::adam::AdamConfig;
use neb::nn::schedule::Schedule;
use neb::source::FlowFit;
use neb::source::particles::ParticleSettings;
use neb::surrogate::{CandidateConfig, ModelConfig, SurrogateConfig};
use neb::train::TrainConfig;
use neb::unfold::{
    Refit, SmoothConfig, UnfoldConfig, UnfoldOptions, UnfoldWatch, trust_checks, unfold,
};
use neb_data::{Array, Submission};

pub(super) use self::bottom_line::{Densities, FoldedColumn};
pub(super) use self::score::Score;
pub(super) use self::spectra::DENSITY;
pub(super) use self::summary::{COMMAND, Summary};

use self::bins::Observable;
use self::bottom_line::Weights;
use self::input::Input;
use self::replicas::Maker;
use self::spectra::{Binned, Material};
use self::summary::{Found, Written};
use super::{Session, climbing, report};
use crate::args;
use crate::failure::Failure;
use crate::files::write_json;
use crate::interrupt;
use crate::progress::TrainingBar;
use crate::run_folder::{
    self, CONFIG, EFFICIENCY, PartialRun, SOURCE, SUMMARY, SURROGATE, partial_of,
};

/// Weight of every simulated event: the rows of the pairs, then those of the missed events.
pub(super) const WEIGHTS: &str = "weights.npz";
/// Draws of the smooth source.
pub(super) const SAMPLES: &str = "samples.npz";
/// How the result compares with the truth, where one was given.
pub(super) const SCORE: &str = "score.json";
/// Folders of spectra, of the submission to HEPData, and of replicas.
pub(super) const SPECTRA: &str = "spectra";
const HEPDATA: &str = "hepdata";
const REPLICAS: &str = "replicas";

/// How a run that was stopped goes on.
const AGAIN: &str = "the same command with --resume";

/// Time between two checkpoints.
const CHECKPOINT: Duration = Duration::from_secs(30);

/// Runs the command.
pub(crate) fn run(args: &args::Unfold, session: Session) -> Result<()> {
    let task = Task::read(args, std::env::args().collect(), session)?;
    climbing::warn(task.input.outside.as_slice(), session);
    interrupt::listen()?;
    let mut bar = TrainingBar::new(" for this stage", session.output.quiet);
    let done = unfold_and_write(task, session, &mut |stage, progress| {
        bar.update(stage, progress);
        interrupt::check()
    });
    bar.finish();
    let done = done?;
    session.output.result(&done.summary, |summary| {
        let score = done.score.as_ref().map_or_else(String::new, Score::text);
        let summary = summary.text(&args.output);
        format!("{summary}{score}{}", report::text(&done.page))
    })
}

/// What was found and written.
pub(crate) struct Unfolded {
    summary: Summary,
    score: Option<Score>,
    page: report::Written,
}

/// What is to be unfolded, read and checked.
pub(crate) struct Task<'a> {
    args: &'a args::Unfold,
    /// The words that start it.
    words: Vec<String>,
    input: Input,
    observables: Vec<Observable>,
}

impl<'a> Task<'a> {
    /// Reads everything but the truth.
    pub(crate) fn read(
        args: &'a args::Unfold,
        words: Vec<String>,
        session: Session,
    ) -> Result<Self> {
        check_target(args, &words, session.force)?;
        let input = Input::read(args, session)?;
        let observables = bins::observables(&args.bins, &args.joint, &input)?;
        Ok(Self {
            args,
            words,
            input,
            observables,
        })
    }
}

/// Unfolds and writes the folder; `watch` is told of every step with the name of the stage.
pub(crate) fn unfold_and_write(
    task: Task,
    session: Session,
    watch: &mut UnfoldWatch,
) -> Result<Unfolded> {
    let Task {
        args,
        words,
        input,
        observables,
    } = task;
    let seed = session.seed();
    let config = settings(args, seed, input.matched.rows());
    let started = Instant::now();
    let run = PartialRun::create_by(words, &args.output, args.resume, session.force)?;
    let checkpoints = run.checkpoints("unfold", CHECKPOINT);
    let mut options = UnfoldOptions {
        seed,
        checkpoints: Some(&checkpoints),
        x_names: &input.x_names,
        y_names: &input.y_names,
        watch,
    };
    let mut unfolding = match unfold(&input.events, &config, &mut options) {
        Ok(unfolding) => unfolding,
        Err(error) => return Err(run.stopped_with(error, AGAIN)),
    };
    let nominal_seconds = started.elapsed().as_secs_f64();
    let maker = Maker {
        folder: run.path(REPLICAS),
        events: &input.events,
        folding: &unfolding.folding,
        surrogate: &config.surrogate,
        refit: Refit {
            iterations: unfolding.particles.iteration,
            memory_limit: config.particles.memory_limit,
            warm: &warm(&config.surrogate.candidates[0].train),
        },
    };
    let replicas = match maker.all(args, &mut options) {
        Ok(replicas) => replicas,
        Err(error) => {
            return Err(match error.downcast::<neb::Error>() {
                Ok(error) => run.stopped_with(error, AGAIN),
                Err(other) => other,
            });
        }
    };
    let draws = input
        .x_transforms
        .inverse(unfolding.sample(args.draws, seed));
    let signed = Weights {
        after: &unfolding.weights,
        before: &input.events.produced_weights,
    };
    let shares = unfolding.particles.weights.iter();
    let shares: Vec<f32> = shares
        .map(|share| (share * unfolding.produced) as f32)
        .collect();
    let positive = Weights {
        after: &shares,
        before: &unfolding.folding.start,
    };
    let material = Material {
        input: &input,
        weights: &unfolding.weights,
        replicas: &replicas,
        draws: &draws,
        produced: unfolding.produced,
    };
    let spectra: Vec<(Observable, Binned)> = observables
        .into_iter()
        .map(|observable| {
            let binned = material.binned(&observable)?;
            Ok((observable, binned))
        })
        .collect::<Result<_>>()?;
    write_arrays(&run, &input, &unfolding.weights, &draws)?;
    write_spectra(&run, &spectra)?;
    let (x, y) = (&input.x_transforms, &input.y_transforms);
    neb::source::save_source(
        &unfolding.smooth.source,
        &input.x_names,
        x,
        &run.path(SOURCE),
    )?;
    if let Some(efficiency) = &unfolding.folding.efficiency {
        efficiency.save(&run.path(EFFICIENCY))?;
    }
    let bottom_line = bottom_line::test(&input, &signed, &positive, seed)?;
    let refit = (unfolding.particles.iteration, config.particles.memory_limit);
    let (events, names) = (&input.events, &input.x_names);
    let found = Found {
        bottom_line,
        trust: trust_checks(events, &unfolding.folding, names, refit, seed)?,
        outside_shares: input.outside_shares.clone(),
    };
    let written = spectra.iter().map(|(observable, binned)| Written {
        name: binned.spectrum.name.clone(),
        columns: observable.columns(&input),
    });
    let found = (written.collect(), found);
    let summary = Summary::new(args, &input, &unfolding, found, (nominal_seconds, seed));
    run.write(SUMMARY, &serde_json::to_string_pretty(&summary)?)?;
    run.write(CONFIG, configuration(args, seed)?)?;
    let surrogate = unfolding.folding.surrogate;
    unfolding.folding.surrogate = surrogate.with_transforms(x.clone(), y.clone());
    unfolding.folding.surrogate.save(&run.path(SURROGATE))?;
    run.finish()?;

    // A truth that cannot be used takes nothing away from what is there now.
    let score = match &args.truth {
        Some(path) => Some(score::score(
            args, path, &material, &positive, &spectra, seed,
        )?),
        None => None,
    };
    if let Some(score) = &score {
        write_json(&args.output.join(SCORE), score)?;
    }
    let page = args::Report {
        run: args.output.clone(),
        ..args::Report::default()
    };
    let page = report::write(&page, session)?;
    Ok(Unfolded {
        summary,
        score,
        page,
    })
}

/// Every setting with its value, but for what only scoring sees.
fn configuration(args: &args::Unfold, seed: u64) -> Result<String> {
    let settings = toml::to_string(args)?;
    Ok(format!("seed = {seed}\n{settings}"))
}

/// A run of this kind has folders of its own and is never written over.
fn check_target(args: &args::Unfold, words: &[String], force: bool) -> Result<()> {
    let (target, partial) = (&args.output, partial_of(&args.output));
    if target.exists() {
        return Err(Failure::input(
            format!("{}: exists already and was not touched", target.display()),
            "choose another name, or move it away: an unfolding is never replaced",
        ));
    }
    let shown = partial.display();
    if args.resume {
        let begun = run_folder::started(target)?;
        let told = |words: &[String]| -> Vec<String> {
            let told = words.iter().skip(1).filter(|word| *word != "--resume");
            told.cloned().collect()
        };
        if told(&begun.words) != told(words) {
            return Err(Failure::input(
                format!("{shown}: this run was begun by another command"),
                "give the same options and --resume, or start anew under another name",
            ));
        }
    } else if let Some(truth) = args.truth.as_ref().filter(|truth| !truth.exists()) {
        // Its content is looked at when everything else is done; that it is missing can be said now.
        return Err(Failure::input(
            format!("{}: there is no such file", truth.display()),
            "--truth names the file of what the data really were",
        ));
    } else if partial.exists() && !force {
        return Err(Failure::input(
            format!("{shown}: an earlier run was not finished"),
            "the same command with --resume goes on with it, with --force starts anew",
        ));
    }
    Ok(neb_data::check_target(target, false)?)
}

fn settings(args: &args::Unfold, seed: u64, pairs: usize) -> UnfoldConfig {
    // Without weight decay tens of thousands of events are few enough to learn their noise.
    let training = |epochs, rate, weight_decay| TrainConfig {
        epochs,
        batch: 256.min(pairs / 4).max(1),
        rate,
        schedule: Schedule::Cosine { warm_up: 0.02 },
        adam: AdamConfig {
            clip_norm: 5.0,
            weight_decay,
            ..AdamConfig::default()
        },
        held_out: 0.1,
        patience: 0,
    };
    // Two standard errors: what an iteration too many adds is noise, which replicas show; what one too few leaves is a bias
    // towards the simulation, which nothing shows.
    let particles = ParticleSettings {
        memory_limit: args.memory << 20,
        seed,
        tolerance: 2.0,
        ..ParticleSettings::default()
    };
    UnfoldConfig {
        surrogate: SurrogateConfig {
            candidates: vec![CandidateConfig {
                model: ModelConfig::mixture(args.components),
                train: training(args.epochs, 4e-3, 4e-3),
            }],
        },
        particles: match args.iterations {
            Some(iterations) => ParticleSettings {
                max_iterations: iterations,
                held_out: 0.0,
                ..particles
            },
            None => particles,
        },
        smooth: SmoothConfig {
            flow: FlowFit {
                layers: 6,
                hidden: vec![128, 128],
                bins: 6,
                bound: 5.0,
                train: training(args.smooth_epochs, 3e-3, 1e-4),
            },
            refine_k: 2048,
            refine_epochs: 2,
            refine_rate: 3e-4,
            pull: 0.1,
        },
    }
}

/// Training from where the nominal surrogate is: a fifth of the epochs, a third of the rate.
fn warm(nominal: &TrainConfig) -> TrainConfig {
    TrainConfig {
        epochs: nominal.epochs.div_ceil(5),
        rate: nominal.rate / 3.0,
        ..nominal.clone()
    }
}

fn write_arrays(
    run: &PartialRun,
    input: &Input,
    weights: &[f32],
    draws: &neb::Matrix,
) -> Result<()> {
    let start = &input.events.produced_weights;
    let ratio = |(&weight, &start): (&f32, &f32)| if start == 0.0 { 0.0 } else { weight / start };
    let ratios: Vec<f32> = weights.iter().zip(start).map(ratio).collect();
    let rows = [weights.len()];
    neb_data::write(
        run.path(WEIGHTS),
        true,
        &[
            Array::new("weight", &rows, weights),
            Array::new("ratio", &rows, &ratios[..]),
        ],
    )?;
    let shape = [draws.rows(), draws.cols()];
    let x = Array::new("x", &shape, draws.values()).with_names(&input.x_names);
    Ok(neb_data::write(run.path(SAMPLES), true, &[x])?)
}

fn write_spectra(run: &PartialRun, spectra: &[(Observable, Binned)]) -> Result<()> {
    let folder = run.path(SPECTRA);
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot create {}", folder.display()))?;
    let all = spectra
        .iter()
        .flat_map(|(_, binned)| [&binned.spectrum, &binned.density]);
    for each in all.clone() {
        for extension in ["npz", "csv"] {
            let name = format!("{}.{extension}", each.name);
            neb_data::write_spectrum(folder.join(name), true, each)?;
        }
    }
    let submission = Submission {
        comment: "Spectra unfolded with neb.".to_owned(),
        keywords: Vec::new(),
        spectra: all.cloned().collect(),
    };
    neb_data::write_hepdata(run.path(HEPDATA), true, &submission)?;
    Ok(())
}
