//! What a recognition network is made of.

use serde::{Deserialize, Serialize};

use crate::flow::coupling::Mover;
use crate::flow::spline::{MAX_BINS, Spline};
use crate::flow::stack::{Flow, FlowShape};
use crate::flow::umnn::UmnnShape;
use crate::nn::activation::Activation;
use crate::nn::made::Reaches;
use crate::{Error, Result};

/// The form of q_ψ(x|y).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", deny_unknown_fields)]
pub enum RecognitionConfig {
    /// Spline couplings and then a Gaussian whose mean, scales and correlations depend on y: cheap, and exactly invertible.
    Spline {
        /// Number of coupling layers.
        layers: usize,
        /// Hidden units of their networks.
        hidden: Vec<usize>,
        /// Hidden units of the Gaussian's network.
        head: Vec<usize>,
        /// Bins of each spline.
        bins: usize,
        /// The splines act on [−bound, bound], in deviations.
        bound: f32,
    },
    /// Unconstrained monotonic networks, as in the paper.
    Umnn {
        /// Number of layers.
        layers: usize,
        /// Hidden units of the embedding network and of the integrand.
        hidden: Vec<usize>,
        /// Values the embedding gives each dimension.
        embedding: usize,
        /// Steps of the quadrature; even.
        steps: usize,
    },
}

impl Default for RecognitionConfig {
    fn default() -> Self {
        Self::Spline {
            layers: 4,
            hidden: vec![64, 64],
            head: vec![64, 64],
            bins: 8,
            bound: 4.0,
        }
    }
}

impl RecognitionConfig {
    /// The paper's: six UMNN layers, networks of 3 × 75 units, 10 embedding values, 20 steps.
    pub fn paper() -> Self {
        Self::Umnn {
            layers: 6,
            hidden: vec![75; 3],
            embedding: 10,
            steps: 20,
        }
    }

    /// Refuses sizes that make no sense.
    ///
    /// # Errors
    /// Names the first such size.
    pub fn check(&self) -> Result<()> {
        let refuse = |what: String, hint: &str| {
            Err(Error::input(format!("recognition network: {what}"), hint))
        };
        let (layers, hidden) = match self {
            Self::Spline { layers, hidden, .. } | Self::Umnn { layers, hidden, .. } => {
                (*layers, hidden)
            }
        };
        if layers == 0 || hidden.is_empty() || hidden.contains(&0) {
            return refuse(
                format!("{layers} layers with hidden units {hidden:?}"),
                "use at least one layer, and hidden layers of at least one unit",
            );
        }
        match self {
            Self::Spline {
                bins, bound, head, ..
            } => {
                if !((2..=MAX_BINS).contains(bins) && bound.is_finite() && *bound > 0.0) {
                    return refuse(
                        format!("splines of {bins} bins on ±{bound}"),
                        "use 2 to 16 bins and a positive bound",
                    );
                }
                if head.is_empty() || head.contains(&0) {
                    return refuse(
                        format!("hidden units {head:?} of the Gaussian"),
                        "use at least one hidden layer, of at least one unit",
                    );
                }
            }
            Self::Umnn {
                embedding, steps, ..
            } => {
                if *embedding == 0 || *steps == 0 || steps % 2 == 1 {
                    return refuse(
                        format!("{embedding} embedding values and {steps} steps"),
                        "use at least one value and an even number of steps",
                    );
                }
            }
        }
        Ok(())
    }

    /// Lays out the flow from noise to x.
    pub(super) fn flow(&self, dx: usize, dy: usize) -> Flow {
        match self {
            Self::Spline {
                layers,
                hidden,
                head,
                bins,
                bound,
            } => Flow::onto_head(&FlowShape {
                dim: dx,
                context: dy,
                head: Some(head.clone()),
                layers: *layers,
                hidden: hidden.clone(),
                activation: Activation::Silu,
                mover: Mover::Spline(Spline {
                    bins: *bins,
                    bound: *bound,
                }),
            }),
            Self::Umnn {
                layers,
                hidden,
                embedding,
                steps,
            } => Flow::umnn(&UmnnShape {
                layers: *layers,
                embedding_hidden: hidden.clone(),
                embedding: *embedding,
                integrand_hidden: hidden.clone(),
                steps: *steps,
                reaches: Reaches::Useful,
                ..UmnnShape::paper(dx, dy)
            }),
        }
    }

    /// Factor on the networks' last layers at the start: splines begin at the identity, UMNN as the authors' do.
    pub(super) fn last_layer_scale(&self) -> f32 {
        match self {
            Self::Spline { .. } => 0.02,
            Self::Umnn { .. } => 1.0,
        }
    }
}
