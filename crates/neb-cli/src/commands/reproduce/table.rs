//! Finished cells as tables: our mean and deviation over the repeats beside the paper's.

use serde::Serialize;

use super::cell::Measured;
use super::paper;
use super::plan::{Cell, Metric, Row, Table};

/// One value of a table.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Entry {
    pub(super) problem: String,
    /// Repeats behind it; 0 if none is finished.
    pub(super) repeats: usize,
    pub(super) mean: Option<f64>,
    /// Standard deviation over the repeats; none of fewer than two.
    pub(super) deviation: Option<f64>,
    /// The same by the authors' classifier.
    pub(super) by_authors_judge: Option<f64>,
    /// What the paper prints: mean and standard deviation.
    pub(super) paper: Option<(f64, f64)>,
    pub(super) verdict: Option<Verdict>,
    /// Mean seconds of the source's fit.
    pub(super) seconds: Option<f64>,
}

/// How an entry stands beside the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Verdict {
    /// At or below the paper's value (for our own row: its best of all estimators).
    Better,
    /// Within two of the paper's standard deviations, or 0.01 where it prints less.
    Alike,
    Worse,
}

/// One line.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Line {
    pub(super) title: String,
    pub(super) entries: Vec<Entry>,
}

/// One table and one metric.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Block {
    pub(super) table: Table,
    pub(super) title: String,
    /// Repeats that were asked for.
    pub(super) repeats: u64,
    pub(super) lines: Vec<Line>,
}

/// The tables that these cells fill, as far as they were measured.
pub(super) fn blocks(tables: &[Table], cells: &[Cell], measured: &[Measured]) -> Vec<Block> {
    let repeats = cells.iter().map(|cell| cell.repeat).max().unwrap_or(0);
    let mut blocks = Vec::new();
    for &table in tables {
        for &metric in table.metrics() {
            let lines = table.rows().into_iter().map(|row| Line {
                title: row.title(),
                entries: problems(table, cells)
                    .into_iter()
                    .map(|problem| entry(table, row, metric, problem, measured))
                    .collect(),
            });
            blocks.push(Block {
                table,
                title: format!("{}: {}", table.title(), metric.title()),
                repeats,
                lines: lines.collect(),
            });
        }
    }
    blocks
}

fn problems(table: Table, cells: &[Cell]) -> Vec<&str> {
    let mut problems: Vec<&str> = Vec::new();
    for cell in cells {
        let of_collider = cell.problem == super::COLLIDER;
        if of_collider == (table == Table::Collider) && !problems.contains(&&*cell.problem) {
            problems.push(&cell.problem);
        }
    }
    problems
}

fn entry(table: Table, row: Row, metric: Metric, problem: &str, measured: &[Measured]) -> Entry {
    let of_entry = |m: &&Measured| m.cell.row == row && m.cell.problem == problem;
    let cells: Vec<&Measured> = measured.iter().filter(of_entry).collect();
    let judged = |m: &&Measured| match metric {
        Metric::X => Some((m.x.ours, Some(m.x.authors))),
        Metric::Y => Some((m.y.ours, Some(m.y.authors))),
        Metric::Ks => m.ks.map(|ks| (ks[0], None)),
    };
    let values: Vec<(f64, Option<f64>)> = cells.iter().filter_map(judged).collect();
    let ours: Vec<f64> = values.iter().map(|(ours, _)| *ours).collect();
    let authors: Vec<f64> = values.iter().filter_map(|(_, authors)| *authors).collect();
    let seconds: Vec<f64> = cells.iter().map(|m| m.seconds.source).collect();
    let printed = paper::printed(table, row, metric, problem);
    let mean = mean(&ours);
    let verdict = mean.and_then(|mean| match (row.is_ours(), printed) {
        (true, _) => Some(beside(mean, paper::best(table, metric, problem)?, 0.0)),
        (false, printed) => printed.map(|(value, deviation)| beside(mean, value, deviation)),
    });
    Entry {
        problem: problem.to_owned(),
        repeats: ours.len(),
        mean,
        deviation: deviation(&ours),
        by_authors_judge: self::mean(&authors),
        paper: printed,
        verdict,
        seconds: self::mean(&seconds),
    }
}

/// The paper prints two digits: a half of the last one is rounding.
fn beside(ours: f64, paper: f64, deviation: f64) -> Verdict {
    if ours < paper + 0.005 {
        Verdict::Better
    } else if ours <= paper + (2.0 * deviation).max(0.01) {
        Verdict::Alike
    } else {
        Verdict::Worse
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn deviation(values: &[f64]) -> Option<f64> {
    let mean = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() > 1).then(|| (squares / (values.len() - 1) as f64).sqrt())
}

impl Entry {
    /// The mean and what belongs to it; how many repeats are behind it where those are fewer than were asked for.
    fn words(&self, asked: u64) -> String {
        let Some(mean) = self.mean else {
            return "-".to_owned();
        };
        let repeats = match self.repeats as u64 == asked {
            true => String::new(),
            false => format!(" ({} of {asked})", self.repeats),
        };
        let deviation = self
            .deviation
            .map_or_else(String::new, |deviation| format!("±{deviation:.3}"));
        let authors = self
            .by_authors_judge
            .map_or_else(String::new, |value| format!(" [{value:.3}]"));
        let mark = match self.verdict {
            Some(Verdict::Worse) => " !",
            _ => "",
        };
        format!("{mean:.3}{deviation}{authors}{mark}{repeats}")
    }

    fn paper_words(&self) -> String {
        self.paper.map_or_else(
            || "-".to_owned(),
            |(mean, deviation)| format!("{mean:.2}±{deviation:.2}"),
        )
    }
}

/// A block as a Markdown table, which also reads well on a terminal.
pub(super) fn markdown(block: &Block) -> String {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let Some(first) = block.lines.first() else {
        return String::new();
    };
    let mut head = vec![String::new()];
    for entry in &first.entries {
        head.push(entry.problem.clone());
        head.push("paper".to_owned());
    }
    rows.push(head);
    for line in &block.lines {
        let mut row = vec![line.title.clone()];
        for entry in &line.entries {
            row.push(entry.words(block.repeats));
            row.push(entry.paper_words());
        }
        rows.push(row);
    }
    let widths: Vec<usize> = (0..rows[0].len())
        .map(|column| rows.iter().map(|row| row[column].chars().count()).max())
        .map(|width| width.unwrap_or(0).max(3))
        .collect();
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        let cells = row.iter().zip(&widths);
        let cells: Vec<String> = cells
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
        if number == 0 {
            let rules: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
            text.push_str(&format!("| {} |\n", rules.join(" | ")));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_allow_for_the_paper_s_rounding_and_spread() {
        assert_eq!(beside(0.554, 0.55, 0.02), Verdict::Better);
        assert_eq!(beside(0.589, 0.55, 0.02), Verdict::Alike);
        assert_eq!(beside(0.60, 0.55, 0.02), Verdict::Worse);
        assert_eq!(beside(0.508, 0.50, 0.0), Verdict::Alike);
    }

    #[test]
    fn an_entry_of_fewer_repeats_says_so() {
        let entry = Entry {
            problem: "ik".to_owned(),
            repeats: 2,
            mean: Some(0.5),
            deviation: Some(0.001),
            by_authors_judge: None,
            paper: None,
            verdict: None,
            seconds: None,
        };
        assert_eq!(entry.words(2), "0.500±0.001");
        assert_eq!(entry.words(5), "0.500±0.001 (2 of 5)");
    }

    #[test]
    fn deviations_are_those_of_a_sample() {
        assert_eq!(deviation(&[1.0]), None);
        assert!((deviation(&[1.0, 3.0]).unwrap() - 2f64.sqrt()).abs() < 1e-12);
    }
}
