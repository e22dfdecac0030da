//! What a cell is fitted to and judged against.

use std::path::{Path, PathBuf};

use anyhow::Result;
use neb::simulator::{self, Problem, Proposal};
use neb::{Matrix, Noise, Purpose, Rows};

use super::COLLIDER;
use super::plan::{Cell, Setup};
use crate::args::Columns;
use crate::failure::Failure;
use crate::files::{self, Group, PairsFile};

/// Address of the noise of what is judged, apart from that of fitting and simulating with the same seed.
pub(super) const JUDGED: u64 = 1 << 34;

/// Where the observations come from.
pub(super) enum Nature {
    /// A built-in problem.
    Problem(&'static dyn Problem),
    /// Files, of which this is the simulation's. There is no simulator: the y of a source's draws come from the surrogate.
    Files(PathBuf),
}

/// Pairs, observations, and fresh rows of the truth to judge against.
pub(super) struct Data {
    pub(super) nature: Nature,
    pub(super) x: Group,
    pub(super) y: Group,
    pub(super) observed: Matrix,
    pub(super) true_x: Matrix,
    pub(super) true_y: Matrix,
}

impl Data {
    /// The data of a cell; every row of a repeat has the same.
    pub(super) fn of(cell: &Cell, setup: &Setup, collider: Option<&Path>) -> Result<Self> {
        match collider {
            Some(folder) if cell.problem == COLLIDER => Self::read(folder),
            _ => Self::simulate(simulator::by_name(&cell.problem)?, setup, cell.seed),
        }
    }

    fn simulate(problem: &'static dyn Problem, setup: &Setup, seed: u64) -> Result<Self> {
        let (x, y) = problem.pairs(Proposal::Covering, setup.pairs, seed);
        let (_, observed) = problem.observations(setup.observations, seed);
        let true_x =
            problem.draw_source(setup.observations, Noise::new(seed, Purpose::DrawX, JUDGED));
        let true_y = problem.corrupt(true_x.view(), Noise::new(seed, Purpose::DrawY, JUDGED));
        Ok(Self {
            nature: Nature::Problem(problem),
            x: Group::numbered("x", x),
            y: Group::numbered("y", y),
            observed,
            true_x,
            true_y,
        })
    }

    /// Half of nature's events are observed, the other half is the truth to judge against.
    fn read(folder: &Path) -> Result<Self> {
        let read = |name: &str| {
            let columns = Columns {
                x: Some(GENERATED.to_owned()),
                y: Some(DETECTED.to_owned()),
            };
            PairsFile::read(&folder.join(name), &columns)
        };
        let (pairs, nature) = (read(SIMULATION)?, read(NATURE)?);
        let path = nature.path();
        let expected = "the simulation has";
        files::check_names("x", path, &nature.x, &pairs.x.names, expected)?;
        files::check_names("y", path, &nature.y, &pairs.y.names, expected)?;
        let half = nature.x.values.rows() / 2;
        let part = |rows: Rows, second: bool| {
            let end = if second { rows.rows() } else { half };
            rows.slice(if second { half } else { 0 }..end).to_matrix()
        };
        Ok(Self {
            nature: Nature::Files(folder.join(SIMULATION)),
            observed: part(nature.y.values.view(), false),
            true_x: part(nature.x.values.view(), true),
            true_y: part(nature.y.values.view(), true),
            x: pairs.x,
            y: pairs.y,
        })
    }
}

/// The files of a collider sample, and the arrays in them that are x and y.
const SIMULATION: &str = "proposal.npz";
const NATURE: &str = "nature.npz";
pub(super) const GENERATED: &str = "gen";
pub(super) const DETECTED: &str = "sim";

/// Refuses a folder without them before hours of work.
pub(super) fn check_collider(folder: Option<&PathBuf>) -> Result<()> {
    let Some(folder) = folder else {
        return Err(Failure::input(
            "the collider table needs a sample",
            "pass --collider FOLDER with proposal.npz and nature.npz; examples/collider makes them",
        ));
    };
    for name in [SIMULATION, NATURE] {
        let file = folder.join(name);
        if !file.exists() {
            return Err(Failure::input(
                format!("{}: there is no such file", file.display()),
                "examples/collider makes proposal.npz and nature.npz, with arrays gen and sim",
            ));
        }
    }
    Ok(())
}
