//! A source with a density behind the weighted simulation: a spline flow fitted to it, then refined on the data.

use super::events::Events;
use super::fit::{Folding, UnfoldOptions};
use crate::estimator::{Samples, corrected_log_marginal_values};
use crate::nn::adam::AdamConfig;
use crate::nn::schedule::Schedule;
use crate::source::particles::ParticleWeights;
use crate::source::{
    Estimator, FlowFit, MarginalObjective, Model, Pull, Source, SourceConfig, SourceKind,
    fit_weighted_points,
};
use crate::train::{self, CheckpointPolicy, TrainConfig};
use crate::{Noise, Purpose, Result};

/// Settings of the smooth source.
#[derive(Clone, Debug, PartialEq)]
pub struct SmoothConfig {
    /// The flow, and how it is fitted to the weighted simulation.
    pub flow: FlowFit,
    /// Samples K of the refinement; 0 for none.
    pub refine_k: usize,
    /// Its passes over the data.
    pub refine_epochs: usize,
    /// Its learning rate.
    pub refine_rate: f64,
    /// Weight of the pull towards the flow it starts from.
    pub pull: f64,
}

/// The smooth source.
#[derive(Clone, Debug)]
pub struct Smooth {
    /// The source.
    pub source: Model,
    /// Whether the refinement was kept.
    pub refined: bool,
    /// By how much it explains each held-out event of data better, and the standard error; NaN where there was none.
    pub gain: (f64, f64),
}

/// Share of the data held out to judge the refinement.
const HELD_OUT: f64 = 0.1;
/// Standard errors by which held-out data must be explained better: the refinement also moves what the detector hides.
const NEEDED: f64 = 2.0;
/// Samples behind that judgement.
const JUDGE_K: usize = 16_384;

pub(super) fn fit_smooth(
    events: &Events,
    folding: &Folding,
    particles: &ParticleWeights,
    config: &SmoothConfig,
    options: &mut UnfoldOptions,
) -> Result<Smooth> {
    let x = events.produced.view();
    let weights: Vec<f32> = particles
        .weights
        .iter()
        .map(|w| (w * x.rows() as f64) as f32)
        .collect();
    let shape = &config.flow;
    let seed = options.seed;
    let mut source = SourceConfig {
        layers: shape.layers,
        hidden: shape.hidden.clone(),
        bins: shape.bins,
        bound: shape.bound,
        ..SourceConfig::new(SourceKind::Spline)
    }
    .build_from_points(x, options.x_names, seed)?;
    let policy = |number| {
        options
            .checkpoints
            .map(|p: &CheckpointPolicy| p.numbered(number))
    };
    let (first, second) = (policy(1), policy(2));
    let watch = &mut *options.watch;
    fit_weighted_points(
        source.source_mut(),
        x,
        &weights,
        &shape.train,
        seed,
        first.as_ref(),
        &mut |progress| watch("smooth source", progress),
    )?;
    let plain = Smooth {
        source,
        refined: false,
        gain: (f64::NAN, f64::NAN),
    };
    if config.refine_k == 0 {
        return Ok(plain);
    }

    let signal = signal_weights(events, folding, particles)?;
    let likelihood = folding.likelihood();
    let y = events.data.view();
    let (train_rows, held_rows) = train::split_rows(y.rows(), HELD_OUT, seed);
    let batch = 256.min(train_rows.len());
    let reference = plain.source.clone();
    let mut source = plain.source.clone();
    let mut objective = MarginalObjective {
        source: source.source_mut(),
        likelihood: &*likelihood,
        y,
        weights: Some(&signal),
        estimator: Estimator::Corrected { k: config.refine_k },
        pull: Pull {
            towards: Some((config.pull, reference.require_density("the refinement")?)),
            last_share: 0.5,
            steps: (config.refine_epochs * (train_rows.len() / batch)) as u64,
            ..Pull::NONE
        },
        held_out_k: config.refine_k,
        seed,
        effective_samples: None,
    };
    let plan = TrainConfig {
        epochs: config.refine_epochs,
        batch,
        rate: config.refine_rate,
        schedule: Schedule::Cosine { warm_up: 0.02 },
        adam: AdamConfig {
            clip_norm: 5.0,
            ..AdamConfig::default()
        },
        held_out: HELD_OUT,
        patience: 0,
    };
    train::train(
        &mut objective,
        &plan,
        seed,
        second.as_ref(),
        &mut |progress| watch("refinement", progress),
    )?;

    let held = y.gather(&held_rows);
    let noise = Noise::new(seed, Purpose::SourceSample, 3);
    let judge = |source: &Model| {
        let x = source.sample(JUDGE_K, noise);
        corrected_log_marginal_values(&*likelihood, held.view(), Samples::Shared(x.view()))
    };
    let held_weights: Vec<f32> = held_rows.iter().map(|&row| signal[row as usize]).collect();
    let gain = paired_gain(&judge(&source)?, &judge(&plain.source)?, &held_weights);
    Ok(match gain.0 > NEEDED * gain.1 {
        true => Smooth {
            source,
            refined: true,
            gain,
        },
        false => Smooth { gain, ..plain },
    })
}

/// v_i times the probability that event i is signal, 1 − β b(y_i) / λ(y_i).
fn signal_weights(
    events: &Events,
    folding: &Folding,
    particles: &ParticleWeights,
) -> Result<Vec<f32>> {
    let y = events.data.view();
    let Some((background, log_density)) =
        folding.background.as_ref().zip(folding.log_background(y)?)
    else {
        return Ok(events.data_weights.clone());
    };
    let each = log_density.iter().zip(&particles.log_marginals);
    let signal = each.map(|(log_b, log_all)| {
        1.0 - (background.share.ln() + f64::from(*log_b) - log_all)
            .exp()
            .min(1.0)
    });
    Ok(events
        .data_weights
        .iter()
        .zip(signal)
        .map(|(&weight, signal)| match weight > 0.0 {
            true => weight * signal as f32,
            false => 0.0,
        })
        .collect())
}

/// Weighted mean of the differences, and its standard error.
fn paired_gain(values: &[f64], before: &[f64], weights: &[f32]) -> (f64, f64) {
    let pairs = values.iter().zip(before);
    let differences: Vec<f64> = pairs
        .map(|(a, b)| a.max(-1000.0) - b.max(-1000.0))
        .collect();
    let total: f64 = weights.iter().map(|&w| f64::from(w)).sum();
    let each = || differences.iter().zip(weights);
    let mean = each().map(|(d, &w)| d * f64::from(w)).sum::<f64>() / total;
    let squares: f64 = each()
        .map(|(d, &w)| (f64::from(w) * (d - mean)).powi(2))
        .sum();
    (mean, squares.sqrt() / total)
}
