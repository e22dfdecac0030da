//! Errors of the library as `neb.NebError`, with the program's words.

use neb_cli::embed::{Refusal, RefusalKind};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

static ERROR: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static INPUT: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// A failure as an exception.
pub(crate) fn refused(py: Python<'_>, refusal: impl Into<Refusal>) -> PyErr {
    let refusal = refusal.into();
    raise(py, refusal.kind, &refusal.message, refusal.hint.as_deref())
}

/// Data or settings that cannot be used.
pub(crate) fn input(py: Python<'_>, message: &str, hint: &str) -> PyErr {
    raise(py, RefusalKind::Input, message, Some(hint))
}

fn raise(py: Python<'_>, kind: RefusalKind, message: &str, hint: Option<&str>) -> PyErr {
    let class = match kind {
        RefusalKind::Input => INPUT.import(py, "neb._errors", "NebValueError"),
        _ => ERROR.import(py, "neb._errors", "NebError"),
    };
    let error = class.and_then(|class| class.call1((message, hint)));
    match error {
        Ok(error) => PyErr::from_value(error),
        Err(failed) => failed,
    }
}
