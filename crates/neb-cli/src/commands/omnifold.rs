//! `neb omnifold`: the OmniFold files of a generator as one file of pairs.

use std::path::{Path, PathBuf};

use anyhow::Result;
use neb_data::{Array, Degenerate, OBSERVABLES, omnifold_files, read_omnifold};
use serde::Serialize;

use super::Session;
use crate::args;
use crate::files;

#[derive(Serialize)]
struct Converted<'a> {
    rows: usize,
    files: Vec<PathBuf>,
    no_width: usize,
    no_groomed_mass: usize,
    filled: bool,
    output: &'a Path,
}

/// Runs the command.
pub(crate) fn run(args: &args::Omnifold, session: Session) -> Result<()> {
    files::check_data_target(&args.output, session.force)?;
    let mut all = Vec::new();
    for path in &args.paths {
        all.extend(omnifold_files(path)?);
    }
    let degenerate = match args.fill {
        true => Degenerate::Fill { floor: args.floor },
        false => Degenerate::Drop,
    };
    let jets = read_omnifold(&all, degenerate)?;
    let (rows, columns) = (jets.rows(), OBSERVABLES.len());
    let names = OBSERVABLES.map(str::to_owned);
    let arrays = [("x", &jets.generated), ("y", &jets.simulated)]
        .map(|(name, values)| Array::new(name, &[rows, columns], &values[..]).with_names(&names));
    neb_data::write(&args.output, session.force, &arrays)?;
    let converted = Converted {
        rows,
        files: jets.files,
        no_width: jets.no_width,
        no_groomed_mass: jets.no_groomed_mass,
        filled: args.fill,
        output: &args.output,
    };
    session.output.result(&converted, text)
}

fn text(converted: &Converted) -> String {
    format!(
        "{}: {} rows of x (gen) and y (sim) from {} files; {}: {} without a width, {} without a groomed mass",
        converted.output.display(),
        converted.rows,
        converted.files.len(),
        if converted.filled {
            "filled"
        } else {
            "left out"
        },
        converted.no_width,
        converted.no_groomed_mass
    )
}
