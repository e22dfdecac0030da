//! The folder of a run, and the page about it.

use std::path::PathBuf;

use neb_cli::embed::{self, Posteriors, ReportFiles, UnfoldTask};
use pyo3::prelude::*;

use crate::compute::{compute, interruptible, trained};
use crate::error::refused;
use crate::source::Source;
use crate::surrogate::Surrogate;

/// Refuses a folder that a run cannot be written to.
#[pyfunction]
pub(crate) fn check_run_target(py: Python<'_>, target: PathBuf, force: bool) -> PyResult<()> {
    embed::check_run_target(&target, force).map_err(|e| refused(py, e))
}

/// Writes the folder of a run: both models, and other files as they are.
#[pyfunction]
pub(crate) fn save_run(
    py: Python<'_>,
    target: PathBuf,
    force: bool,
    surrogate: &Surrogate,
    source: &Source,
    others: Vec<(String, Vec<u8>)>,
) -> PyResult<()> {
    let fitted = Posteriors {
        source: &source.0,
        surrogate: &surrogate.model,
    };
    compute(py, || embed::save_run(&target, force, fitted, &others)).map_err(|e| refused(py, e))
}

/// Unfolds with these words of `neb unfold`; `identity` stands for them and for the data.
#[pyfunction]
#[pyo3(signature = (options, output, identity, seed, force, callback))]
pub(crate) fn unfold(
    py: Python<'_>,
    options: Vec<String>,
    output: PathBuf,
    identity: String,
    seed: u64,
    force: bool,
    callback: Option<Py<PyAny>>,
) -> PyResult<()> {
    let target = output.clone();
    trained(py, callback, Some(&target), move |watcher| {
        let task = UnfoldTask {
            options: &options,
            output: &output,
            identity: &identity,
            seed,
            force,
        };
        embed::unfold(task, &mut |stage, progress| watcher.step(stage, progress))
    })
}

/// Writes the page of a run; where it is and what it says, as JSON.
#[pyfunction]
#[pyo3(signature = (run, truth, observations, pairs, output, force))]
pub(crate) fn write_report(
    py: Python<'_>,
    run: PathBuf,
    truth: Option<PathBuf>,
    observations: Option<PathBuf>,
    pairs: Option<PathBuf>,
    output: Option<PathBuf>,
    force: bool,
) -> PyResult<String> {
    let files = ReportFiles {
        truth,
        observations,
        pairs,
    };
    let written = interruptible(py, None, move |_| {
        embed::write_report(&run, files, output.as_deref(), force)
    })?;
    written.map_err(|e| refused(py, e))
}

/// The top of that page as HTML, judged from at most `rows` observations.
#[pyfunction]
#[pyo3(signature = (run, observations, rows))]
pub(crate) fn report_top(
    py: Python<'_>,
    run: PathBuf,
    observations: Option<PathBuf>,
    rows: usize,
) -> PyResult<String> {
    let top = interruptible(py, None, move |_| {
        embed::report_top(&run, observations, rows)
    })?;
    top.map_err(|e| refused(py, e))
}
