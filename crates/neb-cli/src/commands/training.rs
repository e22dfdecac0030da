//! Training a surrogate, as `neb surrogate`, `neb fit` and `neb demo` do it: progress, Ctrl-C, and the table of what was tried.

use neb::source::ladder::LadderWatch;
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
    let of = match config.candidates.len() {
        1 => "",
        _ => " for this candidate",
    };
    let mut bar = TrainingBar::new(of, session.output.quiet);
    let fitted = fit_watched(pairs, config, seed, checkpoints, &mut |label, progress| {
        bar.update(label, progress);
        interrupt::check()
    });
    bar.finish();
    fitted
}

/// The same; `watch` is told of every step with the candidate's name.
pub(crate) fn fit_watched(
    pairs: Pairs,
    config: &SurrogateConfig,
    seed: u64,
    checkpoints: Option<CheckpointPolicy>,
    watch: &mut LadderWatch,
) -> neb::Result<(Surrogate, Report)> {
    let count = config.candidates.len();
    let labels: Vec<String> = (1..)
        .zip(&config.candidates)
        .map(|(number, candidate)| format!("{} ({number} of {count})", candidate.model.name()))
        .collect();
    let options = FitOptions {
        seed,
        checkpoints,
        watch: &mut |number, progress| watch(&labels[number], progress),
    };
    Surrogate::fit(pairs, config, options)
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
