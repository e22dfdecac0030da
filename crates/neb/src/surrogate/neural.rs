//! A learned conditional density as a likelihood: standardisation, tiles, threads.
//!
//! log q(y|x) = log q̂(ŷ|x̂) − Σ log deviation(y), with ŷ and x̂ standardised. Pairs are evaluated tile by
//! tile: 16 values of x in the lanes, one y broadcast to all of them, the share of x computed once.

use rayon::prelude::*;

use crate::density::ConditionalDensity;
use crate::kernel::{LANES, Lane, tile};
use crate::scaling::Scaling;
use crate::{Dims, Likelihood, Matrix, MatrixMut, Noise, PairWeights, Purpose, Rows};

/// Rows a thread takes at a time where rows are independent.
const ROWS_PER_CHUNK: usize = 64;
/// Observations a thread takes at a time where all pairs are asked for.
const Y_PER_CHUNK: usize = 8;
/// Values of x whose shares are kept at a time.
const X_PER_BLOCK: usize = 1024;

/// A conditional density between standardised columns, and the standardisation.
#[derive(Clone, Debug)]
pub(crate) struct Neural<M> {
    /// The density.
    pub model: M,
    /// Standardisation of x.
    pub x: Scaling,
    /// Standardisation of y.
    pub y: Scaling,
    /// What the model's context holds behind x (a noise scale); empty for most.
    pub extra: Vec<f32>,
}

impl<M: ConditionalDensity> Neural<M> {
    fn load_context(&self, x: Rows, first: usize, context: &mut [Lane]) {
        let dx = x.cols();
        tile::load_scaled(x, first, &self.x.mean, &self.x.inverse, &mut context[..dx]);
        for (lane, &value) in context[dx..].iter_mut().zip(&self.extra) {
            lane.0.fill(value);
        }
    }

    fn load_y(&self, y: Rows, first: usize, tile: &mut [Lane]) {
        tile::load_scaled(y, first, &self.y.mean, &self.y.inverse, tile);
    }

    fn standardise_y(&self, y: Rows) -> Matrix {
        Matrix::from_fn(y.rows(), y.cols(), |i, d| {
            (y.row(i)[d] - self.y.mean[d]) * self.y.inverse[d]
        })
    }

    /// Shares of the x of one block, tile after tile.
    fn shares(&self, x: Rows) -> Vec<Lane> {
        let tiles = x.rows().div_ceil(LANES);
        let len = self.model.share_len();
        let mut shares = vec![Lane::ZERO; tiles * len];
        let tiles_per_chunk = ROWS_PER_CHUNK / LANES;
        shares
            .par_chunks_mut(tiles_per_chunk * len)
            .enumerate()
            .for_each(|(chunk, shares)| {
                let mut workspace = self.model.workspace();
                let mut context = vec![Lane::ZERO; self.model.context()];
                for (t, share) in shares.chunks_exact_mut(len).enumerate() {
                    let first = (chunk * tiles_per_chunk + t) * LANES;
                    self.load_context(x, first, &mut context);
                    self.model.share(&context, share, &mut workspace);
                }
            });
        shares
    }
}

impl<M: ConditionalDensity> Likelihood for Neural<M> {
    fn dims(&self) -> Dims {
        Dims {
            dx: self.x.mean.len(),
            dy: self.y.mean.len(),
        }
    }

    fn log_prob(&self, y: Rows, x: Rows, out: &mut [f32]) {
        let volume = self.y.log_volume() as f32;
        out.par_chunks_mut(ROWS_PER_CHUNK)
            .enumerate()
            .for_each(|(chunk, out)| {
                let mut workspace = self.model.workspace();
                let mut context = vec![Lane::ZERO; self.model.context()];
                let mut v = vec![Lane::ZERO; self.model.dim()];
                let mut share = vec![Lane::ZERO; self.model.share_len()];
                for (t, out) in out.chunks_mut(LANES).enumerate() {
                    let first = chunk * ROWS_PER_CHUNK + t * LANES;
                    self.load_context(x, first, &mut context);
                    self.load_y(y, first, &mut v);
                    self.model.share(&context, &mut share, &mut workspace);
                    let value = self.model.log_prob_shared(&v, &share, &mut workspace);
                    for (out, value) in out.iter_mut().zip(value.0) {
                        *out = value - volume;
                    }
                }
            });
    }

    fn log_prob_pairs(&self, y: Rows, x: Rows, out: MatrixMut) {
        let volume = self.y.log_volume() as f32;
        let all = x.rows();
        let len = self.model.share_len();
        let out = out.into_values();
        for block in (0..all).step_by(X_PER_BLOCK) {
            let rows = X_PER_BLOCK.min(all - block);
            let shares = self.shares(x.slice(block..block + rows));
            out.par_chunks_mut(Y_PER_CHUNK * all)
                .enumerate()
                .for_each(|(chunk, out)| {
                    let mut workspace = self.model.workspace();
                    let y = y.slice(chunk * Y_PER_CHUNK..chunk * Y_PER_CHUNK + out.len() / all);
                    let y = self.standardise_y(y);
                    let mut values = vec![Lane::ZERO; y.rows()];
                    for (t, share) in shares.chunks_exact(len).enumerate() {
                        let first = t * LANES;
                        let width = LANES.min(rows - first);
                        self.model
                            .log_prob_rows(y.view(), share, &mut workspace, &mut values);
                        for (out, value) in out.chunks_exact_mut(all).zip(&values) {
                            let out = &mut out[block + first..block + first + width];
                            for (out, value) in out.iter_mut().zip(value.0) {
                                *out = value - volume;
                            }
                        }
                    }
                });
        }
    }

    fn grad_x_pairs(&self, y: Rows, x: Rows, weights: &PairWeights, dx: MatrixMut) {
        let cols = x.cols();
        let y = self.standardise_y(y);
        dx.into_values()
            .par_chunks_mut(ROWS_PER_CHUNK * cols)
            .enumerate()
            .for_each(|(chunk, dx)| {
                dx.fill(0.0);
                let first = chunk * ROWS_PER_CHUNK;
                let mut gradient = PairGradient {
                    neural: self,
                    y: y.view(),
                    x,
                    weights,
                    workspace: self.model.workspace(),
                    context: vec![Lane::ZERO; self.model.context()],
                    d_context: vec![Lane::ZERO; self.model.context()],
                };
                for (t, dx) in dx.chunks_mut(LANES * cols).enumerate() {
                    if !gradient.by_tile(first + t * LANES, dx) {
                        gradient.pair_by_pair(first + t * LANES, dx);
                    }
                }
            });
    }

    fn sample(&self, x: Rows, noise: Noise) -> Matrix {
        let dy = self.y.mean.len();
        let mut draws = noise.normal(x.rows(), dy);
        let choice = Noise {
            purpose: Purpose::Component,
            ..noise
        }
        .uniform(x.rows(), 1);
        draws
            .values_mut()
            .par_chunks_mut(ROWS_PER_CHUNK * dy)
            .enumerate()
            .for_each(|(chunk, draws)| {
                let mut workspace = self.model.workspace();
                let mut context = vec![Lane::ZERO; self.model.context()];
                let mut v = vec![Lane::ZERO; dy];
                let mut which = [Lane::ZERO];
                for (t, draws) in draws.chunks_mut(LANES * dy).enumerate() {
                    let first = chunk * ROWS_PER_CHUNK + t * LANES;
                    self.load_context(x, first, &mut context);
                    tile::load(Rows::new(draws, dy), 0, &mut v);
                    tile::load(choice.view(), first, &mut which);
                    self.model
                        .sample(&mut v, &which[0], &context, &mut workspace);
                    self.y.store(&v, draws);
                }
            });
        draws
    }
}

/// Σ_i w_ik ∂ log q(y_i|x_k)/∂x_k for some of the x_k; y already standardised.
struct PairGradient<'a, M: ConditionalDensity> {
    neural: &'a Neural<M>,
    y: Rows<'a>,
    x: Rows<'a>,
    weights: &'a PairWeights,
    workspace: M::Workspace,
    context: Vec<Lane>,
    d_context: Vec<Lane>,
}

impl<M: ConditionalDensity> PairGradient<'_, M> {
    /// The entries of x_k: rows of y and their weights.
    fn entries(&self, k: usize) -> (&[u32], &[f32]) {
        let range = self.weights.starts[k]..self.weights.starts[k + 1];
        (
            &self.weights.y_row[range.clone()],
            &self.weights.weight[range],
        )
    }

    /// 16 values of x in the lanes, the observations of each taken in turn; for models that can use it.
    fn by_tile(&mut self, first: usize, dx: &mut [f32]) -> bool {
        let cols = self.x.cols();
        let ks: Vec<usize> = (first..first + dx.len() / cols).collect();
        let longest = ks
            .iter()
            .map(|&k| self.entries(k).0.len())
            .max()
            .unwrap_or(0);
        self.neural.load_context(self.x, first, &mut self.context);
        let mut turn = 0;
        let (y, weights) = (self.y, self.weights);
        let mut few = |v: &mut [Lane], weight: &mut Lane| {
            if turn == longest {
                return false;
            }
            *weight = Lane::ZERO;
            for (lane, &k) in ks.iter().enumerate() {
                let at = weights.starts[k] + turn;
                if at < weights.starts[k + 1] {
                    weight.0[lane] = weights.weight[at];
                    for (v, &value) in v.iter_mut().zip(y.row(weights.y_row[at] as usize)) {
                        v.0[lane] = value;
                    }
                }
            }
            turn += 1;
            true
        };
        let done = self.neural.model.gradient_of_few(
            &self.context,
            &mut few,
            &mut self.workspace,
            &mut self.d_context,
        );
        if done {
            for (lane, row) in dx.chunks_exact_mut(cols).enumerate() {
                self.add_lane(lane, row);
            }
        }
        done
    }

    /// 16 pairs in the lanes, whichever they are.
    fn pair_by_pair(&mut self, first: usize, dx: &mut [f32]) {
        let cols = self.x.cols();
        let pairs: Vec<(u32, u32, f32)> = (first..first + dx.len() / cols)
            .flat_map(|k| {
                let (rows, weights) = self.entries(k);
                let entries = rows.iter().zip(weights);
                entries.map(move |(&row, &weight)| (row, k as u32, weight))
            })
            .collect();
        let mut v = vec![Lane::ZERO; self.y.cols()];
        let mut d_v = v.clone();
        for pairs in pairs.chunks(LANES) {
            let y_rows: Vec<u32> = pairs.iter().map(|p| p.0).collect();
            let x_rows: Vec<u32> = pairs.iter().map(|p| p.1).collect();
            let mut weight = Lane::ZERO;
            for (weight, pair) in weight.0.iter_mut().zip(pairs) {
                *weight = pair.2;
            }
            let x = self.x.gather(&x_rows);
            self.neural.load_context(x.view(), 0, &mut self.context);
            tile::gather(self.y, &y_rows, &mut v);
            self.neural.model.log_prob_backward(
                &v,
                &self.context,
                &weight,
                &mut self.workspace,
                &mut d_v,
                &mut self.d_context,
                false,
            );
            for (lane, pair) in pairs.iter().enumerate() {
                let at = (pair.1 as usize - first) * cols;
                self.add_lane(lane, &mut dx[at..at + cols]);
            }
        }
    }

    /// Adds one lane's gradient, in the user's units.
    fn add_lane(&self, lane: usize, dx: &mut [f32]) {
        for (d, out) in dx.iter_mut().enumerate() {
            *out += self.d_context[d].0[lane] * self.neural.x.inverse[d];
        }
    }
}
