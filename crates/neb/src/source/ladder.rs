//! The default way to a source: a ladder of models, from the simplest up; a more flexible one must earn its place.
//!
//! 1. affine maps of a normal and of a uniform law, fitted with L_K;
//! 2. a spline flow fitted to draws of the better of them, then refined with L_K under a Kullback-Leibler pull towards where
//!    it started;
//! 3. particles: weights on the pairs' own x_j by expectation-maximisation, then a spline flow fitted to them and refined alike.
//!
//! Each is judged by the log-marginal likelihood of the same held-out observations. A flow replaces a simpler source only if
//! it is better by more than two standard errors, paired over the observations.

use std::ops::ControlFlow;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::affine::{Affine, Base};
use super::flow::{FlowFit, FlowSource};
use super::model::Model;
use super::objective::{Estimator, MarginalObjective, mean_with_floor};
use super::particles::{ParticleSettings, ParticleWeights, fit_particles};
use super::view::{Width, narrowest_width};
use super::{Pull, Source};
use crate::estimator::log_marginal_values;
use crate::nn::adam::AdamConfig;
use crate::nn::schedule::Schedule;
use crate::scaling::Scaling;
use crate::train::{self, Epoch, TrainConfig};
use crate::{Error, Likelihood, Matrix, Noise, Purpose, Result, Rows};

/// Settings of the ladder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LadderConfig {
    /// Samples K while fitting the affine rungs.
    pub affine_k: usize,
    /// Samples K while refining flows.
    pub refine_k: usize,
    /// Samples K when rungs are judged.
    pub judge_k: usize,
    /// Observations in a minibatch.
    pub batch: usize,
    /// Share of the observations held out.
    pub held_out: f64,
    /// Most particles.
    pub particles: usize,
    /// Effective samples half of the observations must have while the affine rungs are fitted; the likelihood is widened until
    /// they do. Many, since the Monte Carlo bias of few favours sources that are too wide.
    pub effective_samples: f64,
    /// The same while rungs are judged and flows refined. Fewer, since widening hides fine structure.
    pub refine_effective_samples: f64,
    /// Weight of the entropy while fitting the affine rungs; falls to zero.
    pub entropy: f64,
    /// Weight of the pull while refining; falls to half.
    pub pull: f64,
    /// Epochs of refinement.
    pub refine_epochs: usize,
    /// The flows, and how they are fitted to points.
    pub flow: FlowFit,
    /// Dimensions whose law is even; empty for none.
    pub symmetric: Vec<bool>,
}

impl Default for LadderConfig {
    fn default() -> Self {
        Self {
            affine_k: 4096,
            refine_k: 2048,
            judge_k: 8192,
            batch: 256,
            held_out: 0.1,
            particles: 15_000,
            effective_samples: 200.0,
            refine_effective_samples: 30.0,
            entropy: 0.0,
            pull: 0.1,
            refine_epochs: 6,
            flow: FlowFit {
                layers: 4,
                hidden: vec![64, 64],
                bins: 8,
                bound: 4.0,
                train: training(25, 256, 3e-3, 0.1),
            },
            symmetric: Vec::new(),
        }
    }
}

fn training(epochs: usize, batch: usize, rate: f64, held_out: f64) -> TrainConfig {
    TrainConfig {
        epochs,
        batch,
        rate,
        schedule: Schedule::Cosine { warm_up: 0.02 },
        adam: AdamConfig {
            clip_norm: 5.0,
            ..AdamConfig::default()
        },
        held_out,
        patience: 0,
    }
}

/// One rung's result.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Rung {
    /// Its name.
    pub name: String,
    /// Mean held-out log-marginal likelihood.
    pub held_out: f64,
    /// How much better than the best rung before it, per observation; NaN for the first.
    pub gain: f64,
    /// The gain's standard error, paired over observations.
    pub standard_error: f64,
    /// Whether it became the best so far.
    pub kept: bool,
    /// Seconds it took.
    pub seconds: f64,
    /// Median effective sample size of the weights at the end of its training; NaN where nothing was trained with L_K.
    pub effective_samples: f64,
    /// Its last training with L_K, epoch by epoch.
    pub history: Vec<Epoch>,
}

/// How the ladder was climbed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LadderReport {
    /// Every rung, in order.
    pub rungs: Vec<Rung>,
    /// Index of the winner.
    pub winner: usize,
    /// By how much the likelihood was widened when rungs were judged.
    pub width: Width,
    /// Effective number of particles after expectation-maximisation, and its iterations.
    pub particles: (f64, usize),
}

impl LadderReport {
    /// Why the winner won, in words.
    pub fn reason(&self) -> String {
        let winner = &self.rungs[self.winner];
        if self.winner < 2 {
            format!(
                "{} is the simplest source that explains the observations: no flow was better by two standard errors",
                winner.name
            )
        } else {
            format!(
                "{} explains held-out observations better by {:.4} ± {:.4} each",
                winner.name, winner.gain, winner.standard_error
            )
        }
    }
}

/// Told of the rung under way; may stop the fit.
pub type LadderWatch<'a> = dyn FnMut(&str, &train::Progress) -> ControlFlow<()> + 'a;

/// What the ladder gives back.
#[derive(Debug)]
pub struct LadderOutcome {
    /// The winner.
    pub source: Model,
    /// Weights of the particles (rows of the given x), a result in their own right.
    pub particles: ParticleWeights,
    /// How it was climbed.
    pub report: LadderReport,
}

/// Climbs the ladder: `points` are the pairs' x, on which particles sit and from which everything starts.
///
/// # Errors
/// Dimensions that do not match, too few observations, values or losses that are not finite, or a stop on request.
pub fn climb(
    likelihood: &dyn Likelihood,
    y: Rows,
    points: Rows,
    config: &LadderConfig,
    seed: u64,
    watch: &mut LadderWatch,
) -> Result<LadderOutcome> {
    let dims = likelihood.dims();
    if y.cols() != dims.dy || points.cols() != dims.dx {
        return Err(Error::input(
            format!(
                "the likelihood is for x of {} and y of {} columns, the data have {} and {}",
                dims.dx,
                dims.dy,
                points.cols(),
                y.cols()
            ),
            "fit a surrogate on pairs with the same columns",
        ));
    }
    config.check(y.rows(), points.rows())?;
    let (train_rows, held_rows) = train::split_rows(y.rows(), config.held_out, seed);
    let mut climber = Climber {
        likelihood,
        y,
        points,
        config,
        seed,
        held_rows,
        symmetric: if config.symmetric.is_empty() {
            vec![false; dims.dx]
        } else {
            config.symmetric.clone()
        },
        width: Width::None,
        rungs: Vec::new(),
        winner: 0,
        best: None,
        watch,
    };
    climber.affine_rungs()?;
    climber.flow_on_best("spline on affine")?;
    let particles = climber.particles(&train_rows)?;
    let report = LadderReport {
        particles: (particles.effective_particles(), particles.iteration),
        rungs: climber.rungs,
        winner: climber.winner,
        width: climber.width,
    };
    let (source, _) = climber
        .best
        .ok_or_else(|| Error::input("no rung was fitted", "report this: it is a defect of neb"))?;
    Ok(LadderOutcome {
        source,
        particles,
        report,
    })
}

struct Climber<'a, 'w> {
    likelihood: &'a dyn Likelihood,
    y: Rows<'a>,
    points: Rows<'a>,
    config: &'a LadderConfig,
    seed: u64,
    held_rows: Vec<u32>,
    symmetric: Vec<bool>,
    width: Width,
    rungs: Vec<Rung>,
    winner: usize,
    /// The best source so far and its held-out log-marginals.
    best: Option<(Model, Vec<f64>)>,
    watch: &'a mut LadderWatch<'w>,
}

/// A rung after training, before it is judged.
struct Candidate {
    name: String,
    source: Model,
    started: Instant,
    effective_samples: f64,
    history: Vec<Epoch>,
}

impl Climber<'_, '_> {
    /// The width at which these samples serve the observations.
    fn choose_width(&self, x: Rows, wanted: f64) -> Width {
        narrowest_width(self.likelihood, self.y, x, wanted, self.seed)
    }

    fn affine_rungs(&mut self) -> Result<()> {
        let all: Vec<u32> = (0..self.points.rows() as u32).collect();
        let names: Vec<String> = (1..=self.points.cols()).map(|d| format!("x{d}")).collect();
        let start = Scaling::measure(self.points, &all, &names)?;
        let few: Vec<u32> = (0..self.points.rows().min(self.config.affine_k) as u32).collect();
        self.width = self.choose_width(
            self.points.gather(&few).view(),
            self.config.effective_samples,
        );
        let mut candidates = Vec::new();
        for (base, name) in [
            (Base::Normal, "affine of normal"),
            (Base::Uniform, "affine of uniform"),
        ] {
            let started = Instant::now();
            let mut source =
                Affine::new(base, &start.mean, &start.deviation, &self.symmetric).scales_only(true);
            let entropy = self.config.entropy;
            self.train_affine(&mut source, name, 3, 3e-2, entropy)?;
            source = source.scales_only(false);
            self.narrow(&source, self.config.effective_samples);
            let (effective_samples, history) =
                self.train_affine(&mut source, name, 4, 1.5e-2, 0.2 * entropy)?;
            candidates.push(Candidate {
                name: name.to_owned(),
                source: Model::Affine(source),
                started,
                effective_samples,
                history,
            });
        }
        for candidate in &candidates {
            self.narrow(
                candidate.source.source(),
                self.config.refine_effective_samples,
            );
        }
        for candidate in candidates {
            self.judge(candidate, 0.0)?;
        }
        Ok(())
    }

    /// Narrows the width if the source's own samples allow it.
    fn narrow(&mut self, source: &dyn Source, wanted: f64) {
        let noise = Noise::new(self.seed, Purpose::SourceNoise, u64::MAX);
        let x = source.sample(self.config.affine_k, noise);
        let width = self.choose_width(x.view(), wanted);
        if width.narrower_than(self.width) {
            self.width = width;
        }
    }

    fn train_affine(
        &mut self,
        source: &mut Affine,
        name: &str,
        epochs: usize,
        rate: f64,
        entropy: f64,
    ) -> Result<(f64, Vec<Epoch>)> {
        let batch = self.config.batch.min(self.y.rows() - self.held_rows.len());
        let steps = (epochs * (self.y.rows() - self.held_rows.len()) / batch) as u64;
        let pull = Pull {
            entropy,
            towards: None,
            last_share: 0.0,
            steps,
        };
        let k = self.config.affine_k;
        self.train_source(
            source,
            name,
            pull,
            k,
            training(epochs, batch, rate, self.config.held_out),
        )
    }

    fn train_source(
        &mut self,
        source: &mut dyn Source,
        name: &str,
        pull: Pull,
        k: usize,
        config: TrainConfig,
    ) -> Result<(f64, Vec<Epoch>)> {
        let likelihood = self.width.likelihood(self.likelihood);
        let y = self.width.observations(self.likelihood, self.y, self.seed);
        let mut objective = MarginalObjective {
            source,
            likelihood: &*likelihood,
            y: y.view(),
            weights: None,
            estimator: Estimator::Shared { k },
            pull,
            held_out_k: k,
            seed: self.seed,
            effective_samples: Vec::new(),
        };
        let watch = &mut *self.watch;
        let outcome = train::train(&mut objective, &config, self.seed, None, &mut |progress| {
            watch(name, progress)
        })?;
        let effective = objective.effective_samples.last().copied();
        Ok((effective.unwrap_or(f64::NAN), outcome.history))
    }

    /// A flow fitted to draws of the best source so far, then refined.
    fn flow_on_best(&mut self, name: &str) -> Result<()> {
        let Some((best, _)) = &self.best else {
            return Ok(());
        };
        let noise = Noise::new(self.seed, Purpose::SourceSample, 1);
        let draws = best.source().sample(self.config.particles, noise);
        self.flow_from(draws, name)
    }

    fn flow_from(&mut self, draws: Matrix, name: &str) -> Result<()> {
        let started = Instant::now();
        let all: Vec<u32> = (0..draws.rows() as u32).collect();
        let names: Vec<String> = (1..=draws.cols()).map(|d| format!("x{d}")).collect();
        let scaling = Scaling::measure(draws.view(), &all, &names)?;
        let shape = &self.config.flow.config();
        let mut source = FlowSource::new(shape, &scaling.mean, &scaling.deviation, self.seed);
        let watch = &mut *self.watch;
        let train = &self.config.flow.train;
        source.fit_points(draws.view(), train, self.seed, None, &mut |progress| {
            watch(name, progress)
        })?;
        let mut reference = FlowSource::new(shape, &scaling.mean, &scaling.deviation, self.seed);
        let fitted = source.parameters().to_vec();
        reference.update(&mut |parameters| parameters.copy_from_slice(&fitted));
        self.judge(
            Candidate {
                name: name.to_owned(),
                source: Model::Flow(Box::new(source)),
                started,
                effective_samples: f64::NAN,
                history: Vec::new(),
            },
            2.0,
        )?;
        let started = Instant::now();
        let mut source = FlowSource::new(shape, &scaling.mean, &scaling.deviation, self.seed);
        source.update(&mut |parameters| parameters.copy_from_slice(&fitted));
        let batch = self.config.batch.min(self.y.rows() - self.held_rows.len());
        let epochs = self.config.refine_epochs;
        let pull = Pull {
            entropy: 0.0,
            towards: Some((self.config.pull, &reference)),
            last_share: 0.5,
            steps: (epochs * (self.y.rows() - self.held_rows.len()) / batch) as u64,
        };
        let train = training(epochs, batch, 1e-3, self.config.held_out);
        let name = format!("{name}, refined");
        let k = self.config.refine_k;
        let (effective_samples, history) = self.train_source(&mut source, &name, pull, k, train)?;
        self.judge(
            Candidate {
                name,
                source: Model::Flow(Box::new(source)),
                started,
                effective_samples,
                history,
            },
            2.0,
        )
    }

    fn particles(&mut self, train_rows: &[u32]) -> Result<ParticleWeights> {
        let few: Vec<u32> = (0..self.points.rows().min(self.config.particles) as u32).collect();
        let points = self.points.gather(&few);
        let own = self.choose_width(points.view(), self.config.refine_effective_samples);
        let width = if own.narrower_than(self.width) {
            self.width
        } else {
            own
        };
        let likelihood = width.likelihood(self.likelihood);
        let y = width.observations(self.likelihood, self.y, self.seed);
        let y = y.view().gather(train_rows);
        let settings = ParticleSettings {
            seed: self.seed,
            ..ParticleSettings::default()
        };
        let weights = fit_particles(&*likelihood, y.view(), None, points.view(), None, &settings)?;
        let noise = Noise::new(self.seed, Purpose::SourceSample, 2);
        let draws = points
            .view()
            .gather(&weights.resample(points.rows(), noise));
        self.flow_from(draws, "spline on particles")?;
        Ok(weights)
    }

    /// Compares a rung with the best before it on the held-out observations.
    fn judge(&mut self, candidate: Candidate, needed: f64) -> Result<()> {
        let noise = Noise::new(self.seed, Purpose::SourceSample, 0);
        let x = candidate.source.source().sample(self.config.judge_k, noise);
        let likelihood = self.width.likelihood(self.likelihood);
        let y = self.width.observations(self.likelihood, self.y, self.seed);
        let held = y.view().gather(&self.held_rows);
        let values = log_marginal_values(&*likelihood, held.view(), x.view())?;
        let (gain, standard_error) = match &self.best {
            None => (f64::NAN, f64::NAN),
            Some((_, before)) => paired(&values, before),
        };
        let kept = self.best.is_none() || gain > needed * standard_error;
        self.rungs.push(Rung {
            name: candidate.name,
            held_out: mean_with_floor(&values),
            gain,
            standard_error,
            kept,
            seconds: candidate.started.elapsed().as_secs_f64(),
            effective_samples: candidate.effective_samples,
            history: candidate.history,
        });
        if kept {
            self.winner = self.rungs.len() - 1;
            self.best = Some((candidate.source, values));
        }
        Ok(())
    }
}

/// Mean of the differences and its standard error; values have the floor of [`mean_with_floor`].
fn paired(values: &[f64], before: &[f64]) -> (f64, f64) {
    let floor = |v: f64| v.max(-1000.0);
    let differences: Vec<f64> = values
        .iter()
        .zip(before)
        .map(|(&a, &b)| floor(a) - floor(b))
        .collect();
    let n = differences.len() as f64;
    let mean = differences.iter().sum::<f64>() / n;
    let variance = differences.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, (variance / n).sqrt())
}
