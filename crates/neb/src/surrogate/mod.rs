//! Stage 1: the likelihood q(y|x), learned from simulated pairs or known exactly.
//!
//! - [`Surrogate`]: learned, in one of the forms of [`ModelConfig`], or the best of several ([`SurrogateConfig::auto`]);
//! - [`Exact`]: the built-in problems' own likelihoods;
//! - [`GaussianNoise`]: a linear map and Gaussian noise of known covariance.

mod auto;
mod config;
mod exact;
mod file;
pub(crate) mod fit;
mod gaussian_noise;
mod learned;
pub(crate) mod mixture;
pub(crate) mod neural;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use auto::{Report, Tried};
pub use config::{CandidateConfig, ModelConfig, SurrogateConfig};
pub use exact::Exact;
pub use fit::NoiseScale;
pub use gaussian_noise::GaussianNoise;
pub use learned::{FitOptions, Pairs, Surrogate};
