//! Computations away from the interpreter: without its lock, interruptible, and in forked processes too.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use neb::posterior::Tracker;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::error;

/// Time between two looks at the signals.
const EVERY: Duration = Duration::from_millis(100);
/// How long a stopped computation is waited for.
const PATIENCE: Duration = Duration::from_millis(500);

/// Whether this process was forked from one that had loaded the module: its threads do not exist here.
static FORKED: AtomicBool = AtomicBool::new(false);
/// The thread that does the work of a forked process.
static OWN: Mutex<Option<Arc<ThreadPool>>> = Mutex::new(None);

/// Told by Python in a process that was just forked.
#[pyfunction]
pub(crate) fn forked() {
    FORKED.store(true, Ordering::Relaxed);
    let mut own = OWN.lock().unwrap_or_else(PoisonError::into_inner);
    // Its thread stayed behind in the parent: there is nothing to tidy up.
    std::mem::forget(own.take());
}

/// Sets the number of threads; only before the first computation.
#[pyfunction]
pub(crate) fn set_threads(py: Python<'_>, threads: usize) -> PyResult<()> {
    let started = ThreadPoolBuilder::new().num_threads(threads).build_global();
    started.map_err(|_| {
        error::input(
            py,
            "the threads have been started already",
            "set their number before the first computation, or start Python with RAYON_NUM_THREADS set",
        )
    })
}

/// Runs `work` without the interpreter's lock.
pub(crate) fn compute<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    py.detach(|| on_threads(work))
}

fn on_threads<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    if !FORKED.load(Ordering::Relaxed) {
        return work();
    }
    let own = {
        let mut own = OWN.lock().unwrap_or_else(PoisonError::into_inner);
        let start = || {
            let pool = ThreadPoolBuilder::new().num_threads(1).build();
            Arc::new(pool.expect("a process can start a thread"))
        };
        own.get_or_insert_with(start).clone()
    };
    own.install(work)
}

/// Runs `work` on another thread. On Ctrl-C, or when `callback` raises, it is told to stop and the call ends: what does not
/// look at its tracker within half a second goes on in the background, and its result is dropped.
pub(crate) fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    callback: Option<(&str, Py<PyAny>)>,
    work: impl FnOnce(&Tracker) -> T + Send + 'static,
) -> PyResult<T> {
    let tracker = Arc::new(Tracker::default());
    let (sender, mut receiver) = mpsc::channel();
    let shared = tracker.clone();
    std::thread::spawn(move || {
        // Nobody waits any more after an interrupt.
        let _ = sender.send(on_threads(|| work(&shared)));
    });
    let look = |py: Python<'_>| -> PyResult<()> {
        py.check_signals()?;
        if let Some((label, callback)) = &callback {
            let (done, total) = tracker.progress();
            callback.call1(py, (*label, done, total, None::<()>))?;
        }
        Ok(())
    };
    loop {
        let received;
        (received, receiver) = py.detach(move || (receiver.recv_timeout(EVERY), receiver));
        match received {
            Ok(result) => return Ok(result),
            Err(RecvTimeoutError::Timeout) => {
                if let Err(stop) = look(py) {
                    tracker.stop();
                    let _ = py.detach(move || receiver.recv_timeout(PATIENCE).is_ok());
                    return Err(stop);
                }
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err(
                    "a defect of neb: its computation panicked; please report it with the message above",
                ));
            }
        }
    }
}
