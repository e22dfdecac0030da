//! `neb sample`: draws from a fitted model.

use std::path::Path;

use anyhow::Result;
use neb::{Likelihood, Noise, Purpose};
use neb_data::Array;
use serde::Serialize;

use super::Session;
use crate::args;
use crate::files;

#[derive(Serialize)]
struct Drawn<'a> {
    rows: usize,
    seed: u64,
    output: &'a Path,
}

/// Draws one y for each row of x.
pub(crate) fn run(args: &args::Sample, session: Session) -> Result<()> {
    files::check_data_target(&args.output, session.force)?;
    let surrogate = files::load_surrogate(&args.model)?;
    let x = files::read_points(&args.points, args.x.as_deref())?;
    files::check_columns("x", &args.points, &x, &surrogate)?;
    let noise = Noise::new(session.seed(), Purpose::DrawY, 0);
    let y = surrogate.sample(x.values.view(), noise);
    let arrays = [
        Array::new("x", &[x.values.rows(), x.values.cols()], x.values.values())
            .with_names(&x.names),
        Array::new("y", &[y.rows(), y.cols()], y.values()).with_names(surrogate.y_names()),
    ];
    neb_data::write(&args.output, session.force, &arrays)?;
    let drawn = Drawn {
        rows: y.rows(),
        seed: session.seed(),
        output: &args.output,
    };
    session.output.result(&drawn, |d| {
        format!(
            "{}: {} rows of x and y drawn from q(y|x), seed {}",
            d.output.display(),
            d.rows,
            d.seed
        )
    })
}
