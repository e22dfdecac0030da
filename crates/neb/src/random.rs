//! Random numbers by address: every draw is a function of (seed, purpose, step, row), so that
//! results depend neither on the number of threads nor on where a run was resumed.
//!
//! The generator is ChaCha8; seed, purpose and step form its key, the index its stream.

use chacha20::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

use crate::Matrix;

/// What a draw is for; two purposes never share random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Purpose {
    /// Initial weights of a network.
    Initialise = 1,
    /// Choice of the held-out rows.
    HoldOut = 2,
    /// Order of the rows in an epoch.
    Shuffle = 3,
    /// Source values drawn from a prior or proposal.
    DrawX = 4,
    /// Observations drawn from a simulator or surrogate.
    DrawY = 5,
    /// Noise and noise scales added to training rows.
    Augment = 6,
    /// Base noise z of a source during training.
    SourceNoise = 7,
    /// Base noise z when a fitted source is sampled.
    SourceSample = 8,
    /// Folds, permutations and splits of the checks.
    Check = 9,
    /// Accept-reject decisions and resampling of posteriors.
    Posterior = 10,
    /// Component of a mixture a draw comes from.
    Component = 11,
    /// Whatever a test needs.
    Test = 12,
    /// Base noise z of a recognition network.
    Recognition = 13,
    /// Signs of symmetric dimensions.
    Sign = 14,
    /// What is added to whole numbers, and where the mass of an atom is spread.
    Dequantise = 15,
    /// Replicas, resampling and pseudo-data of an unfolding.
    Unfold = 16,
    /// Which draws of a variational bound a gradient is sent back through.
    Thinning = 17,
    /// The rule that a training step takes its integrals by.
    Quadrature = 18,
}

/// Rows that share one generator stream when a whole table of noise is filled.
const ROWS_PER_STREAM: usize = 64;

/// The address of a table of random numbers: seed, purpose and step. Rows are addressed by their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Noise {
    /// The user's seed.
    pub seed: u64,
    /// What the numbers are for.
    pub purpose: Purpose,
    /// Optimiser step, epoch or repetition.
    pub step: u64,
}

impl Noise {
    /// Names a table of random numbers.
    pub fn new(seed: u64, purpose: Purpose, step: u64) -> Self {
        Self {
            seed,
            purpose,
            step,
        }
    }

    /// The generator that belongs to `index` (a row, or a chunk of rows) of this table.
    pub fn stream(&self, index: u64) -> Stream {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&self.seed.to_le_bytes());
        key[8..16].copy_from_slice(&(self.purpose as u64).to_le_bytes());
        key[16..24].copy_from_slice(&self.step.to_le_bytes());
        let mut generator = ChaCha8Rng::from_seed(key);
        generator.set_stream(index);
        Stream {
            generator,
            spare: None,
        }
    }

    /// Standard normal draws, one row per event. Row r is the same whatever the number of rows.
    pub fn normal(&self, rows: usize, cols: usize) -> Matrix {
        self.fill(rows, cols, |stream, values| {
            for value in values {
                *value = stream.normal() as f32;
            }
        })
    }

    /// Uniform draws on (0, 1), one row per event. Row r is the same whatever the number of rows.
    pub fn uniform(&self, rows: usize, cols: usize) -> Matrix {
        self.fill(rows, cols, |stream, values| {
            for value in values {
                *value = stream.uniform() as f32;
            }
        })
    }

    fn fill(
        &self,
        rows: usize,
        cols: usize,
        mut draw: impl FnMut(&mut Stream, &mut [f32]),
    ) -> Matrix {
        let mut matrix = Matrix::zeros(rows, cols);
        let chunks = matrix.values_mut().chunks_mut(ROWS_PER_STREAM * cols);
        for (index, chunk) in chunks.enumerate() {
            draw(&mut self.stream(index as u64), chunk);
        }
        matrix
    }

    /// The numbers 0 .. n in random order.
    pub fn permutation(&self, n: usize) -> Vec<u32> {
        let mut order: Vec<u32> = (0..n as u32).collect();
        let mut stream = self.stream(0);
        for i in (1..n).rev() {
            order.swap(i, stream.below(i + 1));
        }
        order
    }
}

/// A sequence of random numbers.
#[derive(Debug)]
pub struct Stream {
    generator: ChaCha8Rng,
    spare: Option<f64>,
}

impl Stream {
    /// Uniform on the open interval (0, 1), with 24 random bits: exact in `f32` too.
    pub fn uniform(&mut self) -> f64 {
        (f64::from(self.generator.next_u32() >> 8) + 0.5) / f64::from(1 << 24)
    }

    /// The generator itself, for crates that take one.
    pub(crate) fn generator(&mut self) -> &mut ChaCha8Rng {
        &mut self.generator
    }

    /// Standard normal (Box-Muller, with 53 random bits so that the tails are not cut).
    pub fn normal(&mut self) -> f64 {
        if let Some(value) = self.spare.take() {
            return value;
        }
        let unit = 1.0 / (1u64 << 53) as f64;
        let open = ((self.generator.next_u64() >> 11) as f64 + 0.5) * unit;
        let angle = std::f64::consts::TAU * self.uniform();
        let radius = (-2.0 * open.ln()).sqrt();
        self.spare = Some(radius * angle.sin());
        radius * angle.cos()
    }

    /// Uniform on 0 .. n, without bias.
    ///
    /// # Panics
    /// If `n` is zero.
    pub fn below(&mut self, n: usize) -> usize {
        assert!(n > 0, "no number lies below zero");
        let n = n as u64;
        let limit = u64::MAX - u64::MAX % n;
        loop {
            let draw = self.generator.next_u64();
            if draw < limit {
                return (draw % n) as usize;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_does_not_depend_on_how_many_rows_are_drawn() {
        let noise = Noise::new(7, Purpose::Test, 3);
        let few = noise.normal(70, 3);
        let many = noise.normal(1000, 3);
        assert_eq!(few.values(), &many.values()[..few.values().len()]);
    }

    #[test]
    fn seed_purpose_step_and_index_all_matter() {
        let base = Noise::new(1, Purpose::Test, 1);
        let draw = |noise: Noise, index| noise.stream(index).uniform();
        let first = draw(base, 0);
        assert_ne!(first, draw(Noise { seed: 2, ..base }, 0));
        assert_ne!(first, draw(Noise { step: 2, ..base }, 0));
        assert_ne!(
            first,
            draw(
                Noise {
                    purpose: Purpose::Shuffle,
                    ..base
                },
                0
            )
        );
        assert_ne!(first, draw(base, 1));
    }

    /// False-alarm rate of each bound below 1e-4 (four standard errors); the seed is fixed.
    #[test]
    fn normal_moments() {
        let n = 200_000;
        let draws = Noise::new(5, Purpose::Test, 0).normal(n, 1);
        let moment = |power: i32| {
            draws
                .values()
                .iter()
                .map(|&v| f64::from(v).powi(power))
                .sum::<f64>()
                / n as f64
        };
        let root = (n as f64).sqrt();
        assert!(moment(1).abs() < 4.0 / root);
        assert!((moment(2) - 1.0).abs() < 4.0 * 2f64.sqrt() / root);
        assert!((moment(4) - 3.0).abs() < 4.0 * 96f64.sqrt() / root);
    }

    #[test]
    fn permutation_holds_every_number_once() {
        let mut order = Noise::new(5, Purpose::Test, 0).permutation(1000);
        assert_ne!(order, (0..1000).collect::<Vec<u32>>());
        order.sort_unstable();
        assert_eq!(order, (0..1000).collect::<Vec<u32>>());
    }
}
