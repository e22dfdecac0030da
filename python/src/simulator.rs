//! The built-in problems.

use neb::simulator::{Problem, by_name};
use neb::{Noise, Purpose};
use numpy::{PyArray1, PyArray2};
use pyo3::prelude::*;

use crate::array::{Table, rows, table};
use crate::compute::compute;
use crate::error::refused;

/// A built-in problem.
#[pyclass(frozen, module = "neb._neb")]
pub(crate) struct Simulator {
    problem: &'static dyn Problem,
}

type Pair<'py> = (Bound<'py, PyArray2<f32>>, Bound<'py, PyArray2<f32>>);

#[pymethods]
impl Simulator {
    #[new]
    fn new(py: Python<'_>, name: &str) -> PyResult<Self> {
        let problem = by_name(name).map_err(|e| refused(py, e))?;
        Ok(Self { problem })
    }

    #[getter]
    fn dims(&self) -> (usize, usize) {
        let dims = self.problem.dims();
        (dims.dx, dims.dy)
    }

    /// x of the true source, and y.
    fn observations<'py>(&self, py: Python<'py>, n: usize, seed: u64) -> PyResult<Pair<'py>> {
        let (x, y) = compute(py, || self.problem.observations(n, seed));
        Ok((table(py, x)?, table(py, y)?))
    }

    /// x of a proposal, and y.
    fn pairs<'py>(
        &self,
        py: Python<'py>,
        proposal: &str,
        n: usize,
        seed: u64,
    ) -> PyResult<Pair<'py>> {
        let proposal = proposal.parse().map_err(|e: neb::Error| refused(py, e))?;
        let (x, y) = compute(py, || self.problem.pairs(proposal, n, seed));
        Ok((table(py, x)?, table(py, y)?))
    }

    /// y for the rows of x.
    fn simulate<'py>(
        &self,
        py: Python<'py>,
        x: Table<'_>,
        seed: u64,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let x = rows(&x)?;
        let y = compute(py, || {
            self.problem.corrupt(x, Noise::new(seed, Purpose::DrawY, 2))
        });
        table(py, y)
    }

    /// log p(y|x), row by row.
    fn log_prob<'py>(
        &self,
        py: Python<'py>,
        y: Table<'_>,
        x: Table<'_>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let (y, x) = (rows(&y)?, rows(&x)?);
        let wide = |row: &[f32]| -> Vec<f64> { row.iter().map(|&v| f64::from(v)).collect() };
        let values = compute(py, || -> Vec<f64> {
            (0..y.rows())
                .map(|row| {
                    self.problem
                        .log_likelihood(&wide(y.row(row)), &wide(x.row(row)))
                })
                .collect()
        });
        Ok(PyArray1::from_vec(py, values))
    }
}
