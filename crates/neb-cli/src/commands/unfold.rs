//! `neb unfold`: data corrected for a detector, with uncertainties, beside the binned method.
//!
//! Whatever the truth is compared with is written before the truth is read: it cannot influence the fit.

mod bottom_line;
mod input;
mod replicas;
mod score;
mod spectra;
mod summary;

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use neb::nn::adam::AdamConfig;
use neb::nn::schedule::Schedule;
use neb::source::FlowFit;
use neb::source::particles::ParticleSettings;
use neb::surrogate::{CandidateConfig, ModelConfig, SurrogateConfig};
use neb::train::TrainConfig;
use neb::unfold::{
    Binning, Refit, SmoothConfig, UnfoldConfig, UnfoldOptions, UnfoldWatch, trust_checks, unfold,
};
use neb_data::{Array, Submission};

use self::input::Input;
use self::replicas::Maker;
use self::score::Score;
use self::spectra::{Binned, Material};
use self::summary::{Found, Summary};
use super::{Session, climbing};
use crate::args;
use crate::failure::Failure;
use crate::interrupt;
use crate::progress::TrainingBar;
use crate::run_folder::{self, PartialRun, SOURCE, SUMMARY, SURROGATE, partial_of};

/// Weight of every simulated event: the rows of the pairs, then those of the missed events.
const WEIGHTS: &str = "weights.npz";
/// Draws of the smooth source.
const SAMPLES: &str = "samples.npz";
/// How the result compares with the truth, where one was given.
const SCORE: &str = "score.json";
/// Folders of spectra, of the submission to HEPData, and of replicas.
const SPECTRA: &str = "spectra";
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
    let (summary, score) = done?;
    session.output.result(&summary, |summary| {
        let score = score.as_ref().map_or_else(String::new, score::Score::text);
        format!("{}{score}", summary.text(&args.output))
    })
}

/// What is to be unfolded, read and checked.
pub(crate) struct Task<'a> {
    args: &'a args::Unfold,
    /// The words that start it.
    words: Vec<String>,
    input: Input,
    bins: Vec<Binning>,
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
        let bins = spectra::binnings(&args.bins, &input)?;
        Ok(Self {
            args,
            words,
            input,
            bins,
        })
    }
}

/// Unfolds and writes the folder; `watch` is told of every step with the name of the stage.
pub(crate) fn unfold_and_write(
    task: Task,
    session: Session,
    watch: &mut UnfoldWatch,
) -> Result<(Summary, Option<Score>)> {
    let Task {
        args,
        words,
        input,
        bins,
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
    let material = Material {
        input: &input,
        weights: &unfolding.weights,
        replicas: &replicas,
        draws: &draws,
        produced: unfolding.produced,
    };
    let binned = bins.iter().enumerate();
    let binned: Vec<Binned> = binned
        .map(|(place, bins)| material.binned(place, bins))
        .collect::<Result<_>>()?;
    write_arrays(&run, &input, &unfolding.weights, &draws)?;
    write_spectra(&run, &binned)?;
    let (x, y) = (&input.x_transforms, &input.y_transforms);
    neb::source::save_source(
        &unfolding.smooth.source,
        &input.x_names,
        x,
        &run.path(SOURCE),
    )?;
    let bottom_line = bottom_line::test(&input, &unfolding.weights, seed)?;
    let refit = (unfolding.particles.iteration, config.particles.memory_limit);
    let (events, names) = (&input.events, &input.x_names);
    let trust = trust_checks(events, &unfolding.folding, names, refit, seed)?;
    let found = Found { bottom_line, trust };
    let summary = Summary::new(args, &input, &unfolding, found, (nominal_seconds, seed));
    run.write(SUMMARY, &serde_json::to_string_pretty(&summary)?)?;
    let surrogate = unfolding.folding.surrogate;
    unfolding.folding.surrogate = surrogate.with_transforms(x.clone(), y.clone());
    unfolding.folding.surrogate.save(&run.path(SURROGATE))?;

    let score = match &args.truth {
        Some(path) => Some(score::score(args, path, &material, &binned, &bins, seed)?),
        None => None,
    };
    if let Some(score) = &score {
        run.write(SCORE, &serde_json::to_string_pretty(score)?)?;
    }
    run.finish()?;
    Ok((summary, score))
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
    } else if partial.exists() && !force {
        return Err(Failure::input(
            format!("{shown}: an earlier run was not finished"),
            "the same command with --resume goes on with it, with --force starts anew",
        ));
    }
    Ok(neb_data::check_target(target, false)?)
}

fn settings(args: &args::Unfold, seed: u64, pairs: usize) -> UnfoldConfig {
    let training = |epochs, rate| TrainConfig {
        epochs,
        batch: 256.min(pairs / 4).max(1),
        rate,
        schedule: Schedule::Cosine { warm_up: 0.02 },
        adam: AdamConfig {
            clip_norm: 5.0,
            ..AdamConfig::default()
        },
        held_out: 0.1,
        patience: 0,
    };
    let particles = ParticleSettings {
        memory_limit: args.memory << 20,
        seed,
        tolerance: 1.0,
        ..ParticleSettings::default()
    };
    UnfoldConfig {
        surrogate: SurrogateConfig {
            candidates: vec![CandidateConfig {
                model: ModelConfig::mixture(args.components),
                train: training(args.epochs, 2e-3),
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
                hidden: vec![64, 64],
                bins: 12,
                bound: 5.0,
                train: training(args.smooth_epochs, 3e-3),
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

fn write_spectra(run: &PartialRun, binned: &[Binned]) -> Result<()> {
    let folder = run.path(SPECTRA);
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot create {}", folder.display()))?;
    for each in binned {
        for extension in ["npz", "csv"] {
            let name = format!("{}.{extension}", each.spectrum.name);
            neb_data::write_spectrum(folder.join(name), true, &each.spectrum)?;
        }
    }
    let submission = Submission {
        comment: "Spectra unfolded with neb.".to_owned(),
        keywords: Vec::new(),
        spectra: binned.iter().map(|each| each.spectrum.clone()).collect(),
    };
    neb_data::write_hepdata(run.path(HEPDATA), true, &submission)?;
    Ok(())
}
