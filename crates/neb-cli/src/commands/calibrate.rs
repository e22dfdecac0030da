//! `neb calibrate`: do the posteriors hold the truth as often as they say? Exit code 1 if they do not.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Result;
use neb::Rows;
use neb::check::{self, Calibration, CalibrationOptions, Posteriors, RankShape};
use neb::posterior::Draws;
use serde::Serialize;

use super::Session;
use super::posterior::{self, Summary};
use crate::args;
use crate::failure::Failure;
use crate::files::{self, PairsFile};
use crate::run_folder::CALIBRATION;

/// `calibration.json`: everything the figures of a report need, and what the posteriors came from.
#[derive(Serialize)]
struct Record<'a> {
    run: &'a Path,
    pairs: &'a Path,
    x_names: &'a [String],
    posterior: &'a Summary,
    /// Pairs left out because their posterior is empty.
    left_out: usize,
    #[serde(flatten)]
    calibration: &'a Calibration,
    max_ks: Option<f64>,
    passed: bool,
}

/// Runs the command.
pub(crate) fn run(args: &args::Calibrate, session: Session) -> Result<()> {
    let target = target(args)?;
    neb_data::check_target(&target, session.force || args.output.is_none())?;
    let started = Instant::now();
    let surrogate = files::load_surrogate(&args.run)?;
    let pairs = PairsFile::read(&args.pairs, &args.columns)?;
    files::check_columns("x", &args.pairs, &pairs.x, &surrogate)?;
    files::check_columns("y", &args.pairs, &pairs.y, &surrogate)?;
    let (to_x, to_y) = (surrogate.x_transforms(), surrogate.y_transforms());
    let pairs = pairs.transformed(to_x, to_y, session.seed())?;
    let y = pairs.y.values.view();
    let draws = posterior::draw(&args.run, y, args.n, &args.sampler, session.seed())?;
    let seconds = started.elapsed().as_secs_f64();
    let summary = Summary::new(&draws, session.seed(), seconds);
    summary.warn(session);

    let (calibration, left_out) = judge(&draws, pairs.x.values.view(), session.seed())?;
    let record = Record {
        run: &args.run,
        pairs: &args.pairs,
        x_names: &pairs.x.names,
        posterior: &summary,
        left_out,
        calibration: &calibration,
        max_ks: args.max_ks,
        passed: match args.max_ks {
            Some(limit) => calibration.ks <= limit,
            None => calibration.calibrated,
        },
    };
    files::write_json(&target, &record)?;
    session.output.result(&record, text)?;
    summary.check_budget()?;
    if record.passed {
        return Ok(());
    }
    Err(Failure::computation(
        "the posteriors are not calibrated",
        format!(
            "see {}; more pairs or another surrogate may help, or --max-ks K if a small deviation is good enough",
            target.display()
        ),
    ))
}

/// Calibration of posteriors with known x, and how many were left out because they are empty.
pub(crate) fn judge(draws: &Draws, truth: Rows, seed: u64) -> neb::Result<(Calibration, usize)> {
    let kept: Vec<u32> = (0..truth.rows() as u32)
        .filter(|&row| draws.found[row as usize] > 0)
        .collect();
    let (x, weights) = posterior::with_weights(draws);
    let n = draws.per_observation as u32;
    let places: Vec<u32> = kept.iter().flat_map(|row| row * n..(row + 1) * n).collect();
    let x = x.view().gather(&places);
    let weights: Vec<f32> = places.iter().map(|&at| weights[at as usize]).collect();
    let left_out = truth.rows() - kept.len();
    let truth = truth.gather(&kept);
    let options = CalibrationOptions {
        seed,
        ..CalibrationOptions::default()
    };
    let posteriors = Posteriors {
        draws: x.view(),
        weights: (!draws.complete()).then_some(&weights),
        truth: truth.view(),
    };
    Ok((check::calibrate(posteriors, &options)?, left_out))
}

/// Where the result is written.
fn target(args: &args::Calibrate) -> Result<PathBuf> {
    match &args.output {
        Some(path) => Ok(path.clone()),
        None if args.run.is_dir() => Ok(args.run.join(CALIBRATION)),
        None => Err(Failure::input(
            format!("{}: is not the folder of a run", args.run.display()),
            "name the folder of a run",
        )),
    }
}

fn text(record: &Record) -> String {
    let c = record.calibration;
    let mut text = record.posterior.text();
    let width = record
        .x_names
        .iter()
        .map(String::len)
        .max()
        .unwrap_or(0)
        .max(9);
    text.push_str(&format!(
        "\n{:<width$} {:>9} {:>9} {:>11}   the posteriors are\n",
        "", "KS", "p", "histogram p"
    ));
    for (name, marginal) in record.x_names.iter().zip(&c.marginals) {
        text.push_str(&format!(
            "{name:<width$} {:>9.4} {:>9.3} {:>11.3}   {}\n",
            marginal.curve.ks,
            marginal.curve.p_value,
            marginal.histogram_p_value,
            shape(marginal.shape)
        ));
    }
    text.push_str(&format!(
        "{:<width$} {:>9.4} {:>9.3}\n",
        "joint", c.coverage.ks, c.coverage.p_value
    ));
    let left_out = match record.left_out {
        0 => String::new(),
        rows => format!(", {rows} left out"),
    };
    text.push_str(&format!(
        "greatest KS {:.4} over {} events{left_out}; exact posteriors stay below {:.4} in 95 of 100 cases\n",
        c.ks, c.events, c.ks_limit
    ));
    let verdict = |agrees: bool| if agrees { "agree" } else { "do not agree" };
    text.push_str(&format!(
        "marginals {}, rank histograms {}, joint coverage and directions {}: {}",
        verdict(c.marginals_agree),
        verdict(c.histograms_agree),
        verdict(c.joint_agrees),
        conclusion(record)
    ));
    text
}

/// Each of the verdicts is wrong in 5 of 100 cases; the conclusion, which allows for their number, also is.
fn conclusion(record: &Record) -> &'static str {
    let c = record.calibration;
    let all_agree = c.marginals_agree && c.histograms_agree && c.joint_agrees;
    match record.passed {
        false => "failed",
        true if all_agree || record.max_ks.is_some() => "passed",
        true => "passed, since one of three verdicts is off by chance more often than each",
    }
}

fn shape(shape: RankShape) -> &'static str {
    match shape {
        RankShape::Flat => "neither too wide nor too narrow, nor shifted",
        RankShape::TooNarrow => "too narrow",
        RankShape::TooWide => "too wide",
        RankShape::TooLow => "too low",
        RankShape::TooHigh => "too high",
    }
}
