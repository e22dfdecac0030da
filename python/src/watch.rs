//! What a training tells between two steps.

use std::ops::ControlFlow;
use std::time::Instant;

use neb::train::Progress;

use crate::compute::{EVERY, Line};

/// Where a training is.
pub(crate) struct Step {
    /// Its name.
    pub(crate) label: String,
    pub(crate) step: u64,
    pub(crate) steps: u64,
    /// Number of the last epoch, and its training and held-out loss.
    pub(crate) losses: Option<(usize, f64, f64)>,
}

/// Asked after every step; tells of one ten times a second, and of the first and the last of every training.
pub(crate) struct Watcher<T> {
    line: Line<T>,
    told: Option<Instant>,
    label: String,
}

impl<T> Watcher<T> {
    pub(crate) fn new(line: Line<T>) -> Self {
        Self {
            line,
            told: None,
            label: String::new(),
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
        let last = progress.history.last();
        self.line.tell(Step {
            label: label.to_owned(),
            step: progress.step,
            steps: progress.steps,
            losses: last.map(|epoch| (epoch.epoch, epoch.train, epoch.held_out)),
        })
    }
}
