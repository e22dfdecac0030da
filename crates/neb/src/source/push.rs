//! A flow that runs from noise to source values: x = mean + deviation · T(z), with fast draws and gradients.
//!
//! The direction of the paper's UMNN source under `mc` and `roulette`. Its density needs T⁻¹ (by root finding for UMNN):
//! log q(x) = log N(z) − log |∂T/∂z| − Σ log deviation at z = T⁻¹(x̂).

use rayon::prelude::*;

use super::{Density, Source};
use crate::density::ConditionalDensity;
use crate::flow::coupling::Mover;
use crate::flow::stack::{Flow, FlowShape, FlowTape};
use crate::flow::umnn::UmnnShape;
use crate::kernel::{LANES, Lane, tile};
use crate::nn::activation::Activation;
use crate::nn::made::Reaches;
use crate::scaling::Scaling;
use crate::{Matrix, MatrixMut, Noise, Purpose, Rows};

/// Rows a thread takes at a time; fixed, so that sums do not depend on the number of threads.
const ROWS_PER_CHUNK: usize = 64;
const HALF_LOG_TWO_PI: f32 = 0.918_938_5;

/// A flow from noise to source values.
#[derive(Clone, Debug)]
pub struct PushSource {
    flow: Flow,
    scaling: Scaling,
}

impl PushSource {
    /// The paper's UMNN source (6 flows, embedding and integrand networks 3×75), with these means and deviations to start
    /// around, all of the embedding's units reached. A `symmetric` one is exactly even about its mean, dimension by dimension.
    pub fn umnn(mean: &[f32], deviation: &[f32], symmetric: bool, seed: u64) -> Self {
        let flow = Flow::umnn(&UmnnShape {
            symmetric,
            reaches: Reaches::Useful,
            ..UmnnShape::paper(mean.len(), 0)
        });
        Self::start(flow, mean, deviation, seed)
    }

    /// An affine coupling flow (the paper's collider source has 6 layers of two hidden layers of 32 units).
    pub fn coupling(
        layers: usize,
        hidden: &[usize],
        mean: &[f32],
        deviation: &[f32],
        seed: u64,
    ) -> Self {
        let flow = Flow::new(&FlowShape {
            dim: mean.len(),
            context: 0,
            head: None,
            layers,
            hidden: hidden.to_vec(),
            activation: Activation::Relu,
            mover: Mover::Affine,
        });
        Self::start(flow, mean, deviation, seed)
    }

    fn start(mut flow: Flow, mean: &[f32], deviation: &[f32], seed: u64) -> Self {
        let mut stream = Noise::new(seed, Purpose::Initialise, 2).stream(0);
        flow.initialise(1.0, &mut stream);
        Self {
            flow,
            scaling: Scaling::new(mean.to_vec(), deviation.to_vec()),
        }
    }

    /// z = T⁻¹(x̂) of a tile's rows.
    fn pull_back(&self, x: Rows, first: usize, v: &mut [Lane], tape: &mut FlowTape) {
        tile::load_scaled(x, first, &self.scaling.mean, &self.scaling.inverse, v);
        self.flow.sample(v, &Lane::ZERO, &[], tape);
    }

    /// Adds to `gradient` chunk by chunk what `work` leaves in the workspaces.
    fn accumulate(
        &self,
        rows: usize,
        gradient: &mut [f32],
        work: impl Fn(&mut FlowTape, usize) + Sync,
    ) {
        let partial: Vec<Vec<f32>> = (0..rows.div_ceil(ROWS_PER_CHUNK))
            .into_par_iter()
            .map(|chunk| {
                let mut tape = self.flow.workspace();
                let end = ((chunk + 1) * ROWS_PER_CHUNK).min(rows);
                for first in (chunk * ROWS_PER_CHUNK..end).step_by(LANES) {
                    work(&mut tape, first);
                }
                let mut flat = vec![0.0; self.flow.parameters().len()];
                self.flow.collect_gradient(&mut tape, &mut flat);
                flat
            })
            .collect();
        for flat in partial {
            for (sum, value) in gradient.iter_mut().zip(flat) {
                *sum += value;
            }
        }
    }
}

impl Source for PushSource {
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
                let mut tape = self.flow.workspace();
                let mut v = vec![Lane::ZERO; dim];
                for (t, out) in out.chunks_mut(LANES * dim).enumerate() {
                    tile::load(z, chunk * ROWS_PER_CHUNK + t * LANES, &mut v);
                    self.flow.to_base(&mut v, &[], &mut tape);
                    self.scaling.store(&v, out);
                }
            });
        x
    }

    fn backward(&self, z: Rows, _x: Rows, dx: Rows, gradient: &mut [f32]) {
        let dim = self.dim();
        self.accumulate(z.rows(), gradient, |tape, first| {
            let mut v = vec![Lane::ZERO; dim];
            tile::load(z, first, &mut v);
            self.flow.push(&mut v, &[], tape);
            let mut d_v = vec![Lane::ZERO; dim];
            for lane in 0..LANES.min(z.rows() - first) {
                for (d, &g) in dx.row(first + lane).iter().enumerate() {
                    d_v[d].0[lane] = g * self.scaling.deviation[d];
                }
            }
            self.flow
                .push_backward(&mut d_v, &Lane::ZERO, &[], tape, &mut [], true);
        });
    }

    fn density(&self) -> Option<&dyn Density> {
        Some(self)
    }
}

impl Density for PushSource {
    fn log_prob(&self, x: Rows, out: &mut [f32]) {
        let volume = self.scaling.log_volume() as f32;
        out.par_chunks_mut(ROWS_PER_CHUNK)
            .enumerate()
            .for_each(|(chunk, out)| {
                let mut tape = self.flow.workspace();
                let mut v = vec![Lane::ZERO; self.dim()];
                for (t, out) in out.chunks_mut(LANES).enumerate() {
                    self.pull_back(x, chunk * ROWS_PER_CHUNK + t * LANES, &mut v, &mut tape);
                    let z = v.clone();
                    let log_det = self.flow.to_base(&mut v, &[], &mut tape);
                    for (lane, out) in out.iter_mut().enumerate() {
                        let base: f32 = z
                            .iter()
                            .map(|z| 0.5 * z.0[lane] * z.0[lane] + HALF_LOG_TWO_PI)
                            .sum();
                        *out = -base - log_det.0[lane] - volume;
                    }
                }
            });
    }

    /// With z = T⁻¹(x̂; θ): first the explicit gradient with respect to z and θ, then the one through z.
    fn backward_log_prob(
        &self,
        x: Rows,
        weight: &[f32],
        dx: MatrixMut,
        gradient: Option<&mut [f32]>,
    ) {
        let dim = self.dim();
        let mut unused = vec![0.0; self.flow.parameters().len()];
        let gradient = gradient.unwrap_or(&mut unused);
        let dx = std::sync::Mutex::new(dx);
        self.accumulate(x.rows(), gradient, |tape, first| {
            let rows = LANES.min(x.rows() - first);
            let mut z = vec![Lane::ZERO; dim];
            self.pull_back(x, first, &mut z, tape);
            let mut v = z.clone();
            self.flow.push(&mut v, &[], tape);
            let mut opposite = Lane::ZERO;
            for (out, &weight) in opposite.0.iter_mut().zip(&weight[first..first + rows]) {
                *out = -weight;
            }
            let mut d_z = vec![Lane::ZERO; dim];
            self.flow
                .push_backward(&mut d_z, &opposite, &[], tape, &mut [], true);
            for (d, z) in d_z.iter_mut().zip(&z) {
                for lane in 0..rows {
                    d.0[lane] += opposite.0[lane] * z.0[lane];
                }
            }
            self.flow
                .backward_inverse(&z, &[], tape, &mut d_z, &mut [], true);
            let mut dx = dx.lock().expect("no thread panicked");
            for lane in 0..rows {
                for (d, out) in dx.row_mut(first + lane).iter_mut().enumerate() {
                    *out += d_z[d].0[lane] * self.scaling.inverse[d];
                }
            }
        });
    }
}
