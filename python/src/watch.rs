//! What happens between two steps of a training: signals, the user's callback, the progress bar.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use neb::train::Progress;
use neb_cli::embed::Refusal;
use pyo3::prelude::*;

use crate::error;

/// Time between two looks at signals and calls of the callback.
const EVERY: Duration = Duration::from_millis(100);

/// Asked after every step; goes back to Python ten times a second.
pub(crate) struct Watcher {
    /// Called with the training's name, its step, its steps, and the last epoch's number and losses.
    callback: Option<Py<PyAny>>,
    told: Option<Instant>,
    label: String,
    failed: Option<PyErr>,
}

impl Watcher {
    pub(crate) fn new(callback: Option<Py<PyAny>>) -> Self {
        Self {
            callback,
            told: None,
            label: String::new(),
            failed: None,
        }
    }

    /// Takes note of a step; `Break` after Ctrl-C or where the callback raised.
    pub(crate) fn step(&mut self, label: &str, progress: &Progress) -> ControlFlow<()> {
        let new = self.label != label || progress.step == progress.steps;
        if !new && self.told.is_some_and(|told| told.elapsed() < EVERY) {
            return ControlFlow::Continue(());
        }
        self.told = Some(Instant::now());
        if self.label != label {
            self.label = label.to_owned();
        }
        match Python::attach(|py| self.tell(py, label, progress)) {
            Ok(()) => ControlFlow::Continue(()),
            Err(failed) => {
                self.failed = Some(failed);
                ControlFlow::Break(())
            }
        }
    }

    fn tell(&self, py: Python<'_>, label: &str, progress: &Progress) -> PyResult<()> {
        py.check_signals()?;
        if let Some(callback) = &self.callback {
            let epoch = progress.history.last();
            let losses = epoch.map(|epoch| (epoch.epoch, epoch.train, epoch.held_out));
            callback.call1(py, (label, progress.step, progress.steps, losses))?;
        }
        Ok(())
    }

    /// The exception for a failure: the one that stopped the training, if one did.
    pub(crate) fn exception(self, py: Python<'_>, refusal: Refusal) -> PyErr {
        self.failed.unwrap_or_else(|| error::refused(py, refusal))
    }
}
