//! q(x).

use std::path::PathBuf;
use std::sync::Arc;

use neb::source::{Observations, Recognition};
use neb_cli::embed::{self, FittedSource, Settings, SourceTask, Stage};
use numpy::{PyArray1, PyArray2};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::array::{Column, Table, rows, table};
use crate::compute::{MANY, compute, interruptible, on_rows, trained};
use crate::error::refused;
use crate::surrogate::{Surrogate, bytes_of, from_bytes, toml_of};

/// A source, and the recognition network that was trained with it, if one was.
#[pyclass(frozen, module = "neb._neb")]
pub(crate) struct Source(pub(crate) Arc<FittedSource>);

/// Stage 2: writes the folder of a run.
#[pyfunction]
#[pyo3(signature = (settings, surrogate, y, weights, x, output, force, callback))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn fit_source(
    py: Python<'_>,
    settings: &str,
    surrogate: &Surrogate,
    y: Table<'_>,
    weights: Option<Column<'_>>,
    x: Table<'_>,
    output: PathBuf,
    force: bool,
    callback: Option<Py<PyAny>>,
) -> PyResult<()> {
    let text = toml_of(py, settings)?;
    let settings = Settings::parse(&text, "settings", Stage::Source).map_err(|e| refused(py, e))?;
    let weights = weights.map(|weights| weights.as_slice().map(<[f32]>::to_vec));
    let weights = weights.transpose()?;
    let (y, x) = (rows(&y)?.to_matrix(), rows(&x)?.to_matrix());
    let (surrogate, stage1) = (surrogate.model.clone(), surrogate.stage1.clone());
    let target = output.clone();
    trained(py, callback, Some(&target), move |watcher| {
        let task = SourceTask {
            surrogate: &surrogate,
            stage1: stage1
                .as_ref()
                .map(|stage1| (&stage1.report, &stage1.settings)),
            x: x.view(),
            observations: Observations {
                y: y.view(),
                weights: weights.as_deref(),
            },
            settings: &settings,
            output: &output,
            force,
        };
        embed::fit_source(task, &mut |label, progress| watcher.step(label, progress))
    })
}

#[pymethods]
impl Source {
    /// Reads a file, or the files in the folder of a run.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let source = FittedSource::load(&path).map_err(|e| refused(py, e))?;
        Ok(Self(Arc::new(source)))
    }

    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        compute(py, || self.0.save(&path)).map_err(|e| refused(py, e))
    }

    /// The files of the source and of the recognition network, which needs the names of y, and whether an efficiency belongs to
    /// it.
    fn state<'py>(
        &self,
        py: Python<'py>,
        y_names: Vec<String>,
    ) -> PyResult<(Bound<'py, PyBytes>, Option<Bound<'py, PyBytes>>, bool)> {
        let model = bytes_of(py, |path| self.0.save(path))?;
        let network = self.0.recognition.as_ref();
        let network = network
            .map(|network| bytes_of(py, |path| network.save(&self.0.names, &y_names, path)))
            .transpose()?;
        Ok((model, network, self.0.behind_efficiency))
    }

    #[staticmethod]
    #[pyo3(signature = (model, recognition, behind_efficiency=false))]
    fn from_state(
        py: Python<'_>,
        model: &[u8],
        recognition: Option<&[u8]>,
        behind_efficiency: bool,
    ) -> PyResult<Self> {
        let mut source = from_bytes(py, model, FittedSource::load)?;
        source.behind_efficiency = behind_efficiency;
        source.recognition = recognition
            .map(|bytes| from_bytes(py, bytes, Recognition::load))
            .transpose()?;
        Ok(Self(Arc::new(source)))
    }

    fn sample<'py>(
        &self,
        py: Python<'py>,
        n: usize,
        seed: u64,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        if n < MANY {
            return table(py, compute(py, || self.0.sample(n, seed)));
        }
        let source = self.0.clone();
        table(
            py,
            interruptible(py, None, move |_| source.sample(n, seed))?,
        )
    }

    fn log_prob<'py>(
        &self,
        py: Python<'py>,
        x: Table<'_>,
        seed: u64,
    ) -> PyResult<Bound<'py, PyArray1<f32>>> {
        let values = on_rows(py, &self.0, [rows(&x)?], move |source, [x]| {
            source.log_prob(x, seed)
        })?;
        Ok(PyArray1::from_vec(py, values.map_err(|e| refused(py, e))?))
    }

    #[getter]
    fn x_names(&self) -> Vec<String> {
        self.0.names.clone()
    }

    #[getter]
    fn has_density(&self) -> bool {
        self.0.model.source().density().is_some()
    }

    #[getter]
    fn has_recognition(&self) -> bool {
        self.0.recognition.is_some()
    }

    #[getter]
    fn parameters(&self) -> usize {
        self.0.model.source().parameters().len()
    }
}
