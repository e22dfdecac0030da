//! `neb log-prob`: log q(y|x) row by row.

use std::path::Path;

use anyhow::Result;
use neb::Likelihood;
use neb_data::Array;
use serde::Serialize;

use super::Session;
use crate::args;
use crate::files::{self, PairsFile};

#[derive(Serialize)]
struct Summary<'a> {
    rows: usize,
    weighted: bool,
    mean: f64,
    median: f64,
    smallest: f32,
    output: Option<&'a Path>,
}

/// Runs the command.
pub(crate) fn run(args: &args::LogProb, session: Session) -> Result<()> {
    if let Some(output) = &args.output {
        files::check_data_target(output, session.force)?;
    }
    let surrogate = files::load_surrogate(&args.model)?;
    let pairs = PairsFile::read(&args.pairs, &args.columns)?;
    files::check_columns("x", &args.pairs, &pairs.x, &surrogate)?;
    files::check_columns("y", &args.pairs, &pairs.y, &surrogate)?;
    let weights = pairs.weights(args.weight.as_deref())?;

    let mut values = vec![0.0; pairs.x.values.rows()];
    surrogate.log_prob(pairs.y.values.view(), pairs.x.values.view(), &mut values);
    if let Some(output) = &args.output {
        let array = Array::new("log_prob", &[values.len()], &values[..]);
        neb_data::write(output, session.force, &[array])?;
    }
    let (mean, median) = mean_and_median(&values, weights.as_deref());
    let summary = Summary {
        rows: values.len(),
        weighted: weights.is_some(),
        mean,
        median,
        smallest: values.iter().copied().fold(f32::INFINITY, f32::min),
        output: args.output.as_deref(),
    };
    session.output.result(&summary, |s| {
        format!(
            "log q(y|x) of {} rows{}: mean {:.4}, median {:.4}, smallest {:.4}",
            s.rows,
            if s.weighted { ", weighted" } else { "" },
            s.mean,
            s.median,
            s.smallest
        )
    })
}

/// Mean and median of values, each counted with its weight (1 where there are none).
pub(super) fn mean_and_median(values: &[f32], weights: Option<&[f32]>) -> (f64, f64) {
    let weight = |row: usize| weights.map_or(1.0, |weights| f64::from(weights[row]));
    let total: f64 = (0..values.len()).map(weight).sum();
    let sum: f64 = values
        .iter()
        .enumerate()
        .map(|(row, &value)| weight(row) * f64::from(value))
        .sum();
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut below = 0.0;
    for (place, &row) in order.iter().enumerate() {
        below += weight(row);
        if below > total / 2.0 {
            return (sum / total, f64::from(values[row]));
        }
        if below == total / 2.0 {
            let next = order.get(place + 1).map_or(row, |&next| next);
            let middle = (f64::from(values[row]) + f64::from(values[next])) / 2.0;
            return (sum / total, middle);
        }
    }
    (sum / total, f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_count_as_repeated_rows() {
        let values = [3.0, -1.0, 2.0, 10.0];
        assert_eq!(mean_and_median(&values, None), (3.5, 2.5));
        assert_eq!(mean_and_median(&values[..3], None), (4.0 / 3.0, 2.0));
        let weighted = mean_and_median(&values, Some(&[1.0, 3.0, 2.0, 0.0]));
        let repeated = mean_and_median(&[3.0, -1.0, -1.0, -1.0, 2.0, 2.0], None);
        assert_eq!(weighted, repeated);
    }
}
