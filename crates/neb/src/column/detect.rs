//! What a column plainly is: whole numbers throughout, or an atom in a continuous column.

use super::{Atom, Declared, Transform};
use crate::{Error, Result, Rows};

/// Fewer rows than these show nothing plainly.
const FEWEST_ROWS: usize = 50;
/// Whole numbers beyond this are as good as continuous.
const LARGEST_COUNT: f32 = 65_536.0;
/// Fewest rows that make an atom, and their smallest share.
const FEWEST_AT: usize = 10;
const SMALLEST_SHARE: f64 = 0.002;
/// Smallest share of values met only once, or nearly so, in a continuous column.
const DISTINCT: f64 = 0.8;
/// Share of the continuous part's rows beyond its central range, at either end.
const TAIL: f64 = 0.01;

/// A transform that was not asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// Number of the column.
    pub column: usize,
    /// What is done.
    pub transform: Transform,
    /// What the data show, in words.
    pub why: String,
}

/// The same column of several tables.
pub(super) struct Columns<'a> {
    pub(super) tables: &'a [Rows<'a>],
    pub(super) column: usize,
}

impl Columns<'_> {
    /// What the values show plainly.
    pub(super) fn detect(&self) -> Option<(Transform, String)> {
        let rows = self.tables.first().map_or(0, |table| table.rows());
        if rows < FEWEST_ROWS {
            return None;
        }
        if self
            .values()
            .all(|x| x == x.round() && x.abs() <= LARGEST_COUNT)
        {
            let [first, last] = range(self.values())?;
            let why = format!("holds whole numbers alone, from {first} to {last}");
            return (first < last).then_some((self.dequantise(), why));
        }
        let (at, count) = self.most_frequent()?;
        let rest = self.sorted_without(at);
        let distinct = 1 + rest.windows(2).filter(|pair| pair[0] < pair[1]).count();
        let share = count as f64 / rows as f64;
        let plain = count >= FEWEST_AT
            && share >= SMALLEST_SHARE
            && rest.len() >= FEWEST_ROWS
            && distinct as f64 >= DISTINCT * rest.len() as f64;
        if !plain {
            return None;
        }
        let why = format!(
            "holds {at} exactly in {count} of {rows} rows ({:.2} %) and is continuous otherwise",
            100.0 * share
        );
        Some((Transform::Atom(self.atom(at)?), why))
    }

    /// What was asked for, fitted to the values.
    pub(super) fn declared(&self, declared: Declared, name: &str) -> Result<Transform> {
        let transform = match declared {
            Declared::None => Transform::None,
            Declared::Log => Transform::Log,
            Declared::Logit { low, high } => Transform::Logit { low, high },
            Declared::Dequantise => self.dequantise(),
            Declared::Atom { at } => {
                let at = at.or_else(|| Some(self.most_frequent()?.0));
                let atom = at.and_then(|at| self.atom(at));
                Transform::Atom(atom.ok_or_else(|| {
                    Error::input(
                        format!("column `{name}`: there is nothing beside the atom"),
                        "use the transform atom for columns that are continuous otherwise",
                    )
                })?)
            }
        };
        for table in self.tables {
            for row in 0..table.rows() {
                let x = table.row(row)[self.column];
                if transform.forward(x, 0.5).is_none() {
                    return Err(transform.refuse(name, row, x));
                }
            }
        }
        Ok(transform)
    }

    fn dequantise(&self) -> Transform {
        Transform::Dequantise {
            counts: self.values().all(|x| x >= 0.0),
        }
    }

    fn values(&self) -> impl Iterator<Item = f32> {
        let column = self.column;
        let tables = self.tables.iter().copied();
        tables.flat_map(move |table| (0..table.rows()).map(move |row| table.row(row)[column]))
    }

    /// The most frequent value of the first table, and how often it occurs.
    fn most_frequent(&self) -> Option<(f32, usize)> {
        let mut values: Vec<f32> = self.first()?.values().collect();
        values.sort_by(f32::total_cmp);
        let runs = values.chunk_by(|a, b| a == b);
        runs.map(|run| (run[0], run.len()))
            .max_by_key(|(_, count)| *count)
    }

    /// All values but one, in order.
    fn sorted_without(&self, at: f32) -> Vec<f32> {
        let mut rest: Vec<f32> = self.values().filter(|&x| x != at).collect();
        rest.sort_by(f32::total_cmp);
        rest
    }

    /// An atom beside the rest of the values, if there is any: beside those of the first table, unless a value of another is in
    /// the way.
    fn atom(&self, at: f32) -> Option<Atom> {
        let atom = self.first()?.atom_beside_all(at)?;
        match self.values().all(|x| atom.forward(x, 0.5).is_some()) {
            true => Some(atom),
            false => self.atom_beside_all(at),
        }
    }

    fn atom_beside_all(&self, at: f32) -> Option<Atom> {
        let rest = self.sorted_without(at);
        let (first, last) = (*rest.first()?, *rest.last()?);
        let tail = (TAIL * rest.len() as f64) as usize;
        let central = [rest[tail], rest[rest.len() - 1 - tail]];
        (central[0] < central[1]).then(|| Atom::beside(at, [first, last], central))
    }

    /// The column of the first table alone.
    fn first(&self) -> Option<Self> {
        Some(Self {
            tables: self.tables.get(..1)?,
            column: self.column,
        })
    }
}

fn range(values: impl Iterator<Item = f32>) -> Option<[f32; 2]> {
    values.fold(None, |range, x| {
        let [low, high] = range.unwrap_or([x, x]);
        Some([low.min(x), high.max(x)])
    })
}
