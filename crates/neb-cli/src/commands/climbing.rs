//! Around stage 2: checks of the observations, warnings, and the table of the rungs.

use std::path::Path;

use anyhow::Result;
use neb::Rows;
use neb::source::ladder::LadderReport;

use super::Session;
use crate::failure::Failure;
use crate::files::Group;

/// Share of a column's observations outside the range of the pairs above which there is no use going on.
const MOST_OUTSIDE: f64 = 0.5;
/// Fewer effective samples than these make a rung's gradient mostly noise.
const FEWEST_EFFECTIVE: f64 = 10.0;

/// Smallest and largest value of each column.
pub(super) fn ranges(rows: Rows) -> Vec<[f32; 2]> {
    let mut ranges = vec![[f32::INFINITY, f32::NEG_INFINITY]; rows.cols()];
    for row in 0..rows.rows() {
        for (range, &value) in ranges.iter_mut().zip(rows.row(row)) {
            *range = [range[0].min(value), range[1].max(value)];
        }
    }
    ranges
}

/// A warning where observations lie outside the range of the pairs' y, column by column; an error, which names their file,
/// where most of a column does.
pub(crate) fn check_range(
    path: Option<&Path>,
    y: &Group,
    ranges: &[[f32; 2]],
) -> Result<Option<String>> {
    let rows = y.values.rows();
    let mut columns = Vec::new();
    let mut most = 0.0f64;
    for (column, (name, [low, high])) in y.names.iter().zip(ranges).enumerate() {
        let outside = (0..rows)
            .filter(|&row| !(*low..=*high).contains(&y.values.row(row)[column]))
            .count();
        if outside > 0 {
            let share = outside as f64 / rows as f64;
            most = most.max(share);
            let percent = 100.0 * share;
            columns.push(format!(
                "`{name}` {outside} of {rows} ({percent:.2} %, outside {low} to {high})"
            ));
        }
    }
    let found = format!(
        "observations outside the range of the pairs: {}",
        columns.join(", ")
    );
    if most > MOST_OUTSIDE {
        let file = path.map(|path| format!("{}: ", path.display()));
        return Err(Failure::input(
            file.unwrap_or_default() + &found,
            "simulate pairs that cover the observations, or check units and the order of the columns",
        ));
    }
    Ok((most > 0.0).then_some(found))
}

/// Share of the weight of each column that lies outside its range.
pub(super) fn shares_outside(
    y: &Group,
    weights: &[f32],
    ranges: &[[f32; 2]],
) -> Vec<(String, f64)> {
    let total: f64 = weights.iter().map(|&weight| f64::from(weight)).sum();
    let columns = y.names.iter().zip(ranges).enumerate();
    let share = |(column, (name, [low, high])): (usize, (&String, &[f32; 2]))| {
        let rows = (0..y.values.rows()).zip(weights);
        let outside = rows.filter(|(row, _)| !(*low..=*high).contains(&y.values.row(*row)[column]));
        let weight: f64 = outside.map(|(_, &weight)| f64::from(weight)).sum();
        (name.clone(), weight / total)
    };
    columns.map(share).collect()
}

/// What a user should know about how the ladder was climbed.
pub(super) fn warnings(report: &LadderReport) -> Vec<String> {
    report
        .rungs
        .iter()
        .filter(|rung| rung.effective_samples < FEWEST_EFFECTIVE)
        .map(|rung| {
            format!(
                "{}: {:.1} effective samples at the end of its training, fewer than {FEWEST_EFFECTIVE}: its gradient was mostly \
                 noise; raise `affine-k` and `refine-k` of the source, or learn a surrogate of kind noisy-mixture",
                rung.name, rung.effective_samples
            )
        })
        .collect()
}

/// Says the warnings.
pub(super) fn warn(warnings: &[String], session: Session) {
    for warning in warnings {
        session.output.note(format!("warning: {warning}"));
    }
}

/// Says what was done without being asked for.
pub(super) fn say(notes: &[String], session: Session) {
    for note in notes {
        session.output.note(note);
    }
}

/// The rungs as a table; the winner is marked.
pub(super) fn table(report: &LadderReport, reason: &str) -> String {
    let mut text = format!(
        "  {:<29} {:>17} {:>19} {:>5} {:>9} {:>8}\n",
        "rung", "held-out log p(y)", "gain ± error", "kept", "effective", "seconds"
    );
    let or_dash = |value: f64, shown: String| {
        if value.is_nan() {
            "-".to_owned()
        } else {
            shown
        }
    };
    for (number, rung) in report.rungs.iter().enumerate() {
        let gain = format!("{:+.4} ± {:.4}", rung.gain, rung.standard_error);
        text.push_str(&format!(
            "{} {:<29} {:>17.4} {:>19} {:>5} {:>9} {:>8.1}\n",
            if number == report.winner { "*" } else { " " },
            rung.name,
            rung.held_out,
            or_dash(rung.gain, gain),
            if rung.kept { "yes" } else { "no" },
            or_dash(
                rung.effective_samples,
                format!("{:.0}", rung.effective_samples)
            ),
            rung.seconds
        ));
    }
    text.push_str(reason);
    text
}
