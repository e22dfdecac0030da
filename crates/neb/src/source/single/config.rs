//! Settings of a single fit; `fast` is what works in little time, `paper` what was published.

use serde::{Deserialize, Serialize};

use super::super::recognition::RecognitionConfig;
use super::super::variational::check_density;
use super::super::{Bound, Direction, Source, SourceConfig, SourceKind};
use super::MOST_ROUNDS;
use crate::flow::umnn::NODES_OF_PANEL;
use crate::nn::activation::Activation;
use crate::nn::adam::AdamConfig;
use crate::nn::schedule::Schedule;
use crate::train::TrainConfig;
use crate::{Error, Result};

/// More nodes than this are no use: a source's own rule has 21.
const MOST_NODES: usize = 18;

/// Which estimate of log q(y) is maximised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EstimatorKind {
    /// L_K, biased low by the order of 1/K.
    Mc,
    /// L_K de-biased by a random number of further samples.
    Roulette,
    /// The evidence lower bound.
    Elbo,
    /// The importance-weighted bound.
    Iw,
}

impl EstimatorKind {
    /// The variational bound it is, if it is one.
    pub fn bound(self) -> Option<Bound> {
        match self {
            Self::Elbo => Some(Bound::Elbo),
            Self::Iw => Some(Bound::ImportanceWeighted),
            Self::Mc | Self::Roulette => None,
        }
    }
}

/// Whether the observations of a minibatch share their samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sampling {
    /// One set of K samples for all.
    Shared,
    /// K samples for each, as in the paper.
    Independent,
}

/// How the roulette's corrections grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Levels {
    /// Sample sizes double: finite variance and cost.
    Doubling,
    /// One more sample at a time, as in the paper.
    Single,
}

/// How one source is fitted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SingleConfig {
    /// What is maximised.
    pub estimator: EstimatorKind,
    /// Samples K.
    pub k: usize,
    /// Whose samples they are (`mc`).
    pub samples: Sampling,
    /// How corrections grow (`roulette`).
    pub levels: Levels,
    /// Samples in the held-out estimate (`mc`, `roulette`).
    pub judge_k: usize,
    /// Weight λ of the entropy.
    pub entropy: f64,
    /// Weight κ of a pull towards a simpler source, if one is given.
    pub pull: f64,
    /// Both weights fall linearly to this share of themselves.
    pub last_share: f64,
    /// Effective samples half of the observations must have: the likelihood is widened until they do; 0 never widens
    /// (`mc`, `roulette`).
    pub effective_samples: f64,
    /// Rounds of training, each with four times the draws of the one before and the last with K; the first of several at three
    /// times the rate (`iw`).
    pub rounds: usize,
    /// Nodes of an integral while training (UMNN), a multiple of three; 0 for the source's own rule, which it has in any case afterwards.
    pub training_nodes: usize,
    /// Fewest steps: where observations are few, epochs are added until there are so many.
    pub least_steps: usize,
    /// The recognition network (`elbo`, `iw`).
    pub recognition: RecognitionConfig,
    /// The training.
    pub train: TrainConfig,
}

impl SingleConfig {
    /// What works in little time.
    pub fn fast(estimator: EstimatorKind) -> Self {
        Self {
            estimator,
            k: match estimator {
                EstimatorKind::Mc => 2048,
                EstimatorKind::Roulette => 512,
                EstimatorKind::Elbo => 4,
                EstimatorKind::Iw => 32,
            },
            samples: Sampling::Shared,
            levels: Levels::Doubling,
            judge_k: 8192,
            entropy: 0.0,
            pull: 0.0,
            last_share: 0.0,
            effective_samples: 30.0,
            rounds: 1,
            training_nodes: 3,
            least_steps: 1000,
            recognition: RecognitionConfig::default(),
            train: TrainConfig {
                epochs: 40,
                batch: 128,
                rate: 2e-3,
                schedule: Schedule::Cosine { warm_up: 0.02 },
                adam: AdamConfig {
                    clip_norm: 5.0,
                    ..AdamConfig::default()
                },
                held_out: 0.1,
                patience: 10,
            },
        }
    }

    /// The paper's: batch 128, Adam at 1e-4 for 100 epochs (300 with a variational bound), a tenth held out, patience 10 but
    /// for roulette; K = 1024 (IW 128, ELBO 1); UMNN recognition network.
    ///
    /// Three things are not the paper's, for speed: samples are shared, which changes no estimate's law; integrals have 6 nodes
    /// while training; and IW begins with 8 draws, then 32.
    pub fn paper(estimator: EstimatorKind) -> Self {
        Self {
            k: match estimator {
                EstimatorKind::Mc | EstimatorKind::Roulette => 1024,
                EstimatorKind::Elbo => 1,
                EstimatorKind::Iw => 128,
            },
            levels: Levels::Single,
            effective_samples: 0.0,
            rounds: if estimator == EstimatorKind::Iw { 3 } else { 1 },
            recognition: RecognitionConfig::paper(),
            train: TrainConfig {
                epochs: match estimator.bound() {
                    Some(_) => 300,
                    None => 100,
                },
                batch: 128,
                rate: 1e-4,
                schedule: Schedule::Constant,
                adam: AdamConfig::default(),
                held_out: 0.1,
                patience: if estimator == EstimatorKind::Roulette {
                    0
                } else {
                    10
                },
            },
            ..Self::fast(estimator)
        }
    }

    /// The source the paper fits with this estimator: UMNN that runs where the estimator is fast (from noise for draws, to noise
    /// for densities), an mlp of 3 × 100 units, or the collider's coupling flow of six layers of 32 units.
    pub fn paper_source(estimator: EstimatorKind, kind: SourceKind) -> SourceConfig {
        let mut source = Self::source(estimator, kind);
        if kind == SourceKind::Coupling {
            source.layers = 6;
            source.hidden = vec![32, 32];
            source.activation = Activation::Relu;
        }
        source
    }

    /// A source of this kind that runs where the estimator is fast.
    pub fn source(estimator: EstimatorKind, kind: SourceKind) -> SourceConfig {
        SourceConfig {
            direction: match estimator.bound() {
                Some(_) => Direction::ToNoise,
                None => Direction::FromNoise,
            },
            ..SourceConfig::new(kind)
        }
    }

    /// Refuses a source that the estimator cannot fit.
    ///
    /// # Errors
    /// A variational bound for a source without a density.
    pub fn check_source(&self, source: &dyn Source) -> Result<()> {
        match self.estimator.bound() {
            Some(_) => check_density(source),
            None => Ok(()),
        }
    }

    /// Refuses settings that make no sense.
    ///
    /// # Errors
    /// Names the first such setting, its value, and what to change.
    pub fn check(&self) -> Result<()> {
        self.train.check()?;
        self.recognition.check()?;
        for (key, value) in [("k", self.k), ("judge-k", self.judge_k)] {
            if value == 0 {
                return Err(Error::input(
                    format!("source: {key} is 0: an estimate from no samples"),
                    "set it to 1 or more; 1024 is the paper's",
                ));
            }
        }
        if !(1..=MOST_ROUNDS).contains(&self.rounds) {
            return Err(Error::input(
                format!("source: rounds is {}", self.rounds),
                format!("use 1 to {MOST_ROUNDS}"),
            ));
        }
        if self.training_nodes > MOST_NODES || !self.training_nodes.is_multiple_of(NODES_OF_PANEL) {
            return Err(Error::input(
                format!("source: training-nodes is {}", self.training_nodes),
                format!(
                    "use a multiple of {NODES_OF_PANEL} up to {MOST_NODES}, or 0 for the source's own rule"
                ),
            ));
        }
        if self.rounds > 1 && self.estimator != EstimatorKind::Iw {
            return Err(Error::input(
                format!(
                    "source: {} rounds are a setting of the estimator iw",
                    self.rounds
                ),
                "leave `rounds` out",
            ));
        }
        let amounts = [
            ("entropy", self.entropy),
            ("pull", self.pull),
            ("last-share", self.last_share),
            ("effective-samples", self.effective_samples),
        ];
        for (key, value) in amounts {
            if !(value.is_finite() && value >= 0.0) {
                return Err(Error::input(
                    format!("source: {key} is {value}"),
                    "set it to 0 or more",
                ));
            }
        }
        if self.estimator != EstimatorKind::Mc && self.samples == Sampling::Independent {
            return Err(Error::input(
                "source: independent samples are a setting of the estimator mc",
                "leave `samples` out: roulette shares its samples, elbo and iw draw their own for every observation",
            ));
        }
        Ok(())
    }
}
