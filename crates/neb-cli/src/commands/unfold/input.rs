//! The files of an unfolding, as events in the models' units, and what is needed to come back to the user's.

use std::path::Path;

use anyhow::Result;
use neb::column::Transforms;
use neb::unfold::Events;
use neb::{Matrix, Rows};

use crate::args::{self, ConfigSource, SourceFlags, Stages, SurrogateKeys};
use crate::commands::{Session, climbing};
use crate::config::Config;
use crate::failure::{self, Failure};
use crate::files::{self, Address, Group, PairsFile};

/// Everything that was read.
pub(super) struct Input {
    /// The events, in the models' units.
    pub(super) events: Events,
    /// x of the produced events, in the user's units.
    pub(super) x: Matrix,
    /// y of the reconstructed events, in the user's units.
    pub(super) matched: Matrix,
    /// y of the fakes, of the background and of the data, in the user's units.
    pub(super) fakes: Matrix,
    pub(super) background: Matrix,
    pub(super) data: Matrix,
    pub(super) x_names: Vec<String>,
    pub(super) y_names: Vec<String>,
    pub(super) x_transforms: Transforms,
    pub(super) y_transforms: Transforms,
    /// Observations outside the range of the simulation, in words, and their share by the columns of y.
    pub(super) outside: Option<String>,
    pub(super) outside_shares: Vec<(String, f64)>,
}

/// Rows of y and their weights; weights of 1 where the file has none.
fn weighted(read: (Group, Option<Vec<f32>>)) -> (Group, Vec<f32>) {
    let (group, weights) = read;
    let rows = group.values.rows();
    (group, weights.unwrap_or_else(|| vec![1.0; rows]))
}

impl Input {
    pub(super) fn read(args: &args::Unfold, session: Session) -> Result<Self> {
        let pairs = PairsFile::read(&args.pairs, &args.columns)?;
        let rows = pairs.x.values.rows();
        let weights = pairs.weights(args.weight.as_deref())?;
        let mut weights = weights.unwrap_or_else(|| vec![1.0; rows]);
        let name = args.reconstructed.as_deref();
        let mask = files::read_mask(&args.pairs, "reconstructed", name, rows)?;
        let mut reconstructed = mask.unwrap_or_else(|| vec![true; rows]);

        let named = args.observed_y.as_deref().or(args.columns.y.as_deref());
        let (data, data_weights) = weighted(files::read_observations(&args.observations, named)?);
        let of_pairs = "the pairs have";
        files::check_names("y", &args.observations, &data, &pairs.y.names, of_pairs)?;
        let y_sample = |path: &Option<std::path::PathBuf>| -> Result<Option<(Group, Vec<f32>)>> {
            let Some(path) = path else {
                return Ok(None);
            };
            let sample = weighted(files::read_observations(path, args.columns.y.as_deref())?);
            files::check_names("y", path, &sample.0, &pairs.y.names, of_pairs)?;
            Ok(Some(sample))
        };
        let fakes = y_sample(&args.fakes)?;
        let background = y_sample(&args.background)?;

        let mut x = pairs.x.values.clone().into_values();
        if let Some(path) = &args.missed {
            let read = files::read_weighted(path, args.columns.x.as_deref(), None)?;
            let (missed, missed_weights) = weighted(read);
            files::check_names("x", path, &missed, &pairs.x.names, of_pairs)?;
            reconstructed.extend(vec![false; missed.values.rows()]);
            x.extend(missed.values.into_values());
            weights.extend(missed_weights);
        }
        let x = Matrix::from_vec(x, pairs.x.names.len());
        let seen: Vec<u32> = (0..rows as u32)
            .filter(|&row| reconstructed[row as usize])
            .collect();
        let matched = pairs.y.values.view().gather(&seen);

        if matched.rows() == 0 {
            return Err(Failure::input(
                format!(
                    "{}: no event is marked as reconstructed",
                    args.pairs.display()
                ),
                "the mask is 1 where an event was reconstructed: check that it is the right column",
            ));
        }
        let simulated = pairs.with_rows(x.clone(), matched.clone());
        let ranges = climbing::ranges(matched.view());
        let outside = climbing::check_range(Some(&args.observations), &data, &ranges)?;
        let outside_shares = climbing::shares_outside(&data, &data_weights, &ranges);
        let (x_transforms, y_transforms) = transforms(args, &simulated, &data, session)?;
        let (x_names, y_names) = (simulated.x.names, simulated.y.names);
        let seed = session.seed();
        let to_y = |rows: &Matrix, address: Address, path: &Path| {
            forward(&y_transforms, rows, &y_names, address, seed, path)
        };
        let empty = || (Group::plain(Matrix::default(), y_names.clone()), Vec::new());
        let (fakes, fake_weights) = fakes.unwrap_or_else(empty);
        let (background, background_weights) = background.unwrap_or_else(empty);
        let (fakes, background) = (fakes.values, background.values);
        let events = Events {
            produced: forward(
                &x_transforms,
                &x,
                &x_names,
                Address::PairsX,
                seed,
                &args.pairs,
            )?,
            produced_weights: weights,
            reconstructed,
            matched: to_y(&matched, Address::PairsY, &args.pairs)?,
            fakes: match &args.fakes {
                Some(path) => to_y(&fakes, Address::Fakes, path)?,
                None => Matrix::default(),
            },
            fake_weights,
            background: match &args.background {
                Some(path) => to_y(&background, Address::Background, path)?,
                None => Matrix::default(),
            },
            background_weights,
            data: to_y(&data.values, Address::Observations, &args.observations)?,
            data_weights,
        };
        events
            .check()
            .map_err(|error| failure::in_file(&args.pairs, error))?;
        Ok(Self {
            events,
            x,
            matched,
            fakes,
            background,
            data: data.values,
            x_names,
            y_names,
            x_transforms,
            y_transforms,
            outside,
            outside_shares,
        })
    }
}

/// What is declared or found, followed by normal scores: sharp edges and long tails are no matter then.
fn transforms(
    args: &args::Unfold,
    simulated: &PairsFile,
    data: &Group,
    session: Session,
) -> Result<(Transforms, Transforms)> {
    let source = ConfigSource {
        transform: args.transform.clone(),
        ..ConfigSource::default()
    };
    let mut config = Config::resolve(
        session.seed_flag,
        Stages::Surrogate,
        &source,
        &SurrogateKeys::default(),
        &SourceFlags::default(),
    )?;
    let chosen = config.choose_transforms(simulated, Some(data))?;
    climbing::say(&chosen.notes, session);
    let seed = session.seed();
    let scored = |transforms: &Transforms, group: &Group, address: Address| {
        let (values, names) = (&group.values, &group.names);
        let u = forward(transforms, values, names, address, seed, simulated.path())?;
        let scored = transforms.scored(u.view(), names);
        scored.map_err(|error| failure::in_file(simulated.path(), error))
    };
    Ok((
        scored(&chosen.x, &simulated.x, Address::PairsX)?,
        scored(&chosen.y, &simulated.y, Address::PairsY)?,
    ))
}

fn forward(
    transforms: &Transforms,
    rows: &Matrix,
    names: &[String],
    address: Address,
    seed: u64,
    path: &Path,
) -> Result<Matrix> {
    transforms
        .forward(rows.clone(), names, address.noise(seed))
        .map_err(|error| failure::in_file(path, error))
}

/// A column of a table.
pub(super) fn column(rows: Rows, column: usize) -> Vec<f32> {
    (0..rows.rows()).map(|row| rows.row(row)[column]).collect()
}
