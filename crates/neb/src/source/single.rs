//! One source, fitted by one estimator: what the paper does, and what [`super::ladder`] is made of.
//!
//! The estimator is `mc` (L_K), `roulette` (de-biased), `elbo` or `iw` (variational, with a recognition network). Where the
//! likelihood is so narrow that no sample of the source comes near an observation, fitting begins with the likelihood widened
//! and narrows it in rounds, as far as the effective number of samples allows. The importance-weighted bound may begin with few
//! draws and tighten in rounds: most of the way is then made at a fraction of the cost.

mod coarse;
mod config;
#[cfg(test)]
mod tests;

use crate::estimator::{Increments, Roulette};
use crate::scaling::Scaling;
use crate::train::{self, CheckpointPolicy, Outcome, TrainConfig};
use crate::{Error, Likelihood, Noise, Purpose, Result, Rows};

pub use config::{EstimatorKind, Levels, Sampling, SingleConfig};

use self::coarse::Coarse;
use super::ladder::LadderWatch;
use super::recognition::{Recognition, Spread};
use super::{
    Bound, Density, Domain, Estimator, MarginalObjective, Pull, Source, VariationalObjective,
    VariationalProblem, Width, narrowest_width,
};

/// Fewer observations than these are all used in every step, and none is held out.
pub const FEW_OBSERVATIONS: usize = 20;
/// Most rounds of a fit.
const MOST_ROUNDS: usize = 4;
/// How many times as many draws of the importance-weighted bound a round has as the one before.
const TIGHTENING: usize = 4;
/// How many times as high as all others the rate of the first of several rounds is: it has the long way, and need not end at the optimum.
const HASTE: f64 = 3.0;
/// Share of the epochs that a round before the last one has.
const WIDENED_SHARE: f64 = 0.3;
/// Fewer effective samples than these make a gradient mostly noise.
const FEWEST_EFFECTIVE: f64 = 10.0;
/// Draws of the source that the recognition network's scales are measured on.
const SCALE_DRAWS: usize = 2048;
/// Chance of one more term in the paper's roulette.
const CONTINUE: f64 = 0.5;

/// What a source is fitted to.
#[derive(Clone, Copy, Debug)]
pub struct Observations<'a> {
    /// The observations, one per row.
    pub y: Rows<'a>,
    /// Event weights v_i; all 1 if absent.
    pub weights: Option<&'a [f32]>,
}

/// How a fit is run.
pub struct SingleOptions<'a, 'w> {
    /// Makes the run repeatable.
    pub seed: u64,
    /// Where and how often to save the state, if at all; each round has its own file ([`CheckpointPolicy::numbered`]). Files
    /// that exist are resumed; [`remove_checkpoints`] removes them when the result is safe.
    pub checkpoints: Option<CheckpointPolicy>,
    /// The source's domain, if it has one: a recognition network is held inside it too.
    pub domain: Option<&'a Domain>,
    /// What `pull` of the settings pulls towards.
    pub towards: Option<&'a dyn Density>,
    /// Told of every step with the round's name; may stop the fit.
    pub watch: &'a mut LadderWatch<'w>,
}

/// One training of a fit.
#[derive(Clone, Debug, PartialEq)]
pub struct Round {
    /// By how much the likelihood was widened.
    pub width: Width,
    /// Samples K.
    pub k: usize,
    /// How training went.
    pub outcome: Outcome,
}

impl Round {
    /// What made it easier than what is asked for, if anything: "K = 8", "noise 0.300".
    pub fn eased(&self, asked: usize) -> Option<String> {
        eased(self.width, self.k, asked)
    }
}

fn eased(width: Width, k: usize, asked: usize) -> Option<String> {
    match width {
        Width::None => (k < asked).then(|| format!("K = {k}")),
        Width::Noise(tau) => Some(format!("noise {tau:.3}")),
        Width::Power(power) => Some(format!("power {power:.3}")),
    }
}

/// What a fit gives besides the source.
#[derive(Clone, Debug)]
pub struct SingleOutcome {
    /// Every round; the last one's weights are the source's.
    pub rounds: Vec<Round>,
    /// The recognition network, where a variational bound was maximised.
    pub recognition: Option<Recognition>,
    /// Effective samples behind each observation in the last epoch, where the estimator has a number of them.
    pub effective_samples: Option<f64>,
    /// What the user should know about how the fit was done.
    pub notes: Vec<String>,
}

impl SingleOutcome {
    /// The training whose weights the source has.
    pub fn last(&self) -> &Round {
        self.rounds.last().expect("a fit has at least one round")
    }
}

/// Fits a source to observations through a likelihood; the source's parameters are where training starts.
///
/// # Errors
/// Settings that make no sense, dimensions that do not match, a variational bound for a source without density, a loss that is
/// not finite, or a stop on request (with checkpoints, the same call goes on from there).
pub fn fit_single(
    source: &mut dyn Source,
    likelihood: &dyn Likelihood,
    observations: Observations,
    config: &SingleConfig,
    options: SingleOptions,
) -> Result<SingleOutcome> {
    config.check()?;
    config.check_source(source)?;
    check_source(source, likelihood)?;
    check_observations(likelihood, observations)?;
    let mut notes = Vec::new();
    let train = plan(config, observations.y.rows(), &mut notes);
    train.check()?;
    let mut fit = Fit {
        likelihood,
        observations,
        config,
        options,
        rounds: Vec::new(),
    };
    let recognition = match config.estimator.bound() {
        Some(bound) => Some(fit.variational(source, bound, &train)?),
        None => {
            fit.marginal(source, &train)?;
            None
        }
    };
    let mut outcome = SingleOutcome {
        effective_samples: last_effective(&fit.rounds),
        rounds: fit.rounds,
        recognition,
        notes,
    };
    outcome.warn(config);
    Ok(outcome)
}

/// Removes the checkpoints of a fit.
///
/// # Errors
/// Whatever the operating system refuses.
pub fn remove_checkpoints(policy: &CheckpointPolicy) -> Result<()> {
    (0..MOST_ROUNDS).try_for_each(|round| policy.numbered(round).remove())
}

fn last_effective(rounds: &[Round]) -> Option<f64> {
    let last = rounds.last()?.outcome.history.last()?;
    last.effective_samples
}

fn check_source(source: &dyn Source, likelihood: &dyn Likelihood) -> Result<()> {
    let dims = likelihood.dims();
    if source.dim() != dims.dx {
        return Err(Error::input(
            format!(
                "the likelihood is for x of {} columns, the source has {}",
                dims.dx,
                source.dim()
            ),
            "give the source as many dimensions as the pairs' x",
        ));
    }
    Ok(())
}

/// Refuses observations no source can be fitted to.
pub(super) fn check_observations(
    likelihood: &dyn Likelihood,
    Observations { y, weights }: Observations,
) -> Result<()> {
    let dims = likelihood.dims();
    if y.cols() != dims.dy {
        return Err(Error::input(
            format!(
                "the likelihood is for y of {} columns, the observations have {}",
                dims.dy,
                y.cols()
            ),
            "fit a surrogate on pairs with the same columns",
        ));
    }
    if y.rows() == 0 {
        return Err(Error::input(
            "there is no observation",
            "give at least one row of y",
        ));
    }
    if let Some(at) = y.values().iter().position(|value| !value.is_finite()) {
        return Err(Error::input(
            format!(
                "the observations hold {} at row {}, column {}",
                y.values()[at],
                at / y.cols(),
                at % y.cols()
            ),
            "remove or repair this row; neb never drops data by itself",
        ));
    }
    let Some(weights) = weights else {
        return Ok(());
    };
    if weights.len() != y.rows() {
        return Err(Error::input(
            format!(
                "{} event weights for {} observations",
                weights.len(),
                y.rows()
            ),
            "give one weight for each observation",
        ));
    }
    if let Some(row) = weights.iter().position(|v| !v.is_finite()) {
        return Err(Error::input(
            format!("the event weight of row {row} is {}", weights[row]),
            "remove or repair this row",
        ));
    }
    Ok(())
}

/// The training for so many observations: few of them are all used in every step.
fn plan(config: &SingleConfig, rows: usize, notes: &mut Vec<String>) -> TrainConfig {
    let mut train = config.train.clone();
    if rows < FEW_OBSERVATIONS {
        train.held_out = 0.0;
        train.patience = 0;
        train.batch = rows;
        notes.push(format!(
            "{rows} observation{}: all of them in every step, none held out",
            if rows == 1 { "" } else { "s" }
        ));
    }
    let left = rows - (rows as f64 * train.held_out).round() as usize;
    if train.batch > left {
        notes.push(format!(
            "batch lowered from {} to {left}: so many observations are left for training",
            train.batch
        ));
        train.batch = left;
    }
    let batches = (left / train.batch.max(1)).max(1);
    train.epochs = train.epochs.max(config.least_steps.div_ceil(batches));
    train
}

impl SingleOutcome {
    fn warn(&mut self, config: &SingleConfig) {
        if let Some(effective) = self.effective_samples
            && effective < FEWEST_EFFECTIVE
            && config.k as f64 > 2.0 * FEWEST_EFFECTIVE
        {
            self.notes.push(format!(
                "{effective:.1} effective samples behind each observation at the end of training, fewer than \
                 {FEWEST_EFFECTIVE}: the gradient was mostly noise; raise `k`, or learn a surrogate of kind noisy-mixture"
            ));
        }
        match self.last().width {
            Width::None => {}
            Width::Noise(tau) => self.notes.push(format!(
                "fitted to observations with noise of {tau:.3} deviations added: fewer would leave too few effective samples"
            )),
            Width::Power(power) => self.notes.push(format!(
                "fitted with the likelihood raised to the power {power:.3}, which favours x of wide likelihood: a surrogate of \
                 kind noisy-mixture can be widened without this bias"
            )),
        }
    }
}

/// A fit under way.
struct Fit<'a, 'w> {
    likelihood: &'a dyn Likelihood,
    observations: Observations<'a>,
    config: &'a SingleConfig,
    options: SingleOptions<'a, 'w>,
    rounds: Vec<Round>,
}

impl<'a> Fit<'a, '_> {
    /// Rounds of training with L_K or roulette, the likelihood as narrow as the source's samples bear.
    fn marginal(&mut self, source: &mut dyn Source, train: &TrainConfig) -> Result<()> {
        let mut width = self.width(source);
        let coarse = TrainConfig {
            epochs: ((train.epochs as f64 * WIDENED_SHARE) as usize).max(1),
            ..train.clone()
        };
        for _ in 1..MOST_ROUNDS {
            if width == Width::None {
                break;
            }
            self.round(source, width, &coarse)?;
            let next = self.width(source);
            if !next.narrower_than(width) {
                break;
            }
            width = next;
        }
        self.round(source, width, train)
    }

    /// The narrowest width that leaves the source's samples enough weight.
    fn width(&self, source: &dyn Source) -> Width {
        if self.config.effective_samples == 0.0 {
            return Width::None;
        }
        let noise = Noise::new(self.options.seed, Purpose::SourceNoise, u64::MAX);
        let x = source.sample(self.config.k, noise);
        let wanted = self.config.effective_samples;
        let y = self.observations.y;
        narrowest_width(self.likelihood, y, x.view(), wanted, self.options.seed)
    }

    fn round(&mut self, source: &mut dyn Source, width: Width, train: &TrainConfig) -> Result<()> {
        let likelihood = width.likelihood(self.likelihood);
        let y = width.observations(self.likelihood, self.observations.y, self.options.seed);
        let mut objective = MarginalObjective {
            source,
            likelihood: &*likelihood,
            y: y.view(),
            weights: self.observations.weights,
            estimator: self.config.marginal_estimator(),
            pull: self.pull(train),
            held_out_k: self.config.judge_k,
            seed: self.options.seed,
            effective_samples: None,
        };
        self.run(&mut objective, train, (width, self.config.k))
    }

    /// Training of the source and a recognition network with a variational bound, in rounds of ever more draws.
    fn variational(
        &mut self,
        source: &mut dyn Source,
        bound: Bound,
        train: &TrainConfig,
    ) -> Result<Recognition> {
        let mut recognition = self.recognition(source)?;
        let hasty = TrainConfig {
            rate: HASTE * train.rate,
            ..train.clone()
        };
        for (round, k) in self.config.draws_of_rounds().enumerate() {
            let first_of_many = round == 0 && self.config.rounds > 1;
            let train = if first_of_many { &hasty } else { train };
            let problem = VariationalProblem {
                likelihood: self.likelihood,
                y: self.observations.y,
                weights: self.observations.weights,
                bound,
                k,
                pull: self.pull(train),
                seed: self.options.seed,
            };
            let mut objective = VariationalObjective::new(source, &mut recognition, problem)?;
            self.run(&mut objective, train, (Width::None, k))?;
        }
        Ok(recognition)
    }

    /// One training on the one loop, with this round's checkpoint and name.
    fn run(
        &mut self,
        objective: &mut dyn train::Objective,
        train: &TrainConfig,
        (width, k): (Width, usize),
    ) -> Result<()> {
        let name = match eased(width, k, self.config.k) {
            Some(eased) => format!("source, {eased}"),
            None => "source".to_owned(),
        };
        let options = &mut self.options;
        let checkpoints = options.checkpoints.as_ref();
        let checkpoints = checkpoints.map(|policy| policy.numbered(self.rounds.len()));
        let mut objective = Coarse {
            objective,
            nodes: self.config.training_nodes,
            seed: options.seed,
        };
        let outcome = train::train(
            &mut objective,
            train,
            options.seed,
            checkpoints.as_ref(),
            &mut |progress| (options.watch)(&name, progress),
        )?;
        self.rounds.push(Round { width, k, outcome });
        Ok(())
    }

    /// A network that starts as wide as the source; y's scales are those of the observations, or of draws where these are few.
    fn recognition(&self, source: &dyn Source) -> Result<Recognition> {
        let seed = self.options.seed;
        let x = source.sample(SCALE_DRAWS, Noise::new(seed, Purpose::Recognition, 0));
        let simulated;
        let y = if self.observations.y.rows() < FEW_OBSERVATIONS {
            let noise = Noise::new(seed, Purpose::Recognition, 1);
            simulated = self.likelihood.sample(x.view(), noise);
            simulated.view()
        } else {
            self.observations.y
        };
        let x = match self.options.domain {
            Some(domain) => domain.to_free(x.view()),
            None => x,
        };
        let (x, y) = (measure("x", x.view())?, measure("y", y)?);
        let x = Spread {
            mean: &x.mean,
            deviation: &x.deviation,
        };
        let y = Spread {
            mean: &y.mean,
            deviation: &y.deviation,
        };
        let network = Recognition::new(&self.config.recognition, x, y, seed);
        Ok(match self.options.domain {
            Some(domain) => network.within(domain.clone()),
            None => network,
        })
    }

    fn pull(&self, train: &TrainConfig) -> Pull<'a> {
        let rows = self.observations.y.rows();
        let left = rows - (rows as f64 * train.held_out).round() as usize;
        Pull {
            entropy: self.config.entropy,
            towards: self
                .options
                .towards
                .map(|reference| (self.config.pull, reference)),
            last_share: self.config.last_share,
            steps: (train.epochs * (left / train.batch)).max(1) as u64,
        }
    }
}

fn measure(letter: &str, rows: Rows) -> Result<Scaling> {
    let all: Vec<u32> = (0..rows.rows() as u32).collect();
    let names: Vec<String> = (1..=rows.cols()).map(|d| format!("{letter}{d}")).collect();
    Scaling::measure(rows, &all, &names)
}

impl SingleConfig {
    /// Draws of every round of a variational bound, K in the last.
    fn draws_of_rounds(&self) -> impl Iterator<Item = usize> {
        let before = (0..self.rounds as u32).rev();
        before.map(|left| (self.k / TIGHTENING.pow(left)).max(1))
    }

    fn marginal_estimator(&self) -> Estimator {
        let k = self.k;
        match (self.estimator, self.samples, self.levels) {
            (EstimatorKind::Roulette, _, Levels::Doubling) => Estimator::Roulette(Roulette::new(k)),
            (EstimatorKind::Roulette, _, Levels::Single) => Estimator::Roulette(Roulette {
                k,
                increments: Increments::Single {
                    continue_probability: CONTINUE,
                },
            }),
            (_, Sampling::Shared, _) => Estimator::Shared { k },
            (_, Sampling::Independent, _) => Estimator::Independent { k },
        }
    }
}
