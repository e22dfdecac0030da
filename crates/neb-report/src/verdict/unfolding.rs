//! The verdict on an unfolding: what its trust checks found, in plain words.

use neb::check::{Calibration, Estimate};
use neb::unfold::{Recovered, Triangular, TrustChecks};

use super::{
    FAR, Finding, Level, Verdict, calibrated, estimate, gravest_first, grouped, is_unlikely,
    outside, percent, unlikely_columns,
};

/// Part of a shift that a stress test may leave before it deserves a remark: a quarter.
const LEFT_OVER: f64 = 0.25;
/// Deviations, as ratios, below which a closure or stress test is as good as anyone needs.
const NEGLIGIBLE: f64 = 0.02;
/// Deviation, as a ratio, from which a result that does not close is not one to publish.
const LARGE: f64 = 0.25;
/// Fewest data replicas behind errors that can be trusted to a fifth or so: an error from R of them is uncertain by 1/√(2(R − 1)).
const FEWEST_REPLICAS: u64 = 15;
/// Part of the simulation that is negative weight, from which it deserves a remark.
const MUCH_NEGATIVE: f64 = 0.1;

/// What is known of an unfolding.
#[derive(Clone, Debug, Default)]
pub struct UnfoldingFacts<'a> {
    /// Events simulated, reconstructed of these, and of data.
    pub events: [usize; 3],
    /// Number of events that were produced, corrected for efficiency and background.
    pub produced: f64,
    /// Columns of x.
    pub columns: usize,
    /// Folded result against data; none where it was not compared.
    pub y_auc: Option<Estimate>,
    /// The same for the simulation as it was.
    pub y_auc_before: Option<Estimate>,
    /// Name of each column of y, χ² between data and folded result, and the number of bins.
    pub chi_squares: Vec<(String, f64, usize)>,
    /// Closure and stress.
    pub trust: Option<&'a TrustChecks>,
    /// Name of each column of y, and the share of its data outside the simulated range.
    pub outside: Vec<(String, f64)>,
    /// Effective events of the weighted simulation, and of the data.
    pub effective: [f64; 2],
    /// Share of the simulation's events with a negative weight.
    pub negative: f64,
    /// Replicas of data, simulation and training.
    pub replicas: [u64; 3],
    /// Weighted simulation against the truth, where it is known.
    pub x_auc: Option<Estimate>,
    /// Name of each column with the triangular discriminators of the result and of the binned baseline, where the truth is known.
    pub discriminators: Vec<(String, Triangular, Option<Triangular>)>,
    /// Calibration of the posteriors, and the names of the columns of x.
    pub calibration: Option<(&'a Calibration, &'a [String])>,
}

/// Judges an unfolding.
pub fn unfolding_verdict(facts: &UnfoldingFacts) -> Verdict {
    let mut findings: Vec<Finding> = [
        bottom_line(facts),
        bin_by_bin(facts),
        facts.trust.map(|trust| closure(&trust.closure)),
        facts.trust.map(|trust| stress(&trust.stress)),
        outside(&facts.outside, facts.events[1]),
        Some(effective(facts)),
        negative(facts),
        near_truth(facts),
        discriminators(facts),
        calibrated(facts.calibration),
    ]
    .into_iter()
    .flatten()
    .collect();
    findings.extend(errors(facts));
    let level = gravest_first(&mut findings);
    let [simulated, reconstructed, data] = facts.events.map(grouped);
    let columns = match facts.columns {
        1 => "one column".to_owned(),
        all => format!("all {all} columns at once"),
    };
    Verdict {
        level,
        headline: headline(level).to_owned(),
        fitted: format!(
            "{data} events of data were unfolded in {columns} with {simulated} simulated events, {reconstructed} of them reconstructed: {} events were produced.",
            grouped(facts.produced.round().max(0.0) as usize)
        ),
        findings,
    }
}

fn headline(level: Level) -> &'static str {
    match level {
        Level::Good | Level::Note => {
            "The unfolded result explains the data, and every check was passed."
        }
        Level::Caution => "Look at the points below before using or publishing this result.",
        Level::Problem => "Do not publish this result as it is: see the points below.",
    }
}

fn bottom_line(facts: &UnfoldingFacts) -> Option<Finding> {
    let auc = facts.y_auc?;
    let (level, words) = if auc.value <= auc.null.high {
        (
            Level::Good,
            "Bottom line: folded with the detector, the result cannot be told from the data it was fitted to",
        )
    } else if auc.value < FAR {
        (
            Level::Caution,
            "Bottom line: folded with the detector, the result can just be told from the data",
        )
    } else {
        (
            Level::Problem,
            "Bottom line: folded with the detector, the result does not describe the data",
        )
    };
    let before = facts.y_auc_before;
    let before = before.map_or_else(String::new, |before| {
        format!("; the simulation as it was: {:.3}", before.value)
    });
    Some(Finding {
        level,
        text: format!("{words} ({}{before}).", estimate(auc)),
    })
}

fn bin_by_bin(facts: &UnfoldingFacts) -> Option<Finding> {
    let columns = unlikely_columns(&facts.chi_squares);
    let all: f64 = facts.chi_squares.iter().map(|(_, square, _)| square).sum();
    let bins: usize = facts.chi_squares.iter().map(|(_, _, bins)| bins).sum();
    if facts.chi_squares.is_empty() {
        return None;
    }
    Some(match columns.is_empty() {
        true => Finding {
            level: Level::Good,
            text: format!(
                "Every histogram of the folded result agrees with the data (χ² {all:.0} over {bins} bins in all)."
            ),
        },
        false => Finding {
            level: Level::Caution,
            text: format!(
                "Histograms of the folded result differ from the data by more than chance: {}; the ratios show where.",
                columns.join(", ")
            ),
        },
    })
}

/// Names of the columns that missed what was expected by more than chance and by more than `allowed`.
fn missed(columns: &[Recovered], allowed: impl Fn(&Recovered) -> f64) -> Vec<String> {
    let missed = columns.iter().filter(|column| {
        is_unlikely(column.chi_square, column.bins) && column.rest > allowed(column)
    });
    missed
        .map(|column| {
            format!(
                "{} by up to {} (χ² {:.0} over {} bins)",
                column.name,
                percent(column.rest),
                column.chi_square,
                column.bins
            )
        })
        .collect()
}

/// Whether what is left, though allowed, is more than errors explain.
fn how_near(columns: &[Recovered]) -> &'static str {
    let is_sure = |column: &Recovered| is_unlikely(column.chi_square, column.bins);
    match columns.iter().any(is_sure) {
        true => "nearly, though not within errors",
        false => "within errors",
    }
}

fn greatest(columns: &[Recovered], of: fn(&Recovered) -> f64) -> f64 {
    columns.iter().map(of).fold(0.0, f64::max)
}

/// χ² of all columns together.
fn chi_square(columns: &[Recovered]) -> (f64, usize) {
    let bins = columns.iter().map(|column| column.bins).sum();
    (columns.iter().map(|column| column.chi_square).sum(), bins)
}

fn closure(columns: &[Recovered]) -> Finding {
    let far_off = missed(columns, |_| LARGE);
    let missed = missed(columns, |_| NEGLIGIBLE);
    let rest = percent(greatest(columns, |column| column.rest));
    let (square, bins) = chi_square(columns);
    let figures = format!("χ² {square:.0} over {bins} bins, at most {rest} off");
    match missed.is_empty() {
        true => Finding {
            level: Level::Good,
            text: format!(
                "Closure: simulation unfolded with itself comes back {} ({figures}).",
                how_near(columns)
            ),
        },
        false => Finding {
            level: match far_off.is_empty() {
                true => Level::Caution,
                false => Level::Problem,
            },
            text: format!(
                "Closure: simulation unfolded with itself does not come back: {} ({figures}); more simulated events or a better surrogate would help.",
                missed.join(", ")
            ),
        },
    }
}

fn stress(columns: &[Recovered]) -> Finding {
    let greatest_shift = greatest(columns, |column| column.shift);
    let allowed = (LEFT_OVER * greatest_shift).max(NEGLIGIBLE);
    let missed = missed(columns, |_| allowed);
    let (shift, rest) = (
        percent(greatest_shift),
        percent(greatest(columns, |column| column.rest)),
    );
    let (square, bins) = chi_square(columns);
    match missed.is_empty() {
        true => Finding {
            level: Level::Good,
            text: format!(
                "Stress: a known change of the simulation by up to {shift} is found again {} (χ² {square:.0} over {bins} bins, at most {rest} left).",
                how_near(columns)
            ),
        },
        false => Finding {
            level: Level::Caution,
            text: format!(
                "Stress: a known change of the simulation by up to {shift} is not found again: {}; the detector may hide it.",
                missed.join(", ")
            ),
        },
    }
}

fn effective(facts: &UnfoldingFacts) -> Finding {
    let [weighted, data] = facts.effective;
    let counts = format!(
        "The weighted simulation is worth {} events, the data {}",
        grouped(weighted.round() as usize),
        grouped(data.round() as usize)
    );
    let [_, simulation, _] = facts.replicas;
    match (weighted >= data, simulation >= 2) {
        (true, _) => Finding {
            level: Level::Good,
            text: format!("{counts}."),
        },
        (false, true) => Finding {
            level: Level::Note,
            text: format!(
                "{counts}: the simulation limits the result, and its replicas are part of the errors."
            ),
        },
        (false, false) => Finding {
            level: Level::Caution,
            text: format!(
                "{counts}: the simulation limits the result as much as the data do, and the errors do not know it; run `--simulation-replicas`, or simulate more."
            ),
        },
    }
}

fn negative(facts: &UnfoldingFacts) -> Option<Finding> {
    (facts.negative > 0.0).then(|| Finding {
        level: match facts.negative > MUCH_NEGATIVE {
            true => Level::Caution,
            false => Level::Note,
        },
        text: format!(
            "{} of the simulated events have negative weights: they are kept in every histogram, and cost effective events.",
            percent(facts.negative)
        ),
    })
}

fn errors(facts: &UnfoldingFacts) -> Vec<Finding> {
    let [data, simulation, training] = facts.replicas;
    let mut found = Vec::new();
    if data < 2 {
        let which = match simulation >= 2 || training >= 2 {
            true => "Errors are without those of the data",
            false => "There are no errors",
        };
        found.push(Finding {
            level: Level::Caution,
            text: format!("{which}: `--replicas 100` costs little more than none."),
        });
    } else if data < FEWEST_REPLICAS {
        let uncertain = percent(1.0 / (2.0 * (data - 1) as f64).sqrt());
        found.push(Finding {
            level: Level::Caution,
            text: format!(
                "Errors come from {data} replicas of the data, and are themselves uncertain by {uncertain}; `--replicas 100` costs little more than none."
            ),
        });
    }
    let missing: Vec<&str> = [("simulation", simulation), ("training", training)]
        .into_iter()
        .filter(|(_, count)| *count < 2)
        .map(|(name, _)| name)
        .collect();
    if data >= 2 && !missing.is_empty() {
        found.push(Finding {
            level: Level::Note,
            text: format!(
                "Errors are without those of the {}: `--simulation-replicas` and `--training-replicas` add them.",
                missing.join(" and the ")
            ),
        });
    }
    found
}

fn near_truth(facts: &UnfoldingFacts) -> Option<Finding> {
    let auc = facts.x_auc?;
    let (level, words) = if auc.value <= auc.null.high {
        (
            Level::Good,
            "The weighted simulation cannot be told from the truth",
        )
    } else if auc.value < FAR {
        (
            Level::Note,
            "The weighted simulation is close to the truth, but can be told from it",
        )
    } else {
        (
            Level::Caution,
            "The weighted simulation differs from the truth",
        )
    };
    Some(Finding {
        level,
        text: format!("{words} (x: {}).", estimate(auc)),
    })
}

fn discriminators(facts: &UnfoldingFacts) -> Option<Finding> {
    let compared: Vec<(&str, bool)> = facts
        .discriminators
        .iter()
        .filter_map(|(name, own, binned)| Some((name.as_str(), own.value <= (*binned)?.value)))
        .collect();
    if compared.is_empty() {
        return None;
    }
    let worse: Vec<&str> = compared
        .iter()
        .filter(|(_, better)| !better)
        .map(|(name, _)| *name)
        .collect();
    let better = compared.len() - worse.len();
    let rest = match worse.is_empty() {
        true => String::new(),
        false => format!("; not in {}", worse.join(", ")),
    };
    Some(Finding {
        level: Level::Note,
        text: format!(
            "By the triangular discriminator it is closer to the truth than binned unfolding in {better} of {} spectra{rest}.",
            compared.len()
        ),
    })
}

#[cfg(test)]
mod tests;
