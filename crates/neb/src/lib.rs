//! Neural Empirical Bayes: the distribution behind noisy observations.
//!
//! An experiment records observations y. Each came from a hidden x through a corruption that only a simulator knows. From
//! simulated pairs (x_j, y_j) this crate learns
//!
//! 1. a **surrogate** likelihood q(y|x) ([`surrogate`]), by maximising Σ_j log q(y_j|x_j);
//! 2. the **source** q(x) ([`source`]) whose push-forward through the surrogate reproduces the observations, by maximising
//!    their log-marginal likelihood Σ_i log ∫ q(y_i|x) q(x) dx ([`estimator`]);
//!
//! then draws from the posterior p(x|y) ∝ q(y|x) q(x) of any observation ([`posterior`]), and says how far to trust the result
//! ([`check`]). After *Neural Empirical Bayes* (Vandegar, Kagan, Wehenkel and Louppe,
//! AISTATS 2021).
//!
//! # From pairs to a source
//!
//! ```
//! use std::ops::ControlFlow;
//!
//! use neb::posterior::{Posterior, PosteriorOptions};
//! use neb::source::Observations;
//! use neb::source::ladder::{LadderConfig, LadderOptions, climb};
//! use neb::surrogate::{FitOptions, ModelConfig, Pairs, Surrogate, SurrogateConfig};
//! use neb::{Noise, Purpose};
//!
//! // A built-in simulator; yours would be a file of pairs and a file of observations.
//! let problem = neb::simulator::by_name("two-moons")?;
//! let (x, y) = problem.pairs(Default::default(), 2_000, 1);
//! let (_, observed) = problem.observations(1_000, 2);
//!
//! // Stage 1: q(y|x).
//! let mut config = SurrogateConfig::single(ModelConfig::noisy_mixture(2));
//! config.candidates[0].train.epochs = 5;
//! let pairs = Pairs {
//!     x: x.view(),
//!     y: y.view(),
//!     x_names: &["x1".into(), "x2".into()],
//!     y_names: &["y1".into(), "y2".into()],
//! };
//! let options = FitOptions {
//!     seed: 1,
//!     checkpoints: None,
//!     watch: &mut |_, _| ControlFlow::Continue(()),
//! };
//! let (surrogate, report) = Surrogate::fit(pairs, &config, options)?;
//! assert!(report.best().held_out.is_finite());
//!
//! // Stage 2: q(x).
//! let ladder = LadderConfig {
//!     affine_k: 256,
//!     refine_k: 256,
//!     judge_k: 512,
//!     particles: 1_000,
//!     refine_epochs: 1,
//!     ..LadderConfig::default()
//! };
//! let options = LadderOptions {
//!     seed: 1,
//!     checkpoints: None,
//!     watch: &mut |_, _| ControlFlow::Continue(()),
//! };
//! let observations = Observations {
//!     y: observed.view(),
//!     weights: None,
//! };
//! let outcome = climb(&surrogate, observations, x.view(), &ladder, options)?;
//! println!("{}", outcome.report.reason());
//! let draws = outcome.source.source().sample(100, Noise::new(1, Purpose::SourceSample, 0));
//! assert_eq!((draws.rows(), draws.cols()), (100, 2));
//!
//! // What a single observation says about its own x.
//! let posterior = Posterior::new(outcome.source.source(), &surrogate)?;
//! let options = PosteriorOptions { draws: 10, ..PosteriorOptions::default() };
//! let draws = posterior.rejection(observed.view().slice(0..2), &options)?;
//! assert_eq!((draws.of(0).rows(), draws.of(0).cols()), (10, 2));
//! # Ok::<(), neb::Error>(())
//! ```
//!
//! Same seed, same data, same result, whatever the number of threads. Nothing here prints; everything that can go wrong with
//! a user's data is an [`Error`] with a hint.

#![forbid(unsafe_code)]

pub mod check;
pub mod column;
mod density;
mod error;
pub mod estimator;
mod flow;
pub mod kernel;
mod likelihood;
mod matrix;
pub mod nn;
pub mod posterior;
mod random;
mod scaling;
pub mod simulator;
pub mod source;
mod store;
pub mod surrogate;
mod tempered;
pub mod train;
pub mod unfold;

pub use error::{Error, Result};
pub use likelihood::{Acceptance, Dims, Likelihood, PairWeights, Widening};
pub use matrix::{Matrix, MatrixMut, Rows};
pub use random::{Noise, Purpose, Stream};
pub use tempered::Tempered;
