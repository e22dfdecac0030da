//! p(x|y).

use neb::posterior::{Budget, Method, PosteriorOptions};
use neb_cli::embed::{self, FittedSource, Posteriors};
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::array::{Table, rows, table};
use crate::compute::{compute, interruptible};
use crate::error::refused;
use crate::source::Source;
use crate::surrogate::Surrogate;

/// How to draw, and when to stop.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Sampler {
    method: String,
    n: usize,
    seed: u64,
    max_seconds: f64,
    max_samples: u64,
}

impl Sampler {
    fn options(&self) -> PosteriorOptions {
        PosteriorOptions {
            draws: self.n,
            seed: self.seed,
            budget: Budget {
                max_seconds: self.max_seconds,
                max_samples: self.max_samples.max(1),
            },
        }
    }

    fn method(&self, py: Python<'_>) -> PyResult<Option<Method>> {
        embed::posterior_method(&self.method).map_err(|e| refused(py, e))
    }
}

/// p(x|y) of both models.
fn of<'a>(source: &'a FittedSource, surrogate: &'a neb::surrogate::Surrogate) -> Posteriors<'a> {
    Posteriors { source, surrogate }
}

/// A callback with what it is told of.
fn named(callback: Option<Py<PyAny>>) -> Option<(&'static str, Py<PyAny>)> {
    callback.map(|callback| ("posteriors", callback))
}

/// Draws from the posterior of every row of y, with everything that is known about them.
#[pyfunction]
#[pyo3(signature = (source, surrogate, y, sampler, callback))]
pub(crate) fn draw<'py>(
    py: Python<'py>,
    source: &Source,
    surrogate: &Surrogate,
    y: Table<'_>,
    sampler: Sampler,
    callback: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let (method, options) = (sampler.method(py)?, sampler.options());
    let (source, surrogate) = (source.0.clone(), surrogate.model.clone());
    let y = rows(&y)?.to_matrix();
    let drawn = interruptible(py, named(callback), move |tracker| {
        let posteriors = of(&source, &surrogate);
        posteriors.sample(y.view(), method, &options, tracker)
    })?;
    let (draws, warnings) = drawn.map_err(|e| refused(py, e))?;
    let known = PyDict::new(py);
    let shape = [draws.observations(), draws.per_observation, draws.x.cols()];
    let column = |name: &str, values: &[f64]| match values.is_empty() {
        true => Ok(()),
        false => known.set_item(name, PyArray1::from_slice(py, values)),
    };
    let counts = |values: &[usize]| -> Vec<i64> { values.iter().map(|&v| v as i64).collect() };
    column("ess", &draws.ess)?;
    column("acceptance", &draws.acceptance)?;
    column("pareto_k", &draws.pareto_k)?;
    column("r_hat", &draws.r_hat)?;
    if !draws.max_log_likelihood.is_empty() {
        known.set_item(
            "max_log_likelihood",
            PyArray1::from_slice(py, &draws.max_log_likelihood),
        )?;
    }
    if !draws.divergences.is_empty() {
        known.set_item(
            "divergences",
            PyArray1::from_vec(py, counts(&draws.divergences)),
        )?;
    }
    known.set_item("method", draws.method.to_string())?;
    known.set_item("found", PyArray1::from_vec(py, counts(&draws.found)))?;
    known.set_item("samples", draws.samples)?;
    known.set_item("complete", draws.complete())?;
    known.set_item("warnings", warnings)?;
    known.set_item(
        "x",
        PyArray1::from_vec(py, draws.x.into_values()).reshape(shape)?,
    )?;
    Ok(known)
}

/// log q(y|x) + log q(x), row by row.
#[pyfunction]
pub(crate) fn log_prob<'py>(
    py: Python<'py>,
    source: &Source,
    surrogate: &Surrogate,
    y: Table<'_>,
    x: Table<'_>,
    seed: u64,
) -> PyResult<Bound<'py, PyArray1<f32>>> {
    let (y, x) = (rows(&y)?, rows(&x)?);
    let values = compute(py, || of(&source.0, &surrogate.model).log_prob(y, x, seed));
    Ok(PyArray1::from_vec(py, values.map_err(|e| refused(py, e))?))
}

/// x of greatest posterior density for each row of y, and the log-density there.
#[pyfunction]
#[allow(clippy::type_complexity)]
pub(crate) fn maximum<'py>(
    py: Python<'py>,
    source: &Source,
    surrogate: &Surrogate,
    y: Table<'_>,
    seed: u64,
) -> PyResult<(Bound<'py, PyArray2<f32>>, Bound<'py, PyArray1<f32>>)> {
    let (source, surrogate) = (source.0.clone(), surrogate.model.clone());
    let y = rows(&y)?.to_matrix();
    let found = interruptible(py, None, move |tracker| {
        of(&source, &surrogate).maximum(y.view(), seed, tracker)
    })?;
    let found = found.map_err(|e| refused(py, e))?;
    Ok((table(py, found.x)?, PyArray1::from_vec(py, found.log_prob)))
}

/// Calibration as JSON, pairs left out, and what there is to worry about.
#[pyfunction]
#[pyo3(signature = (source, surrogate, x, y, sampler, callback))]
pub(crate) fn calibrate(
    py: Python<'_>,
    source: &Source,
    surrogate: &Surrogate,
    x: Table<'_>,
    y: Table<'_>,
    sampler: Sampler,
    callback: Option<Py<PyAny>>,
) -> PyResult<(String, usize, Vec<String>)> {
    let (method, options) = (sampler.method(py)?, sampler.options());
    let (source, surrogate) = (source.0.clone(), surrogate.model.clone());
    let (x, y) = (rows(&x)?.to_matrix(), rows(&y)?.to_matrix());
    let judged = interruptible(py, named(callback), move |tracker| {
        let posteriors = of(&source, &surrogate);
        posteriors.calibrate(x.view(), y.view(), method, &options, tracker)
    })?;
    let (calibration, left_out, warnings) = judged.map_err(|e| refused(py, e))?;
    let json = serde_json::to_string(&calibration);
    let json = json.map_err(|e| pyo3::exceptions::PyValueError::new_err(e.to_string()))?;
    Ok((json, left_out, warnings))
}
