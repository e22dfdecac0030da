//! A flow as source, in one of two directions.
//!
//! *To noise*, z = T(x̂) with x̂ = (x − mean)/deviation: the density q(x) = N(T(x̂)) |∂T/∂x̂| / Π deviation is one pass, draws are
//! one inverse pass. *From noise*, x = mean + deviation · T(z): draws are one pass, and the density is that of z = T⁻¹(x̂).
//! Splines and couplings are exact and quick both ways; UMNN inverts by root finding, so it runs from noise where samples are
//! wanted (`mc`, `roulette`) and to noise where densities are (`elbo`, `iw`).

use serde::{Deserialize, Serialize};

use super::points::fit_points;
use super::tiles::walk;
use super::{Density, Quadrature, Source};
use crate::density::ConditionalDensity;
use crate::flow::coupling::Mover;
use crate::flow::spline::Spline;
use crate::flow::stack::{Flow, FlowShape, FlowTape, log_base};
use crate::flow::umnn::UmnnShape;
use crate::kernel::{LANES, Lane, tile};
use crate::nn::activation::Activation;
use crate::nn::made::Reaches;
use crate::nn::parameters::Tensor;
use crate::scaling::Scaling;
use crate::surrogate::fit::PairsObjective;
use crate::train::{self, CheckpointPolicy, Outcome, TrainConfig, Watch};
use crate::{Matrix, MatrixMut, Noise, Purpose, Result, Rows};

/// How much of a drawn network's last layers is kept: the flow starts near the identity.
const START: f32 = 0.02;

/// Which way a flow's own pass runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// From x to z: quick densities.
    ToNoise,
    /// From z to x: quick draws.
    FromNoise,
}

/// The layers of a flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "map")]
pub enum FlowMap {
    /// Affine couplings.
    Coupling,
    /// Rational-quadratic spline couplings.
    Spline {
        /// Bins of a spline, 2 to 16.
        bins: usize,
        /// The splines act on [−bound, bound], in deviations.
        bound: f32,
    },
    /// Unconstrained monotonic networks, each on a masked autoregressive embedding.
    Umnn {
        /// Values the embedding network gives each dimension.
        embedding: usize,
        /// Hidden units of the integrand's network.
        integrand_hidden: Vec<usize>,
        /// Steps of the quadrature; even.
        steps: usize,
        /// Whether sign flips of z are sign flips of x.
        symmetric: bool,
    },
}

/// What a flow is made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowConfig {
    /// The layers.
    #[serde(flatten)]
    pub map: FlowMap,
    /// How many.
    pub layers: usize,
    /// Hidden units of their networks (of the embedding network for UMNN).
    pub hidden: Vec<usize>,
    /// Function between the layers of a coupling's networks; UMNN's are rectifiers.
    pub activation: Activation,
    /// Which way the flow runs.
    pub direction: Direction,
}

impl FlowConfig {
    /// The paper's UMNN source: 6 layers, embedding and integrand networks 3×75, 10 embedding values, 20 steps.
    pub fn paper_umnn(direction: Direction, symmetric: bool) -> Self {
        let paper = UmnnShape::paper(1, 0);
        Self {
            map: FlowMap::Umnn {
                embedding: paper.embedding,
                integrand_hidden: paper.integrand_hidden,
                steps: paper.steps,
                symmetric,
            },
            layers: paper.layers,
            hidden: paper.embedding_hidden,
            activation: Activation::Relu,
            direction,
        }
    }

    fn lay_out(&self, dim: usize) -> Flow {
        let mover = match &self.map {
            FlowMap::Coupling => Mover::Affine,
            &FlowMap::Spline { bins, bound } => Mover::Spline(Spline { bins, bound }),
            FlowMap::Umnn {
                embedding,
                integrand_hidden,
                steps,
                symmetric,
            } => {
                return Flow::umnn(&UmnnShape {
                    dim,
                    context: 0,
                    layers: self.layers,
                    embedding_hidden: self.hidden.clone(),
                    embedding: *embedding,
                    integrand_hidden: integrand_hidden.clone(),
                    steps: *steps,
                    reaches: Reaches::Useful,
                    symmetric: *symmetric,
                });
            }
        };
        Flow::new(&FlowShape {
            dim,
            context: 0,
            head: None,
            layers: self.layers,
            hidden: self.hidden.clone(),
            activation: self.activation,
            mover,
        })
    }
}

/// Size of a coupling flow and how it is fitted to given points.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowFit {
    /// Number of coupling layers.
    pub layers: usize,
    /// Hidden units of their networks.
    pub hidden: Vec<usize>,
    /// Bins of the splines; 0 for affine couplings.
    pub bins: usize,
    /// The splines act on [−bound, bound], in deviations.
    pub bound: f32,
    /// Training by maximum likelihood.
    pub train: TrainConfig,
}

impl FlowFit {
    /// The flow.
    pub fn config(&self) -> FlowConfig {
        FlowConfig {
            map: match (self.bins, self.bound) {
                (0, _) => FlowMap::Coupling,
                (bins, bound) => FlowMap::Spline { bins, bound },
            },
            layers: self.layers,
            hidden: self.hidden.clone(),
            activation: Activation::Silu,
            direction: Direction::ToNoise,
        }
    }
}

/// A flow with a density.
#[derive(Clone, Debug)]
pub struct FlowSource {
    pub(super) flow: Flow,
    pub(super) scaling: Scaling,
    pub(super) config: FlowConfig,
}

impl FlowSource {
    /// A flow that starts close to the normal law with these means and deviations.
    pub fn new(config: &FlowConfig, mean: &[f32], deviation: &[f32], seed: u64) -> Self {
        let mut source = Self::unfitted(config, Scaling::new(mean.to_vec(), deviation.to_vec()));
        let mut stream = Noise::new(seed, Purpose::Initialise, 1).stream(0);
        source.flow.initialise(START, &mut stream);
        source
    }

    /// A flow whose parameters are yet to come.
    pub(super) fn unfitted(config: &FlowConfig, scaling: Scaling) -> Self {
        Self {
            flow: config.lay_out(scaling.mean.len()),
            scaling,
            config: config.clone(),
        }
    }

    /// What the flow is made of.
    pub fn config(&self) -> &FlowConfig {
        &self.config
    }

    /// Fits the flow to points by maximum likelihood; an existing checkpoint is resumed.
    ///
    /// # Errors
    /// A loss that is not finite, too few points for a batch, a checkpoint of another run, or a stop on request.
    pub fn fit_points(
        &mut self,
        points: Rows,
        config: &TrainConfig,
        seed: u64,
        checkpoints: Option<&CheckpointPolicy>,
        watch: &mut Watch,
    ) -> Result<Outcome> {
        if self.config.direction == Direction::FromNoise {
            return fit_points(self, points, config, seed, checkpoints, watch);
        }
        let v = Matrix::from_fn(points.rows(), points.cols(), |row, d| {
            (points.row(row)[d] - self.scaling.mean[d]) * self.scaling.inverse[d]
        });
        let mut objective = PairsObjective::new(&mut self.flow, &v, None, None, seed);
        train::train(&mut objective, config, seed, checkpoints, watch)
    }

    pub(super) fn tensors(&self) -> Vec<Tensor> {
        self.flow.layout().tensors().to_vec()
    }

    /// A tile of x̂.
    fn standardised(&self, x: Rows, first: usize) -> Vec<Lane> {
        let mut v = vec![Lane::ZERO; self.dim()];
        tile::load_scaled(x, first, &self.scaling.mean, &self.scaling.inverse, &mut v);
        v
    }

    /// The gradient with respect to x̂ of a tile's rows with gradient `dx`; zero in lanes without a row.
    fn standardised_gradient(&self, dx: &[f32]) -> Vec<Lane> {
        let mut d_v = vec![Lane::ZERO; self.dim()];
        for (lane, row) in dx.chunks_exact(self.dim()).enumerate() {
            for (d, &g) in row.iter().enumerate() {
                d_v[d].0[lane] = g * self.scaling.deviation[d];
            }
        }
        d_v
    }

    /// log q in the units of x̂, and with z = T⁻¹(x̂) found by inversion.
    fn log_prob_from_noise(&self, v: &mut [Lane], tape: &mut FlowTape) -> Lane {
        self.flow.sample(v, &Lane::ZERO, &[], tape);
        let z = v.to_vec();
        let log_det = self.flow.to_base(v, &[], tape);
        log_base(&z, Lane(log_det.0.map(|value| -value)))
    }

    /// The gradient with respect to x̂ of Σ weight · log q(x̂), in place of x̂; adds to the workspace's weight gradients.
    ///
    /// With z = T⁻¹(x̂; θ): first the explicit gradient with respect to z and θ, then the one through z.
    fn backward_from_noise(&self, v: &mut [Lane], weight: &Lane, tape: &mut FlowTape) {
        self.flow.sample(v, &Lane::ZERO, &[], tape);
        let z = v.to_vec();
        self.flow.push(v, &[], tape);
        let opposite = Lane(weight.0.map(|weight| -weight));
        v.fill(Lane::ZERO);
        self.flow
            .push_backward(v, &opposite, &[], tape, &mut [], true);
        for (d, z) in v.iter_mut().zip(&z) {
            for lane in 0..LANES {
                d.0[lane] += opposite.0[lane] * z.0[lane];
            }
        }
        self.flow.backward_inverse(&z, &[], tape, v, &mut [], true);
    }
}

impl Source for FlowSource {
    fn dim(&self) -> usize {
        self.scaling.mean.len()
    }

    fn parameters(&self) -> &[f32] {
        self.flow.parameters()
    }

    fn update(&mut self, change: &mut dyn FnMut(&mut [f32])) {
        change(self.flow.parameters_mut());
        self.flow.refresh();
    }

    fn set_quadrature(&mut self, rule: Option<Quadrature>) {
        self.flow.set_quadrature(rule);
    }

    fn base(&self, rows: usize, noise: Noise) -> Matrix {
        noise.normal(rows, self.dim())
    }

    fn normal_columns(&self) -> Option<usize> {
        Some(self.dim())
    }

    fn push(&self, z: Rows) -> Matrix {
        let dim = self.dim();
        let mut x = Matrix::zeros(z.rows(), dim);
        walk(&self.flow, x.values_mut(), dim, None, |tape, first, out| {
            let mut v = vec![Lane::ZERO; dim];
            tile::load(z, first, &mut v);
            match self.config.direction {
                Direction::ToNoise => self.flow.sample(&mut v, &Lane::ZERO, &[], tape),
                Direction::FromNoise => {
                    self.flow.to_base(&mut v, &[], tape);
                }
            }
            self.scaling.store(&v, out);
        });
        x
    }

    fn backward(&self, z: Rows, x: Rows, dx: Rows, gradient: &mut [f32]) {
        let dim = self.dim();
        let mut dx = dx.to_matrix();
        let gradient = Some(gradient);
        walk(
            &self.flow,
            dx.values_mut(),
            dim,
            gradient,
            |tape, first, dx| {
                let mut d_v = self.standardised_gradient(dx);
                match self.config.direction {
                    Direction::ToNoise => {
                        let v = self.standardised(x, first);
                        self.flow
                            .backward_inverse(&v, &[], tape, &mut d_v, &mut [], true);
                    }
                    Direction::FromNoise => {
                        let mut v = vec![Lane::ZERO; dim];
                        tile::load(z, first, &mut v);
                        self.flow.push(&mut v, &[], tape);
                        self.flow
                            .push_backward(&mut d_v, &Lane::ZERO, &[], tape, &mut [], true);
                    }
                }
            },
        );
    }

    fn density(&self) -> Option<&dyn Density> {
        Some(self)
    }
}

impl Density for FlowSource {
    fn log_prob(&self, x: Rows, out: &mut [f32]) {
        let volume = self.scaling.log_volume() as f32;
        walk(&self.flow, out, 1, None, |tape, first, out| {
            let mut v = self.standardised(x, first);
            let value = match self.config.direction {
                Direction::ToNoise => self.flow.log_prob(&v, &[], tape),
                Direction::FromNoise => self.log_prob_from_noise(&mut v, tape),
            };
            for (out, value) in out.iter_mut().zip(value.0) {
                *out = value - volume;
            }
        });
    }

    fn backward_log_prob(
        &self,
        x: Rows,
        weight: &[f32],
        dx: MatrixMut,
        gradient: Option<&mut [f32]>,
    ) {
        let dim = self.dim();
        let learn = gradient.is_some();
        walk(
            &self.flow,
            dx.into_values(),
            dim,
            gradient,
            |tape, first, dx| {
                let mut v = self.standardised(x, first);
                let mut weights = Lane::ZERO;
                for (lane, &weight) in weights.0.iter_mut().zip(&weight[first..]) {
                    *lane = weight;
                }
                match self.config.direction {
                    Direction::ToNoise => {
                        let at = v.clone();
                        self.flow.log_prob_backward(
                            &at,
                            &[],
                            &weights,
                            tape,
                            &mut v,
                            &mut [],
                            learn,
                        );
                    }
                    Direction::FromNoise => self.backward_from_noise(&mut v, &weights, tape),
                }
                for (lane, row) in dx.chunks_exact_mut(dim).enumerate() {
                    for (d, out) in row.iter_mut().enumerate() {
                        *out += v[d].0[lane] * self.scaling.inverse[d];
                    }
                }
            },
        );
    }
}
