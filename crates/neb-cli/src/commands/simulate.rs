//! `neb simulate`: draws of x and simulated y of a built-in problem.

use std::path::Path;

use anyhow::Result;
use neb::simulator::{self, Problem, Proposal};
use neb::{Matrix, Noise, Purpose};
use neb_data::Array;
use serde::Serialize;

use super::Session;
use crate::args;
use crate::failure::Failure;
use crate::files;

#[derive(Serialize)]
struct Simulated<'a> {
    problem: &'a str,
    from: &'a str,
    seed: u64,
    rows: usize,
    x_columns: usize,
    y_columns: usize,
    output: &'a Path,
}

/// Runs the command.
pub(crate) fn run(args: &args::Simulate, session: Session) -> Result<()> {
    let problem = simulator::by_name(&args.problem)?;
    files::check_data_target(&args.output, session.force)?;
    let (x, y) = draw(args, problem, session.seed())?;
    let arrays = [
        Array::new("x", &[x.rows(), x.cols()], x.values()),
        Array::new("y", &[y.rows(), y.cols()], y.values()),
    ];
    neb_data::write(&args.output, session.force, &arrays)?;
    let simulated = Simulated {
        problem: problem.name(),
        from: &args.from,
        seed: session.seed(),
        rows: x.rows(),
        x_columns: x.cols(),
        y_columns: y.cols(),
        output: &args.output,
    };
    session.output.result(&simulated, |s| {
        format!(
            "{}: {} rows of x ({} columns, from {}) and y ({} columns) of {}, seed {}",
            s.output.display(),
            s.rows,
            s.x_columns,
            s.from,
            s.y_columns,
            s.problem,
            s.seed
        )
    })
}

fn draw(args: &args::Simulate, problem: &dyn Problem, seed: u64) -> Result<(Matrix, Matrix)> {
    let law = |n: usize| match args.from.as_str() {
        "prior" => Some(problem.observations(n, seed)),
        "proposal" => Some(problem.pairs(Proposal::Covering, n, seed)),
        "standard-normal" => Some(problem.pairs(Proposal::StandardNormal, n, seed)),
        _ => None,
    };
    let is_law = matches!(args.from.as_str(), "prior" | "proposal" | "standard-normal");
    if !is_law {
        return corrupt_file(args, problem, seed);
    }
    args.n.and_then(law).ok_or_else(|| {
        Failure::input(
            format!("how many rows of {} are wanted?", args.from),
            "say it with -n, for example -n 15000",
        )
    })
}

/// Simulates y for the x of a file.
fn corrupt_file(
    args: &args::Simulate,
    problem: &dyn Problem,
    seed: u64,
) -> Result<(Matrix, Matrix)> {
    let path = Path::new(&args.from);
    if path.extension().is_none() && !path.exists() {
        return Err(Failure::input(
            format!(
                "x cannot come from `{}`: there is no such law or file",
                args.from
            ),
            "choose prior, proposal, standard-normal, or a file (.npz, .npy, .csv, .parquet)",
        ));
    }
    let x = files::read_points(path, args.x.as_deref())?.values;
    let (rows, dx) = (x.rows(), problem.dims().dx);
    if x.cols() != dx {
        return Err(Failure::input(
            format!(
                "{}: x has {} columns; {} takes {dx}",
                path.display(),
                x.cols(),
                problem.name()
            ),
            "select the columns with --x NAME,NAME,...",
        ));
    }
    let n = args.n.unwrap_or(rows);
    if n > rows {
        return Err(Failure::input(
            format!("{}: holds {rows} rows; {n} were asked for", path.display()),
            "leave -n out to take all",
        ));
    }
    let x = x.view().slice(0..n).to_matrix();
    let y = problem.corrupt(x.view(), Noise::new(seed, Purpose::DrawY, 2));
    Ok((x, y))
}
