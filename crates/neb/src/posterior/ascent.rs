//! Uphill from the best samples of the bank: the greatest likelihood, or the greatest posterior density.
//!
//! Each point walks along its gradient with a step length of its own, doubled when the value rises and halved when it does
//! not: no tuning, whatever the width of the likelihood. Where the likelihood can be widened the walk begins wide and ends with
//! the likelihood itself: a narrow peak pulls from afar only when it is widened.

use rayon::prelude::*;

use super::bank::{BLOCK, Bank, Extent};
use super::clock::Clock;
use super::narrowing::narrowing;
use super::{Budget, Maximum, Posterior, not_finite};
use crate::source::{Density, Width, narrowest_width};
use crate::{Likelihood, Matrix, PairWeights, Result, Rows};

/// Samples of the bank among which the starting points are found.
pub(super) const PILOT: usize = 16_384;
/// Starting points per observation.
const STARTS: usize = 4;
/// First step, in deviations of the source.
const FIRST_STEP: f32 = 0.05;
/// Steps below this are over.
const LAST_STEP: f32 = 1e-7;
/// A maximum is stable when this many steps raised it by less than [`STABLE`].
const PATIENCE: usize = 10;
const STABLE: f32 = 1e-3;
const MOST_STEPS: usize = 300;
/// Effective samples of the pilot half of the observations have at the width where the walk begins.
const FIRST_EFFECTIVE: f64 = 10.0;
/// Each noise scale on the way, as a share of the one before.
const RATIO: f32 = 0.5;

/// What is climbed.
#[derive(Clone, Copy)]
pub(super) struct Hill<'a> {
    pub(super) likelihood: &'a dyn Likelihood,
    /// The prior's density: its support bounds the hill, and with `prior_counts` it is part of the height.
    pub(super) density: Option<&'a dyn Density>,
    pub(super) prior_counts: bool,
    pub(super) y: Rows<'a>,
    pub(super) extent: &'a Extent,
}

/// Where a climb begins.
#[derive(Clone, Debug)]
pub(super) struct Start {
    /// The row of y it is for.
    owner: u32,
    x: Vec<f32>,
}

/// A point on the way up.
struct Climber {
    owner: u32,
    x: Vec<f32>,
    value: f32,
    step: f32,
    /// Value at the beginning of the current stretch of [`PATIENCE`] steps.
    before: f32,
}

impl Hill<'_> {
    /// Heights of the points; `owners` are the rows of y they belong to.
    pub(super) fn values(&self, owners: &[u32], x: Rows) -> Vec<f32> {
        let mut values = vec![0.0; x.rows()];
        let y = self.y.gather(owners);
        self.likelihood.log_prob(y.view(), x, &mut values);
        if let Some(density) = self.density {
            let mut prior = vec![0.0; x.rows()];
            density.log_prob(x, &mut prior);
            for (value, prior) in values.iter_mut().zip(prior) {
                if prior == f32::NEG_INFINITY {
                    *value = prior;
                } else if self.prior_counts {
                    *value += prior;
                }
            }
        }
        if !self.prior_counts {
            for (row, value) in values.iter_mut().enumerate() {
                if !self.extent.contains(x.row(row)) {
                    *value = f32::NEG_INFINITY;
                }
            }
        }
        values
    }

    /// Slopes at the points.
    pub(super) fn gradient(&self, owners: &[u32], x: Rows) -> Matrix {
        let mut slopes = Matrix::zeros(x.rows(), x.cols());
        let weights = PairWeights::one_each(owners);
        self.likelihood
            .grad_x_pairs(self.y, x, &weights, slopes.view_mut());
        if let Some(density) = self.density.filter(|_| self.prior_counts) {
            density.backward_log_prob(x, &vec![1.0; x.rows()], slopes.view_mut(), None);
        }
        slopes
    }

    /// The highest point each observation's starting points lead to, while the likelihood narrows.
    pub(super) fn climb(&self, starts: Vec<Start>, widths: &[Width], clock: Clock) -> Maximum {
        let mut climbers: Vec<Climber> = starts
            .into_iter()
            .map(|Start { owner, x }| Climber {
                owner,
                x,
                value: f32::NEG_INFINITY,
                step: FIRST_STEP,
                before: f32::NEG_INFINITY,
            })
            .collect();
        for width in widths {
            let likelihood = width.likelihood(self.likelihood);
            let hill = Hill {
                likelihood: &*likelihood,
                ..*self
            };
            hill.walk(&mut climbers, clock);
        }
        self.best(&climbers)
    }

    /// Moves every point uphill until its height is stable.
    fn walk(&self, climbers: &mut [Climber], clock: Clock) {
        let dim = self.extent.low.len();
        let owners: Vec<u32> = climbers.iter().map(|climber| climber.owner).collect();
        let x = climbers
            .iter()
            .flat_map(|climber| climber.x.iter().copied());
        let values = self.values(&owners, Matrix::from_vec(x.collect(), dim).view());
        for (climber, value) in climbers.iter_mut().zip(values) {
            climber.value = value;
            climber.before = value;
            climber.step = FIRST_STEP;
        }
        let mut walking: Vec<usize> = (0..climbers.len()).collect();
        for round in 1..=MOST_STEPS {
            if walking.is_empty() || clock.is_over() {
                break;
            }
            self.step(climbers, &walking);
            let stretch_ends = round % PATIENCE == 0;
            walking.retain(|&at| {
                let climber = &mut climbers[at];
                let stable = stretch_ends && climber.value < climber.before + STABLE;
                if stretch_ends {
                    climber.before = climber.value;
                }
                climber.step > LAST_STEP && !stable
            });
        }
    }

    fn step(&self, climbers: &mut [Climber], walking: &[usize]) {
        let dim = self.extent.low.len();
        let owners: Vec<u32> = walking.iter().map(|&at| climbers[at].owner).collect();
        let here = walking
            .iter()
            .flat_map(|&at| climbers[at].x.iter().copied());
        let mut next = Matrix::from_vec(here.collect(), dim);
        let slopes = self.gradient(&owners, next.view());
        for (row, &at) in walking.iter().enumerate() {
            let scaled = slopes.row(row).iter().zip(&self.extent.deviation);
            let scaled: Vec<f64> = scaled.map(|(g, s)| f64::from(g * s)).collect();
            let length = scaled.iter().map(|g| g * g).sum::<f64>().sqrt();
            if !(length.is_finite() && length > 0.0) {
                climbers[at].step = 0.0;
                continue;
            }
            let stride = f64::from(climbers[at].step) / length;
            for (d, x) in next.row_mut(row).iter_mut().enumerate() {
                *x += (stride * scaled[d]) as f32 * self.extent.deviation[d];
            }
        }
        let values = self.values(&owners, next.view());
        for (row, &at) in walking.iter().enumerate() {
            let climber = &mut climbers[at];
            if values[row] > climber.value && values[row].is_finite() {
                climber.value = values[row];
                climber.x.copy_from_slice(next.row(row));
                climber.step *= 2.0;
            } else {
                climber.step *= 0.5;
            }
        }
    }

    fn best(&self, climbers: &[Climber]) -> Maximum {
        let (rows, dim) = (self.y.rows(), self.extent.low.len());
        let mut best = Maximum {
            x: Matrix::from_vec(vec![f32::NAN; rows * dim], dim),
            log_prob: vec![f32::NEG_INFINITY; rows],
        };
        for climber in climbers {
            let row = climber.owner as usize;
            if climber.value > best.log_prob[row] {
                best.log_prob[row] = climber.value;
                best.x.row_mut(row).copy_from_slice(&climber.x);
            }
        }
        best
    }
}

/// The widths a walk from the best of these samples passes through: first one that the samples can bear, last none.
pub(super) fn widths_from(likelihood: &dyn Likelihood, y: Rows, x: Rows, seed: u64) -> Vec<Width> {
    if likelihood.widening().is_none() {
        return vec![Width::None];
    }
    let first = narrowest_width(likelihood, y, x, FIRST_EFFECTIVE, seed);
    let mut widths = narrowing(likelihood, RATIO);
    widths.retain(|width| width.narrower_than(first));
    widths.insert(0, first);
    widths
}

/// The samples of greatest height for each observation, as starting points; fewer where most have no height at all.
pub(super) fn best_samples(
    likelihood: &dyn Likelihood,
    y: Rows,
    x: &Matrix,
    prior: Option<&[f32]>,
) -> Result<Vec<Start>> {
    let mut starts = Vec::new();
    for first in (0..y.rows()).step_by(BLOCK) {
        let block = y.slice(first..y.rows().min(first + BLOCK));
        let mut logs = Matrix::zeros(block.rows(), x.rows());
        likelihood.log_prob_pairs(block, x.view(), logs.view_mut());
        let found: Vec<Result<Vec<Start>>> = logs
            .values_mut()
            .par_chunks_mut(x.rows())
            .enumerate()
            .map(|(row, logs)| {
                if let Some(prior) = prior {
                    logs.iter_mut().zip(prior).for_each(|(log, p)| *log += p);
                }
                let best = greatest(logs, first + row)?;
                let start = |k: usize| Start {
                    owner: (first + row) as u32,
                    x: x.row(k).to_vec(),
                };
                Ok(best.into_iter().map(start).collect())
            })
            .collect();
        for found in found {
            starts.extend(found?);
        }
    }
    Ok(starts)
}

/// The places of the greatest few values.
fn greatest(values: &[f32], observation: usize) -> Result<Vec<usize>> {
    let mut best: Vec<usize> = Vec::with_capacity(STARTS + 1);
    let mut floor = f32::NEG_INFINITY;
    for (place, &value) in values.iter().enumerate() {
        if value <= floor {
            continue;
        }
        if value.is_nan() || value == f32::INFINITY {
            return Err(not_finite(observation, value));
        }
        let at = best.partition_point(|&other| values[other] >= value);
        best.insert(at, place);
        best.truncate(STARTS);
        if best.len() == STARTS {
            floor = values[best[STARTS - 1]];
        }
    }
    Ok(best)
}

/// The maximum of q(y|x) q(x) for each observation.
pub(super) fn posterior_maximum(posterior: Posterior, y: Rows, seed: u64) -> Result<Maximum> {
    let density = posterior.density()?;
    let source = posterior.prior;
    let x = Bank { source, seed }.first(PILOT);
    let mut prior = vec![0.0; x.rows()];
    density.log_prob(x.view(), &mut prior);
    let widths = widths_from(posterior.likelihood, y, x.view(), seed);
    let wide = widths[0].likelihood(posterior.likelihood);
    let starts = best_samples(&*wide, y, &x, Some(&prior))?;
    let hill = Hill {
        likelihood: posterior.likelihood,
        density: Some(density),
        prior_counts: true,
        y,
        extent: &Extent::of(&x),
    };
    Ok(hill.climb(starts, &widths, posterior.clock(&Budget::default())))
}
