//! Neural Empirical Bayes: the distribution behind noisy observations.

#![forbid(unsafe_code)]

pub mod check;
mod density;
mod error;
pub mod estimator;
mod flow;
pub mod kernel;
mod likelihood;
mod matrix;
pub mod nn;
mod random;
mod scaling;
pub mod simulator;
pub mod source;
mod store;
pub mod surrogate;
mod tempered;
pub mod train;

pub use error::{Error, Result};
pub use likelihood::{Dims, Likelihood, PairWeights, Widening};
pub use matrix::{Matrix, MatrixMut, Rows};
pub use random::{Noise, Purpose, Stream};
pub use tempered::Tempered;
