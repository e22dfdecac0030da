//! Many independent pieces of work within the threads there are: as many workers as there are pieces, at most one for each
//! thread, each with its share of the threads. What comes out does not depend on it.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};
use neb::train::Progress;

use crate::interrupt;
use crate::progress::WholeBar;

/// A piece of work.
pub(super) struct Job<T> {
    pub(super) name: String,
    /// Compared with those of the others.
    pub(super) cost: f64,
    pub(super) work: T,
}

/// Runs all pieces; the first failure stops the others at their next step.
pub(super) fn run<T: Sync>(
    jobs: &[Job<T>],
    quiet: bool,
    work: impl Fn(&T, &mut neb::source::ladder::LadderWatch) -> Result<()> + Sync,
) -> Result<()> {
    let threads = rayon::current_num_threads();
    let workers = threads.min(jobs.len()).max(1);
    let bar = WholeBar::new(jobs.iter().map(|job| job.cost), quiet);
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let failure = Mutex::new(None);
    let fail = |error: anyhow::Error| {
        failed.store(true, Ordering::Relaxed);
        let mut first = failure.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(error);
    };
    let one_after_another = |worker: usize| -> Result<()> {
        let share = threads / workers + usize::from(worker < threads % workers);
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(share)
            .build()
            .with_context(|| format!("cannot start {share} threads"))?;
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(number) else {
                return Ok(());
            };
            if failed.load(Ordering::Relaxed) {
                return Ok(());
            }
            bar.update(number, job.cost, 0.0, &job.name);
            pool.install(|| {
                work(&job.work, &mut |_: &str, progress: &Progress| {
                    let share = progress.step as f64 / progress.steps.max(1) as f64;
                    bar.update(number, job.cost, share, &job.name);
                    match failed.load(Ordering::Relaxed) {
                        true => ControlFlow::Break(()),
                        false => interrupt::check(),
                    }
                })
            })?;
            bar.finish(number, job.cost);
        }
    };
    std::thread::scope(|scope| {
        for worker in 0..workers {
            let (run, fail) = (&one_after_another, &fail);
            scope.spawn(move || {
                if let Err(error) = run(worker) {
                    fail(error);
                }
            });
        }
    });
    bar.clear();
    match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_pieces_are_run_once_and_a_failure_is_the_result() {
        let job = |number: usize| Job {
            name: format!("piece {number}"),
            cost: 1.0,
            work: number,
        };
        let jobs: Vec<Job<usize>> = (0..20).map(job).collect();
        let sum = AtomicUsize::new(0);
        run(&jobs, true, |number, _| {
            sum.fetch_add(number + 1, Ordering::Relaxed);
            Ok(())
        })
        .unwrap();
        assert_eq!(sum.into_inner(), 210);
        let error = run(&jobs, true, |number, _| match number {
            7 => Err(anyhow::anyhow!("seven")),
            _ => Ok(()),
        });
        assert_eq!(format!("{:#}", error.unwrap_err()), "seven");
    }
}
