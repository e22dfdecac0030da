//! The recognition network q_ψ(x|y): for every observation a guess of the x behind it, trained with the source.
//!
//! A conditional flow from noise to x: x = mean + deviation · T_ψ(z; ŷ), z ~ N(0, I), so that one pass gives a draw, its
//! log-density log q_ψ(x|y) = log N(z) − log |∂T/∂z| − Σ log deviation, and a way for gradients to reach ψ through the draw:
//! all that the variational bounds ask for. The density at a given x needs T⁻¹ (by root finding for UMNN).
//!
//! Inside a domain the flow gives the free coordinates u(x), and log q_ψ(x|y) gains Σ log ∂u/∂x.

mod config;
mod file;
#[cfg(test)]
mod tests;

use rayon::prelude::*;

pub use config::RecognitionConfig;

use crate::density::ConditionalDensity;
use crate::flow::stack::{Flow, FlowTape};
use crate::flow::umnn::Quadrature;
use crate::kernel::{LANES, Lane, tile};
use crate::scaling::Scaling;
use crate::source::Domain;
use crate::{Dims, Matrix, Noise, Purpose, Rows};

/// Fewest rows a thread takes at a time.
const ROWS_PER_CHUNK: usize = 64;
/// Most chunks whose gradients are kept before they are added up; a function of the rows alone, as the sums must be.
const MOST_CHUNKS: usize = 32;
const HALF_LOG_TWO_PI: f32 = 0.918_938_5;

/// A conditional density q_ψ(x|y) with fast draws.
#[derive(Clone, Debug)]
pub struct Recognition {
    flow: Flow,
    x: Scaling,
    y: Scaling,
    domain: Option<Domain>,
    config: RecognitionConfig,
}

/// Means and deviations of the columns a model starts around.
#[derive(Clone, Copy, Debug)]
pub struct Spread<'a> {
    /// Means.
    pub mean: &'a [f32],
    /// Deviations, all positive.
    pub deviation: &'a [f32],
}

impl Spread<'_> {
    fn scaling(&self) -> Scaling {
        Scaling::new(self.mean.to_vec(), self.deviation.to_vec())
    }
}

impl Recognition {
    /// A network that starts, whatever y, near the normal law with these means and deviations of x.
    pub fn new(config: &RecognitionConfig, x: Spread, y: Spread, seed: u64) -> Self {
        let mut recognition = Self::unfitted(config, x.scaling(), y.scaling());
        let mut stream = Noise::new(seed, Purpose::Initialise, 3).stream(0);
        let last = config.last_layer_scale();
        recognition.flow.initialise(last, &mut stream);
        recognition
    }

    fn unfitted(config: &RecognitionConfig, x: Scaling, y: Scaling) -> Self {
        Self {
            flow: config.flow(x.mean.len(), y.mean.len()),
            x,
            y,
            domain: None,
            config: config.clone(),
        }
    }

    /// The same network inside a domain: what it started around are then means and deviations of x's free coordinates
    /// ([`Domain::to_free`]).
    pub fn within(self, domain: Domain) -> Self {
        Self {
            domain: Some(domain),
            ..self
        }
    }

    /// Dimensions of x and y.
    pub fn dims(&self) -> Dims {
        Dims {
            dx: self.x.mean.len(),
            dy: self.y.mean.len(),
        }
    }

    /// What it is made of.
    pub fn config(&self) -> &RecognitionConfig {
        &self.config
    }

    /// The parameters ψ.
    pub fn parameters(&self) -> &[f32] {
        self.flow.parameters()
    }

    /// Changes the parameters in place and brings everything derived from them up to date.
    pub fn update(&mut self, change: &mut dyn FnMut(&mut [f32])) {
        change(self.flow.parameters_mut());
        self.flow.refresh();
    }

    /// Takes integrals, if it has any, by this rule, or with `None` by its own again.
    pub fn set_quadrature(&mut self, rule: Option<Quadrature>) {
        self.flow.set_quadrature(rule);
    }

    /// k draws of x for each observation and their log q_ψ(x|y): rows i·k .. (i + 1)·k belong to observation i.
    pub fn draw(&self, y: Rows, k: usize, noise: Noise) -> (Matrix, Vec<f32>) {
        let z = noise.normal(y.rows() * k, self.dims().dx);
        self.push(z.view(), y, k)
    }

    /// The same draws from given noise z.
    pub fn push(&self, z: Rows, y: Rows, k: usize) -> (Matrix, Vec<f32>) {
        let dim = self.dims().dx;
        let volume = self.x.log_volume() as f32;
        let mut x = Matrix::zeros(z.rows(), dim);
        let mut log_q = vec![0.0; z.rows()];
        x.values_mut()
            .par_chunks_mut(ROWS_PER_CHUNK * dim)
            .zip(log_q.par_chunks_mut(ROWS_PER_CHUNK))
            .enumerate()
            .for_each(|(chunk, (x, log_q))| {
                let mut pass = Pass::new(self);
                let tiles = x.chunks_mut(LANES * dim).zip(log_q.chunks_mut(LANES));
                for (t, (x, log_q)) in tiles.enumerate() {
                    let first = chunk * ROWS_PER_CHUNK + t * LANES;
                    pass.load_context(y, k, first);
                    tile::load(z, first, &mut pass.v);
                    pass.keep_base();
                    let log_det = self
                        .flow
                        .to_base(&mut pass.v, &pass.context, &mut pass.tape);
                    self.x.store(&pass.v, x);
                    pass.write_log_q(&log_det, volume, log_q);
                    self.enter_domain(x, log_q);
                }
            });
        (x, log_q)
    }

    /// Adds to `gradient` that of a function of the draws x = T_ψ(z; y) and of their log q: `dx` and `slopes` are its
    /// derivatives with respect to x and to log q_ψ(x|y), each with the other held fixed.
    pub fn backward(
        &self,
        (z, y, k): (Rows, Rows, usize),
        dx: Rows,
        slopes: &[f32],
        gradient: &mut [f32],
    ) {
        let rows = z.rows();
        let chunk_rows = rows
            .div_ceil(MOST_CHUNKS)
            .next_multiple_of(LANES)
            .max(ROWS_PER_CHUNK);
        let partial: Vec<Vec<f32>> = (0..rows.div_ceil(chunk_rows))
            .into_par_iter()
            .map(|chunk| {
                let mut pass = Pass::new(self);
                let end = ((chunk + 1) * chunk_rows).min(rows);
                for first in (chunk * chunk_rows..end).step_by(LANES) {
                    pass.load_context(y, k, first);
                    tile::load(z, first, &mut pass.v);
                    pass.backward(dx, slopes, first);
                }
                let mut flat = vec![0.0; self.flow.parameters().len()];
                self.flow.collect_gradient(&mut pass.tape, &mut flat);
                flat
            })
            .collect();
        for flat in partial {
            for (sum, value) in gradient.iter_mut().zip(flat) {
                *sum += value;
            }
        }
    }

    /// `out[i]` = log q_ψ(x_i|y_i).
    pub fn log_prob(&self, x: Rows, y: Rows, out: &mut [f32]) {
        let volume = self.x.log_volume() as f32;
        let free = self.domain.as_ref().map(|domain| domain.to_free(x));
        let given = x;
        let x = free.as_ref().map_or(x, |free| free.view());
        out.par_chunks_mut(ROWS_PER_CHUNK)
            .enumerate()
            .for_each(|(chunk, out)| {
                let mut pass = Pass::new(self);
                for (t, out) in out.chunks_mut(LANES).enumerate() {
                    let first = chunk * ROWS_PER_CHUNK + t * LANES;
                    pass.load_context(y, 1, first);
                    tile::load_scaled(x, first, &self.x.mean, &self.x.inverse, &mut pass.v);
                    let (v, context, tape) = (&mut pass.v, &pass.context, &mut pass.tape);
                    self.flow.sample(v, &Lane::ZERO, context, tape);
                    pass.keep_base();
                    let log_det = self
                        .flow
                        .to_base(&mut pass.v, &pass.context, &mut pass.tape);
                    pass.write_log_q(&log_det, volume, out);
                    for (lane, out) in out.iter_mut().enumerate() {
                        *out += self.log_slope(given.row(first + lane));
                    }
                }
            });
    }

    /// From free coordinates and their density to x and its density, row by row.
    fn enter_domain(&self, rows: &mut [f32], log_q: &mut [f32]) {
        let Some(domain) = &self.domain else {
            return;
        };
        for (row, log_q) in rows.chunks_exact_mut(domain.dim()).zip(log_q) {
            for (d, value) in row.iter_mut().enumerate() {
                *value = domain.place(d, *value);
            }
            *log_q += self.log_slope(row);
        }
    }

    /// Σ log ∂u/∂x; −∞ outside the domain.
    fn log_slope(&self, x: &[f32]) -> f32 {
        match &self.domain {
            None => 0.0,
            Some(domain) if !domain.contains(x) => f32::NEG_INFINITY,
            Some(domain) => {
                let slopes = x.iter().enumerate();
                slopes
                    .map(|(d, &x)| domain.coordinate(d, x).log_slope)
                    .sum::<f64>() as f32
            }
        }
    }

    /// From the gradients with respect to x_d and to log q, to the one with respect to its free coordinate û (standardised),
    /// x_d being where û led: ∂x/∂u = e^(−log ∂u/∂x).
    fn to_free(&self, d: usize, free: f32, dx: f32, slope: f32) -> f32 {
        let scale = self.x.deviation[d];
        match &self.domain {
            None => dx * scale,
            Some(domain) => {
                let x = domain.place(d, free * scale + self.x.mean[d]);
                let at = domain.coordinate(d, x);
                let d_x = f64::from(dx) + f64::from(slope) * at.bend;
                (d_x * (-at.log_slope).exp()) as f32 * scale
            }
        }
    }
}

/// One thread's memory for a tile.
struct Pass<'a> {
    network: &'a Recognition,
    tape: FlowTape,
    context: Vec<Lane>,
    v: Vec<Lane>,
    /// log N(z).
    log_base: Lane,
}

impl<'a> Pass<'a> {
    fn new(network: &'a Recognition) -> Self {
        let dims = network.dims();
        Self {
            network,
            tape: network.flow.workspace(),
            context: vec![Lane::ZERO; dims.dy],
            v: vec![Lane::ZERO; dims.dx],
            log_base: Lane::ZERO,
        }
    }

    /// The observations that draws `first ..` belong to, standardised; lanes past the last draw repeat it.
    fn load_context(&mut self, y: Rows, k: usize, first: usize) {
        let scaling = &self.network.y;
        let last = y.rows() - 1;
        for lane in 0..LANES {
            let row = y.row(((first + lane) / k).min(last));
            for (d, &value) in row.iter().enumerate() {
                self.context[d].0[lane] = (value - scaling.mean[d]) * scaling.inverse[d];
            }
        }
    }

    fn keep_base(&mut self) {
        self.log_base = Lane::ZERO;
        for z in &self.v {
            for (sum, z) in self.log_base.0.iter_mut().zip(z.0) {
                *sum -= 0.5 * z * z + HALF_LOG_TWO_PI;
            }
        }
    }

    fn write_log_q(&self, log_det: &Lane, volume: f32, out: &mut [f32]) {
        for (lane, out) in out.iter_mut().enumerate() {
            *out = self.log_base.0[lane] - log_det.0[lane] - volume;
        }
    }

    /// log N(z) does not depend on ψ, so the slope of log q is minus that of the log-determinant.
    fn backward(&mut self, dx: Rows, slopes: &[f32], first: usize) {
        let network = self.network;
        network
            .flow
            .push(&mut self.v, &self.context, &mut self.tape);
        let mut d_log_det = Lane::ZERO;
        for lane in 0..LANES {
            if first + lane >= dx.rows() {
                self.v.iter_mut().for_each(|v| v.0[lane] = 0.0);
                continue;
            }
            let slope = slopes[first + lane];
            d_log_det.0[lane] = -slope;
            for (d, &dx) in dx.row(first + lane).iter().enumerate() {
                let free = self.v[d].0[lane];
                self.v[d].0[lane] = network.to_free(d, free, dx, slope);
            }
        }
        let mut unused = vec![Lane::ZERO; self.context.len()];
        network.flow.push_backward(
            &mut self.v,
            &d_log_det,
            &self.context,
            &mut self.tape,
            &mut unused,
            true,
        );
    }
}
