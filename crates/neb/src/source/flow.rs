//! A flow as source: x = mean + deviation · T⁻¹(z), with density q(x) = N(T(x̂)) |∂T/∂x̂| / Π deviation.
//!
//! T runs from x to z, so the density is one pass and draws are one inverse pass; both are exact for splines and
//! couplings.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::{Density, Source};
use crate::density::ConditionalDensity;
use crate::flow::coupling::Mover;
use crate::flow::spline::Spline;
use crate::flow::stack::{Flow, FlowShape, FlowTape};
use crate::kernel::{LANES, Lane, tile};
use crate::nn::activation::Activation;
use crate::scaling::Scaling;
use crate::surrogate::fit::PairsObjective;
use crate::train::{self, Outcome, TrainConfig, Watch};
use crate::{Matrix, MatrixMut, Noise, Purpose, Result, Rows};

/// Rows a thread takes at a time; fixed, so that sums do not depend on the number of threads.
const ROWS_PER_CHUNK: usize = 128;

/// Size of a flow and how it is fitted to given points.
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

/// A flow with a density.
#[derive(Clone, Debug)]
pub struct FlowSource {
    pub(super) flow: Flow,
    pub(super) scaling: Scaling,
    pub(super) shape: FlowFit,
}

impl FlowSource {
    /// A flow that starts as the normal law with these means and deviations.
    pub fn new(shape: &FlowFit, mean: &[f32], deviation: &[f32], seed: u64) -> Self {
        let mut source = Self::unfitted(shape, Scaling::new(mean.to_vec(), deviation.to_vec()));
        let mut stream = Noise::new(seed, Purpose::Initialise, 1).stream(0);
        source.flow.initialise(0.02, &mut stream);
        source
    }

    /// A flow whose parameters are yet to come.
    pub(super) fn unfitted(shape: &FlowFit, scaling: Scaling) -> Self {
        let mover = if shape.bins == 0 {
            Mover::Affine
        } else {
            Mover::Spline(Spline {
                bins: shape.bins,
                bound: shape.bound,
            })
        };
        Self {
            flow: Flow::new(&FlowShape {
                dim: scaling.mean.len(),
                context: 0,
                head: None,
                layers: shape.layers,
                hidden: shape.hidden.clone(),
                activation: Activation::Silu,
                mover,
            }),
            scaling,
            shape: shape.clone(),
        }
    }

    /// Fits the flow to points by maximum likelihood.
    ///
    /// # Errors
    /// A loss that is not finite, or too few points for a batch.
    pub fn fit_points(&mut self, points: Rows, seed: u64, watch: &mut Watch) -> Result<Outcome> {
        let v = Matrix::from_fn(points.rows(), points.cols(), |row, d| {
            (points.row(row)[d] - self.scaling.mean[d]) * self.scaling.inverse[d]
        });
        let config = self.shape.train.clone();
        let mut objective = PairsObjective::new(&mut self.flow, &v, None, None, seed);
        train::train(&mut objective, &config, seed, None, watch)
    }

    fn load(&self, rows: Rows, first: usize, tile: &mut [Lane]) {
        tile::load_scaled(rows, first, &self.scaling.mean, &self.scaling.inverse, tile);
    }

    /// Runs `work(workspace, first row of the tile, rows in it)` over all tiles; flat gradients are added chunk by chunk.
    fn for_tiles(
        &self,
        x: Rows,
        dx: &mut [f32],
        gradient: Option<&mut [f32]>,
        work: impl Fn(&mut FlowTape, usize, &mut [f32]) + Sync,
    ) {
        let dim = self.dim();
        let learn = gradient.is_some();
        let partial: Vec<Vec<f32>> = dx
            .par_chunks_mut(ROWS_PER_CHUNK * dim)
            .enumerate()
            .map(|(chunk, dx)| {
                let mut workspace = self.flow.workspace();
                for (t, dx) in dx.chunks_mut(LANES * dim).enumerate() {
                    let first = chunk * ROWS_PER_CHUNK + t * LANES;
                    debug_assert!(first < x.rows());
                    work(&mut workspace, first, dx);
                }
                let mut flat = vec![
                    0.0;
                    if learn {
                        self.flow.parameters().len()
                    } else {
                        0
                    }
                ];
                if learn {
                    self.flow.collect_gradient(&mut workspace, &mut flat);
                }
                flat
            })
            .collect();
        if let Some(gradient) = gradient {
            for flat in partial {
                for (sum, value) in gradient.iter_mut().zip(flat) {
                    *sum += value;
                }
            }
        }
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

    fn base(&self, rows: usize, noise: Noise) -> Matrix {
        noise.normal(rows, self.dim())
    }

    fn push(&self, z: Rows) -> Matrix {
        let dim = self.dim();
        let mut x = Matrix::zeros(z.rows(), dim);
        x.values_mut()
            .par_chunks_mut(ROWS_PER_CHUNK * dim)
            .enumerate()
            .for_each(|(chunk, out)| {
                let mut workspace = self.flow.workspace();
                let mut v = vec![Lane::ZERO; dim];
                for (t, out) in out.chunks_mut(LANES * dim).enumerate() {
                    tile::load(z, chunk * ROWS_PER_CHUNK + t * LANES, &mut v);
                    self.flow.sample(&mut v, &Lane::ZERO, &[], &mut workspace);
                    self.scaling.store(&v, out);
                }
            });
        x
    }

    fn backward(&self, _z: Rows, x: Rows, dx: Rows, gradient: &mut [f32]) {
        let dim = self.dim();
        let mut d_x = dx.values().to_vec();
        self.for_tiles(x, &mut d_x, Some(gradient), |workspace, first, dx| {
            let mut v = vec![Lane::ZERO; dim];
            self.load(x, first, &mut v);
            let mut d_v = vec![Lane::ZERO; dim];
            for (lane, row) in dx.chunks_exact(dim).enumerate() {
                for (d, &g) in row.iter().enumerate() {
                    d_v[d].0[lane] = g * self.scaling.deviation[d];
                }
            }
            self.flow
                .backward_inverse(&v, &[], workspace, &mut d_v, &mut [], true);
        });
    }

    fn density(&self) -> Option<&dyn Density> {
        Some(self)
    }
}

impl Density for FlowSource {
    fn log_prob(&self, x: Rows, out: &mut [f32]) {
        let volume = self.scaling.log_volume() as f32;
        out.par_chunks_mut(ROWS_PER_CHUNK)
            .enumerate()
            .for_each(|(chunk, out)| {
                let mut workspace = self.flow.workspace();
                let mut v = vec![Lane::ZERO; self.dim()];
                for (t, out) in out.chunks_mut(LANES).enumerate() {
                    self.load(x, chunk * ROWS_PER_CHUNK + t * LANES, &mut v);
                    let value = self.flow.log_prob(&v, &[], &mut workspace);
                    for (out, value) in out.iter_mut().zip(value.0) {
                        *out = value - volume;
                    }
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
        self.for_tiles(x, dx.into_values(), gradient, |workspace, first, dx| {
            let mut v = vec![Lane::ZERO; dim];
            self.load(x, first, &mut v);
            let mut weights = Lane::ZERO;
            for (lane, &weight) in weights.0.iter_mut().zip(&weight[first..]) {
                *lane = weight;
            }
            let mut d_v = v.clone();
            self.flow
                .log_prob_backward(&v, &[], &weights, workspace, &mut d_v, &mut [], learn);
            for (lane, row) in dx.chunks_exact_mut(dim).enumerate() {
                for (d, out) in row.iter_mut().enumerate() {
                    *out += d_v[d].0[lane] * self.scaling.inverse[d];
                }
            }
        });
    }
}
