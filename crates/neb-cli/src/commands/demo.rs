//! `neb demo`: the method on a built-in problem, judged against the truth.

use std::time::Instant;

use anyhow::Result;
use neb::check::{CompareOptions, Estimate, compare};
use neb::simulator::{self, Proposal};
use neb::source::ladder::{LadderConfig, LadderReport};
use neb::surrogate::{Exact, Pairs, Report, SurrogateConfig};
use neb::{Likelihood, Matrix, Noise, Purpose};
use serde::Serialize;

use super::log_prob::mean_and_median;
use super::{Session, climbing, training};
use crate::failure::Failure;
use crate::interrupt;

/// Simulated pairs, as in the paper.
const PAIRS: usize = 15_000;
/// Observations of the true source, as in the paper.
const OBSERVATIONS: usize = 10_000;
/// Address of the noise of the judged draws, apart from that of fitting and simulating with the same seed.
const STEP: u64 = 1 << 33;

/// What was learned, beside the truth.
#[derive(Serialize)]
struct Learned {
    problem: &'static str,
    seed: u64,
    pairs: usize,
    observations: usize,
    report: Report,
    learned: LogProb,
    exact: LogProb,
    source: LadderReport,
    /// Draws of the source against the hidden true x.
    x_auc: Estimate,
    /// Draws of the source, simulated, against the observations.
    y_auc: Estimate,
    seconds: f64,
}

/// log q(y|x) over the rows of the true source.
#[derive(Serialize)]
struct LogProb {
    mean: f64,
    median: f64,
}

/// Runs the command.
pub(crate) fn run(args: &crate::args::Demo, session: Session) -> Result<()> {
    let problem = simulator::by_name(&args.problem)?;
    let started = Instant::now();
    let seed = session.seed();
    session.output.note(format!(
        "{}: {PAIRS} pairs and {OBSERVATIONS} observations of a hidden source are simulated; the surrogate q(y|x) is learned from \
         the pairs, the source q(x) from the observations",
        problem.name()
    ));
    let (x, y) = problem.pairs(Proposal::Covering, PAIRS, seed);
    let (x_names, y_names) = (numbered("x", x.cols()), numbered("y", y.cols()));
    let pairs = Pairs {
        x: x.view(),
        y: y.view(),
        x_names: &x_names,
        y_names: &y_names,
    };
    interrupt::listen()?;
    let fitted = training::fit(pairs, &SurrogateConfig::fast(), seed, None, session);
    let (surrogate, report) = fitted.map_err(stopped)?;
    let (truth, observed) = problem.observations(OBSERVATIONS, seed);
    let outcome = climbing::climb(
        &surrogate,
        observed.view(),
        x.view(),
        &LadderConfig::default(),
        seed,
        session,
    )
    .map_err(stopped)?;
    climbing::warn(&climbing::warnings(&outcome.report), session);

    let noise = Noise::new(seed, Purpose::SourceSample, STEP);
    let drawn = outcome.source.source().sample(OBSERVATIONS, noise);
    let pushed = problem.corrupt(drawn.view(), Noise::new(seed, Purpose::DrawY, STEP));
    let auc = |a: &Matrix, b: &Matrix| {
        let options = CompareOptions {
            seed,
            ..CompareOptions::default()
        };
        compare(a.view(), b.view(), &options).map(|comparison| comparison.auc)
    };
    let learned = Learned {
        problem: problem.name(),
        seed,
        pairs: PAIRS,
        observations: OBSERVATIONS,
        learned: judge(&surrogate, &truth, &observed),
        exact: judge(&Exact::new(problem), &truth, &observed),
        report,
        source: outcome.report,
        x_auc: auc(&drawn, &truth)?,
        y_auc: auc(&pushed, &observed)?,
        seconds: started.elapsed().as_secs_f64(),
    };
    session.output.result(&learned, text)
}

fn stopped(error: neb::Error) -> anyhow::Error {
    match error {
        neb::Error::Cancelled { .. } => Failure::interrupted(
            "interrupted; a demo keeps nothing",
            "`neb fit` keeps what it learns",
        ),
        other => other.into(),
    }
}

fn judge(likelihood: &dyn Likelihood, x: &Matrix, y: &Matrix) -> LogProb {
    let mut values = vec![0.0; x.rows()];
    likelihood.log_prob(y.view(), x.view(), &mut values);
    let (mean, median) = mean_and_median(&values, None);
    LogProb { mean, median }
}

fn text(learned: &Learned) -> String {
    let Learned {
        learned: q, exact, ..
    } = learned;
    format!(
        "{}\n\
         log q(y|x) over {} draws of the true source:\n\
         {:<10} mean {:>8.4}   median {:>8.4}\n\
         {:<10} mean {:>8.4}   median {:>8.4}\n\
         \n\
         {}\n\
         \n\
         can a classifier tell them apart? AUC ± error (what it is if nothing differs)\n\
         x of the source against the hidden truth           {}\n\
         simulated y of the source against the observations {}\n\
         \n\
         {:.1} s in all, seed {}",
        training::table(&learned.report),
        learned.observations,
        "learned",
        q.mean,
        q.median,
        "exact",
        exact.mean,
        exact.median,
        climbing::table(&learned.source),
        words(learned.x_auc),
        words(learned.y_auc),
        learned.seconds,
        learned.seed
    )
}

fn words(auc: Estimate) -> String {
    format!(
        "{:.4} ± {:.4} ({:.4} to {:.4})",
        auc.value, auc.standard_error, auc.null.low, auc.null.high
    )
}

fn numbered(name: &str, columns: usize) -> Vec<String> {
    (1..=columns)
        .map(|number| format!("{name}{number}"))
        .collect()
}
