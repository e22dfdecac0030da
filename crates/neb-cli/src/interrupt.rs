//! Ctrl-C and termination: the first asks a training to stop with a checkpoint, the second ends the program at once.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use anyhow::Context;
use neb::posterior::Tracker;

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

/// Does work that looks at a tracker, which is stopped once the user has asked to stop.
///
/// # Errors
/// That it was stopped, whatever became of work cut short; else those of the work.
pub(crate) fn tracked<T>(work: impl FnOnce(&Tracker) -> anyhow::Result<T>) -> anyhow::Result<T> {
    let tracker = Tracker::default();
    let (alive, ended) = channel::<()>();
    let found = std::thread::scope(|scope| {
        let tracker = &tracker;
        scope.spawn(move || {
            while ended.recv_timeout(Duration::from_millis(100)) == Err(RecvTimeoutError::Timeout) {
                if check().is_break() {
                    tracker.stop();
                }
            }
        });
        let found = work(tracker);
        drop(alive);
        found
    });
    match tracker.is_stopped() {
        true => Err(neb::Error::Cancelled { steps: 0 }.into()),
        false => found,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_is_told_rather_than_what_it_left_undone() {
        let stopped = tracked(|tracker| -> anyhow::Result<()> {
            tracker.stop();
            anyhow::bail!("calibration of 0 events")
        });
        let error = stopped.unwrap_err();
        assert!(matches!(
            error.downcast_ref(),
            Some(neb::Error::Cancelled { .. })
        ));
        let failed = tracked(|_| -> anyhow::Result<()> { anyhow::bail!("no such file") });
        assert_eq!(failed.unwrap_err().to_string(), "no such file");
        assert_eq!(tracked(|_| Ok(3)).unwrap(), 3);
    }
}
