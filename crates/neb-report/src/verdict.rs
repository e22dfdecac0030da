//! The verdict: what was fitted, how well it reproduces the observations, and what to worry about, in plain words.

mod unfolding;

pub use unfolding::{UnfoldingFacts, unfolding_verdict};

use neb::check::{Calibration, Estimate, RankShape};
use serde::Serialize;

/// Effective samples below which a gradient is mostly noise, and below which it deserves a remark.
const EFFECTIVE: [f64; 2] = [10.0, 30.0];
/// Shares of rows outside a simulated range that deserve a remark, and that are a problem.
const OUTSIDE: [f64; 2] = [0.001, 0.02];
/// Of rows that differ in nothing, a share of more than this over n lies outside the range of n others in one of 2000 columns:
/// (1 + 10) e⁻¹⁰.
const CHANCE_OUTSIDE: f64 = 10.0;
/// AUC above which the observations are not reproduced, whatever the number of rows.
const FAR: f64 = 0.55;
/// Kolmogorov-Smirnov distance from which posteriors are badly calibrated, whatever the number of events.
const BADLY_CALIBRATED: f64 = 0.15;
/// Held-out loss that the last tenth of a training may still gain.
const STILL_GAINING: f64 = 0.02;
/// Widening, in deviations of y, from which structure of the source is lost.
const WIDE: f64 = 0.2;

/// Deviations of a column's χ² above what chance gives that deserve a remark: chance does it in one of 30 000 columns.
const UNLIKELY: f64 = 4.0;

/// How much something matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// As it should be.
    Good,
    /// Worth knowing.
    Note,
    /// To be looked at before the result is used.
    Caution,
    /// The result should not be used as it is.
    Problem,
}

/// A statement and how much it matters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How much.
    pub level: Level,
    /// What.
    pub text: String,
}

/// The verdict on a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// The gravest finding.
    pub level: Level,
    /// One sentence.
    pub headline: String,
    /// What was fitted.
    pub fitted: String,
    /// What was found: problems, cautions, what is good, notes.
    pub findings: Vec<Finding>,
}

/// How much of a source lies outside the range of simulated x.
#[derive(Clone, Copy, Debug)]
pub struct Extrapolated {
    /// Share of the draws outside in any column.
    pub share: f64,
    /// Rows that the range was taken of.
    pub rows: usize,
    /// Their columns.
    pub columns: usize,
}

/// What is known of a run.
#[derive(Clone, Debug, Default)]
pub struct Facts<'a> {
    /// The surrogate that was kept.
    pub surrogate: String,
    /// The source that was kept.
    pub source: String,
    /// Simulated pairs.
    pub pairs: usize,
    /// Observations.
    pub observations: usize,
    /// Push-forward against observations; none where the observations are not at hand.
    pub y_auc: Option<Estimate>,
    /// Name of each column of y, χ² between its observations and the push-forward, and the number of bins.
    pub chi_squares: Vec<(String, f64, usize)>,
    /// Source against the truth, where it is known.
    pub x_auc: Option<Estimate>,
    /// Name of each column of y, and the share of its observations outside the simulated range.
    pub outside: Vec<(String, f64)>,
    /// Draws of the source outside the range of the simulated x.
    pub extrapolated: Option<Extrapolated>,
    /// Effective samples behind the source's gradient at the end of its training.
    pub effective_samples: Option<f64>,
    /// Trainings of what was kept: name, and what the last tenth still gained in held-out loss.
    pub last_gains: Vec<(String, f64)>,
    /// Noise added to y while the source was learned, in deviations of y.
    pub widening: Option<f64>,
    /// Calibration of the posteriors, and the names of the columns of x.
    pub calibration: Option<(&'a Calibration, &'a [String])>,
    /// What else the run warned of, such as a budget that was reached.
    pub warnings: Vec<String>,
}

/// Judges a run.
pub fn verdict(facts: &Facts) -> Verdict {
    let mut findings = vec![reproduced(facts)];
    findings.extend(bin_by_bin(facts));
    findings.extend(near_truth(facts));
    findings.extend(outside(&facts.outside, facts.pairs));
    findings.extend(extrapolated(facts));
    findings.extend(effective(facts));
    findings.extend(calibrated(facts.calibration));
    findings.extend(trained(facts));
    findings.extend(widened(facts));
    let warnings = facts.warnings.iter().map(|warning| Finding {
        level: Level::Caution,
        text: warning.clone(),
    });
    findings.extend(warnings);
    let level = gravest_first(&mut findings);
    Verdict {
        level,
        headline: headline(level, facts).to_owned(),
        fitted: format!(
            "A surrogate q(y|x) ({}) was learned from {} simulated pairs; with it, a source q(x) ({}) from {} observations.",
            facts.surrogate,
            grouped(facts.pairs),
            facts.source,
            grouped(facts.observations)
        ),
        findings,
    }
}

/// Sorts findings, problems first, and returns the gravest level.
fn gravest_first(findings: &mut [Finding]) -> Level {
    findings.sort_by_key(|finding| match finding.level {
        Level::Problem => 0,
        Level::Caution => 1,
        Level::Good => 2,
        Level::Note => 3,
    });
    let level = findings.iter().map(|finding| finding.level).max();
    level.unwrap_or(Level::Note)
}

fn headline(level: Level, facts: &Facts) -> &'static str {
    let alike = |auc: Estimate| auc.value <= auc.null.high;
    let columns_alike = unlikely_columns(&facts.chi_squares).is_empty();
    match (level, facts.y_auc) {
        (Level::Problem, _) => "Do not use this source as it is: see the points below.",
        (_, None) => "Not judged: the observations were not at hand.",
        (Level::Good | Level::Note, _) => {
            "The learned source reproduces the observations, and nothing speaks against it."
        }
        (Level::Caution, Some(auc)) if alike(auc) && columns_alike => {
            "The learned source reproduces the observations; look at the points below before using it."
        }
        (Level::Caution, _) => {
            "The learned source nearly reproduces the observations; look at the points below before using it."
        }
    }
}

fn estimate(auc: Estimate) -> String {
    format!(
        "AUC {:.3} ± {:.3}; {:.3} to {:.3} if nothing differed",
        auc.value, auc.standard_error, auc.null.low, auc.null.high
    )
}

fn reproduced(facts: &Facts) -> Finding {
    let Some(auc) = facts.y_auc else {
        return Finding {
            level: Level::Caution,
            text: "Whether the source reproduces the observations is not known: the observations were not at hand."
                .to_owned(),
        };
    };
    let (level, words) = if auc.value <= auc.null.high {
        (
            Level::Good,
            "A classifier cannot tell y pushed forward from the source from the observations",
        )
    } else if auc.value < FAR {
        (
            Level::Caution,
            "A classifier can just tell y pushed forward from the source from the observations",
        )
    } else {
        (
            Level::Problem,
            "The source does not reproduce the observations: a classifier tells its y from them",
        )
    };
    Finding {
        level,
        text: format!("{words} ({}).", estimate(auc)),
    }
}

/// Whether chance gives such a χ² in fewer than one of 30 000 cases.
fn is_unlikely(square: f64, bins: usize) -> bool {
    // Wilson and Hilferty: the cube root of χ²/bins is nearly normal.
    let bins = (bins as f64).max(1.0);
    let spread = 2.0 / (9.0 * bins);
    ((square / bins).cbrt() - (1.0 - spread)) / spread.sqrt() > UNLIKELY
}

/// The columns whose χ² is unlikely, in words.
fn unlikely_columns(chi_squares: &[(String, f64, usize)]) -> Vec<String> {
    let unlikely = chi_squares.iter();
    unlikely
        .filter(|(_, square, bins)| is_unlikely(*square, *bins))
        .map(|(name, square, bins)| format!("{name} (χ² {square:.0} over {bins} bins)"))
        .collect()
}

fn bin_by_bin(facts: &Facts) -> Option<Finding> {
    let columns = unlikely_columns(&facts.chi_squares);
    (!columns.is_empty()).then(|| Finding {
        level: Level::Caution,
        text: format!(
            "Histograms of the push-forward differ from the observations by more than chance: {}; the ratios show where.",
            columns.join(", ")
        ),
    })
}

fn near_truth(facts: &Facts) -> Option<Finding> {
    let auc = facts.x_auc?;
    let (level, words) = if auc.value <= auc.null.high {
        (Level::Good, "The source cannot be told from the truth")
    } else if auc.value < 0.6 {
        (
            Level::Note,
            "The source is close to the truth, but can be told from it",
        )
    } else {
        (
            Level::Caution,
            "The source differs from the truth; where y says little about x, many sources explain it",
        )
    };
    Some(Finding {
        level,
        text: format!("{words} (x: {}).", estimate(auc)),
    })
}

/// The level of a share of rows outside a range in any of so many columns, the range being that of `rows` others; none where
/// it is nothing to speak of.
fn outside_level(share: f64, rows: usize, columns: usize) -> Option<Level> {
    let chance = CHANCE_OUTSIDE * columns as f64 / rows.max(1) as f64;
    match share {
        s if s > OUTSIDE[1].max(chance) => Some(Level::Problem),
        s if s > OUTSIDE[0].max(chance) => Some(Level::Caution),
        s if s > 0.0 => Some(Level::Note),
        _ => None,
    }
}

fn outside(shares: &[(String, f64)], simulated: usize) -> Option<Finding> {
    let found: Vec<&(String, f64)> = shares.iter().filter(|(_, s)| *s > 0.0).collect();
    let most = found
        .iter()
        .fold(0.0, |most: f64, (_, share)| most.max(*share));
    let level = outside_level(most, simulated, 1)?;
    let columns: Vec<String> = found
        .iter()
        .map(|(name, share)| format!("{name} {}", percent(*share)))
        .collect();
    let advice = if level == Level::Note {
        "few enough to ignore"
    } else {
        "the surrogate knows nothing there; simulate pairs that cover them"
    };
    Some(Finding {
        level,
        text: format!(
            "Observations outside the range of the simulated pairs: {}: {advice}.",
            columns.join(", ")
        ),
    })
}

fn extrapolated(facts: &Facts) -> Option<Finding> {
    let Extrapolated {
        share,
        rows,
        columns,
    } = facts.extrapolated?;
    let level = outside_level(share, rows, columns)?;
    (level > Level::Note).then(|| Finding {
        level: Level::Caution,
        text: format!(
            "{} of the source lies outside the range of the simulated x, where the surrogate extrapolates; simulate with a \
             wider proposal.",
            percent(share)
        ),
    })
}

fn effective(facts: &Facts) -> Option<Finding> {
    let samples = facts.effective_samples?;
    let (level, words) = if samples < EFFECTIVE[0] {
        (
            Level::Problem,
            "the gradient was mostly noise; raise affine-k and refine-k, or learn a surrogate of kind noisy-mixture",
        )
    } else if samples < EFFECTIVE[1] {
        (
            Level::Caution,
            "the gradient was noisy; raising refine-k may help",
        )
    } else {
        (Level::Good, "enough for a steady gradient")
    };
    Some(Finding {
        level,
        text: format!(
            "{samples:.0} effective samples per observation at the end of the source's training: {words}."
        ),
    })
}

fn calibrated(calibration: Option<(&Calibration, &[String])>) -> Option<Finding> {
    let Some((calibration, names)) = calibration else {
        return Some(Finding {
            level: Level::Note,
            text:
                "Posteriors were not checked: `neb calibrate` does it, with pairs whose x is known."
                    .to_owned(),
        });
    };
    let figures = format!(
        "{} events, greatest KS distance {:.3}, at most {:.3} for exact posteriors",
        grouped(calibration.events),
        calibration.ks,
        calibration.ks_limit
    );
    if calibration.calibrated {
        return Some(Finding {
            level: Level::Good,
            text: format!("Posteriors are calibrated as far as can be seen ({figures})."),
        });
    }
    let mut shapes: Vec<String> = calibration
        .marginals
        .iter()
        .zip(names)
        .filter_map(|(marginal, name)| {
            let words = match marginal.shape {
                RankShape::Flat => return None,
                RankShape::TooNarrow => "too narrow",
                RankShape::TooWide => "too wide",
                RankShape::TooLow => "too low",
                RankShape::TooHigh => "too high",
            };
            Some(format!("{name} {words}"))
        })
        .collect();
    if calibration.marginals_agree && calibration.histograms_agree {
        shapes.push("each column by itself is, the joint law is not".to_owned());
    }
    let level = if calibration.ks > BADLY_CALIBRATED {
        Level::Problem
    } else {
        Level::Caution
    };
    let shapes = if shapes.is_empty() {
        String::new()
    } else {
        format!(": {}", shapes.join(", "))
    };
    Some(Finding {
        level,
        text: format!("Posteriors are not calibrated{shapes} ({figures})."),
    })
}

fn trained(facts: &Facts) -> Option<Finding> {
    let unfinished: Vec<String> = facts
        .last_gains
        .iter()
        .filter(|(_, gain)| *gain > STILL_GAINING)
        .map(|(name, gain)| format!("{name} (by {gain:.3} in its last tenth)"))
        .collect();
    (!unfinished.is_empty()).then(|| Finding {
        level: Level::Caution,
        text: format!(
            "Training ended while the held-out loss was still falling: {}; more epochs would help.",
            unfinished.join(", ")
        ),
    })
}

fn widened(facts: &Facts) -> Option<Finding> {
    let scale = facts.widening.filter(|scale| *scale > 0.0)?;
    Some(Finding {
        level: if scale >= WIDE {
            Level::Caution
        } else {
            Level::Note
        },
        text: format!(
            "The source was learned from observations with noise of {scale:.2} deviations added, and the likelihood knows of it: \
             structure of y finer than that had no say."
        ),
    })
}

/// A share as a percentage.
fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    if percent < 0.1 {
        format!("{percent:.2} %")
    } else {
        format!("{percent:.1} %")
    }
}

/// A number with thin spaces between groups of three digits, from five digits on.
pub fn grouped(number: usize) -> String {
    let digits = number.to_string();
    if digits.len() < 5 {
        return digits;
    }
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests;
