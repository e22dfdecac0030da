//! A cell of `neb unfold`, the command for collider data, on the events that the other rows have.
//!
//! It gives every simulated event a weight, so x and y of those events are judged as they are: no surrogate stands between
//! the result and the observations.

use std::borrow::Cow;

use anyhow::Result;
use neb::source::ladder::LadderWatch;
use neb_data::{Array, Dataset, Selection};

use super::cell::{Drawn, Place};
use super::data::{DETECTED, Data, GENERATED, Nature};
use super::plan::{Cell, Setup};
use crate::commands::unfold::WEIGHTS;
use crate::embed::{UnfoldTask, unfold};
use crate::failure::Failure;

/// The observations, beside the run.
const OBSERVED: &str = "observed.npz";

/// The simulated events with their weights; the unfolding is run if its folder is not there.
pub(super) fn weighted<'a>(
    place: &Place,
    cell: &Cell,
    setup: &Setup,
    data: &'a Data,
    watch: &mut LadderWatch,
) -> Result<Drawn<'a>> {
    let Nature::Files(simulation) = &data.nature else {
        return Err(Failure::input(
            "an unfolding needs files of events",
            "only the collider table has this row",
        ));
    };
    let run = place.run();
    if !run.exists() {
        std::fs::create_dir_all(place.folder())?;
        let observed = place.folder().join(OBSERVED);
        let shape = [data.observed.rows(), data.observed.cols()];
        let y = Array::new(DETECTED, &shape, data.observed.values()).with_names(&data.y.names);
        neb_data::write(&observed, true, &[y])?;
        let files = [("--pairs", simulation), ("--observations", &observed)];
        let files = files.map(|(flag, file)| [flag.to_owned(), file.display().to_string()]);
        let columns = ["--x", GENERATED, "--y", DETECTED].map(str::to_owned);
        let mut options: Vec<String> = files.into_iter().flatten().chain(columns).collect();
        options.extend(setup.unfold_options());
        let task = UnfoldTask {
            identity: &options.join(" "),
            options: &options,
            output: &run,
            seed: cell.seed,
            force: false,
        };
        unfold(task, watch)?;
    }
    let file = Dataset::open(run.join(WEIGHTS))?;
    let weights = file.group(&Selection::new("weight"))?;
    Ok(Drawn {
        x: Cow::Borrowed(&data.x.values),
        y: Cow::Borrowed(&data.y.values),
        weights: Some(weights.values().to_vec()),
    })
}
