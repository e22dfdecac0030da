//! Stage 2 in any of its forms: the ladder, one source by one estimator, or particles; with progress and Ctrl-C.

use std::time::Instant;

use neb::source::ladder::{LadderConfig, LadderOptions, LadderReport, LadderWatch, Rung, climb};
use neb::source::particles::{ParticleSettings, ParticleWeights, fit_particles};
use neb::source::{
    Domain, EstimatorKind, FewOptions, Model, Observations, Recognition, Round, SingleConfig,
    SingleOptions, SingleOutcome, Source, SourceConfig, SourceKind, Width, fit_few, fit_single,
};
use neb::surrogate::Surrogate;
use neb::train::CheckpointPolicy;
use neb::{Error, Likelihood, Noise, Purpose, Result, Rows};

use super::{Session, climbing};
use crate::config::{FewStage, SingleStage, Stage2};
use crate::files::Group;
use crate::interrupt;
use crate::progress::TrainingBar;

/// What stage 2 ends with.
pub(crate) struct Learned {
    pub(crate) source: Model,
    /// Where a variational bound was maximised.
    pub(crate) recognition: Option<Recognition>,
    /// Weights of the pairs' first x, where they were fitted.
    pub(crate) particles: Option<ParticleWeights>,
    /// What was tried; of a single source, its training.
    pub(crate) report: LadderReport,
    /// Why the source was kept.
    pub(crate) reason: String,
    /// What the user should know.
    pub(crate) warnings: Vec<String>,
}

/// What stage 2 works with.
#[derive(Clone)]
pub(crate) struct Data<'a> {
    pub(crate) surrogate: &'a Surrogate,
    pub(crate) y: Rows<'a>,
    pub(crate) weights: Option<&'a [f32]>,
    /// x of the pairs.
    pub(crate) x: &'a Group,
    pub(crate) seed: u64,
    /// Where the state of the trainings is saved, if at all.
    pub(crate) checkpoints: Option<CheckpointPolicy>,
}

/// Runs stage 2; stops on Ctrl-C with [`neb::Error::Cancelled`].
pub(super) fn run(stage: Stage2, data: Data, session: Session) -> Result<Learned> {
    let mut bar = TrainingBar::new(" for this training", session.output.quiet);
    let learned = run_watched(stage, data, &mut |name, progress| {
        bar.update(name, progress);
        interrupt::check()
    });
    bar.finish();
    learned
}

/// The same; `watch` is told of every step with the name of the training.
pub(crate) fn run_watched(stage: Stage2, data: Data, watch: &mut LadderWatch) -> Result<Learned> {
    match stage {
        Stage2::Ladder(config) => {
            let points = data.x.values.view();
            let observations = Observations {
                y: data.y,
                weights: data.weights,
            };
            let options = LadderOptions {
                seed: data.seed,
                checkpoints: data.checkpoints,
                watch,
            };
            let outcome = climb(data.surrogate, observations, points, &config, options)?;
            Ok(Learned {
                warnings: climbing::warnings(&outcome.report),
                reason: outcome.report.reason(),
                source: outcome.source,
                recognition: None,
                particles: Some(outcome.particles),
                report: outcome.report,
            })
        }
        Stage2::Single(stage) => single(*stage, data, watch),
        Stage2::Particles(stage) => particles(*stage, data, watch),
        Stage2::Few(stage) => few(*stage, data, watch),
    }
}

fn single(stage: SingleStage, data: Data, watch: &mut LadderWatch) -> Result<Learned> {
    let observations = Observations {
        y: data.y,
        weights: data.weights,
    };
    let reference = match stage.fit.pull {
        0.0 => None,
        _ => Some(simpler(&stage, &data, observations, watch)?),
    };
    let mut model = stage.model;
    let options = SingleOptions {
        seed: data.seed,
        checkpoints: data.checkpoints.as_ref().map(|policy| policy.numbered(1)),
        domain: stage.config.domain.as_ref(),
        towards: reference
            .as_ref()
            .and_then(|model| model.source().density()),
        watch,
    };
    let fitted = fit_single(
        &mut model,
        data.surrogate,
        observations,
        &stage.fit,
        options,
    );
    let outcome = fitted?;
    let last = outcome.last();
    let name = format!("{} by {}", stage.name, estimator_name(stage.fit.estimator));
    let judged = match stage.fit.estimator.bound() {
        Some(_) => "bound on log p(y)",
        None => "log p(y)",
    };
    let best = &last.outcome;
    let held_out = best.history.iter().all(|epoch| epoch.held_out.is_finite());
    let kept = match best.best_epoch {
        0 => "the start".to_owned(),
        epoch => format!("epoch {epoch}"),
    };
    Ok(Learned {
        reason: format!(
            "{name}, as asked for: {judged} of {} observations {:.4}, {kept} of {} epochs",
            if held_out { "held-out" } else { "the" },
            -best.best_loss,
            best.history.len()
        ),
        report: of_rounds(&name, &outcome, stage.fit.k),
        source: model,
        recognition: outcome.recognition,
        particles: None,
        warnings: stage.note.into_iter().chain(outcome.notes).collect(),
    })
}

/// What the settings' `pull` pulls towards: an affine source fitted first.
fn simpler(
    stage: &SingleStage,
    data: &Data,
    observations: Observations,
    watch: &mut LadderWatch,
) -> Result<Model> {
    let config = SourceConfig {
        symmetric: stage.config.symmetric.clone(),
        domain: stage.config.domain.clone(),
        ..SourceConfig::new(SourceKind::Affine)
    };
    let mut model = config.build_from_points(data.x.values.view(), &data.x.names, data.seed)?;
    let mut fit = SingleConfig::fast(EstimatorKind::Mc);
    fit.k = fit.k.max(stage.fit.k);
    fit.train.rate = 2e-2;
    fit.train.epochs = fit.train.epochs.min(10);
    let options = SingleOptions {
        seed: data.seed,
        checkpoints: data.checkpoints.as_ref().map(|policy| policy.numbered(0)),
        domain: stage.config.domain.as_ref(),
        towards: None,
        watch,
    };
    fit_single(&mut model, data.surrogate, observations, &fit, options)?;
    Ok(model)
}

fn estimator_name(kind: EstimatorKind) -> &'static str {
    match kind {
        EstimatorKind::Mc => "mc",
        EstimatorKind::Roulette => "roulette",
        EstimatorKind::Elbo => "elbo",
        EstimatorKind::Iw => "iw",
    }
}

/// The rounds of one fit as rungs, each from where the one before ended.
fn of_rounds(name: &str, outcome: &SingleOutcome, k: usize) -> LadderReport {
    let last = outcome.rounds.len() - 1;
    let rung = |(number, round): (usize, &Round)| {
        let history = round.outcome.history.clone();
        let end = history.last();
        Rung {
            name: match round.eased(k) {
                Some(eased) if number < last => format!("{name}, {eased}"),
                _ => name.to_owned(),
            },
            held_out: -round.outcome.best_loss,
            gain: f64::NAN,
            standard_error: f64::NAN,
            kept: true,
            seconds: end.map_or(0.0, |epoch| epoch.seconds),
            effective_samples: end
                .and_then(|epoch| epoch.effective_samples)
                .unwrap_or(f64::NAN),
            history,
        }
    };
    LadderReport {
        rungs: outcome.rounds.iter().enumerate().map(rung).collect(),
        winner: last,
        width: outcome.last().width,
        particles: (f64::NAN, 0),
    }
}

fn one_rung(rung: Rung, width: Width) -> LadderReport {
    LadderReport {
        rungs: vec![rung],
        winner: 0,
        width,
        particles: (f64::NAN, 0),
    }
}

/// Weights on the pairs' x by expectation-maximisation, and a flow fitted to them.
fn particles(
    (config, mut model): (LadderConfig, Model),
    data: Data,
    watch: &mut LadderWatch,
) -> Result<Learned> {
    let started = Instant::now();
    let all = data.x.values.view();
    let points = all.slice(0..all.rows().min(config.particles));
    let initial = match &config.domain {
        Some(domain) => Some(weights_inside(domain, points, &data.x.names)?),
        None => None,
    };
    let seed = data.seed;
    let width = neb::source::narrowest_width(
        data.surrogate,
        data.y,
        points,
        config.refine_effective_samples,
        seed,
    );
    let likelihood = width.likelihood(data.surrogate);
    let y = width.observations(data.surrogate, data.y, seed);
    let settings = ParticleSettings {
        seed,
        held_out: config.held_out,
        ..ParticleSettings::default()
    };
    let weights = fit_particles(
        &*likelihood,
        y.view(),
        data.weights,
        points,
        initial.as_deref(),
        &settings,
        &mut |progress| watch("particles", progress),
    )?;
    let drawn = weights.resample(points.rows(), Noise::new(seed, Purpose::SourceSample, 2));
    let draws = points.gather(&drawn);
    let fitted = model.fit_points(
        draws.view(),
        &config.flow.train,
        seed,
        data.checkpoints.as_ref(),
        &mut |progress| watch("spline on particles", progress),
    );
    let history = fitted?.history;
    let judged = (data.weights, config.judge_k, seed);
    let held_out = mean_log_marginal(&model, &*likelihood, y.view(), judged)?;
    let mut report = one_rung(
        Rung {
            name: "spline on particles".to_owned(),
            held_out,
            gain: f64::NAN,
            standard_error: f64::NAN,
            kept: true,
            seconds: started.elapsed().as_secs_f64(),
            effective_samples: f64::NAN,
            history,
        },
        width,
    );
    report.particles = (weights.effective_particles(), weights.iteration);
    Ok(Learned {
        reason: format!(
            "particles, as asked for: weights after {} iterations on {} points, {:.0} of them effective, and a spline flow \
             fitted to them",
            weights.iteration,
            points.rows(),
            weights.effective_particles()
        ),
        report,
        source: model,
        recognition: None,
        particles: Some(weights),
        warnings: Vec::new(),
    })
}

/// Mean log p(y) of observations by their event weights, over so many samples of the source.
fn mean_log_marginal(
    model: &Model,
    likelihood: &dyn Likelihood,
    y: Rows,
    (weights, samples, seed): (Option<&[f32]>, usize, u64),
) -> Result<f64> {
    let x = model.sample(samples, Noise::new(seed, Purpose::SourceSample, 0));
    let values = neb::estimator::log_marginal_values(likelihood, y, x.view())?;
    let (sum, total) = values
        .iter()
        .enumerate()
        .fold((0.0, 0.0), |(sum, total), (row, value)| {
            let weight = weights.map_or(1.0, |v| f64::from(v[row]));
            (sum + weight * value.max(-1000.0), total + weight)
        });
    if !total.is_finite() || total <= 0.0 {
        return Err(Error::input(
            format!("the event weights add up to {total}"),
            "their sum must be positive",
        ));
    }
    Ok(sum / total)
}

/// A flow fitted to the x that may have produced a few observations.
fn few(stage: FewStage, data: Data, watch: &mut LadderWatch) -> Result<Learned> {
    let started = Instant::now();
    let name = "spline on posteriors";
    let observations = Observations {
        y: data.y,
        weights: data.weights,
    };
    let mut model = stage.model;
    let options = FewOptions {
        seed: data.seed,
        train: &stage.ladder.flow.train,
        checkpoints: data.checkpoints.as_ref(),
        watch: &mut |progress| watch(name, progress),
    };
    let fitted = fit_few(
        &mut model,
        &stage.prior,
        data.surrogate,
        observations,
        options,
    )?;
    let judged = (data.weights, stage.ladder.judge_k, data.seed);
    let log_marginal = mean_log_marginal(&model, data.surrogate, data.y, judged)?;
    Ok(Learned {
        reason: format!(
            "{name}: log p(y) of the observations {log_marginal:.4}, epoch {} of {}",
            fitted.best_epoch,
            fitted.history.len()
        ),
        report: one_rung(
            Rung {
                name: name.to_owned(),
                held_out: log_marginal,
                gain: f64::NAN,
                standard_error: f64::NAN,
                kept: true,
                seconds: started.elapsed().as_secs_f64(),
                effective_samples: f64::NAN,
                history: fitted.history,
            },
            Width::None,
        ),
        source: model,
        recognition: None,
        particles: None,
        warnings: vec![stage.note],
    })
}

/// 1 for points inside the domain, 0 for the others, which stay without weight.
fn weights_inside(domain: &Domain, points: Rows, names: &[String]) -> Result<Vec<f32>> {
    let mut weights = vec![0.0; points.rows()];
    for row in domain.rows_inside(points, names, "the pairs' x")? {
        weights[row as usize] = 1.0;
    }
    Ok(weights)
}
