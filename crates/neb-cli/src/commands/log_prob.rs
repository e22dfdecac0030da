//! `neb log-prob`: log q(y|x) of pairs, or log q(x) of points, row by row.

use std::path::Path;

use anyhow::Result;
use neb::column::{Transforms, average_log_prob};
use neb::source::Density;
use neb::surrogate::Surrogate;
use neb::{Likelihood, Rows};
use neb_data::Array;
use serde::Serialize;

use super::Session;
use crate::args;
use crate::failure;
use crate::files::{self, Address, PairsFile};

#[derive(Serialize)]
struct Summary<'a> {
    of: &'static str,
    rows: usize,
    weighted: bool,
    /// Rows where the density is zero; the other values are of the rows where it is not.
    outside: usize,
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
    let (of, values, weights) = match (&args.pairs, &args.points) {
        (Some(pairs), _) => of_pairs(args, pairs, session.seed())?,
        (None, Some(points)) => of_points(args, points, session.seed())?,
        (None, None) => unreachable!("clap requires one of them"),
    };
    if let Some(output) = &args.output {
        let array = Array::new("log_prob", &[values.len()], &values[..]);
        neb_data::write(output, session.force, &[array])?;
    }
    let inside: Vec<usize> = (0..values.len())
        .filter(|&row| values[row] > f32::NEG_INFINITY)
        .collect();
    let within: Vec<f32> = inside.iter().map(|&row| values[row]).collect();
    let weighted: Option<Vec<f32>> =
        weights.map(|weights| inside.iter().map(|&row| weights[row]).collect());
    let (mean, median) = mean_and_median(&within, weighted.as_deref());
    let summary = Summary {
        of,
        rows: values.len(),
        weighted: weighted.is_some(),
        outside: values.len() - within.len(),
        mean,
        median,
        smallest: within.iter().copied().fold(f32::INFINITY, f32::min),
        output: args.output.as_deref(),
    };
    session.output.result(&summary, text)
}

fn text(s: &Summary) -> String {
    let weighted = if s.weighted { ", weighted" } else { "" };
    let outside = match s.outside {
        0 => String::new(),
        outside => format!("{outside} outside the support (-inf); of the others "),
    };
    format!(
        "{} of {} rows{weighted}: {outside}mean {:.4}, median {:.4}, smallest {:.4}",
        s.of, s.rows, s.mean, s.median, s.smallest
    )
}

/// What was evaluated, its values, and the weights of the rows.
type Evaluated = (&'static str, Vec<f32>, Option<Vec<f32>>);

fn of_pairs(args: &args::LogProb, path: &Path, seed: u64) -> Result<Evaluated> {
    let surrogate = files::load_surrogate(&args.model)?;
    let pairs = PairsFile::read(path, &args.columns)?;
    files::check_columns("x", path, &pairs.x, &surrogate)?;
    files::check_columns("y", path, &pairs.y, &surrogate)?;
    let weights = pairs.weights(args.weight.as_deref())?;
    let (x, y) = (pairs.x.values.view(), pairs.y.values.view());
    let values = of_surrogate(&surrogate, (y, &pairs.y.names), (x, &pairs.x.names), seed)
        .map_err(|error| failure::in_file(path, error))?;
    Ok(("log q(y|x)", values, weights))
}

/// Rows in the user's units, and the names of their columns.
type Named<'a> = (Rows<'a>, &'a [String]);

/// log q(y|x), row by row, in the user's units.
pub(crate) fn of_surrogate(
    surrogate: &Surrogate,
    (y, y_names): Named,
    (x, x_names): Named,
    seed: u64,
) -> neb::Result<Vec<f32>> {
    let (to_x, to_y) = (surrogate.x_transforms(), surrogate.y_transforms());
    let mut values = vec![0.0; x.rows()];
    if to_x.is_plain() && to_y.is_plain() {
        surrogate.log_prob(y, x, &mut values);
        return Ok(values);
    }
    let random = to_x.is_random() || to_y.is_random();
    let values = average_log_prob(random, |draw| {
        let noise = Address::DrawX(draw).noise(seed);
        let x = to_x.forward(x.to_matrix(), x_names, noise)?;
        let noise = Address::DrawY(draw).noise(seed);
        let y = to_y.forward(y.to_matrix(), y_names, noise)?;
        surrogate.log_prob(y.view(), x.view(), &mut values);
        Ok(values.clone())
    })?;
    Ok(add(values, to_y.log_jacobian(y)))
}

fn of_points(args: &args::LogProb, path: &Path, seed: u64) -> Result<Evaluated> {
    let (source, names, transforms) = files::load_source(&args.model)?;
    let (x, weight) = (args.columns.x.as_deref(), args.weight.as_deref());
    let (x, weights) = files::read_weighted(path, x, weight)?;
    files::check_names("x", path, &x, &names, "the source has")?;
    let density = source.require_density("log-prob")?;
    let values = of_source(density, &transforms, (x.values.view(), &x.names), seed)
        .map_err(|error| failure::in_file(path, error))?;
    Ok(("log q(x)", values, weights))
}

/// log q(x), row by row, in the user's units.
pub(crate) fn of_source(
    density: &dyn Density,
    transforms: &Transforms,
    (x, names): Named,
    seed: u64,
) -> neb::Result<Vec<f32>> {
    let mut values = vec![0.0; x.rows()];
    if transforms.is_plain() {
        density.log_prob(x, &mut values);
        return Ok(values);
    }
    let values = average_log_prob(transforms.is_random(), |draw| {
        let noise = Address::DrawX(draw).noise(seed);
        let u = transforms.forward(x.to_matrix(), names, noise)?;
        density.log_prob(u.view(), &mut values);
        Ok(values.clone())
    })?;
    Ok(add(values, transforms.log_jacobian(x)))
}

/// Log-densities in the user's units.
pub(super) fn add(values: Vec<f32>, log_jacobian: Vec<f64>) -> Vec<f32> {
    let both = values.into_iter().zip(log_jacobian);
    both.map(|(value, log)| (f64::from(value) + log) as f32)
        .collect()
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
