//! How far a training is, on standard error; nothing when that is not a terminal.
//!
//! The time left is that of the current candidate alone (the next may be faster or slower), from the speed measured
//! since this session began it: steps made before a resume do not count.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use neb::train::Progress;

const EVERY: Duration = Duration::from_millis(100);

/// One line that shows the candidate being trained.
pub(crate) struct TrainingBar {
    bar: ProgressBar,
    names: Vec<String>,
    candidate: Option<Started>,
    shown: Option<Instant>,
}

/// Where the current candidate began in this session.
#[derive(Clone, Copy)]
struct Started {
    number: usize,
    step: u64,
    at: Instant,
}

impl TrainingBar {
    /// A line for candidates of these names.
    pub(crate) fn new(names: Vec<String>, quiet: bool) -> Self {
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
        Self {
            bar,
            names,
            candidate: None,
            shown: None,
        }
    }

    /// Takes note of a step.
    pub(crate) fn update(&mut self, number: usize, progress: &Progress) {
        let now = Instant::now();
        let started = match self.candidate {
            Some(started) if started.number == number => started,
            _ => {
                let begun = Started {
                    number,
                    step: progress.step,
                    at: now,
                };
                self.begin(begun, progress.steps);
                begun
            }
        };
        let due = self.shown.is_none_or(|shown| now - shown >= EVERY);
        if self.bar.is_hidden() || !due {
            return;
        }
        self.shown = Some(now);
        self.bar.set_position(progress.step);
        self.bar.set_message(self.message(started, progress, now));
    }

    fn message(&self, started: Started, progress: &Progress, now: Instant) -> String {
        let mut message = format!("epoch {}", progress.history.len() + 1);
        if let Some(epoch) = progress.history.last() {
            message.push_str(&format!(", held-out loss {:.3}", epoch.held_out));
        }
        let made = progress.step - started.step;
        let left = progress.steps - progress.step;
        if let Some(left) = time_left(made, left, now - started.at) {
            let of = if self.names.len() > 1 {
                " for this candidate"
            } else {
                ""
            };
            message.push_str(&format!(", about {} left{of}", words(left)));
        }
        message
    }

    fn begin(&mut self, started: Started, steps: u64) {
        self.candidate = Some(started);
        self.bar.set_message("");
        self.bar.set_position(started.step);
        self.bar.set_length(steps);
        self.bar.set_prefix(format!(
            "{} ({} of {})",
            self.names[started.number],
            started.number + 1,
            self.names.len()
        ));
    }

    /// Clears the line.
    pub(crate) fn finish(&self) {
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
    fn durations_have_their_unit() {
        let text = |seconds| words(Duration::from_secs(seconds));
        assert_eq!(
            [text(59), text(61), text(7260)],
            ["59 s", "1 min 1 s", "2 h 1 min"]
        );
    }
}
