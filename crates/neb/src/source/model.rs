//! Every kind of source under one roof: what a fit ends with, and what a file holds.

use super::affine::Affine;
use super::bounded::Bounded;
use super::flow::FlowSource;
use super::mlp::MlpSource;
use super::points::{fit_points, no_density};
use super::symmetric::Symmetric;
use super::{Density, Quadrature, Source};
use crate::nn::parameters::Tensor;
use crate::scaling::Scaling;
use crate::train::{CheckpointPolicy, Outcome, TrainConfig, Watch};
use crate::{Matrix, Noise, Result, Rows};

/// A source of any kind; made by [`super::SourceConfig`].
#[derive(Clone, Debug)]
pub enum Model {
    /// An affine map of a simple law.
    Affine(Affine),
    /// A flow.
    Flow(Box<FlowSource>),
    /// A network without a density.
    Mlp(Box<MlpSource>),
    /// One of these inside a domain.
    Bounded(Box<Bounded<Model>>),
    /// One of these made even in some dimensions.
    Symmetric(Box<Symmetric<Model>>),
}

impl Model {
    /// The source.
    pub fn source(&self) -> &dyn Source {
        match self {
            Self::Affine(affine) => affine,
            Self::Flow(flow) => &**flow,
            Self::Mlp(mlp) => &**mlp,
            Self::Bounded(bounded) => &**bounded,
            Self::Symmetric(symmetric) => &**symmetric,
        }
    }

    /// The source, to train.
    pub fn source_mut(&mut self) -> &mut dyn Source {
        match self {
            Self::Affine(affine) => affine,
            Self::Flow(flow) => &mut **flow,
            Self::Mlp(mlp) => &mut **mlp,
            Self::Bounded(bounded) => &mut **bounded,
            Self::Symmetric(symmetric) => &mut **symmetric,
        }
    }

    /// Its density, if it has one.
    pub fn density(&self) -> Option<&dyn Density> {
        self.source().density()
    }

    /// Its density, for what cannot do without; `who` says what that is, as "log-prob".
    ///
    /// # Errors
    /// A source without a density, with what to use instead.
    pub fn require_density(&self, who: &str) -> Result<&dyn Density> {
        self.density().ok_or_else(|| no_density(who))
    }

    /// Fits the source to points by maximum likelihood; an existing checkpoint is resumed.
    ///
    /// # Errors
    /// A source without a density, a loss that is not finite (points outside the support), too few points for a batch, a
    /// checkpoint of another run, or a stop on request.
    pub fn fit_points(
        &mut self,
        points: Rows,
        config: &TrainConfig,
        seed: u64,
        checkpoints: Option<&CheckpointPolicy>,
        watch: &mut Watch,
    ) -> Result<Outcome> {
        match self {
            Self::Flow(flow) => flow.fit_points(points, config, seed, checkpoints, watch),
            // The domain's map has no parameters: its log-slope shifts the loss by a constant.
            Self::Bounded(bounded) => {
                let free = bounded.domain.to_free(points);
                bounded
                    .inner
                    .fit_points(free.view(), config, seed, checkpoints, watch)
            }
            // log mean_s q(s ⊙ x) ≥ mean_s log q(s ⊙ x): the inner source is fitted to points with random signs, one pattern
            // each instead of 2^m.
            Self::Symmetric(symmetric) => {
                let scattered = symmetric.scatter(points, seed);
                let inner = &mut symmetric.inner;
                inner.fit_points(scattered.view(), config, seed, checkpoints, watch)
            }
            other => fit_points(other.source_mut(), points, config, seed, checkpoints, watch),
        }
    }

    /// The same source; of an affine one the shifts stay where they are while training, or not.
    pub(super) fn scales_only(self, only: bool) -> Self {
        match self {
            Self::Affine(affine) => Self::Affine(affine.scales_only(only)),
            Self::Bounded(bounded) => {
                let inner = bounded.inner.scales_only(only);
                Self::Bounded(Box::new(Bounded::new(inner, bounded.domain)))
            }
            other => other,
        }
    }

    /// The same affine source with its shifts back where they started; none where they are there anyway.
    pub(super) fn unshifted(&self) -> Option<Self> {
        match self {
            Self::Affine(affine) => affine.unshifted().map(Self::Affine),
            Self::Bounded(bounded) => {
                let inner = bounded.inner.unshifted()?;
                let domain = bounded.domain.clone();
                Some(Self::Bounded(Box::new(Bounded::new(inner, domain))))
            }
            _ => None,
        }
    }

    /// The part that has parameters: where it started and its tensors.
    pub(super) fn core(&self) -> (&Scaling, Vec<Tensor>) {
        match self {
            Self::Affine(affine) => (affine.start(), affine.layout().tensors().to_vec()),
            Self::Flow(flow) => (&flow.scaling, flow.tensors()),
            Self::Mlp(mlp) => (mlp.scaling(), mlp.layout().tensors().to_vec()),
            Self::Bounded(bounded) => bounded.inner.core(),
            Self::Symmetric(symmetric) => symmetric.inner.core(),
        }
    }
}

impl Source for Model {
    fn dim(&self) -> usize {
        self.source().dim()
    }

    fn parameters(&self) -> &[f32] {
        self.source().parameters()
    }

    fn update(&mut self, change: &mut dyn FnMut(&mut [f32])) {
        self.source_mut().update(change);
    }

    fn set_quadrature(&mut self, rule: Option<Quadrature>) {
        self.source_mut().set_quadrature(rule);
    }

    fn base(&self, rows: usize, noise: Noise) -> Matrix {
        self.source().base(rows, noise)
    }

    fn normal_columns(&self) -> Option<usize> {
        self.source().normal_columns()
    }

    fn push(&self, z: Rows) -> Matrix {
        self.source().push(z)
    }

    fn backward(&self, z: Rows, x: Rows, dx: Rows, gradient: &mut [f32]) {
        self.source().backward(z, x, dx, gradient);
    }

    fn density(&self) -> Option<&dyn Density> {
        self.source().density()
    }
}
