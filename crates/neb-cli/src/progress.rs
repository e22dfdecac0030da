//! How far a training is, on standard error; nothing when that is not a terminal.
//!
//! The time left is that of the current training alone (the next may be faster or slower), from the speed measured
//! since this session began it: steps made before a resume do not count.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use neb::train::Progress;

const EVERY: Duration = Duration::from_millis(100);

/// One line that shows what is being trained: a candidate or a rung.
pub(crate) struct TrainingBar {
    bar: ProgressBar,
    /// Whose time is left, where there are several trainings.
    of: &'static str,
    current: Option<Started>,
    shown: Option<Instant>,
}

/// Where the current training began in this session.
#[derive(Clone)]
struct Started {
    label: String,
    /// The step it began at, and the last one seen.
    first: u64,
    last: u64,
    at: Instant,
}

impl TrainingBar {
    /// A line; the time left is said to be that `of` something.
    pub(crate) fn new(of: &'static str, quiet: bool) -> Self {
        Self {
            bar: hidden_unless_asked(quiet),
            of,
            current: None,
            shown: None,
        }
    }

    /// Takes note of a step of the training with this label.
    pub(crate) fn update(&mut self, label: &str, progress: &Progress) {
        let now = Instant::now();
        let step = progress.step;
        let (first, at) = match &mut self.current {
            Some(started) if started.label == label && started.last <= step => {
                started.last = step;
                (started.first, started.at)
            }
            _ => {
                self.begin(label, progress, now);
                (step, now)
            }
        };
        let due = self.shown.is_none_or(|shown| now - shown >= EVERY);
        if self.bar.is_hidden() || !due {
            return;
        }
        self.shown = Some(now);
        self.bar.set_position(step);
        let left = time_left(step - first, progress.steps - step, now - at);
        self.bar.set_message(self.message(progress, left));
    }

    fn message(&self, progress: &Progress, left: Option<Duration>) -> String {
        let mut message = format!("epoch {}", progress.history.len() + 1);
        if let Some(epoch) = progress.history.last() {
            message.push_str(&format!(", held-out loss {:.3}", epoch.held_out));
        }
        if let Some(left) = left {
            message.push_str(&format!(", about {} left{}", words(left), self.of));
        }
        message
    }

    fn begin(&mut self, label: &str, progress: &Progress, now: Instant) {
        self.current = Some(Started {
            label: label.to_owned(),
            first: progress.step,
            last: progress.step,
            at: now,
        });
        self.bar.set_message("");
        self.bar.set_position(progress.step);
        self.bar.set_length(progress.steps);
        self.bar.set_prefix(label.to_owned());
    }

    /// Clears the line.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

fn hidden_unless_asked(quiet: bool) -> ProgressBar {
    let visible = !quiet && std::io::stderr().is_terminal();
    let target = if visible {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(None, target);
    if let Ok(style) = ProgressStyle::with_template("{prefix} {bar:24} {msg}") {
        bar.set_style(style);
    }
    bar
}

/// One line for many pieces of work of known relative cost, several under way at once.
pub(crate) struct WholeBar {
    bar: ProgressBar,
    total: f64,
    started: Instant,
    state: Mutex<WholeState>,
}

#[derive(Default)]
struct WholeState {
    pieces: usize,
    done: usize,
    finished: f64,
    /// Share and cost of what is under way, by its number.
    current: BTreeMap<usize, (f64, f64)>,
    shown: Option<Instant>,
}

impl WholeBar {
    /// A line for pieces of these costs.
    pub(crate) fn new(costs: impl Iterator<Item = f64>, quiet: bool) -> Self {
        let costs: Vec<f64> = costs.collect();
        let bar = hidden_unless_asked(quiet);
        bar.set_length(1000);
        Self {
            bar,
            total: costs.iter().sum(),
            started: Instant::now(),
            state: Mutex::new(WholeState {
                pieces: costs.len(),
                ..WholeState::default()
            }),
        }
    }

    /// Takes note that a share of a piece is done, and what it is doing. A piece of several trainings does not go back when
    /// the next one begins.
    pub(crate) fn update(&self, piece: usize, cost: f64, share: f64, doing: &str) {
        let now = Instant::now();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let known = state.current.entry(piece).or_insert((share, cost));
        known.0 = known.0.max(share);
        let due = state.shown.is_none_or(|shown| now - shown >= EVERY);
        if self.bar.is_hidden() || !due {
            return;
        }
        state.shown = Some(now);
        let under_way: f64 = state
            .current
            .values()
            .map(|(share, cost)| share * cost)
            .sum();
        let done = (state.finished + under_way) / self.total.max(f64::MIN_POSITIVE);
        self.bar.set_position((1000.0 * done) as u64);
        self.bar
            .set_prefix(format!("{} of {}", state.done, state.pieces));
        let left =
            (done > 0.002).then(|| (now - self.started).mul_f64((1.0 - done).max(0.0) / done));
        let left = left.map_or_else(String::new, |left| format!(", about {} left", words(left)));
        self.bar.set_message(format!("{doing}{left}"));
    }

    /// Takes note that a piece is done.
    pub(crate) fn finish(&self, piece: usize, cost: f64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.current.remove(&piece);
        state.done += 1;
        state.finished += cost;
    }

    /// Clears the line.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// Time for the steps left, at the speed of the steps made; none before there is a speed.
fn time_left(made: u64, left: u64, elapsed: Duration) -> Option<Duration> {
    (made >= 20).then(|| elapsed.mul_f64(left as f64 / made as f64))
}

/// A duration in the unit that suits it.
fn words(duration: Duration) -> String {
    let seconds = duration.as_secs_f64().ceil() as u64;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_follows_the_speed() {
        let second = Duration::from_secs(1);
        assert_eq!(time_left(100, 300, second), Some(3 * second));
        assert_eq!(time_left(3, 300, second), None);
    }

    #[test]
    fn a_piece_does_not_go_back() {
        let bar = WholeBar::new([10.0].into_iter(), true);
        for share in [0.2, 0.7, 0.1] {
            bar.update(0, 10.0, share, "");
        }
        assert_eq!(bar.state.lock().unwrap().current[&0], (0.7, 10.0));
    }

    #[test]
    fn durations_have_their_unit() {
        let text = |seconds| words(Duration::from_secs(seconds));
        assert_eq!(
            [text(59), text(61), text(7260)],
            ["59 s", "1 min 1 s", "2 h 1 min"]
        );
    }
}
