//! The unfolding itself: surrogate, efficiency, background; then weights on the simulation, then a smooth source.
//!
//! 1. q(y|x) from the matched pairs, ε(x) from all produced events, b(y) and its share β from fakes and background.
//! 2. Weights on the simulation's own x by expectation-maximisation ([`crate::source::particles`]): the produced spectrum as
//!    a ratio to the simulation's, stopped where held-out data are explained best.
//! 3. A spline flow fitted to the weighted simulation, then refined on the data with L_K; background enters as the
//!    probability of each event to be signal, efficiency through the likelihood's acceptance. The refinement is kept where
//!    held-out data are explained better by two standard errors.
//!
//! Everything is in the models' units; only y of the data and what the simulation holds are used.

use std::ops::ControlFlow;

use super::contamination::Contamination;
use super::efficiency::{Detected, Efficiency};
use super::events::Events;
use super::smooth::{Smooth, SmoothConfig, fit_smooth};
use super::weights::{effective_events, positive_weights, total};
use crate::source::particles::{
    KnownBackground, Observed, ParticleSettings, ParticleStep, ParticleWeights, fit_particles_to,
};
use crate::surrogate::{FitOptions, Pairs, Report, Surrogate, SurrogateConfig};
use crate::train::{CheckpointPolicy, Progress, TrainConfig};
use crate::{Likelihood, Noise, Purpose, Result, Rows};

/// Settings of an unfolding.
#[derive(Clone, Debug, PartialEq)]
pub struct UnfoldConfig {
    /// How q(y|x) is learned.
    pub surrogate: SurrogateConfig,
    /// How the weights are fitted.
    pub particles: ParticleSettings,
    /// How the smooth source is fitted.
    pub smooth: SmoothConfig,
}

/// Told of the stage under way; may stop the fit.
pub type UnfoldWatch<'a> = dyn FnMut(&str, &Progress) -> ControlFlow<()> + 'a;

/// How a fit is run.
pub struct UnfoldOptions<'a, 'w> {
    /// Makes the run repeatable.
    pub seed: u64,
    /// Where and how often trainings save their state, if at all; a file that exists is resumed.
    pub checkpoints: Option<&'a CheckpointPolicy>,
    /// Names of the columns of x.
    pub x_names: &'a [String],
    /// Names of the columns of y.
    pub y_names: &'a [String],
    /// Told of every step with the stage's name; may stop the fit.
    pub watch: &'a mut UnfoldWatch<'w>,
}

/// What detector and backgrounds do to a source: everything that was learned from simulation alone.
pub struct Folding {
    /// q(y|x).
    pub surrogate: Surrogate,
    /// How it was learned.
    pub report: Report,
    /// ε(x); none where every produced event was reconstructed.
    pub efficiency: Option<Efficiency>,
    /// What is not signal; none where there is nothing.
    pub background: Option<Contamination>,
    /// Weights of the produced events, none of them negative, that the fit starts from.
    pub start: Vec<f32>,
}

/// An unfolded spectrum.
pub struct Unfolding {
    /// Detector and backgrounds.
    pub folding: Folding,
    /// The fitted weights, as shares of what was produced.
    pub particles: ParticleWeights,
    /// How many events were produced in all, of which the data hold those that were reconstructed.
    pub produced: f64,
    /// Weight of every simulated event, negative where the simulation's was; they add up to `produced`.
    pub weights: Vec<f32>,
    /// The smooth source.
    pub smooth: Smooth,
}

impl Folding {
    /// Learns detector and backgrounds from the simulation.
    ///
    /// # Errors
    /// Events that do not fit together, too few of them, losses that are not finite, or a stop on request.
    pub fn learn(
        events: &Events,
        config: &SurrogateConfig,
        options: &mut UnfoldOptions,
    ) -> Result<Self> {
        events.check()?;
        // What the data can contradict comes before what takes long.
        let background = Contamination::fit(events, options.y_names, options.seed)?;
        let efficiency = learn_efficiency(events, options.seed)?;
        let x = events.produced.view();
        let start = positive_weights(x, &events.produced_weights, options.seed)?;
        let (surrogate, report) = learn_surrogate(events, config, options)?;
        Ok(Self {
            surrogate,
            report,
            efficiency,
            background,
            start,
        })
    }

    /// Learns everything again from other events, the surrogate starting from this one.
    pub(super) fn learn_again(
        &self,
        events: &Events,
        warm: &TrainConfig,
        seed: u64,
        options: &mut UnfoldOptions,
    ) -> Result<Self> {
        let x = events.produced.view().gather(&events.matched_rows());
        let watch = &mut *options.watch;
        let surrogate = self.surrogate.trained_further(
            Pairs {
                x: x.view(),
                y: events.matched.view(),
                x_names: options.x_names,
                y_names: options.y_names,
            },
            warm,
            seed,
            &mut |progress| watch("surrogate of a replica", progress),
        )?;
        Ok(Self {
            surrogate,
            report: self.report.clone(),
            efficiency: learn_efficiency(events, seed)?,
            background: Contamination::fit(events, options.y_names, seed)?,
            start: positive_weights(events.produced.view(), &events.produced_weights, seed)?,
        })
    }

    /// q(y|x), times ε(x) where there is one.
    pub fn likelihood(&self) -> Box<dyn Likelihood + '_> {
        match &self.efficiency {
            Some(efficiency) => Box::new(Detected::new(&self.surrogate, efficiency)),
            None => Box::new(crate::Tempered {
                inner: &self.surrogate,
                power: 1.0,
            }),
        }
    }

    /// log b(y) at the data, where there is a background.
    ///
    /// # Errors
    /// A background whose density cannot be evaluated.
    pub fn log_background(&self, y: Rows) -> Result<Option<Vec<f32>>> {
        let log = |background: &Contamination| background.log_density(y);
        self.background.as_ref().map(log).transpose()
    }

    /// ε(x), row by row; 1 where every produced event was reconstructed.
    pub fn efficiencies(&self, x: Rows) -> Vec<f32> {
        match &self.efficiency {
            Some(efficiency) => efficiency.of(x),
            None => vec![1.0; x.rows()],
        }
    }

    /// Weights of the simulation's events in absolute numbers, and their sum, from shares fitted to data of this weight.
    pub fn absolute(
        &self,
        events: &Events,
        shares: &[f64],
        signal: f64,
        data_weight: f64,
    ) -> (Vec<f32>, f64) {
        let efficiencies = self.efficiencies(events.produced.view());
        let pairs = shares.iter().zip(&efficiencies);
        let accepted: f64 = pairs.map(|(share, &e)| share * f64::from(e)).sum();
        let produced = data_weight * signal / accepted;
        let ratios = shares.iter().zip(&self.start);
        let signed: Vec<f64> = ratios
            .zip(&events.produced_weights)
            .map(|((share, &start), &weight)| match start > 0.0 {
                true => share / f64::from(start) * f64::from(weight),
                false => 0.0,
            })
            .collect();
        let sum: f64 = signed.iter().sum();
        let weights = signed.iter().map(|w| (w / sum * produced) as f32);
        (weights.collect(), produced)
    }
}

fn learn_surrogate(
    events: &Events,
    config: &SurrogateConfig,
    options: &mut UnfoldOptions,
) -> Result<(Surrogate, Report)> {
    let x = events.produced.view().gather(&events.matched_rows());
    let pairs = Pairs {
        x: x.view(),
        y: events.matched.view(),
        x_names: options.x_names,
        y_names: options.y_names,
    };
    let watch = &mut *options.watch;
    let fit = FitOptions {
        seed: options.seed,
        checkpoints: options.checkpoints.map(|policy| policy.numbered(0)),
        watch: &mut |_, progress| watch("surrogate", progress),
    };
    Surrogate::fit(pairs, config, fit)
}

fn learn_efficiency(events: &Events, seed: u64) -> Result<Option<Efficiency>> {
    let learn = || Efficiency::fit(events.produced.view(), &events.reconstructed, seed);
    events.has_missed().then(learn).transpose()
}

/// Unfolds the data.
///
/// # Errors
/// Events that do not fit together, values or losses that are not finite, or a stop on request.
pub fn unfold(
    events: &Events,
    config: &UnfoldConfig,
    options: &mut UnfoldOptions,
) -> Result<Unfolding> {
    let folding = Folding::learn(events, &config.surrogate, options)?;
    let particles = fit_weights(events, &folding, &config.particles, options)?;
    let data_weight = total(&events.data_weights);
    let (weights, produced) =
        folding.absolute(events, &particles.weights, particles.signal, data_weight);
    let smooth = fit_smooth(events, &folding, &particles, &config.smooth, options)?;
    Ok(Unfolding {
        folding,
        particles,
        produced,
        weights,
        smooth,
    })
}

fn fit_weights(
    events: &Events,
    folding: &Folding,
    settings: &ParticleSettings,
    options: &mut UnfoldOptions,
) -> Result<ParticleWeights> {
    let log_background = folding.log_background(events.data.view())?;
    let observed = Observed {
        y: events.data.view(),
        weights: Some(&events.data_weights),
        background: known(folding, log_background.as_deref()),
    };
    let watch = &mut *options.watch;
    fit_particles_to(
        &*folding.likelihood(),
        observed,
        events.produced.view(),
        Some(&folding.start),
        settings,
        &mut |progress| watch("weights", progress),
    )
}

/// The background as the fit of the weights takes it.
pub(super) fn known<'a>(
    folding: &Folding,
    log_density: Option<&'a [f32]>,
) -> Option<KnownBackground<'a>> {
    let background = folding.background.as_ref().zip(log_density);
    background.map(|(background, log_density)| KnownBackground {
        share: background.share,
        log_density,
    })
}

impl Unfolding {
    /// Effective number of simulated events behind the weights.
    pub fn effective_events(&self) -> f64 {
        effective_events(&self.weights)
    }

    /// Log-likelihoods of fitted and held-out data, iteration by iteration.
    pub fn history(&self) -> &[ParticleStep] {
        &self.particles.history
    }

    /// Draws of the smooth source.
    pub fn sample(&self, rows: usize, seed: u64) -> crate::Matrix {
        let noise = Noise::new(seed, Purpose::SourceSample, SAMPLE_STEP);
        self.smooth.source.source().sample(rows, noise)
    }
}

/// Address of these draws, apart from those of fitting with the same seed.
const SAMPLE_STEP: u64 = 1 << 35;
