//! Computations away from the interpreter: without its lock, interruptible, and in forked processes too.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use neb::Rows;
use neb::posterior::Tracker;
use neb_cli::embed::Refusal;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::error;
use crate::watch::{Step, Watcher};

/// Time between two looks at the signals.
pub(crate) const EVERY: Duration = Duration::from_millis(100);
/// How long a stopped computation is waited for.
const PATIENCE: Duration = Duration::from_millis(500);
/// From so many rows on a call may take longer than somebody waits for Ctrl-C.
pub(crate) const MANY: usize = 50_000;

/// Whether this process was forked from one that had loaded the module: its threads do not exist here.
static FORKED: AtomicBool = AtomicBool::new(false);
/// The thread that does the work of a forked process.
static OWN: Mutex<Option<Arc<ThreadPool>>> = Mutex::new(None);

/// Told by Python in a process that was just forked.
#[pyfunction]
pub(crate) fn forked() {
    FORKED.store(true, Ordering::Relaxed);
    let mut own = OWN.lock().unwrap_or_else(PoisonError::into_inner);
    // Their threads stayed behind in the parent: there is nothing to tidy up, and nothing to wait for.
    std::mem::forget(own.take());
    std::mem::forget(std::mem::take(&mut *ending()));
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

/// Runs `work` on rows of tables: few where they lie, many on a thread of its own, so that Ctrl-C ends the call.
pub(crate) fn on_rows<const N: usize, M: Send + Sync + 'static, T: Send + 'static>(
    py: Python<'_>,
    model: &Arc<M>,
    tables: [Rows; N],
    work: impl FnOnce(&M, [Rows; N]) -> T + Send + 'static,
) -> PyResult<T> {
    if tables.iter().all(|table| table.rows() < MANY) {
        return Ok(compute(py, move || work(model, tables)));
    }
    let (model, owned) = (model.clone(), tables.map(|table| table.to_matrix()));
    interruptible(py, None, move |_| {
        work(&model, owned.each_ref().map(|table| table.view()))
    })
}

/// What a computation on another thread says to the one that waits for it.
enum Said<T> {
    Step(Step),
    Done(T),
}

/// A computation's line to the thread that waits for it.
pub(crate) struct Line<T> {
    say: Sender<Said<T>>,
    answers: Receiver<()>,
}

impl<T> Line<T> {
    /// Tells of a step and waits until Python has seen it; `Break` where it is to stop.
    pub(crate) fn tell(&self, step: Step) -> ControlFlow<()> {
        let told = self.say.send(Said::Step(step)).is_ok();
        match told && self.answers.recv().is_ok() {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    }
}

/// Runs `work` on another thread. Here, `look` is called with every step it tells of, and ten times a second without: an
/// exception calls `stop` and ends the call. What has not ended half a second later goes on in the background, and its
/// result is dropped; its thread is then returned with the exception.
fn apart<T: Send + 'static>(
    py: Python<'_>,
    mut look: impl FnMut(Python<'_>, Option<Step>) -> PyResult<()>,
    stop: impl FnOnce(),
    work: impl FnOnce(Line<T>) -> T + Send + 'static,
) -> Result<T, (PyErr, Option<JoinHandle<()>>)> {
    let (say, mut said) = mpsc::channel();
    let (answer, answers) = mpsc::channel();
    let done = say.clone();
    let worker = std::thread::spawn(move || {
        let result = on_threads(move || work(Line { say, answers }));
        // Nobody waits any more after an interrupt.
        let _ = done.send(Said::Done(result));
    });
    loop {
        let heard;
        (heard, said) = py.detach(move || (said.recv_timeout(EVERY), said));
        let step = match heard {
            Ok(Said::Done(result)) => return Ok(result),
            Ok(Said::Step(step)) => Some(step),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                let defect = "a defect of neb: its computation panicked; please report it with the message above";
                return Err((PyRuntimeError::new_err(defect), None));
            }
        };
        let waits = step.is_some();
        match look(py, step) {
            // It may have gone on without the answer only by ending.
            Ok(()) if waits => drop(answer.send(())),
            Ok(()) => {}
            Err(exception) => {
                stop();
                drop(answer);
                let until = Instant::now() + PATIENCE;
                let ended = py.detach(move || {
                    let left = || until.saturating_duration_since(Instant::now());
                    while let Ok(heard) = said.recv_timeout(left()) {
                        if let Said::Done(_) = heard {
                            return true;
                        }
                    }
                    false
                });
                return Err((exception, (!ended).then_some(worker)));
            }
        }
    }
}

/// Runs `work`, which looks at its tracker, on another thread. On Ctrl-C, or when `callback` raises, it is told to stop.
pub(crate) fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    callback: Option<(&str, Py<PyAny>)>,
    work: impl FnOnce(&Tracker) -> T + Send + 'static,
) -> PyResult<T> {
    let tracker = Arc::new(Tracker::default());
    let shared = tracker.clone();
    let look = |py: Python<'_>, _| -> PyResult<()> {
        py.check_signals()?;
        if let Some((label, callback)) = &callback {
            let (done, total) = tracker.progress();
            callback.call1(py, (*label, done, total, None::<()>))?;
        }
        Ok(())
    };
    let done = apart(py, look, || tracker.stop(), move |_| work(&shared));
    done.map_err(|(exception, _)| exception)
}

/// Trainings that were stopped and had not ended yet when their call returned, with the file or folder they write to.
static ENDING: Mutex<Vec<(PathBuf, JoinHandle<()>)>> = Mutex::new(Vec::new());

/// Runs a training that writes to `output`, if anywhere, on another thread. On Ctrl-C, or when `callback` raises, it is
/// stopped with a checkpoint. One with the same output that was stopped before is waited for.
pub(crate) fn trained<T: Send + 'static>(
    py: Python<'_>,
    callback: Option<Py<PyAny>>,
    output: Option<&Path>,
    work: impl FnOnce(&mut Watcher<Result<T, Refusal>>) -> Result<T, Refusal> + Send + 'static,
) -> PyResult<T> {
    while output.is_some_and(is_ending) {
        py.check_signals()?;
        py.detach(|| std::thread::sleep(EVERY / 5));
    }
    let look = |py: Python<'_>, step: Option<Step>| -> PyResult<()> {
        py.check_signals()?;
        if let (Some(step), Some(callback)) = (step, &callback) {
            callback.call1(py, (step.label, step.step, step.steps, step.losses))?;
        }
        Ok(())
    };
    let done = apart(py, look, || {}, move |line| work(&mut Watcher::new(line)));
    match done {
        Ok(result) => result.map_err(|refusal| error::refused(py, refusal)),
        Err((exception, worker)) => {
            if let Some((output, worker)) = output.zip(worker) {
                ending().push((output.to_owned(), worker));
            }
            Err(exception)
        }
    }
}

fn ending() -> MutexGuard<'static, Vec<(PathBuf, JoinHandle<()>)>> {
    ENDING.lock().unwrap_or_else(PoisonError::into_inner)
}

fn is_ending(output: &Path) -> bool {
    let mut ending = ending();
    ending.retain(|(_, worker)| !worker.is_finished());
    ending.iter().any(|(own, _)| own == output)
}
