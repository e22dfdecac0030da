//! Values that cannot become finite `f32`: counted while reading, reported with the first of them.

use std::path::Path;

use crate::{Error, Result};

/// A number as it stood in the file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Found {
    /// NaN, infinite, or too large for `f32`.
    Number(f64),
    /// No number at all (a null of a parquet file).
    #[cfg_attr(not(feature = "parquet"), allow(dead_code))]
    Null,
}

impl Found {
    fn is_too_large(self) -> bool {
        matches!(self, Self::Number(value) if value.is_finite())
    }

    fn text(self) -> String {
        match self {
            Self::Number(value) if value.is_finite() => format!("{value:e}"),
            Self::Number(value) => format!("{value}"),
            Self::Null => "null".into(),
        }
    }
}

/// One kind of flaw: how many, and the first in row order.
#[derive(Debug, Default)]
struct Tally {
    count: u64,
    first: Option<(usize, usize, Found)>,
}

impl Tally {
    fn add(&mut self, row: usize, col: usize, found: Found) {
        self.count += 1;
        if self.first.is_none_or(|(r, c, _)| (row, col) < (r, c)) {
            self.first = Some((row, col, found));
        }
    }
}

/// All flaws of one table.
#[derive(Debug, Default)]
pub(crate) struct Flaws {
    not_finite: Tally,
    too_large: Tally,
}

impl Flaws {
    /// Records what was found at a place (both counted from zero).
    pub(crate) fn add(&mut self, row: usize, col: usize, found: Found) {
        if found.is_too_large() {
            self.too_large.add(row, col, found);
        } else {
            self.not_finite.add(row, col, found);
        }
    }

    /// Fails if anything was recorded. `subject` is "array `y`"; `place(row)` says where a row is found in the file.
    pub(crate) fn check(
        &self,
        path: &Path,
        subject: &str,
        names: &[String],
        place: impl Fn(usize) -> String,
    ) -> Result<()> {
        match self.describe(subject, names, place) {
            Some((message, hint)) => Err(Error::file(path, message, hint)),
            None => Ok(()),
        }
    }

    /// What was recorded, and what to do about it.
    fn describe(
        &self,
        subject: &str,
        names: &[String],
        place: impl Fn(usize) -> String,
    ) -> Option<(String, &'static str)> {
        let describe = |tally: &Tally, what: &str, hint| {
            let (row, col, found) = tally.first?;
            let values = if tally.count == 1 { "value" } else { "values" };
            let verb = if tally.count == 1 { "is" } else { "are" };
            let message = format!(
                "{subject} holds {} {values} that {verb} {what}; the first is {} at {}, column {col} (`{}`)",
                tally.count,
                found.text(),
                place(row),
                names[col]
            );
            Some((message, hint))
        };
        let not_finite = describe(
            &self.not_finite,
            "not finite",
            "remove or repair these rows; neb never drops data by itself",
        );
        not_finite.or_else(|| {
            describe(
                &self.too_large,
                "too large for 32-bit floats (beyond 3.4e38)",
                "change the unit of this column; neb computes in 32-bit floats",
            )
        })
    }
}

/// What is wrong with a table that is not from a file, one column for each of `names`, if its values cannot all become finite
/// `f32`: the words used for a file, and what to do about it. `subject` is "array `y`".
pub fn flaw_of(subject: &str, values: &[f64], names: &[String]) -> Option<(String, &'static str)> {
    let mut flaws = Flaws::default();
    for (row, values) in values.chunks(names.len()).enumerate() {
        for (col, &value) in values.iter().enumerate() {
            if !(value as f32).is_finite() {
                flaws.add(row, col, Found::Number(value));
            }
        }
    }
    flaws.describe(subject, names, |row| format!("row {row}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(flaws: &Flaws) -> (String, String) {
        let names = ["y1".to_owned(), "y2".to_owned()];
        let error = flaws
            .check(Path::new("pairs.npz"), "array `y`", &names, |row| {
                format!("row {row}")
            })
            .unwrap_err();
        (error.to_string(), error.hint().unwrap().to_owned())
    }

    #[test]
    fn the_first_in_row_order_is_named_whatever_the_order_of_reading() {
        let mut flaws = Flaws::default();
        flaws.add(200, 0, Found::Number(f64::INFINITY));
        flaws.add(137, 1, Found::Number(f64::NAN));
        flaws.add(150, 1, Found::Null);
        let (text, hint) = message(&flaws);
        assert_eq!(
            text,
            "pairs.npz: array `y` holds 3 values that are not finite; the first is NaN at row 137, column 1 (`y2`)"
        );
        assert_eq!(
            hint,
            "remove or repair these rows; neb never drops data by itself"
        );
    }

    #[test]
    fn a_number_beyond_f32_is_called_too_large() {
        let mut flaws = Flaws::default();
        flaws.add(5, 0, Found::Number(-1e300));
        let (text, hint) = message(&flaws);
        assert_eq!(
            text,
            "pairs.npz: array `y` holds 1 value that is too large for 32-bit floats (beyond 3.4e38); the first is -1e300 at row 5, column 0 (`y1`)"
        );
        assert_eq!(
            hint,
            "change the unit of this column; neb computes in 32-bit floats"
        );
    }

    #[test]
    fn a_sound_table_passes() {
        let sound = Flaws::default().check(Path::new("a"), "array `x`", &[], |_| String::new());
        assert!(sound.is_ok());
    }
}
