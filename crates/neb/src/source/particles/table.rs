//! q(y_i|x_j) for all observations and particles: kept if it fits into memory, else made anew for each pass.
//!
//! Rows are stored as exp(log q(y_i|x_j) − shift_i), shift_i the largest of the row. A pass forms
//! D_i = Σ_j w_j q_ij (with a known background, + β b_i) and Σ_i v_i q_ij / D_i. Sums over j go tile by tile in a fixed order, sums over i
//! go row by row, so that neither memory limit nor number of threads changes the result.

use std::borrow::Cow;
use std::ops::Range;

use rayon::prelude::*;

use crate::estimator::{exp_or_zero, largest};
use crate::{Error, Likelihood, Matrix, Result, Rows};

/// Particles in a tile.
const PARTICLES_PER_TILE: usize = 1024;

/// Observations evaluated together, memory permitting.
const ROWS_PER_BLOCK: usize = 256;

/// Partial sums of one dot product, so that the compiler can use vector registers.
const LANES: usize = 8;

/// The likelihood of some observations under every particle.
pub(super) struct LikelihoodTable<'a> {
    likelihood: &'a dyn Likelihood,
    observations: &'a Observations,
    x: Rows<'a>,
    rows_per_block: usize,
    /// All blocks, or none if they are made anew for each pass.
    kept: Vec<Block>,
}

/// Some of the observations.
pub(super) struct Observations {
    pub(super) y: Matrix,
    /// Where the rows of y stand in the user's table.
    pub(super) row_numbers: Vec<u32>,
    /// v_i, positive; they sum to 1.
    pub(super) event_weights: Vec<f64>,
    /// log β b(y_i) of a known background; empty without.
    pub(super) background: Vec<f32>,
}

/// A range of observations with all particles.
#[derive(Clone)]
struct Block {
    shifts: Vec<f32>,
    /// What the background adds to each row's sum; empty without.
    background: Vec<f64>,
    /// Rows of observations, columns of particles, one table for each range of particles.
    tiles: Vec<Matrix>,
}

/// Bytes of the table of `observations` × `particles` entries.
pub(super) fn bytes(observations: usize, particles: usize) -> usize {
    observations
        .saturating_mul(particles)
        .saturating_mul(size_of::<f32>())
}

impl<'a> LikelihoodTable<'a> {
    /// The table; at least one row is held at a time, however small `memory_limit`.
    pub(super) fn new(
        likelihood: &'a dyn Likelihood,
        observations: &'a Observations,
        x: Rows<'a>,
        keep: bool,
        memory_limit: usize,
    ) -> Result<Self> {
        let fitting = memory_limit / bytes(1, x.rows());
        let mut table = Self {
            likelihood,
            observations,
            x,
            rows_per_block: fitting.clamp(1, ROWS_PER_BLOCK),
            kept: Vec::new(),
        };
        if keep {
            table.kept = table
                .block_ranges()
                .map(|rows| table.evaluate(rows))
                .collect::<Result<_>>()?;
        }
        Ok(table)
    }

    /// log Σ_j w_j q(y_i|x_j) for each observation.
    pub(super) fn log_marginals(&self, weights: &[f64]) -> Result<Vec<f64>> {
        self.pass(weights, |_, _, _| {})
    }

    /// The same, and Σ_i v_i q(y_i|x_j) / Σ_k w_k q(y_i|x_k) for each particle.
    pub(super) fn expectation(&self, weights: &[f64]) -> Result<(Vec<f64>, Vec<f64>)> {
        let mut responsibilities = vec![0.0; weights.len()];
        let log_marginals = self.pass(weights, |rows, block, sums| {
            let factors: Vec<f64> = self.observations.event_weights[rows]
                .iter()
                .zip(sums)
                .map(|(v, sum)| v / sum)
                .collect();
            block.add_columns(&factors, &mut responsibilities);
        })?;
        Ok((log_marginals, responsibilities))
    }

    /// For each of several weights and event weights, Σ_i v_i q(y_i|x_j) / D_i for each particle.
    pub(super) fn expectations(
        &self,
        weights: &[Vec<f64>],
        event_weights: &[Vec<f64>],
    ) -> Result<Vec<Vec<f64>>> {
        let mut totals: Vec<Vec<f64>> = weights.iter().map(|w| vec![0.0; w.len()]).collect();
        for (index, rows) in self.block_ranges().enumerate() {
            let block = self.block(index, rows.clone())?;
            let each = weights.par_iter().zip(event_weights);
            each.zip(&mut totals)
                .for_each(|((weights, event_weights), totals)| {
                    let sums = block.weighted_sums(weights);
                    let events = event_weights[rows.clone()].iter().zip(sums);
                    let factors: Vec<f64> = events
                        .map(|(&v, sum)| if v > 0.0 { v / sum } else { 0.0 })
                        .collect();
                    block.add_columns(&factors, totals);
                });
        }
        Ok(totals)
    }

    fn block(&self, index: usize, rows: Range<usize>) -> Result<Cow<'_, Block>> {
        Ok(match self.kept.get(index) {
            Some(block) => Cow::Borrowed(block),
            None => Cow::Owned(self.evaluate(rows)?),
        })
    }

    /// Visits every block in order, with its rows and its D_i (relative to the shifts).
    fn pass(
        &self,
        weights: &[f64],
        mut visit: impl FnMut(Range<usize>, &Block, &[f64]),
    ) -> Result<Vec<f64>> {
        let mut log_marginals = Vec::with_capacity(self.observations.y.rows());
        for (index, rows) in self.block_ranges().enumerate() {
            let block = self.block(index, rows.clone())?;
            let sums = block.weighted_sums(weights);
            for (row, (&sum, &shift)) in rows.clone().zip(sums.iter().zip(&block.shifts)) {
                if sum.is_nan() {
                    return Err(Error::non_finite(
                        format!(
                            "observation row {}: log q(y|x) is NaN or +inf for some particle",
                            self.observations.row_numbers[row]
                        ),
                        "check the likelihood at this row",
                    ));
                }
                log_marginals.push(f64::from(shift) + sum.ln());
            }
            visit(rows, &block, &sums);
        }
        Ok(log_marginals)
    }

    fn block_ranges(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let (rows, size) = (self.observations.y.rows(), self.rows_per_block);
        (0..rows)
            .step_by(size)
            .map(move |first| first..rows.min(first + size))
    }

    fn evaluate(&self, rows: Range<usize>) -> Result<Block> {
        let y = self.observations.y.view().slice(rows.clone());
        let n = self.x.rows();
        let mut tiles: Vec<Matrix> = (0..n.div_ceil(PARTICLES_PER_TILE))
            .into_par_iter()
            .map(|tile| {
                let first = tile * PARTICLES_PER_TILE;
                let x = self.x.slice(first..n.min(first + PARTICLES_PER_TILE));
                let mut log_probs = Matrix::zeros(y.rows(), x.rows());
                self.likelihood.log_prob_pairs(y, x, log_probs.view_mut());
                log_probs
            })
            .collect();
        let shifts: Vec<f32> = (0..y.rows())
            .into_par_iter()
            .map(|row| {
                let of_tiles = tiles.iter().map(|tile| largest(tile.row(row)));
                let background = self.observations.background.get(rows.start + row);
                of_tiles.fold(*background.unwrap_or(&f32::NEG_INFINITY), f32::max)
            })
            .collect();
        if let Some(row) = shifts.iter().position(|&shift| shift == f32::NEG_INFINITY) {
            return Err(Error::input(
                format!(
                    "observation row {}: log q(y|x) is -inf or NaN for each of the {n} particles",
                    self.observations.row_numbers[rows.start + row]
                ),
                "remove the row if no x can produce it, or add particles that can",
            ));
        }
        tiles.par_iter_mut().for_each(|tile| {
            for (row, &shift) in shifts.iter().enumerate() {
                for value in tile.row_mut(row) {
                    *value = exp_or_zero(*value - shift);
                }
            }
        });
        let background = match self.observations.background.get(rows) {
            Some(logs) => {
                let relative = logs.iter().zip(&shifts);
                relative
                    .map(|(log, shift)| f64::from(log - shift).exp())
                    .collect()
            }
            None => Vec::new(),
        };
        Ok(Block {
            shifts,
            background,
            tiles,
        })
    }
}

impl Block {
    /// Σ_j w_j e_ij for each row, background included.
    fn weighted_sums(&self, weights: &[f64]) -> Vec<f64> {
        let parts: Vec<Vec<f64>> = self
            .tiles
            .par_iter()
            .zip(weights.par_chunks(PARTICLES_PER_TILE))
            .map(|(tile, weights)| {
                (0..tile.rows())
                    .map(|row| dot(tile.row(row), weights))
                    .collect()
            })
            .collect();
        let background = |row: usize| self.background.get(row).copied().unwrap_or(0.0);
        (0..self.shifts.len())
            .map(|row| parts.iter().map(|part| part[row]).sum::<f64>() + background(row))
            .collect()
    }

    /// `totals[j] += Σ_i factors[i] e_ij`, one row after the other.
    fn add_columns(&self, factors: &[f64], totals: &mut [f64]) {
        self.tiles
            .par_iter()
            .zip(totals.par_chunks_mut(PARTICLES_PER_TILE))
            .for_each(|(tile, totals)| {
                for (row, factor) in factors.iter().enumerate() {
                    for (total, &value) in totals.iter_mut().zip(tile.row(row)) {
                        *total += factor * f64::from(value);
                    }
                }
            });
    }
}

fn dot(values: &[f32], weights: &[f64]) -> f64 {
    let mut lanes = [0.0; LANES];
    let (value_blocks, value_rest) = values.as_chunks::<LANES>();
    let (weight_blocks, weight_rest) = weights.as_chunks::<LANES>();
    for (values, weights) in value_blocks.iter().zip(weight_blocks) {
        for lane in 0..LANES {
            lanes[lane] += f64::from(values[lane]) * weights[lane];
        }
    }
    for (lane, (&value, weight)) in value_rest.iter().zip(weight_rest).enumerate() {
        lanes[lane] += f64::from(value) * weight;
    }
    lanes.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimator::testing::{GaussianModel, log_normal, with_threads};
    use crate::{Noise, Purpose};

    fn observations(n: usize) -> Observations {
        Observations {
            y: Noise::new(31, Purpose::Test, 0).normal(n, 1),
            row_numbers: (0..n as u32).collect(),
            event_weights: vec![1.0 / n as f64; n],
            background: Vec::new(),
        }
    }

    #[test]
    fn sums_are_those_of_the_closed_form() {
        let observations = observations(20);
        let model = GaussianModel::STANDARD;
        let x = model.samples(Noise::new(32, Purpose::Test, 0), 1500);
        let weights: Vec<f64> = (0..1500).map(|j| f64::from(j % 7) / 4497.0).collect();
        let likelihood = model.likelihood();
        let table =
            LikelihoodTable::new(&likelihood, &observations, x.view(), true, 1 << 30).unwrap();
        let (log_marginals, responsibilities) = table.expectation(&weights).unwrap();
        assert_eq!(log_marginals, table.log_marginals(&weights).unwrap());
        let density = |i: usize, j: usize| {
            let (y, x) = (observations.y.row(i)[0], x.row(j)[0]);
            log_normal(f64::from(y), f64::from(x), model.noise).exp()
        };
        let marginal = |i: usize| (0..1500).map(|j| weights[j] * density(i, j)).sum::<f64>();
        for (i, found) in log_marginals.iter().enumerate() {
            assert!((found - marginal(i).ln()).abs() < 1e-6);
        }
        for (j, found) in responsibilities.iter().enumerate() {
            let exact: f64 = (0..20).map(|i| density(i, j) / marginal(i) / 20.0).sum();
            assert!((found - exact).abs() < 1e-5 * exact.max(1e-3));
        }
    }

    /// 300 rows of 2500 particles: two blocks and three tiles if kept, 75 blocks of 4 rows if not.
    #[test]
    fn memory_and_threads_change_no_bit() {
        let observations = observations(300);
        let model = GaussianModel::STANDARD;
        let x = model.samples(Noise::new(33, Purpose::Test, 0), 2500);
        let weights = vec![1.0 / 2500.0; 2500];
        let likelihood = model.likelihood();
        let run = |keep: bool, memory_limit: usize| {
            let table =
                LikelihoodTable::new(&likelihood, &observations, x.view(), keep, memory_limit)
                    .unwrap();
            assert_eq!(table.kept.is_empty(), !keep);
            table.expectation(&weights).unwrap()
        };
        let reference = run(true, 1 << 30);
        for (keep, memory_limit) in [(true, 1 << 30), (false, 40_000), (false, 1)] {
            for result in with_threads(|| run(keep, memory_limit)) {
                assert_eq!(result, reference);
            }
        }
    }
}
