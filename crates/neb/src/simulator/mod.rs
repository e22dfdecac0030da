//! The built-in problems: a source, a proposal, a simulator of y given x, and its exact log-likelihood.
//!
//! They are the benchmarks of the paper, and the ground truth the rest of the crate is tested with:
//! [two moons](TwoMoons), [SLCP](Slcp) and [inverse kinematics](InverseKinematics), by name with [`by_name`].
//!
//! Everything is computed in `f64`; draws are rounded to `f32` once, when they enter a table.
//!
//! **Rounding.** Where the noise of a simulator can vanish (SLCP near x3 = 0 or x4 = 0, a stretched arm) its
//! density is not bounded, and below a width of about 1e-7 the table's own rounding is the larger noise.
//! Those problems add the variance of that rounding, δ² = (1e-7)², to each component of y. So log-likelihoods
//! and their gradients are finite for every finite x and y, and nothing is floored or cut.

pub mod inverse_kinematics;
mod normal2;
mod product_law;
pub mod slcp;
#[cfg(test)]
mod testing;
pub mod two_moons;

use rayon::prelude::*;

pub use inverse_kinematics::InverseKinematics;
pub use product_law::ProductLaw;
pub use slcp::Slcp;
pub use two_moons::TwoMoons;

use crate::{Dims, Error, Matrix, Noise, Purpose, Result, Rows, Stream};

/// Rows that share one generator stream, and one unit of work.
const ROWS_PER_STREAM: usize = 64;

/// Variance δ² of rounding an observation of size 1 to 4 to `f32`; see the module's documentation.
const ROUNDING_VARIANCE: f64 = 1e-14;

/// The three built-in problems.
static ALL: [&dyn Problem; 3] = [&TwoMoons, &Slcp, &InverseKinematics];

/// The built-in problems.
pub fn all() -> &'static [&'static dyn Problem] {
    &ALL
}

/// The built-in problem of this name.
///
/// ```
/// let problem = neb::simulator::by_name("two-moons")?;
/// let (x, y) = problem.observations(1000, 7);
/// assert_eq!((x.rows(), y.cols()), (1000, 2));
/// # Ok::<(), neb::Error>(())
/// ```
///
/// # Errors
/// If there is no such problem; the hint lists the names.
pub fn by_name(name: &str) -> Result<&'static dyn Problem> {
    ALL.into_iter()
        .find(|problem| problem.name() == name)
        .ok_or_else(|| {
            let known: Vec<_> = ALL.iter().map(|problem| problem.name()).collect();
            Error::input(
                format!("there is no built-in problem `{name}`"),
                format!("choose one of {}", known.join(", ")),
            )
        })
}

/// Which distribution π(x) the simulated pairs are drawn from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Proposal {
    /// The problem's own proposal, which covers the source with a margin ([`Problem::covering_proposal`]).
    #[default]
    Covering,
    /// N(0, I): what the authors of the paper used. It hardly reaches the corners of SLCP's source.
    StandardNormal,
}

impl Proposal {
    /// The name used in configurations and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Covering => "covering",
            Self::StandardNormal => "standard-normal",
        }
    }
}

impl std::str::FromStr for Proposal {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let known = [Self::Covering, Self::StandardNormal];
        known
            .into_iter()
            .find(|proposal| proposal.name() == name)
            .ok_or_else(|| {
                Error::input(
                    format!("there is no proposal `{name}`"),
                    format!("choose one of {}", known.map(Self::name).join(", ")),
                )
            })
    }
}

/// The law p(y|x) at one x; what depends on x alone has been worked out once, for use with many y.
pub trait Conditional: Send + Sync {
    /// log p(y|x).
    fn log_density(&self, y: &[f64]) -> f64;

    /// `dx` = ∂ log p(y|x) / ∂x; overwrites `dx`.
    fn gradient(&self, y: &[f64], dx: &mut [f64]);
}

/// A problem whose truth is known: the source p(x), the simulator p(y|x) and its density.
///
/// Draws are by address: row r of a table is the same whatever its number of rows and of threads.
pub trait Problem: Send + Sync {
    /// The name used in configurations and on the command line.
    fn name(&self) -> &'static str;

    /// Dimensions of x and y.
    fn dims(&self) -> Dims;

    /// The true source p(x).
    fn source(&self) -> ProductLaw;

    /// A proposal that covers the source with a margin.
    fn covering_proposal(&self) -> ProductLaw;

    /// Runs the simulator once: a draw of y given x.
    fn simulate(&self, x: &[f64], stream: &mut Stream, y: &mut [f64]);

    /// The law of y at this x.
    fn at(&self, x: &[f64]) -> Box<dyn Conditional>;

    /// The law of this proposal.
    fn proposal(&self, proposal: Proposal) -> ProductLaw {
        match proposal {
            Proposal::Covering => self.covering_proposal(),
            Proposal::StandardNormal => ProductLaw::normal(&vec![1.0; self.dims().dx]),
        }
    }

    /// `n` draws of the source.
    fn draw_source(&self, n: usize, noise: Noise) -> Matrix {
        self.source().draw(n, noise)
    }

    /// `n` draws of a proposal.
    fn draw_proposal(&self, proposal: Proposal, n: usize, noise: Noise) -> Matrix {
        self.proposal(proposal).draw(n, noise)
    }

    /// One simulated y for each row of x. `noise` must not be the one that x was drawn with.
    ///
    /// # Panics
    /// If x has not the problem's number of columns.
    fn corrupt(&self, x: Rows, noise: Noise) -> Matrix {
        let Dims { dx, dy } = self.dims();
        assert_eq!(x.cols(), dx, "{} takes x of {dx} columns", self.name());
        draw_rows(x.rows(), dy, noise, |row, stream, y| {
            self.simulate(&to_f64(x.row(row)), stream, y);
        })
    }

    /// log p(y|x) of one pair.
    fn log_likelihood(&self, y: &[f64], x: &[f64]) -> f64 {
        self.at(x).log_density(y)
    }

    /// `n` pairs (x, y) with x from a proposal: the training data of the surrogate.
    fn pairs(&self, proposal: Proposal, n: usize, seed: u64) -> (Matrix, Matrix) {
        let x = self.draw_proposal(proposal, n, Noise::new(seed, Purpose::DrawX, 0));
        let y = self.corrupt(x.view(), Noise::new(seed, Purpose::DrawY, 0));
        (x, y)
    }

    /// `n` rows of the source x and their observations y; independent of [`Problem::pairs`] of the same seed.
    fn observations(&self, n: usize, seed: u64) -> (Matrix, Matrix) {
        let x = self.draw_source(n, Noise::new(seed, Purpose::DrawX, 1));
        let y = self.corrupt(x.view(), Noise::new(seed, Purpose::DrawY, 1));
        (x, y)
    }
}

/// Fills a table by drawing each row in `f64`: `draw(row, stream, values)`. Parallel over rows.
pub(crate) fn draw_rows(
    rows: usize,
    cols: usize,
    noise: Noise,
    draw: impl Fn(usize, &mut Stream, &mut [f64]) + Sync,
) -> Matrix {
    let mut table = Matrix::zeros(rows, cols);
    table
        .values_mut()
        .par_chunks_mut(ROWS_PER_STREAM * cols)
        .enumerate()
        .for_each(|(chunk, values)| {
            let mut stream = noise.stream(chunk as u64);
            let mut drawn = vec![0.0; cols];
            for (offset, row) in values.chunks_exact_mut(cols).enumerate() {
                draw(chunk * ROWS_PER_STREAM + offset, &mut stream, &mut drawn);
                for (value, &exact) in row.iter_mut().zip(&drawn) {
                    *value = exact as f32;
                }
            }
        });
    table
}

/// A row in double precision.
pub(crate) fn to_f64(row: &[f32]) -> Vec<f64> {
    row.iter().map(|&value| f64::from(value)).collect()
}

#[cfg(test)]
mod tests {
    use super::testing::with_threads;
    use super::*;

    #[test]
    fn names_find_their_problem_and_an_unknown_name_lists_them() {
        for problem in all() {
            assert_eq!(by_name(problem.name()).unwrap().name(), problem.name());
        }
        let error = by_name("three-moons").err().unwrap();
        assert_eq!(
            error.to_string(),
            "there is no built-in problem `three-moons`"
        );
        assert_eq!(error.hint(), Some("choose one of two-moons, slcp, ik"));
        assert_eq!(
            "standard-normal".parse::<Proposal>().unwrap(),
            Proposal::StandardNormal
        );
        assert_eq!(
            "normal".parse::<Proposal>().unwrap_err().hint(),
            Some("choose one of covering, standard-normal")
        );
    }

    #[test]
    fn a_row_depends_neither_on_the_number_of_rows_nor_of_threads() {
        for problem in all() {
            let draw = |n| {
                let (x, y) = problem.pairs(Proposal::Covering, n, 3);
                let (truth, observed) = problem.observations(n, 3);
                [x, y, truth, observed]
            };
            let few = with_threads(1, || draw(70));
            let many = with_threads(2, || draw(1000));
            for (few, many) in few.iter().zip(&many) {
                assert_eq!(few.values(), &many.values()[..few.values().len()]);
                assert_ne!(few.row(0), few.row(1), "rows repeat");
            }
        }
    }

    /// Correlation of independent columns of 4000 rows: standard error 0.016, bound at 4 of them for
    /// each of 11 columns: false alarm below 1e-3; the seed is fixed.
    #[test]
    fn pairs_and_observations_of_one_seed_are_independent() {
        let n = 4000;
        for problem in all() {
            let (x, _) = problem.pairs(Proposal::Covering, n, 11);
            let (truth, _) = problem.observations(n, 11);
            for col in 0..problem.dims().dx {
                let column = |table: &Matrix| -> Vec<f64> {
                    (0..n).map(|row| f64::from(table.row(row)[col])).collect()
                };
                let (a, b) = (column(&x), column(&truth));
                let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
                let correlation = dot(&a, &b) / (dot(&a, &a) * dot(&b, &b)).sqrt();
                assert!(correlation.abs() < 4.0 / (n as f64).sqrt(), "{correlation}");
            }
        }
    }

    /// The source must be covered: its density is positive under the proposal wherever it is drawn, and the
    /// proposal's density there is not small against it (bounded importance weights).
    #[test]
    fn the_covering_proposal_covers_the_source() {
        for problem in all() {
            let (source, proposal) = (problem.source(), problem.covering_proposal());
            let x = problem.draw_source(5000, Noise::new(1, Purpose::Test, 0));
            for row in 0..x.rows() {
                let x = to_f64(x.row(row));
                let log_weight = source.log_density(&x) - proposal.log_density(&x);
                assert!(log_weight < 2.0, "{}: {log_weight}", problem.name());
            }
        }
    }
}
