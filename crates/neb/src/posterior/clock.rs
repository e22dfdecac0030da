//! When a sampler has to stop: its seconds are over, or somebody asked.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::Budget;

/// How far a sampler is, read and stopped from another thread: give it to [`super::Posterior::tracked`].
///
/// A sampler that is stopped returns what it found until then.
#[derive(Debug, Default)]
pub struct Tracker {
    done: AtomicU64,
    total: AtomicU64,
    stop: AtomicBool,
}

impl Tracker {
    /// Asks the sampler to stop at its next look.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether it was asked to.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Parts of the work that are done, and all of them.
    pub fn progress(&self) -> (u64, u64) {
        (
            self.done.load(Ordering::Relaxed),
            self.total.load(Ordering::Relaxed),
        )
    }
}

/// A sampler's view of its limits.
#[derive(Clone, Copy, Default)]
pub(super) struct Clock<'a> {
    /// The moment the seconds are over; none where there is no limit.
    deadline: Option<Instant>,
    tracker: Option<&'a Tracker>,
}

impl<'a> Clock<'a> {
    /// Starts the seconds of a budget.
    pub(super) fn start(budget: &Budget, tracker: Option<&'a Tracker>) -> Self {
        let seconds = Duration::try_from_secs_f64(budget.max_seconds.max(0.0)).ok();
        Self {
            deadline: seconds.and_then(|seconds| Instant::now().checked_add(seconds)),
            tracker,
        }
    }

    /// Whether it is time to stop.
    pub(super) fn is_over(&self) -> bool {
        self.tracker.is_some_and(Tracker::is_stopped)
            || self
                .deadline
                .is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Says how many parts of the work are done.
    pub(super) fn tell(&self, done: usize, total: usize) {
        if let Some(tracker) = self.tracker {
            tracker.done.store(done as u64, Ordering::Relaxed);
            tracker.total.store(total as u64, Ordering::Relaxed);
        }
    }

    /// Says that one more part is done, of those told of before.
    pub(super) fn tell_one(&self) {
        if let Some(tracker) = self.tracker {
            tracker.done.fetch_add(1, Ordering::Relaxed);
        }
    }
}
