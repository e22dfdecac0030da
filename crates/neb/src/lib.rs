//! Neural Empirical Bayes: the distribution behind noisy observations.

#![forbid(unsafe_code)]

mod error;
mod likelihood;
mod matrix;
mod random;
pub mod simulator;
pub mod surrogate;

pub use error::{Error, Result};
pub use likelihood::{Dims, Likelihood, PairWeights};
pub use matrix::{Matrix, MatrixMut, Rows};
pub use random::{Noise, Purpose, Stream};
