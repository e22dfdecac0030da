//! Training a surrogate, as `neb surrogate`, `neb fit` and `neb demo` do it: progress, Ctrl-C, and the table of what was tried.

use neb::surrogate::{FitOptions, Pairs, Report, Surrogate, SurrogateConfig};
use neb::train::CheckpointPolicy;

use super::Session;
use crate::interrupt;
use crate::progress::TrainingBar;

/// Trains the candidates and keeps the best; stops on Ctrl-C with [`neb::Error::Cancelled`].
pub(super) fn fit(
    pairs: Pairs,
    config: &SurrogateConfig,
    seed: u64,
    checkpoints: Option<CheckpointPolicy>,
    session: Session,
) -> neb::Result<(Surrogate, Report)> {
    let count = config.candidates.len();
    let labels: Vec<String> = (1..)
        .zip(&config.candidates)
        .map(|(number, candidate)| format!("{} ({number} of {count})", candidate.model.name()))
        .collect();
    let of = if count > 1 { " for this candidate" } else { "" };
    let mut bar = TrainingBar::new(of, session.output.quiet);
    let options = FitOptions {
        seed,
        checkpoints,
        watch: &mut |number, progress| {
            bar.update(&labels[number], progress);
            interrupt::check()
        },
    };
    let fitted = Surrogate::fit(pairs, config, options);
    bar.finish();
    fitted
}

/// What was tried, as a table; the one that was kept is marked.
pub(super) fn table(report: &Report) -> String {
    let mut text = format!(
        "  {:<22} {:>10} {:>15} {:>10} {:>8}\n",
        "tried", "parameters", "held-out log q", "best epoch", "seconds"
    );
    for (number, tried) in report.tried.iter().enumerate() {
        text.push_str(&format!(
            "{} {:<22} {:>10} {:>15.4} {:>10} {:>8.1}\n",
            if number == report.winner { "*" } else { " " },
            tried.name,
            tried.parameters,
            tried.held_out,
            tried.best_epoch,
            tried.seconds
        ));
    }
    text
}
