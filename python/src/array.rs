//! Tables between numpy and the library.

use neb::{Matrix, Rows};
use numpy::{
    PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods,
};
use pyo3::prelude::*;

/// A table that numpy owns.
pub(crate) type Table<'py> = PyReadonlyArray2<'py, f32>;
/// A column that numpy owns.
pub(crate) type Column<'py> = PyReadonlyArray1<'py, f32>;

/// The rows of a table, where they lie.
pub(crate) fn rows<'a>(table: &'a Table<'_>) -> PyResult<Rows<'a>> {
    Ok(Rows::new(table.as_slice()?, table.shape()[1]))
}

/// A table as numpy owns it; nothing is copied.
pub(crate) fn table(py: Python<'_>, matrix: Matrix) -> PyResult<Bound<'_, PyArray2<f32>>> {
    let shape = [matrix.rows(), matrix.cols()];
    PyArray1::from_vec(py, matrix.into_values()).reshape(shape)
}
