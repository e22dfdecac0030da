//! `neb demo`: the method on a built-in problem, judged against the truth, down to the report.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Result;
use neb::check::{CompareOptions, Estimate, compare};
use neb::simulator::{self, Proposal};
use neb::source::ladder::LadderReport;
use neb::surrogate::{Exact, Pairs, Report};
use neb::{Likelihood, Matrix, Noise, Purpose};
use neb_data::Array;
use serde::Serialize;

use super::log_prob::mean_and_median;
use super::stage2::{self, Data};
use super::summary::{DataFiles, Finished};
use super::{Session, climbing, report, training};
use crate::args;
use crate::config::Config;
use crate::failure::Failure;
use crate::files::Group;
use crate::interrupt;
use crate::run_folder::{self, CONFIG, PartialRun, SURROGATE};

/// Simulated pairs, as in the paper.
const PAIRS: usize = 15_000;
/// Observations of the true source, as in the paper.
const OBSERVATIONS: usize = 10_000;
/// Address of the noise of the judged draws, apart from that of fitting and simulating with the same seed.
const STEP: u64 = 1 << 33;

/// The simulated pairs, in the folder of the demo.
const PAIRS_FILE: &str = "pairs.npz";
/// The hidden x and the observations y.
const TRUTH_FILE: &str = "truth.npz";

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
    x_auc: Option<Estimate>,
    /// Draws of the source, simulated, against the observations.
    y_auc: Estimate,
    seconds: f64,
    output: PathBuf,
    page: PathBuf,
}

/// log q(y|x) over the rows of the true source.
#[derive(Serialize)]
struct LogProb {
    mean: f64,
    median: f64,
}

/// Runs the command.
pub(crate) fn run(args: &args::Demo, session: Session) -> Result<()> {
    let problem = simulator::by_name(&args.problem)?;
    let output = match &args.output {
        Some(output) => output.clone(),
        None => PathBuf::from(format!("neb-demo-{}", problem.name())),
    };
    run_folder::check_target(&output, session.force)?;
    let config = Config::resolve(
        session.seed_flag,
        args::Stages::Fit,
        &args::ConfigSource::default(),
        &args::SurrogateKeys::default(),
        &args::SourceFlags::default(),
    )?;
    let (started, seed) = (Instant::now(), config.seed);
    session.output.note(format!(
        "{}: {PAIRS} pairs and {OBSERVATIONS} observations of a hidden source are simulated; the surrogate q(y|x) is learned from \
         the pairs, the source q(x) from the observations",
        problem.name()
    ));
    let (x, y) = problem.pairs(Proposal::Covering, PAIRS, seed);
    let (x, y) = (Group::numbered("x", x), Group::numbered("y", y));
    let pairs = Pairs {
        x: x.values.view(),
        y: y.values.view(),
        x_names: &x.names,
        y_names: &y.names,
    };
    interrupt::listen()?;
    let fitted = training::fit(pairs, &config.surrogate, seed, None, session);
    let (surrogate, stage1) = fitted.map_err(stopped)?;
    let (truth, observed) = problem.observations(OBSERVATIONS, seed);
    let stage = config.stage2(&x, OBSERVATIONS)?;
    let data = Data {
        surrogate: &surrogate,
        y: observed.view(),
        weights: None,
        x: &x,
        seed,
        checkpoints: None,
    };
    let outcome = stage2::run(stage, data, session).map_err(stopped)?;

    let run = PartialRun::create(&output, false, session.force)?;
    run.write(CONFIG, format!("{}\n", config.to_toml()))?;
    surrogate.save(&run.path(SURROGATE))?;
    let files = [PAIRS_FILE, TRUTH_FILE].map(|name| output.join(name));
    Finished {
        surrogate: &surrogate,
        stage1: Some(&stage1),
        from: None,
        outcome: &outcome,
        x: &x,
        observations: OBSERVATIONS,
        data: Some(DataFiles::new(
            &files[0],
            &files[1],
            &args::Columns::default(),
        )),
        seed,
        warnings: Vec::new(),
        seconds: started.elapsed().as_secs_f64(),
        output: &output,
    }
    .save(run, session)?;
    write(&files[0], &x.values, &y.values)?;
    write(&files[1], &truth, &observed)?;
    let written = report::write(
        &args::Report {
            run: output.clone(),
            truth: Some(files[1].clone()),
            ..args::Report::default()
        },
        session,
    )?;

    let noise = Noise::new(seed, Purpose::SourceSample, STEP);
    let drawn = outcome.source.source().sample(OBSERVATIONS, noise);
    let pushed = problem.corrupt(drawn.view(), Noise::new(seed, Purpose::DrawY, STEP));
    let options = CompareOptions {
        seed,
        ..CompareOptions::default()
    };
    let learned = Learned {
        problem: problem.name(),
        seed,
        pairs: PAIRS,
        observations: OBSERVATIONS,
        learned: judge(&surrogate, &truth, &observed),
        exact: judge(&Exact::new(problem), &truth, &observed),
        report: stage1,
        source: outcome.report,
        x_auc: written.x_auc,
        y_auc: compare(pushed.view(), observed.view(), &options)?.auc,
        seconds: started.elapsed().as_secs_f64(),
        output,
        page: written.report,
    };
    session.output.result(&learned, text)
}

/// Writes x and y of the same rows.
fn write(path: &Path, x: &Matrix, y: &Matrix) -> Result<()> {
    let arrays = [("x", x), ("y", y)]
        .map(|(name, values)| Array::new(name, &[values.rows(), values.cols()], values.values()));
    Ok(neb_data::write(path, true, &arrays)?)
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
         {:.1} s in all, seed {}; pairs, truth and everything learned: {}\n\
         the report, with figures: {}",
        training::table(&learned.report),
        learned.observations,
        "learned",
        q.mean,
        q.median,
        "exact",
        exact.mean,
        exact.median,
        climbing::table(&learned.source, &learned.source.reason()),
        learned.x_auc.map_or_else(String::new, words),
        words(learned.y_auc),
        learned.seconds,
        learned.seed,
        learned.output.display(),
        learned.page.display()
    )
}

fn words(auc: Estimate) -> String {
    format!(
        "{:.4} ± {:.4} ({:.4} to {:.4})",
        auc.value, auc.standard_error, auc.null.low, auc.null.high
    )
}
