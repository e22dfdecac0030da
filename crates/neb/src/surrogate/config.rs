//! What a surrogate is made of and how it is trained; `Default` is what works best, `paper` what was published.

use serde::{Deserialize, Serialize};

use super::fit::NoiseScale;
use crate::nn::activation::Activation;
use crate::nn::adam::AdamConfig;
use crate::nn::schedule::Schedule;
use crate::train::TrainConfig;
use crate::{Error, Result};

/// The form of q(y|x).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", deny_unknown_fields)]
pub enum ModelConfig {
    /// Conditional affine coupling flow (the paper's), optionally on a conditional Gaussian head.
    Coupling {
        /// Number of coupling layers.
        layers: usize,
        /// Hidden units of each network.
        hidden: Vec<usize>,
        /// Hidden units of the head's network; empty for no head.
        head: Vec<usize>,
        /// Function between the networks' layers.
        activation: Activation,
    },
    /// Conditional rational-quadratic spline flow, optionally on a conditional Gaussian head.
    Spline {
        /// Number of coupling layers.
        layers: usize,
        /// Hidden units of each network.
        hidden: Vec<usize>,
        /// Hidden units of the head's network; empty for no head.
        head: Vec<usize>,
        /// Bins of each spline.
        bins: usize,
        /// The splines act on [−bound, bound], in deviations.
        bound: f32,
        /// Function between the networks' layers.
        activation: Activation,
    },
    /// Conditional Gaussian mixture with full covariances.
    Mixture {
        /// Number of components.
        components: usize,
        /// Hidden units of the network.
        hidden: Vec<usize>,
        /// Makes the density conditional on the scale τ of noise added to y.
        noise: Option<NoiseScale>,
    },
}

impl ModelConfig {
    /// The paper's surrogate: four coupling layers, networks in-50-50-out.
    pub fn paper() -> Self {
        Self::Coupling {
            layers: 4,
            hidden: vec![50, 50],
            head: Vec::new(),
            activation: Activation::Relu,
        }
    }

    /// A coupling flow on a Gaussian head.
    pub fn coupling() -> Self {
        Self::Coupling {
            layers: 4,
            hidden: vec![64, 64],
            head: vec![128, 128, 128],
            activation: Activation::Silu,
        }
    }

    /// A spline flow on a Gaussian head.
    pub fn spline() -> Self {
        Self::Spline {
            layers: 4,
            hidden: vec![64, 64],
            head: vec![128, 128, 128],
            bins: 8,
            bound: 4.0,
            activation: Activation::Silu,
        }
    }

    /// A mixture of so many components.
    pub fn mixture(components: usize) -> Self {
        Self::Mixture {
            components,
            hidden: vec![128, 128, 128],
            noise: None,
        }
    }

    /// A mixture that also knows the density of y with noise of any scale τ up to ½ added: what stage 2 anneals with.
    pub fn noisy_mixture(components: usize) -> Self {
        Self::Mixture {
            components,
            hidden: vec![128, 128, 128],
            noise: Some(NoiseScale {
                smallest: 1e-3,
                largest: 0.5,
            }),
        }
    }

    /// The name reports use.
    pub fn name(&self) -> String {
        let on_head = |head: &[usize]| if head.is_empty() { "" } else { "gaussian+" };
        match self {
            Self::Coupling { head, layers, .. } => format!("{}coupling-{layers}", on_head(head)),
            Self::Spline { head, layers, .. } => format!("{}spline-{layers}", on_head(head)),
            Self::Mixture {
                components, noise, ..
            } => {
                let noise = if noise.is_some() { "+noise" } else { "" };
                format!("mixture-{components}{noise}")
            }
        }
    }

    /// Refuses sizes that make no sense.
    pub(crate) fn check(&self) -> Result<()> {
        let refuse = |what: &str, hint: &str| Err(Error::input(what.to_owned(), hint));
        let (layers, hidden) = match self {
            Self::Coupling { layers, hidden, .. } => (*layers, hidden),
            Self::Spline {
                layers,
                hidden,
                bins,
                bound,
                ..
            } => {
                if !(2..=crate::flow::spline::MAX_BINS).contains(bins) {
                    return refuse("a spline needs 2 to 16 bins", "set `bins` to 8");
                }
                if bound.is_nan() || *bound <= 0.0 {
                    return refuse("a spline's bound must be positive", "set `bound` to 4");
                }
                (*layers, hidden)
            }
            Self::Mixture {
                components, hidden, ..
            } => (*components, hidden),
        };
        if layers == 0 {
            return refuse(
                "a surrogate needs at least one layer or component",
                "set `layers` or `components` to 1 or more",
            );
        }
        if hidden.is_empty() || hidden.contains(&0) {
            return refuse(
                "`hidden` must name at least one layer, each of at least one unit",
                "for example hidden = [64, 64]",
            );
        }
        Ok(())
    }
}

/// A form and the way to train it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CandidateConfig {
    /// The form.
    pub model: ModelConfig,
    /// The training.
    pub train: TrainConfig,
}

/// The candidates, of which the one with the best held-out log-likelihood is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SurrogateConfig {
    /// One or more.
    pub candidates: Vec<CandidateConfig>,
}

impl SurrogateConfig {
    /// Refuses settings that no data could be used with.
    ///
    /// # Errors
    /// No candidate, sizes or rates that make no sense, or candidates that hold out different shares of the pairs: their
    /// held-out values could not be compared.
    pub fn check(&self) -> Result<()> {
        let Some(first) = self.candidates.first() else {
            return Err(Error::input(
                "no surrogate candidate is configured",
                "name at least one model",
            ));
        };
        for candidate in &self.candidates {
            candidate.model.check()?;
            candidate.train.check()?;
            if candidate.train.held_out != first.train.held_out {
                return Err(Error::input(
                    "the candidates hold out different shares of the pairs",
                    "set the same `held-out` for all",
                ));
            }
        }
        Ok(())
    }

    /// Trains one form with the default schedule.
    pub fn single(model: ModelConfig) -> Self {
        Self {
            candidates: vec![CandidateConfig {
                model,
                train: default_training(),
            }],
        }
    }

    /// The paper's network and schedule: Adam 1e-4, weight decay 5e-5, batch 128, 300 epochs.
    pub fn paper() -> Self {
        Self {
            candidates: vec![CandidateConfig {
                model: ModelConfig::paper(),
                train: paper_training(),
            }],
        }
    }

    /// Mixtures that stage 2 can anneal; the best on held-out pairs wins. They train twice as long as the others of
    /// [`SurrogateConfig::auto`]: what the source gains from a sharper likelihood is worth it.
    pub fn fast() -> Self {
        Self {
            candidates: [1, 8]
                .map(|components| CandidateConfig {
                    model: ModelConfig::noisy_mixture(components),
                    train: TrainConfig {
                        epochs: 200,
                        ..default_training()
                    },
                })
                .to_vec(),
        }
    }

    /// Mixtures and flows on a Gaussian head; the best on held-out pairs wins.
    pub fn auto() -> Self {
        let models = [
            ModelConfig::mixture(1),
            ModelConfig::mixture(8),
            ModelConfig::coupling(),
            ModelConfig::spline(),
        ];
        Self {
            candidates: models
                .into_iter()
                .map(|model| CandidateConfig {
                    model,
                    train: default_training(),
                })
                .collect(),
        }
    }
}

impl Default for SurrogateConfig {
    fn default() -> Self {
        Self::auto()
    }
}

fn default_training() -> TrainConfig {
    TrainConfig {
        epochs: 100,
        batch: 128,
        rate: 2e-3,
        schedule: Schedule::Cosine { warm_up: 0.02 },
        adam: AdamConfig {
            clip_norm: 5.0,
            ..AdamConfig::default()
        },
        held_out: 0.1,
        patience: 0,
    }
}

fn paper_training() -> TrainConfig {
    TrainConfig {
        epochs: 300,
        batch: 128,
        rate: 1e-4,
        schedule: Schedule::Constant,
        adam: AdamConfig {
            weight_decay: 5e-5,
            ..AdamConfig::default()
        },
        held_out: 0.1,
        patience: 0,
    }
}
