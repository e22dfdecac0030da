//! `neb compare`: do two samples follow the same law? A difference is a result, not a failure.

use std::path::Path;

use anyhow::Result;
use neb::Matrix;
use neb::check::{self, Band, CompareOptions, Comparison, Estimate, Sample};

use super::Session;
use crate::args;
use crate::failure::Failure;
use crate::files::{self, Group};

/// Runs the command.
pub(crate) fn run(args: &args::Compare, session: Session) -> Result<()> {
    let read = |path: &Path| -> Result<(Group, Option<Vec<f32>>)> {
        let (group, weights) = files::read_weighted(path, args.x.as_deref(), None)?;
        let group = match &args.columns {
            Some(columns) => choose(path, &group, columns)?,
            None => group,
        };
        Ok((group, weights))
    };
    let (a, a_weights) = read(&args.a)?;
    let (b, b_weights) = read(&args.b)?;
    let whose = format!("{} has", args.a.display());
    files::check_names("x", &args.b, &b, &a.names, &whose)?;
    let options = CompareOptions {
        seed: session.seed(),
        ..CompareOptions::default()
    };
    let comparison = check::compare(
        Sample {
            rows: a.values.view(),
            weights: a_weights.as_deref(),
        },
        Sample {
            rows: b.values.view(),
            weights: b_weights.as_deref(),
        },
        &options,
    )?;
    session.output.result(&comparison, text)
}

/// The columns of these names.
fn choose(path: &Path, group: &Group, columns: &[String]) -> Result<Group> {
    let mut numbers = Vec::new();
    for name in columns {
        let number = group.names.iter().position(|known| known == name);
        numbers.push(number.ok_or_else(|| {
            let hint = match neb_data::nearest(name, &group.names) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "--x chooses the array, --columns some of its columns".to_owned(),
            };
            Failure::input(
                format!(
                    "{}: there is no column `{name}` among `{}`",
                    path.display(),
                    group.names.join("`, `")
                ),
                hint,
            )
        })?);
    }
    let values = &group.values;
    let chosen = (0..values.rows())
        .flat_map(|row| numbers.iter().map(move |&column| values.row(row)[column]));
    let values = Matrix::from_vec(chosen.collect(), numbers.len());
    Ok(Group::plain(values, columns.to_vec()))
}

fn text(comparison: &Comparison) -> String {
    let band = |null: Band| format!("{:.4} to {:.4}", null.low, null.high);
    let estimate = |name: &str, e: Estimate| {
        let value = format!("{:.4} ± {:.4}", e.value, e.standard_error);
        format!("{name:<20} {value:>17}   {:>18}\n", band(e.null))
    };
    let distance = |name: &str, value: f64, null: Band, p: f64| {
        let value = format!("{value:.4}          ");
        format!("{name:<20} {value:>17}   {:>18}   p = {p:.3}\n", band(null))
    };
    let (wasserstein, mmd) = (&comparison.sliced_wasserstein, &comparison.mmd);
    let shared = match comparison.shared_rows {
        0 => String::new(),
        rows => format!("\n{rows} rows are in both files: the AUC is too low"),
    };
    let judges: String = comparison
        .classifiers
        .iter()
        .map(|judge| {
            estimate(&format!("AUC, {}", judge.classifier), judge.auc)
                + &estimate(&format!("C2ST, {}", judge.classifier), judge.accuracy)
        })
        .collect();
    format!(
        "{:<20} {:>17}   {:>18}\n{judges}{}{}{}{}{} and {} rows: {}{shared}",
        "",
        "value",
        "if nothing differs",
        estimate("AUC, best", comparison.auc),
        estimate("C2ST, best", comparison.accuracy),
        distance(
            "sliced Wasserstein",
            wasserstein.distance,
            wasserstein.null,
            wasserstein.p_value
        ),
        distance("MMD", mmd.distance, mmd.null, mmd.p_value),
        comparison.rows[0],
        comparison.rows[1],
        if comparison.differs {
            "the samples differ"
        } else {
            "no difference was found"
        }
    )
}
