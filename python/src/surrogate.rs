//! q(y|x).

use std::path::PathBuf;
use std::sync::Arc;

use neb::surrogate::{Pairs, Report};
use neb_cli::embed::{self, Refusal, Settings, Stage};
use numpy::{PyArray1, PyArray2};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::array::{Table, rows, table};
use crate::compute::{compute, on_rows, trained};
use crate::error::refused;

/// A learned likelihood, and how it was learned where that is known.
#[pyclass(frozen, module = "neb._neb")]
pub(crate) struct Surrogate {
    pub(crate) model: Arc<neb::surrogate::Surrogate>,
    pub(crate) stage1: Option<Arc<Stage1>>,
}

/// How a surrogate was learned.
pub(crate) struct Stage1 {
    pub(crate) report: Report,
    /// The settings, with the transforms of columns that were found.
    pub(crate) settings: Settings,
}

/// What a pickle holds: the model's file, and report and settings as TOML, which knows NaN.
type State<'py> = (Bound<'py, PyBytes>, Option<(String, String)>);

/// Settings from Python, as JSON, to the text of a configuration file.
pub(crate) fn toml_of(py: Python<'_>, json: &str) -> PyResult<String> {
    let failed = |error: &dyn std::fmt::Display| {
        refused(
            py,
            neb::Error::input(
                format!("the settings cannot be read: {error}"),
                "give numbers, names and lists of numbers",
            ),
        )
    };
    let value: serde_json::Value = serde_json::from_str(json).map_err(|e| failed(&e))?;
    toml::to_string(&value).map_err(|e| failed(&e))
}

/// Checks settings of a stage (`surrogate` or `source`), given as JSON; all of them as `neb config` prints them.
#[pyfunction]
pub(crate) fn settings(py: Python<'_>, json: &str, stage: &str) -> PyResult<String> {
    let stage = match stage {
        "surrogate" => Stage::Surrogate,
        _ => Stage::Source,
    };
    let parsed = Settings::parse(&toml_of(py, json)?, "settings", stage);
    Ok(parsed.map_err(|e| refused(py, e))?.to_toml())
}

#[pymethods]
impl Surrogate {
    /// Stage 1, and what was done without being asked for.
    #[staticmethod]
    #[pyo3(signature = (settings, x, y, x_names, y_names, file, force, callback))]
    #[allow(clippy::too_many_arguments)]
    fn fit(
        py: Python<'_>,
        settings: &str,
        x: Table<'_>,
        y: Table<'_>,
        x_names: Vec<String>,
        y_names: Vec<String>,
        file: Option<PathBuf>,
        force: bool,
        callback: Option<Py<PyAny>>,
    ) -> PyResult<(Self, Vec<String>)> {
        let text = toml_of(py, settings)?;
        let settings =
            Settings::parse(&text, "settings", Stage::Surrogate).map_err(|e| refused(py, e))?;
        let (x, y) = (rows(&x)?.to_matrix(), rows(&y)?.to_matrix());
        let target = file.clone();
        let fitted = trained(py, callback, target.as_deref(), move |watcher| {
            let pairs = Pairs {
                x: x.view(),
                y: y.view(),
                x_names: &x_names,
                y_names: &y_names,
            };
            let file = file.as_deref();
            embed::fit_surrogate(pairs, &settings, file, force, &mut |label, progress| {
                watcher.step(label, progress)
            })
        })?;
        let surrogate = Self {
            model: Arc::new(fitted.surrogate),
            stage1: Some(Arc::new(Stage1 {
                report: fitted.report,
                settings: fitted.settings,
            })),
        };
        Ok((surrogate, fitted.notes))
    }

    /// Reads a file, or the file in the folder of a run.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let model = embed::load_surrogate(&path).map_err(|e| refused(py, e))?;
        Ok(Self {
            model: Arc::new(model),
            stage1: None,
        })
    }

    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        compute(py, || self.model.save(&path)).map_err(|e| refused(py, e))
    }

    fn state<'py>(&self, py: Python<'py>) -> PyResult<State<'py>> {
        let bytes = bytes_of(py, |path| self.model.save(path))?;
        let stage1 = match &self.stage1 {
            Some(stage1) => {
                let report = toml::to_string(&stage1.report);
                let report =
                    report.map_err(|e| pyo3::exceptions::PyValueError::new_err(e.to_string()))?;
                Some((report, stage1.settings.to_toml()))
            }
            None => None,
        };
        Ok((bytes, stage1))
    }

    #[staticmethod]
    fn from_state(
        py: Python<'_>,
        bytes: &[u8],
        stage1: Option<(String, String)>,
    ) -> PyResult<Self> {
        let model = from_bytes(py, bytes, neb::surrogate::Surrogate::load)?;
        let stage1 = match stage1 {
            Some((report, text)) => Some(Arc::new(Stage1 {
                report: toml::from_str(&report)
                    .map_err(|e| pyo3::exceptions::PyValueError::new_err(e.to_string()))?,
                settings: Settings::parse(&text, "settings", Stage::Surrogate)
                    .map_err(|e| refused(py, e))?,
            })),
            None => None,
        };
        Ok(Self {
            model: Arc::new(model),
            stage1,
        })
    }

    fn log_prob<'py>(
        &self,
        py: Python<'py>,
        y: Table<'_>,
        x: Table<'_>,
        seed: u64,
    ) -> PyResult<Bound<'py, PyArray1<f32>>> {
        let tables = [rows(&y)?, rows(&x)?];
        let values = on_rows(py, &self.model, tables, move |model, [y, x]| {
            embed::log_likelihood(model, y, x, seed)
        })?;
        Ok(PyArray1::from_vec(py, values.map_err(|e| refused(py, e))?))
    }

    fn sample<'py>(
        &self,
        py: Python<'py>,
        x: Table<'_>,
        seed: u64,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let y = on_rows(py, &self.model, [rows(&x)?], move |model, [x]| {
            embed::push(model, x, seed)
        })?;
        table(py, y.map_err(|e| refused(py, e))?)
    }

    /// The mean log-marginal likelihood of the rows of y over the samples x, and its gradient with respect to x.
    fn log_marginal<'py>(
        &self,
        py: Python<'py>,
        y: Table<'_>,
        x: Table<'_>,
    ) -> PyResult<(f64, Bound<'py, PyArray2<f32>>)> {
        let (y, x) = (rows(&y)?, rows(&x)?);
        let estimate = compute(py, || embed::log_marginal(&self.model, y, x));
        let (value, gradient) = estimate.map_err(|e| refused(py, e))?;
        Ok((value, table(py, gradient)?))
    }

    #[getter]
    fn name(&self) -> String {
        self.model.model().name()
    }

    #[getter]
    fn parameters(&self) -> usize {
        self.model.parameters()
    }

    #[getter]
    fn x_names(&self) -> Vec<String> {
        self.model.x_names().to_vec()
    }

    #[getter]
    fn y_names(&self) -> Vec<String> {
        self.model.y_names().to_vec()
    }

    /// What was tried, as JSON.
    #[getter]
    fn report(&self) -> PyResult<Option<String>> {
        let json = |stage1: &Arc<Stage1>| serde_json::to_string(&stage1.report);
        let report = self.stage1.as_ref().map(json).transpose();
        report.map_err(|e| pyo3::exceptions::PyValueError::new_err(e.to_string()))
    }
}

/// The bytes of a file that `save` writes.
pub(crate) fn bytes_of<'py>(
    py: Python<'py>,
    save: impl FnOnce(&std::path::Path) -> neb::Result<()>,
) -> PyResult<Bound<'py, PyBytes>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("model.safetensors");
    save(&path).map_err(|e| refused(py, e))?;
    Ok(PyBytes::new(py, &std::fs::read(&path)?))
}

/// What `load` reads from a file of these bytes.
pub(crate) fn from_bytes<T, E: Into<Refusal>>(
    py: Python<'_>,
    bytes: &[u8],
    load: impl FnOnce(&std::path::Path) -> Result<T, E>,
) -> PyResult<T> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("model.safetensors");
    std::fs::write(&path, bytes)?;
    load(&path).map_err(|e| refused(py, e))
}
