//! Named columns of numbers, one row per event.

use std::path::{Path, PathBuf};

use crate::names::{list, nearest};
use crate::{Error, Result};

/// Columns read from a file: row-major `f32`, all values finite.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    path: PathBuf,
    subject: String,
    names: Vec<String>,
    values: Vec<f32>,
}

impl Table {
    /// `subject` is how errors name the table: "array `x`", say.
    pub(crate) fn new(
        path: &Path,
        subject: impl Into<String>,
        names: Vec<String>,
        values: Vec<f32>,
    ) -> Self {
        assert!(!names.is_empty() && values.len().is_multiple_of(names.len()));
        Self {
            path: path.to_owned(),
            subject: subject.into(),
            names,
            values,
        }
    }

    /// The file the table was read from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// One name per column.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.values.len() / self.names.len()
    }

    /// Number of columns; never zero.
    pub fn cols(&self) -> usize {
        self.names.len()
    }

    /// All values, row by row.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// The values themselves, row by row: what `neb::Matrix::from_vec` takes.
    pub fn into_values(self) -> Vec<f32> {
        self.values
    }

    /// Some of the columns, copied, in this order.
    ///
    /// # Errors
    /// If a name is not a column of the table.
    pub fn columns(&self, names: &[impl AsRef<str>]) -> Result<Table> {
        let wanted = names
            .iter()
            .map(|name| self.position(name.as_ref()))
            .collect::<Result<Vec<usize>>>()?;
        if wanted.is_empty() {
            return Err(Error::file(
                &self.path,
                format!("no column of {} was asked for", self.subject),
                format!("name at least one of {}", list(&self.names)),
            ));
        }
        let values = self
            .values
            .chunks_exact(self.cols())
            .flat_map(|row| wanted.iter().map(|&col| row[col]))
            .collect();
        let names = wanted.iter().map(|&col| self.names[col].clone()).collect();
        Ok(Self::new(&self.path, self.subject.clone(), names, values))
    }

    fn position(&self, name: &str) -> Result<usize> {
        self.names
            .iter()
            .position(|own| own == name)
            .ok_or_else(|| {
                Error::file(
                    &self.path,
                    format!(
                        "{} has no column `{name}`; its columns are {}",
                        self.subject,
                        list(&self.names)
                    ),
                    match nearest(name, &self.names) {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => "name one of these columns".into(),
                    },
                )
            })
    }

    /// Checks that the rows of two tables, perhaps of two files, can belong together.
    ///
    /// # Errors
    /// If they differ in number; the message names both tables.
    pub fn check_same_rows(&self, other: &Table) -> Result<()> {
        if self.rows() == other.rows() {
            return Ok(());
        }
        let second = if self.path == other.path {
            other.subject.clone()
        } else {
            format!("{}: {}", other.path.display(), other.subject)
        };
        Err(Error::Rows {
            message: format!(
                "{}: {} has {} rows but {second} has {}",
                self.path.display(),
                self.subject,
                self.rows(),
                other.rows()
            ),
            hint: "row i of one must belong to row i of the other; write both from the same events"
                .into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(path: &str, subject: &str, names: &[&str], rows: usize) -> Table {
        let values = (0..rows * names.len()).map(|i| i as f32).collect();
        let names = names.iter().map(|&name| name.to_owned()).collect();
        Table::new(Path::new(path), subject, names, values)
    }

    #[test]
    fn columns_are_copied_in_the_order_asked_for() {
        let all = table("a.csv", "group `x`", &["pt", "mass", "eta"], 2);
        let some = all.columns(&["eta", "pt"]).unwrap();
        assert_eq!(some.names(), ["eta", "pt"]);
        assert_eq!(some.values(), [2.0, 0.0, 5.0, 3.0]);
    }

    #[test]
    fn an_absent_column_is_named_with_its_neighbours() {
        let all = table("a.csv", "group `x`", &["pt", "mass", "eta"], 2);
        let error = all.columns(&["masss"]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "a.csv: group `x` has no column `masss`; its columns are `pt`, `mass`, `eta`"
        );
        assert_eq!(error.hint(), Some("did you mean `mass`?"));
    }

    #[test]
    fn different_numbers_of_rows_are_refused_by_name() {
        let x = table("pairs.npz", "array `x`", &["x1"], 100);
        let y = table("pairs.npz", "array `y`", &["y1", "y2"], 99);
        let far = table("other.npz", "array `y`", &["y1"], 98);
        assert!(x.check_same_rows(&x).is_ok());
        assert_eq!(
            x.check_same_rows(&y).unwrap_err().to_string(),
            "pairs.npz: array `x` has 100 rows but array `y` has 99"
        );
        let error = x.check_same_rows(&far).unwrap_err();
        assert_eq!(
            error.to_string(),
            "pairs.npz: array `x` has 100 rows but other.npz: array `y` has 98"
        );
        assert_eq!(
            error.hint(),
            Some("row i of one must belong to row i of the other; write both from the same events")
        );
    }
}
