//! Columns as models want them: logarithms, whole numbers made continuous, atoms spread out; and back.
//!
//! A model of densities needs numbers u that fill the line without spikes and edges. Of a user's column x,
//!
//! | transform | u | x | log p(x) − log q(u) |
//! |---|---|---|---|
//! | `log` | ln x | eᵘ | −ln x |
//! | `logit` | ln (x − a)/(b − x) | (a + b eᵘ)/(1 + eᵘ) | ln (b − a) − ln (x − a)(b − x) |
//! | `dequantise` | x + U(−½, ½) | u, rounded (counts below 0 are mirrored) | 0 |
//! | scores ([`Transforms::scored`]) | Φ⁻¹(F(v)), v one of the others' u | that of v | plus ln du/dv |
//! | `atom` | x, or U(l, h) where x is the atom | u, or the atom where u is on its side of the gap | 0, or ln (h − l) at the atom |
//!
//! The last column is [`Transform::log_jacobian`]. For whole numbers and atoms p(x) is a probability, not a density: the mean of
//! q(u) e^(log-Jacobian) over the draws of u ([`average_log_prob`]). Random draws are addressed by seed and row.
//!
//! ```
//! use neb::column::{Declared, Transforms};
//! use neb::{Matrix, Noise, Purpose};
//!
//! let names = ["tracks".to_owned(), "mass".to_owned()];
//! let rows = Matrix::from_fn(100, 2, |row, column| match column {
//!     0 => (row % 7) as f32,
//!     _ => 1.5 + row as f32 / 8.0,
//! });
//! // Whole numbers are found; the logarithm is asked for.
//! let asked = [None, Some(Declared::Log)];
//! let (transforms, found) = Transforms::choose(&names, &asked, &[rows.view()])?;
//! assert_eq!(found[0].column, 0);
//! let noise = Noise::new(1, Purpose::Dequantise, 0);
//! let u = transforms.forward(rows.clone(), &names, noise)?;
//! assert_eq!(u.row(4)[1], 2f32.ln());
//! let back = transforms.inverse(u);
//! assert_eq!(back.row(5)[0], 5.0);
//! # Ok::<(), neb::Error>(())
//! ```

mod atom;
mod detect;
mod scores;
#[cfg(test)]
mod tests;
mod transform;

use serde::{Deserialize, Serialize};

use crate::{Error, Matrix, Noise, Result, Rows};
pub use atom::Atom;
pub use detect::Found;
pub use scores::Scores;
pub use transform::{Declared, Transform};

/// Draws of u that a probability of whole numbers or atoms is averaged over.
const DRAWS: u64 = 32;

/// The transform of every column of a table. Plain where every column is left as it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Transforms {
    /// One for each column; empty where all are plain.
    each: Vec<Transform>,
}

impl Transforms {
    /// Every column as it is.
    pub fn plain() -> Self {
        Self::default()
    }

    /// One transform for each column.
    pub fn new(each: Vec<Transform>) -> Self {
        match each.iter().all(|transform| *transform == Transform::None) {
            true => Self::plain(),
            false => Self { each },
        }
    }

    /// What was declared for each column; where nothing was, what the tables show plainly: whole numbers, atoms.
    ///
    /// The tables have the same columns (simulated and observed y, say). Whole numbers must be so in all of them; an atom is
    /// looked for in the first, and its interval is empty in all. What was found is listed.
    ///
    /// # Errors
    /// A declaration the data contradict: names the column, the row and the value.
    pub fn choose(
        names: &[String],
        declared: &[Option<Declared>],
        tables: &[Rows],
    ) -> Result<(Self, Vec<Found>)> {
        let mut each = Vec::new();
        let mut found = Vec::new();
        for (column, name) in names.iter().enumerate() {
            let seen = detect::Columns { tables, column };
            each.push(match declared.get(column).copied().flatten() {
                Some(declared) => seen.declared(declared, name)?,
                None => match seen.detect() {
                    Some((transform, why)) => {
                        found.push(Found {
                            column,
                            transform: transform.clone(),
                            why,
                        });
                        transform
                    }
                    None => Transform::None,
                },
            });
        }
        Ok((Self::new(each), found))
    }

    /// These transforms, each followed by normal scores: the columns of `u`, which they made, become standard normal.
    ///
    /// # Errors
    /// A column of hardly any different values, by name.
    pub fn scored(&self, u: Rows, names: &[String]) -> Result<Self> {
        let each = (0..u.cols()).map(|column| {
            let values = (0..u.rows()).map(|row| u.row(row)[column]).collect();
            let name = names.get(column).map_or("?", |name| name);
            Scores::measure(self.of(column).clone(), values, name).map(Transform::Scores)
        });
        Ok(Self {
            each: each.collect::<Result<_>>()?,
        })
    }

    /// Whether every column is left as it is.
    pub fn is_plain(&self) -> bool {
        self.each.is_empty()
    }

    /// Whether some column is discrete somewhere, so that u is drawn at random.
    pub fn is_random(&self) -> bool {
        self.each.iter().any(Transform::is_random)
    }

    /// The transform of a column.
    pub fn of(&self, column: usize) -> &Transform {
        self.each.get(column).unwrap_or(&Transform::None)
    }

    /// From the user's units to the models'; random draws are taken from `noise`, row by row.
    ///
    /// # Errors
    /// A value the transform of its column cannot take: names the column, the row and the value.
    pub fn forward(&self, mut rows: Matrix, names: &[String], noise: Noise) -> Result<Matrix> {
        if self.is_plain() {
            return Ok(rows);
        }
        self.check_columns(rows.cols())?;
        let uniform = noise.uniform(rows.rows(), rows.cols());
        for row in 0..rows.rows() {
            for (column, (value, &uniform)) in rows
                .row_mut(row)
                .iter_mut()
                .zip(uniform.row(row))
                .enumerate()
            {
                let transform = &self.each[column];
                *value = transform.forward(*value, uniform).ok_or_else(|| {
                    transform.refuse(names.get(column).map_or("?", |name| name), row, *value)
                })?;
            }
        }
        Ok(rows)
    }

    /// From the models' units to the user's. Values that are not numbers stay so.
    pub fn inverse(&self, mut rows: Matrix) -> Matrix {
        if !self.is_plain() {
            for row in 0..rows.rows() {
                for (value, transform) in rows.row_mut(row).iter_mut().zip(&self.each) {
                    *value = transform.inverse(*value);
                }
            }
        }
        rows
    }

    /// log p(x) − log q(u) of each row, in the user's units.
    pub fn log_jacobian(&self, rows: Rows) -> Vec<f64> {
        let of_row = |row: usize| {
            let each = rows.row(row).iter().zip(&self.each);
            each.map(|(&value, transform)| transform.log_jacobian(value))
                .sum()
        };
        (0..rows.rows()).map(of_row).collect()
    }

    /// A range of each column in the models' units, in the user's.
    pub fn user_ranges(&self, ranges: &[[f32; 2]]) -> Vec<[f32; 2]> {
        let each = ranges.iter().enumerate();
        each.map(|(column, &range)| self.of(column).user_range(range))
            .collect()
    }

    fn check_columns(&self, columns: usize) -> Result<()> {
        if columns == self.each.len() {
            return Ok(());
        }
        Err(Error::input(
            format!(
                "there are {columns} columns; the transforms are of {}",
                self.each.len()
            ),
            "select the columns the model was fitted with, in their order",
        ))
    }
}

/// Log-densities of rows whose columns may be discrete: the logarithm of the mean over draws of u.
///
/// `evaluate` gives the log-densities of one draw; the draws are numbered from 0. Where nothing is random (`random` is false)
/// there is one.
///
/// # Errors
/// Those of `evaluate`.
pub fn average_log_prob(
    random: bool,
    mut evaluate: impl FnMut(u64) -> Result<Vec<f32>>,
) -> Result<Vec<f32>> {
    if !random {
        return evaluate(0);
    }
    let draws: Vec<Vec<f32>> = (0..DRAWS).map(&mut evaluate).collect::<Result<_>>()?;
    let rows = draws.first().map_or(0, Vec::len);
    let mean = |row: usize| {
        let values = draws.iter().map(|draw| f64::from(draw[row]));
        let largest = values.clone().fold(f64::NEG_INFINITY, f64::max);
        if largest == f64::NEG_INFINITY {
            return f32::NEG_INFINITY;
        }
        let sum: f64 = values.map(|value| (value - largest).exp()).sum();
        (largest + (sum / DRAWS as f64).ln()) as f32
    };
    Ok((0..rows).map(mean).collect())
}
