//! Arrays to files.

use std::collections::HashSet;
use std::io;
use std::path::Path;

use crate::atomic::{Output, check_target, write_atomically};
use crate::error::Problem;
use crate::format::Format;
use crate::npy::{shape_text, write_npy};
use crate::select::numbered_names;
use crate::table::Table;
use crate::{Result, csv, npz};

/// The numbers of an array, last index fastest.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Values<'a> {
    /// 32-bit floats.
    F32(&'a [f32]),
    /// 64-bit floats.
    F64(&'a [f64]),
    /// 64-bit integers.
    I64(&'a [i64]),
}

impl Values<'_> {
    fn len(&self) -> usize {
        match self {
            Self::F32(values) => values.len(),
            Self::F64(values) => values.len(),
            Self::I64(values) => values.len(),
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        let size = match self {
            Self::F32(_) => 4,
            Self::F64(_) | Self::I64(_) => 8,
        };
        self.len() as u64 * size
    }
}

impl<'a> From<&'a [f32]> for Values<'a> {
    fn from(values: &'a [f32]) -> Self {
        Self::F32(values)
    }
}

impl<'a> From<&'a [f64]> for Values<'a> {
    fn from(values: &'a [f64]) -> Self {
        Self::F64(values)
    }
}

impl<'a> From<&'a [i64]> for Values<'a> {
    fn from(values: &'a [i64]) -> Self {
        Self::I64(values)
    }
}

/// A named array to write.
#[derive(Clone, Debug)]
pub struct Array<'a> {
    name: &'a str,
    shape: Vec<usize>,
    names: Option<&'a [String]>,
    values: Values<'a>,
}

impl<'a> Array<'a> {
    /// An array of any number of dimensions.
    ///
    /// # Panics
    /// If the number of values is not the product of `shape`.
    pub fn new(name: &'a str, shape: &[usize], values: impl Into<Values<'a>>) -> Self {
        let values = values.into();
        assert_eq!(
            values.len(),
            shape.iter().product::<usize>(),
            "array `{name}` of shape {}",
            shape_text(shape)
        );
        Self {
            name,
            shape: shape.to_vec(),
            names: None,
            values,
        }
    }

    /// The array `name` with the values and column names of a table.
    pub fn of_table(name: &'a str, table: &'a Table) -> Self {
        let shape = [table.rows(), table.cols()];
        Self::new(name, &shape, table.values()).with_names(table.names())
    }

    /// Gives the columns (of an array of two dimensions) names; without, they are `x1`, `x2`, ... for the array `x`.
    ///
    /// # Panics
    /// If the array does not have as many columns.
    pub fn with_names(mut self, names: &'a [String]) -> Self {
        assert!(
            self.shape.len() == 2 && self.shape[1] == names.len(),
            "{} names for array `{}` of shape {}",
            names.len(),
            self.name,
            shape_text(&self.shape)
        );
        self.names = Some(names);
        self
    }

    pub(crate) fn name(&self) -> &str {
        self.name
    }

    pub(crate) fn shape(&self) -> &[usize] {
        &self.shape
    }

    pub(crate) fn values(&self) -> Values<'a> {
        self.values
    }

    pub(crate) fn rows(&self) -> usize {
        self.shape.first().copied().unwrap_or(1)
    }

    pub(crate) fn cols(&self) -> usize {
        self.shape.iter().skip(1).product()
    }

    /// One name per column.
    pub(crate) fn names(&self) -> Vec<String> {
        match self.names {
            Some(names) => names.to_vec(),
            None if self.shape.len() < 2 => vec![self.name.to_owned()],
            None => numbered_names(self.name, self.cols()),
        }
    }

    /// The names of the columns where they are not the usual ones.
    pub(crate) fn own_names(&self) -> Option<&'a [String]> {
        self.names
            .filter(|names| *names != numbered_names(self.name, self.cols()))
    }
}

/// Writes arrays in the format of the extension of `path`, atomically: see [`write_atomically`].
///
/// An npz file takes any arrays, an npy file one; csv and parquet files take arrays of one or two dimensions with the same
/// number of rows and write their columns side by side.
///
/// # Errors
/// If the format cannot hold these arrays, if the target exists and `force` is not set, or if writing fails; then nothing
/// is left behind.
pub fn write(path: impl AsRef<Path>, force: bool, arrays: &[Array<'_>]) -> Result<()> {
    let path = path.as_ref();
    let format = Format::of(path)?;
    #[cfg(not(feature = "parquet"))]
    if format == Format::Parquet {
        return Err(crate::format::without_parquet(path));
    }
    check(format, arrays).map_err(|problem| problem.at(path))?;
    check_target(path, force)?;
    write_atomically(path, force, |output| write_to(output, format, arrays))
}

/// Writes arrays to any output.
///
/// # Errors
/// If the format cannot hold these arrays, or if writing fails.
pub fn write_to(output: &mut dyn Output, format: Format, arrays: &[Array<'_>]) -> io::Result<()> {
    check(format, arrays).map_err(|problem| io::Error::other(problem.message))?;
    match format {
        Format::Npz => npz::write(output, arrays),
        Format::Npy => write_npy(output, arrays[0].shape(), arrays[0].values()),
        Format::Csv => csv::write(output, arrays),
        #[cfg(feature = "parquet")]
        Format::Parquet => crate::parquet::write(output, arrays),
        #[cfg(not(feature = "parquet"))]
        Format::Parquet => Err(io::ErrorKind::Unsupported.into()),
    }
}

/// Whether a file of this format can hold these arrays.
fn check(format: Format, arrays: &[Array<'_>]) -> std::result::Result<(), Problem> {
    let to_npz = "write an .npz file instead";
    match format {
        Format::Npy if arrays.len() != 1 => {
            return Err(Problem::new(
                format!(
                    "an npy file holds one array; there are {} to write",
                    arrays.len()
                ),
                to_npz,
            ));
        }
        Format::Npz | Format::Npy => {
            unique(arrays.iter().map(|array| array.name.to_owned()), "array")?
        }
        Format::Csv | Format::Parquet => {
            for array in arrays {
                if !(1..=2).contains(&array.shape.len()) {
                    return Err(Problem::new(
                        format!(
                            "array `{}` has {} dimensions ({}); columns have one or two",
                            array.name,
                            array.shape.len(),
                            shape_text(&array.shape)
                        ),
                        to_npz,
                    ));
                }
            }
            for pair in arrays.windows(2) {
                if pair[0].rows() != pair[1].rows() {
                    return Err(Problem::new(
                        format!(
                            "array `{}` has {} rows but array `{}` has {}",
                            pair[0].name,
                            pair[0].rows(),
                            pair[1].name,
                            pair[1].rows()
                        ),
                        to_npz,
                    ));
                }
            }
            unique(arrays.iter().flat_map(Array::names), "column")?;
        }
    }
    Ok(())
}

fn unique(names: impl Iterator<Item = String>, what: &str) -> std::result::Result<(), Problem> {
    let mut seen = HashSet::new();
    for name in names {
        if !seen.insert(name.clone()) {
            return Err(Problem::new(
                format!("there are two {what}s named `{name}`"),
                "give each a name of its own",
            ));
        }
    }
    Ok(())
}
