//! Files of data and models, as the library takes them.

use std::path::Path;

use anyhow::Result;
use neb::column::Transforms;
use neb::source::Model;
use neb::surrogate::{Pairs, Surrogate};
use neb::{Matrix, Noise, Purpose};
use neb_data::{Dataset, Selection, Table};
use serde::Serialize;

use crate::args::Columns;
use crate::failure::{self, Failure};
use crate::run_folder::{self, SOURCE, SURROGATE};

/// A group of columns and their names.
#[derive(Debug)]
pub(crate) struct Group {
    /// The values.
    pub(crate) values: Matrix,
    /// One name per column.
    pub(crate) names: Vec<String>,
    /// What turned the user's columns into these values.
    pub(crate) transforms: Transforms,
}

/// Where the random numbers of a transformed table come from, so that no two tables share them.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Address {
    /// x of pairs.
    PairsX,
    /// y of pairs.
    PairsY,
    /// Observations.
    Observations,
    /// Fakes.
    Fakes,
    /// Background.
    Background,
    /// x, in one of the draws behind a probability.
    DrawX(u64),
    /// y, likewise.
    DrawY(u64),
}

impl Address {
    /// The table of random numbers.
    pub(crate) fn noise(self, seed: u64) -> Noise {
        let step = match self {
            Self::PairsX => 0,
            Self::PairsY => 1,
            Self::Observations => 2,
            Self::Fakes => 3,
            Self::Background => 4,
            Self::DrawX(draw) => (1 << 32) + 2 * draw,
            Self::DrawY(draw) => (1 << 32) + 2 * draw + 1,
        };
        Noise::new(seed, Purpose::Dequantise, step)
    }
}

impl Group {
    /// Columns called by a letter and their number, from 1.
    pub(crate) fn numbered(letter: &str, values: Matrix) -> Self {
        let names = (1..=values.cols())
            .map(|number| format!("{letter}{number}"))
            .collect();
        Self::plain(values, names)
    }

    /// Columns in the user's units.
    pub(crate) fn plain(values: Matrix, names: Vec<String>) -> Self {
        Self {
            values,
            names,
            transforms: Transforms::plain(),
        }
    }

    pub(crate) fn new(table: Table) -> Self {
        let names = table.names().to_vec();
        Self::plain(Matrix::from_vec(table.into_values(), names.len()), names)
    }

    /// Columns in the user's units, read from `path`, in the models'.
    pub(crate) fn transformed(
        self,
        transforms: &Transforms,
        noise: Noise,
        path: &Path,
    ) -> Result<Self> {
        let values = transforms
            .forward(self.values, &self.names, noise)
            .map_err(|error| failure::in_file(path, error))?;
        Ok(Self {
            values,
            names: self.names,
            transforms: transforms.clone(),
        })
    }

    /// The values in the user's units.
    pub(crate) fn user_values(&self) -> Matrix {
        self.transforms.inverse(self.values.clone())
    }
}

/// Pairs read from a file.
#[derive(Debug)]
pub(crate) struct PairsFile {
    data: Dataset,
    pub(crate) x: Group,
    pub(crate) y: Group,
}

impl PairsFile {
    /// Reads x and y.
    pub(crate) fn read(path: &Path, columns: &Columns) -> Result<Self> {
        let data = Dataset::open(path)?;
        let [x, y] = data.groups([
            &selection("x", columns.x.as_deref()),
            &selection("y", columns.y.as_deref()),
        ])?;
        Ok(Self {
            data,
            x: Group::new(x),
            y: Group::new(y),
        })
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        self.data.path()
    }

    /// Whether the file has weights by the usual name.
    pub(crate) fn has_weight(&self) -> bool {
        self.data.names().contains(&"weight")
    }

    /// Reads the weights of the rows; none where the file has none and none were named.
    pub(crate) fn weights(&self, name: Option<&str>) -> Result<Option<Vec<f32>>> {
        read_weights(&self.data, name, self.x.values.rows())
    }

    /// The pairs in the models' units.
    pub(crate) fn transformed(self, x: &Transforms, y: &Transforms, seed: u64) -> Result<Self> {
        let path = self.data.path();
        Ok(Self {
            x: self.x.transformed(x, Address::PairsX.noise(seed), path)?,
            y: self.y.transformed(y, Address::PairsY.noise(seed), path)?,
            data: self.data,
        })
    }

    /// The same file with other rows: of x those of events that are in another file too, of y those that were reconstructed.
    pub(crate) fn with_rows(mut self, x: Matrix, y: Matrix) -> Self {
        self.x.values = x;
        self.y.values = y;
        self
    }

    /// As the library takes them.
    pub(crate) fn pairs(&self) -> Pairs<'_> {
        Pairs {
            x: self.x.values.view(),
            y: self.y.values.view(),
            x_names: &self.x.names,
            y_names: &self.y.names,
        }
    }
}

/// Reads the rows of x alone.
pub(crate) fn read_points(path: &Path, x: Option<&str>) -> Result<Group> {
    let table = Dataset::open(path)?.group(&selection("x", x))?;
    Ok(Group::new(table))
}

/// Reads the rows of y alone, and their weights if the file has any by the usual name.
pub(crate) fn read_observations(path: &Path, y: Option<&str>) -> Result<(Group, Option<Vec<f32>>)> {
    let data = Dataset::open(path)?;
    let group = Group::new(data.group(&selection("y", y))?);
    let weights = read_weights(&data, None, group.values.rows())?;
    Ok((group, weights))
}

/// Reads rows of x and their weights, if the file has any.
pub(crate) fn read_weighted(
    path: &Path,
    x: Option<&str>,
    weight: Option<&str>,
) -> Result<(Group, Option<Vec<f32>>)> {
    let data = Dataset::open(path)?;
    let group = Group::new(data.group(&selection("x", x))?);
    let weights = read_weights(&data, weight, group.values.rows())?;
    Ok((group, weights))
}

/// Reads a mask of 0 and 1, one entry per row; none where the file has none by its usual name and none was named.
pub(crate) fn read_mask(
    path: &Path,
    role: &str,
    name: Option<&str>,
    rows: usize,
) -> Result<Option<Vec<bool>>> {
    let Some(table) = Dataset::open(path)?.optional_group(&selection(role, name))? else {
        return Ok(None);
    };
    let values = table.into_values();
    let refuse = |what: String| {
        Failure::input(
            format!(
                "{}: mask `{}`: {what}",
                path.display(),
                name.unwrap_or(role)
            ),
            "give 1 (yes) or 0 (no) for every row, in one column",
        )
    };
    if values.len() != rows {
        return Err(refuse(format!("{} entries for {rows} rows", values.len())));
    }
    if let Some(row) = values.iter().position(|&v| v != 0.0 && v != 1.0) {
        return Err(refuse(format!("row {row} is {}", values[row])));
    }
    Ok(Some(values.into_iter().map(|v| v == 1.0).collect()))
}

/// Reads one weight per row; none where the file has none and none were named.
fn read_weights(data: &Dataset, name: Option<&str>, expected: usize) -> Result<Option<Vec<f32>>> {
    let Some(table) = data.optional_group(&selection("weight", name))? else {
        return Ok(None);
    };
    let refuse = |what: String, hint: &str| {
        Failure::input(format!("{}: {what}", data.path().display()), hint)
    };
    let rows = table.values().len();
    if rows != expected {
        return Err(refuse(
            format!("there are {rows} weights for {expected} rows"),
            "give one weight per row, in one column: --weight NAME",
        ));
    }
    let weights = table.into_values();
    let sum: f64 = weights.iter().map(|&weight| f64::from(weight)).sum();
    if sum <= 0.0 {
        return Err(refuse(
            format!("the weights add up to {sum}; expected more than 0"),
            "check that the right column was chosen: --weight NAME",
        ));
    }
    Ok(Some(weights))
}

fn selection(role: &str, names: Option<&str>) -> Selection {
    names.map_or_else(
        || Selection::new(role),
        |names| Selection::named(role, names),
    )
}

/// Writes JSON to a file, atomically; one that is there is replaced.
pub(crate) fn write_json(path: &Path, content: &impl Serialize) -> Result<()> {
    let json = serde_json::to_vec_pretty(content)?;
    Ok(neb_data::write_atomically(path, true, |file| {
        file.write_all(&json)
    })?)
}

/// The surrogate of a file, or of the folder of a run.
pub(crate) fn load_surrogate(path: &Path) -> Result<Surrogate> {
    Ok(Surrogate::load(&run_folder::model_of(path, SURROGATE)?)?)
}

/// The source of a file, or of the folder of a run, the names of its columns and their transforms.
pub(crate) fn load_source(path: &Path) -> Result<(Model, Vec<String>, Transforms)> {
    Ok(neb::source::load_source(&run_folder::model_of(
        path, SOURCE,
    )?)?)
}

/// Checks that a group read from `path` has the columns the surrogate knows as `role`.
pub(crate) fn check_columns(
    role: &str,
    path: &Path,
    group: &Group,
    surrogate: &Surrogate,
) -> Result<()> {
    let expected = match role {
        "x" => surrogate.x_names(),
        _ => surrogate.y_names(),
    };
    check_names(
        role,
        path,
        group,
        expected,
        "the surrogate was trained with",
    )
}

/// Checks that a group read from `path` has columns of these names, or as many of other names; `whose` says who has them.
pub(crate) fn check_names(
    role: &str,
    path: &Path,
    group: &Group,
    expected: &[String],
    whose: &str,
) -> Result<()> {
    let list = |names: &[String]| format!("`{}`", names.join("`, `"));
    let sorted = |names: &[String]| {
        let mut names = names.to_vec();
        names.sort();
        names
    };
    let dim = expected.len();
    let permuted = group.names != expected && sorted(&group.names) == sorted(expected);
    if group.values.cols() != dim || permuted {
        return Err(Failure::input(
            format!(
                "{}: {role} has {} columns ({}); {whose} {dim} ({})",
                path.display(),
                group.values.cols(),
                list(&group.names),
                list(expected),
            ),
            format!("select these columns, in this order, with --{role} NAME,NAME,..."),
        ));
    }
    Ok(())
}

/// Refuses an output that is not to be called a model file, or that cannot be written.
pub(crate) fn check_model_target(path: &Path, force: bool) -> Result<()> {
    if path
        .extension()
        .is_none_or(|extension| extension != "safetensors")
    {
        return Err(Failure::input(
            format!("{}: models are written as .safetensors", path.display()),
            format!("write to {}", path.with_extension("safetensors").display()),
        ));
    }
    Ok(neb_data::check_target(path, force)?)
}

/// Refuses an output that is no format of data, or that cannot be written.
pub(crate) fn check_data_target(path: &Path, force: bool) -> Result<()> {
    neb_data::Format::of(path)?;
    Ok(neb_data::check_target(path, force)?)
}
