//! Two samples side by side; values that cannot be used.

use neb::check::{CompareOptions, Sample};
use neb_cli::embed;
use numpy::PyReadonlyArray2;
use pyo3::prelude::*;

use crate::array::{Column, Table, rows};
use crate::compute::interruptible;
use crate::error::refused;

/// The comparison of two samples, as JSON.
#[pyfunction]
#[pyo3(signature = (a, b, a_weights, b_weights, seed))]
pub(crate) fn compare(
    py: Python<'_>,
    a: Table<'_>,
    b: Table<'_>,
    a_weights: Option<Column<'_>>,
    b_weights: Option<Column<'_>>,
    seed: u64,
) -> PyResult<String> {
    let owned = |weights: &Option<Column<'_>>| -> PyResult<Option<Vec<f32>>> {
        let slice = weights.as_ref().map(|weights| weights.as_slice());
        Ok(slice.transpose()?.map(<[f32]>::to_vec))
    };
    let weights = (owned(&a_weights)?, owned(&b_weights)?);
    let (a, b) = (rows(&a)?.to_matrix(), rows(&b)?.to_matrix());
    let options = CompareOptions {
        seed,
        ..CompareOptions::default()
    };
    let compared = interruptible(py, None, move |_| {
        let sample = |rows, weights| Sample { rows, weights };
        neb::check::compare(
            sample(a.view(), weights.0.as_deref()),
            sample(b.view(), weights.1.as_deref()),
            &options,
        )
    })?;
    let comparison = compared.map_err(|e| refused(py, e))?;
    serde_json::to_string(&comparison)
        .map_err(|e| pyo3::exceptions::PyValueError::new_err(e.to_string()))
}

/// Refuses a table whose values cannot all become finite `float32`.
#[pyfunction]
pub(crate) fn check_values(
    py: Python<'_>,
    role: &str,
    values: PyReadonlyArray2<'_, f64>,
    names: Vec<String>,
) -> PyResult<()> {
    embed::check_values(role, values.as_slice()?, &names).map_err(|e| refused(py, e))
}
