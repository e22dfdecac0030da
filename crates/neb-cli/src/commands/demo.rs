//! `neb demo`: the method on a built-in problem, judged against the truth.

use std::time::Instant;

use anyhow::Result;
use neb::simulator::{self, Proposal};
use neb::surrogate::{Exact, Pairs, Report, SurrogateConfig};
use neb::{Likelihood, Matrix};
use serde::Serialize;

use super::log_prob::mean_and_median;
use super::{Session, training};
use crate::interrupt;

/// Simulated pairs, as in the paper.
const PAIRS: usize = 15_000;
/// Observations of the true source, as in the paper.
const OBSERVATIONS: usize = 10_000;

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
        "{}: {PAIRS} pairs are simulated and the surrogate q(y|x) is learned from them",
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
    let (surrogate, report) = training::fit(pairs, &SurrogateConfig::auto(), seed, None, session)?;
    let (x, y) = problem.observations(OBSERVATIONS, seed);
    let learned = Learned {
        problem: problem.name(),
        seed,
        pairs: PAIRS,
        observations: OBSERVATIONS,
        learned: judge(&surrogate, &x, &y),
        exact: judge(&Exact::new(problem), &x, &y),
        report,
        seconds: started.elapsed().as_secs_f64(),
    };
    session.output.result(&learned, text)
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
         {:.1} s in all, seed {}",
        training::table(&learned.report),
        learned.observations,
        "learned",
        q.mean,
        q.median,
        "exact",
        exact.mean,
        exact.median,
        learned.seconds,
        learned.seed
    )
}

fn numbered(name: &str, columns: usize) -> Vec<String> {
    (1..=columns)
        .map(|number| format!("{name}{number}"))
        .collect()
}
