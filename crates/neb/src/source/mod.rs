//! Stage 2: sources q(x), what the observations are believed to come from.
//!
//! - [`SourceConfig`]: settings of a source of any kind, which [`SourceConfig::build`] turns into a [`Model`];
//! - [`Affine`]: an affine map of a normal or uniform law, the simplest sources there are;
//! - [`FlowSource`]: a coupling, spline or UMNN flow, from noise to x or from x to noise, with a density;
//! - [`MlpSource`]: a network of noise, without a density;
//! - [`Bounded`], [`Symmetric`]: any of these held inside a [`Domain`], or made exactly even;
//! - [`particles`]: weights on given points, fitted by expectation-maximisation;
//! - [`Recognition`]: q(x|y), the companion that the variational bounds train with the source;
//! - [`fit_single`]: one source by one estimator, as in the paper;
//! - [`ladder`]: the simplest of all these that explains the observations.

mod affine;
mod bounded;
mod config;
mod domain;
mod entropy;
mod few;
mod file;
mod flow;
pub mod ladder;
mod limits;
mod mlp;
mod model;
mod objective;
pub mod particles;
mod points;
mod pull;
mod recognition;
mod single;
mod symmetric;
mod tails;
#[cfg(test)]
mod tests;
mod tiles;
mod variational;
mod view;

pub use affine::{Affine, Base};
pub use bounded::Bounded;
pub use config::{SourceConfig, SourceKind};
pub use domain::Domain;
pub(crate) use domain::{cut, free_coordinate, place};
pub use few::{FewOptions, fit_few};
pub use file::{load_source, save_source};
pub use flow::{Direction, FlowConfig, FlowFit, FlowMap, FlowSource};
pub use mlp::MlpSource;
pub use model::Model;
pub use objective::{Estimator, MarginalObjective};
pub use points::{fit_points, fit_weighted_points};
pub use pull::Pull;
pub use recognition::{Recognition, RecognitionConfig, Spread};
pub use single::{
    EstimatorKind, FEW_OBSERVATIONS, Levels, Observations, Round, Sampling, SingleConfig,
    SingleOptions, SingleOutcome, fit_single, remove_checkpoints,
};
pub use symmetric::Symmetric;
pub use tails::Draws;
pub use variational::{Bound, VariationalObjective, VariationalProblem};
pub(crate) use view::effective_samples;
pub use view::{Width, narrowest_width};

pub use crate::flow::umnn::Quadrature;
use crate::{Matrix, MatrixMut, Noise, Rows};

/// x = G_θ(z): draws, and the gradient of any function of the draws with respect to θ.
pub trait Source: Send + Sync {
    /// Dimension of x.
    fn dim(&self) -> usize;

    /// The parameters θ.
    fn parameters(&self) -> &[f32];

    /// Changes the parameters in place and brings everything derived from them up to date.
    fn update(&mut self, change: &mut dyn FnMut(&mut [f32]));

    /// Takes integrals, if it has any, by this rule, or with `None` by its own again.
    fn set_quadrature(&mut self, _rule: Option<Quadrature>) {}

    /// Rows of base noise z for so many draws.
    fn base(&self, rows: usize, noise: Noise) -> Matrix;

    /// How many of the base noise's columns, from the first on, are independent standard normals that reach all of x's tails;
    /// none where the noise has no tails.
    fn normal_columns(&self) -> Option<usize> {
        None
    }

    /// x = G_θ(z), row by row.
    fn push(&self, z: Rows) -> Matrix;

    /// Adds to `gradient` the gradient of a function of x = G_θ(z) whose gradient with respect to x is `dx`.
    fn backward(&self, z: Rows, x: Rows, dx: Rows, gradient: &mut [f32]);

    /// The source as a density, if it has one.
    fn density(&self) -> Option<&dyn Density>;

    /// So many draws.
    fn sample(&self, rows: usize, noise: Noise) -> Matrix {
        self.push(self.base(rows, noise).view())
    }
}

/// A source whose density can be evaluated.
pub trait Density: Source {
    /// `out[i]` = log q(x_i); −∞ outside the support.
    fn log_prob(&self, x: Rows, out: &mut [f32]);

    /// Evaluations of a simpler density behind each of its own.
    fn evaluations(&self) -> usize {
        1
    }

    /// Where the density is above zero, if that is a box with an edge at all: what samplers move in free coordinates of.
    fn support(&self) -> Option<Domain> {
        None
    }

    /// Adds weight_i ∂ log q(x_i)/∂x_i to row i of `dx` and, if asked for, Σ_i weight_i ∂ log q(x_i)/∂θ to `gradient`.
    fn backward_log_prob(
        &self,
        x: Rows,
        weight: &[f32],
        dx: MatrixMut,
        gradient: Option<&mut [f32]>,
    );
}
