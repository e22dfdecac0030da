//! Ctrl-C and termination: the first asks a training to stop with a checkpoint, the second ends the program at once.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;

static ASKED: AtomicBool = AtomicBool::new(false);

/// From now on signals are noted rather than obeyed; commands that never look should not call this.
pub(crate) fn listen() -> anyhow::Result<()> {
    ctrlc::set_handler(|| {
        if ASKED.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    })
    .context("cannot listen for Ctrl-C")
}

/// `Break` once the user has asked to stop.
pub(crate) fn check() -> ControlFlow<()> {
    if ASKED.load(Ordering::Relaxed) {
        ControlFlow::Break(())
    } else {
        ControlFlow::Continue(())
    }
}
