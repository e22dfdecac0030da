//! `neb sample`: draws from a fitted model.

use std::path::Path;

use anyhow::Result;
use neb::{Likelihood, Noise, Purpose};
use neb_data::{Array, Dataset};
use serde::Serialize;

use super::Session;
use crate::args;
use crate::files::{self, Address, Group};
use crate::run_folder::{self, PARTICLES};

/// Address of the noise of these draws, apart from that of fitting and simulating with the same seed.
pub(crate) const STEP: u64 = 1 << 32;

#[derive(Serialize)]
struct Drawn<'a> {
    rows: usize,
    seed: u64,
    output: &'a Path,
}

/// Runs the command.
pub(crate) fn run(args: &args::Sample, session: Session) -> Result<()> {
    files::check_data_target(&args.output, session.force)?;
    if args.weights {
        return particles(args, session);
    }
    let (x, step) = match &args.points {
        Some(path) => (files::read_points(path, args.x.as_deref())?, 0),
        None => (draw(args, session.seed())?, STEP),
    };
    let (user_x, x_names) = (x.user_values(), x.names.clone());
    let of_x =
        Array::new("x", &[user_x.rows(), user_x.cols()], user_x.values()).with_names(&x_names);
    if !args.push {
        neb_data::write(&args.output, session.force, &[of_x])?;
        return report(args, x.values.rows(), "x drawn from q(x)", session);
    }
    let surrogate = files::load_surrogate(&args.model)?;
    let origin = args.points.as_ref().unwrap_or(&args.model);
    files::check_columns("x", origin, &x, &surrogate)?;
    let x = match args.points {
        Some(_) => {
            let noise = Address::PairsX.noise(session.seed());
            x.transformed(surrogate.x_transforms(), noise, origin)?
        }
        None => x,
    };
    let noise = Noise::new(session.seed(), Purpose::DrawY, step);
    let y = surrogate.sample(x.values.view(), noise);
    let y = surrogate.y_transforms().inverse(y);
    let of_y = Array::new("y", &[y.rows(), y.cols()], y.values()).with_names(surrogate.y_names());
    neb_data::write(&args.output, session.force, &[of_x, of_y])?;
    let what = match args.points {
        Some(_) => "x and y drawn from q(y|x)",
        None => "x and y drawn from q(x) q(y|x)",
    };
    report(args, y.rows(), what, session)
}

/// Rows of x drawn from the source.
fn draw(args: &args::Sample, seed: u64) -> Result<Group> {
    let (source, names, transforms) = files::load_source(&args.model)?;
    let noise = Noise::new(seed, Purpose::SourceSample, STEP);
    let values = source.source().sample(args.n.unwrap_or(0), noise);
    Ok(Group {
        values,
        names,
        transforms,
    })
}

/// Writes the particles of a run with their weights.
fn particles(args: &args::Sample, session: Session) -> Result<()> {
    let path = run_folder::model_of(&args.model, PARTICLES)?;
    let x = files::read_points(&path, None)?;
    let weights = Dataset::open(&path)?.array("weight")?.values;
    let arrays = [
        Array::new("x", &[x.values.rows(), x.values.cols()], x.values.values())
            .with_names(&x.names),
        Array::new("weight", &[weights.len()], &weights[..]),
    ];
    neb_data::write(&args.output, session.force, &arrays)?;
    report(args, weights.len(), "x of the pairs with weights", session)
}

fn report(args: &args::Sample, rows: usize, what: &str, session: Session) -> Result<()> {
    let drawn = Drawn {
        rows,
        seed: session.seed(),
        output: &args.output,
    };
    let seeded = if args.weights {
        String::new()
    } else {
        format!(", seed {}", session.seed())
    };
    session.output.result(&drawn, |d| {
        format!("{}: {} rows of {what}{seeded}", d.output.display(), d.rows)
    })
}
