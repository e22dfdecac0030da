//! Files of data and models, as the library takes them.

use std::path::Path;

use anyhow::Result;
use neb::surrogate::{Pairs, Surrogate};
use neb::{Likelihood, Matrix};
use neb_data::{Dataset, Selection, Table};

use crate::args::Columns;
use crate::failure::Failure;

/// The file that holds the surrogate in the folder of a run.
const SURROGATE_OF_RUN: &str = "surrogate.safetensors";

/// A group of columns and their names.
#[derive(Debug)]
pub(crate) struct Group {
    /// The values.
    pub(crate) values: Matrix,
    /// One name per column.
    pub(crate) names: Vec<String>,
}

impl Group {
    fn new(table: Table) -> Self {
        let names = table.names().to_vec();
        Self {
            values: Matrix::from_vec(table.into_values(), names.len()),
            names,
        }
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
        let Some(table) = self.data.optional_group(&selection("weight", name))? else {
            return Ok(None);
        };
        let refuse = |what: String, hint: &str| {
            Failure::input(format!("{}: {what}", self.path().display()), hint)
        };
        let (rows, expected) = (table.values().len(), self.x.values.rows());
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

fn selection(role: &str, names: Option<&str>) -> Selection {
    names.map_or_else(
        || Selection::new(role),
        |names| Selection::named(role, names),
    )
}

/// The surrogate of a file, or of the folder of a run.
pub(crate) fn load_surrogate(path: &Path) -> Result<Surrogate> {
    if !path.is_dir() {
        return Ok(Surrogate::load(path)?);
    }
    let file = path.join(SURROGATE_OF_RUN);
    if !file.exists() {
        return Err(Failure::input(
            format!(
                "{}: this folder is no run: it has no {SURROGATE_OF_RUN}",
                path.display()
            ),
            "name the folder of a run, or a surrogate file",
        ));
    }
    Ok(Surrogate::load(&file)?)
}

/// Checks that a group read from `path` has the columns the model knows as `role`.
pub(crate) fn check_columns(
    role: &str,
    path: &Path,
    group: &Group,
    surrogate: &Surrogate,
) -> Result<()> {
    let (dim, expected) = match role {
        "x" => (surrogate.dims().dx, surrogate.x_names()),
        _ => (surrogate.dims().dy, surrogate.y_names()),
    };
    let list = |names: &[String]| format!("`{}`", names.join("`, `"));
    let sorted = |names: &[String]| {
        let mut names = names.to_vec();
        names.sort();
        names
    };
    let permuted = group.names != expected && sorted(&group.names) == sorted(expected);
    if group.values.cols() != dim || permuted {
        return Err(Failure::input(
            format!(
                "{}: {role} has {} columns ({}); the surrogate was trained with {dim} ({})",
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
