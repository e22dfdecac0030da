//! `neb reproduce`: the paper's tables, our values beside the paper's.
//!
//! Cells are independent and kept as they finish: the same command goes on where it was stopped.

mod cell;
mod data;
mod figures;
mod jobs;
mod page;
mod paper;
mod plan;
mod table;
mod unfolded;

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Result;
use neb::simulator;
use serde::Serialize;

pub(crate) use self::plan::Table;

use self::cell::{Measured, Place};
use self::data::Data;
use self::figures::Picture;
use self::jobs::Job;
use self::plan::{Cell, Estimator, Row, Setup, cells};
use self::table::{Block, blocks, markdown};
use super::Session;
use crate::args;
use crate::embed::{FittedSource, load_surrogate};
use crate::failure::Failure;
use crate::files::write_json;
use crate::interrupt;

/// The name of the collider sample among the problems.
const COLLIDER: &str = "collider";
/// Problems in the order of the paper's tables.
const PROBLEMS: [&str; 3] = ["slcp", "two-moons", "ik"];

/// The set of x behind a few observations.
#[derive(Serialize)]
struct Few {
    observations: usize,
    /// Share of the source's draws that may have produced an observation.
    plausible: f64,
}

/// Everything that was found.
#[derive(Serialize)]
struct Outcome {
    setup: Setup,
    seed: u64,
    repeats: u64,
    version: &'static str,
    threads: usize,
    command: String,
    blocks: Vec<Block>,
    few: Vec<Few>,
    cells: Vec<Measured>,
    #[serde(skip)]
    pictures: Vec<Picture>,
}

/// Runs the command.
pub(crate) fn run(args: &args::Reproduce, session: Session) -> Result<()> {
    let tables: Vec<Table> = match args.table {
        Some(table) => vec![table],
        None => Table::ALL
            .into_iter()
            .filter(|table| *table != Table::Collider || args.collider.is_some())
            .collect(),
    };
    if tables.contains(&Table::Collider) {
        data::check_collider(args.collider.as_ref())?;
    }
    let problems = match &args.only {
        Some(name) if name == COLLIDER => {
            return Err(Failure::input(
                "--only collider: the collider sample is a table, not one of the problems of the others",
                "run `neb reproduce collider --collider FOLDER`",
            ));
        }
        Some(name) => vec![simulator::by_name(name)?.name()],
        None => PROBLEMS.to_vec(),
    };
    let setup = Setup {
        preset: args.preset,
        pairs: args.pairs,
        observations: args.observations,
        epochs: args.epochs,
    };
    let cells = cells(&tables, &problems, session.seed(), args.repeats);
    let wanted = of_rows(&cells, &args.rows)?;
    let bench = Bench {
        root: &args.output,
        setup: &setup,
        collider: args.collider.as_deref(),
        session,
    };
    interrupt::listen()?;
    bench.measure(&wanted)?;
    let measured = bench.finished(&cells)?;
    let mut pictures = bench.pictures(&measured)?;
    let mut few = Vec::new();
    if tables.contains(&Table::FewObservations) && problems.contains(&"two-moons") {
        for observations in [1, 2] {
            let (picture, plausible) = bench.few(observations)?;
            pictures.push(picture);
            few.push(Few {
                observations,
                plausible,
            });
        }
    }
    let outcome = Outcome {
        blocks: blocks(&tables, &cells, &measured),
        few,
        cells: measured,
        pictures,
        seed: session.seed(),
        repeats: args.repeats,
        version: env!("CARGO_PKG_VERSION"),
        threads: rayon::current_num_threads(),
        command: typed(),
        setup,
    };
    write_json(&args.output.join("results.json"), &outcome)?;
    let page = page::page(&outcome, &args.output);
    neb_data::write_atomically(args.output.join("results.md"), true, |file| {
        file.write_all(page.as_bytes())
    })?;
    session.output.result(&outcome, |outcome| {
        let tables = outcome.blocks.iter();
        let tables = tables.map(|block| format!("{}\n{}", block.title, markdown(block)));
        format!(
            "{}\nthe page, with figures: {}",
            tables.collect::<Vec<_>>().join("\n"),
            args.output.join("results.md").display()
        )
    })
}

/// The cells of the rows that were asked for; all of them without a name.
fn of_rows<'a>(cells: &'a [Cell], rows: &[String]) -> Result<Vec<&'a Cell>> {
    let known: BTreeSet<String> = cells.iter().map(|cell| cell.row.slug()).collect();
    if let Some(unknown) = rows.iter().find(|row| !known.contains(*row)) {
        let known: Vec<String> = known.into_iter().collect();
        return Err(Failure::input(
            format!("--rows: the table has no row `{unknown}`"),
            format!("choose from {}", known.join(", ")),
        ));
    }
    let asked = |cell: &&Cell| rows.is_empty() || rows.contains(&cell.row.slug());
    Ok(cells.iter().filter(asked).collect())
}

/// The command line, without the program's folder.
fn typed() -> String {
    let words = std::env::args().skip(1);
    let words: Vec<String> = ["neb".to_owned()].into_iter().chain(words).collect();
    words.join(" ")
}

/// What every cell needs.
struct Bench<'a> {
    root: &'a Path,
    setup: &'a Setup,
    collider: Option<&'a Path>,
    session: Session,
}

impl Bench<'_> {
    fn place(&self, cell: &Cell) -> Place {
        Place::of(self.root, cell, self.setup)
    }

    fn data(&self, cell: &Cell) -> Result<Data> {
        Data::of(cell, self.setup, self.collider)
    }

    /// Runs the cells that are not there, in parallel.
    fn measure(&self, cells: &[&Cell]) -> Result<()> {
        let mut missing = Vec::new();
        for &cell in cells {
            if !self.place(cell).is_complete(cell, self.setup)? {
                missing.push(cell);
            }
        }
        let quiet = self.session.output.quiet;
        if missing.len() < cells.len() {
            let there = cells.len() - missing.len();
            self.session.output.note(format!(
                "{there} of {} cells are there already",
                cells.len()
            ));
        }
        let mut seen = BTreeSet::new();
        let first_of_its_surrogate = |cell: &&&Cell| {
            let file = self.place(cell).surrogate();
            cell.row.shares_surrogate() && !file.exists() && seen.insert(file)
        };
        let surrogates: Vec<Job<&Cell>> = missing
            .iter()
            .filter(first_of_its_surrogate)
            .map(|cell| self.job(cell, "surrogate", 1.0))
            .collect();
        jobs::run(&surrogates, quiet, |cell, watch| {
            let place = self.place(cell);
            cell::surrogate(&place, cell, self.setup, &self.data(cell)?, watch)
        })?;
        let mut fits: Vec<Job<&Cell>> = missing
            .into_iter()
            .map(|cell| self.job(cell, &cell.row.title(), self.setup.cost(cell)))
            .collect();
        // The longest first: none of them is left for the end, when the other threads have nothing to do.
        fits.sort_by(|a, b| b.cost.total_cmp(&a.cost));
        jobs::run(&fits, quiet, |cell, watch| {
            let place = self.place(cell);
            cell::measure(&place, cell, self.setup, &self.data(cell)?, watch)
        })
    }

    /// The cells that are there, whichever command ran them.
    fn finished(&self, cells: &[Cell]) -> Result<Vec<Measured>> {
        let there = |cell| self.place(cell).finished(cell, self.setup).transpose();
        cells.iter().filter_map(there).collect()
    }

    fn job<'c>(&self, cell: &'c Cell, what: &str, cost: f64) -> Job<&'c Cell> {
        Job {
            name: format!("{} {}: {what}", cell.problem, cell.repeat),
            cost,
            work: cell,
        }
    }

    /// The first repeat's pictures of L_1024 and of our own row, where their runs are there: results alone may have come from
    /// elsewhere.
    fn pictures(&self, measured: &[Measured]) -> Result<Vec<Picture>> {
        let shown = |cell: &&Cell| {
            let estimator = cell.row.estimator;
            cell.repeat == 1 && matches!(estimator, Estimator::Mc(1024) | Estimator::Auto)
        };
        let folder = self.root.join("figures");
        std::fs::create_dir_all(&folder)?;
        let mut pictures = Vec::new();
        for cell in measured.iter().map(|m| &m.cell).filter(shown) {
            let place = self.place(cell);
            if !place.run().exists() {
                continue;
            }
            let data = self.data(cell)?;
            pictures.extend(figures::of_cell(&place, cell, self.setup, &data, &folder)?);
        }
        Ok(pictures)
    }

    /// A source from one or two observations of two-moons, with the surrogate of the first repeat.
    fn few(&self, observations: usize) -> Result<(Picture, f64)> {
        let cell = Cell {
            problem: "two-moons".to_owned(),
            row: Row {
                estimator: Estimator::Auto,
                symmetric: false,
            },
            repeat: 1,
            seed: self.session.seed(),
            calibrated: false,
        };
        let (place, data) = (self.place(&cell), self.data(&cell)?);
        let mut watch = |_: &str, _: &neb::train::Progress| interrupt::check();
        if !place.surrogate().exists() {
            cell::surrogate(&place, &cell, self.setup, &data, &mut watch)?;
        }
        let surrogate = load_surrogate(&place.surrogate())?;
        let y = data.observed.view().slice(0..observations);
        let run = self.root.join(format!("few-{observations}"));
        let settings = format!("seed = {}\n", cell.seed);
        cell::source(&run, &settings, &surrogate, &data, y, &mut watch)?;
        let source = FittedSource::load(&run)?;
        let folder = self.root.join("figures");
        std::fs::create_dir_all(&folder)?;
        figures::of_few(&source, y, cell.seed, &folder)
    }
}
