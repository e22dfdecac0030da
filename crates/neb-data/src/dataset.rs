//! A file of data: what it holds, and the groups of columns read from it.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use crate::flaws::Flaws;
use crate::format::{Format, recognise};
use crate::npy::{NdArray, read_array, shape_text};
use crate::select::{Selection, numbered_names};
use crate::table::Table;
use crate::{Error, Result, csv, npz};

/// A file that was looked at but not yet read.
#[derive(Debug)]
pub struct Dataset {
    path: PathBuf,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Npz(Vec<npz::Entry>),
    Npy,
    Csv(csv::Layout),
    #[cfg(feature = "parquet")]
    Parquet(Vec<String>),
}

impl Dataset {
    /// Looks at a file: its format, and the names of its arrays or columns.
    ///
    /// # Errors
    /// If the file is missing, is not what its extension says, or is damaged.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let content = match recognise(path)? {
            Format::Npz => Content::Npz(npz::entries(path)?),
            Format::Npy => Content::Npy,
            Format::Csv => Content::Csv(csv::layout(path)?),
            #[cfg(feature = "parquet")]
            Format::Parquet => Content::Parquet(crate::parquet::columns(path)?),
            #[cfg(not(feature = "parquet"))]
            Format::Parquet => return Err(crate::format::without_parquet(path)),
        };
        Ok(Self {
            path: path.to_owned(),
            content,
        })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Names of the arrays (npz) or columns (csv with a header, parquet); none where the file has no names.
    pub fn names(&self) -> Vec<&str> {
        match &self.content {
            Content::Npz(entries) => entries.iter().map(|entry| entry.name.as_str()).collect(),
            Content::Npy => Vec::new(),
            Content::Csv(layout) => layout.header().iter().map(String::as_str).collect(),
            #[cfg(feature = "parquet")]
            Content::Parquet(columns) => columns.iter().map(String::as_str).collect(),
        }
    }

    /// Reads the columns that play one part.
    ///
    /// # Errors
    /// If they are absent, are not numbers, have no rows, or hold values that are not finite as `f32`.
    pub fn group(&self, selection: &Selection) -> Result<Table> {
        self.groups([selection]).map(|[table]| table)
    }

    /// Reads several groups, in one pass where the format allows, and checks that they have the same number of rows.
    ///
    /// # Errors
    /// As [`Dataset::group`]; also if the numbers of rows differ.
    pub fn groups<const N: usize>(&self, selections: [&Selection; N]) -> Result<[Table; N]> {
        let tables = match &self.content {
            Content::Npz(entries) => selections
                .iter()
                .map(|selection| self.read_npz(entries, selection))
                .collect::<Result<Vec<Table>>>()?,
            Content::Npy => self.read_npy(&selections)?,
            Content::Csv(layout) => csv::read(&self.path, layout, &selections)?,
            #[cfg(feature = "parquet")]
            Content::Parquet(columns) => crate::parquet::read(&self.path, columns, &selections)?,
        };
        for pair in tables.windows(2) {
            pair[0].check_same_rows(&pair[1])?;
        }
        Ok(tables.try_into().expect("one table per selection"))
    }

    /// Reads a group that may be absent: `None` if it was left to custom and the file has no such name (a file without
    /// names never has one).
    ///
    /// # Errors
    /// As [`Dataset::group`], for a group that is there or was asked for by name.
    pub fn optional_group(&self, selection: &Selection) -> Result<Option<Table>> {
        let there = match &self.content {
            Content::Npz(entries) => entries.iter().any(|entry| entry.name == selection.role()),
            _ => {
                let names: Vec<String> = self.names().into_iter().map(str::to_owned).collect();
                selection.resolve(&names).is_ok()
            }
        };
        if there || !selection.is_usual() {
            self.group(selection).map(Some)
        } else {
            Ok(None)
        }
    }

    /// Reads one array of an npz file (or the array of an npy file, whatever the name) with all its dimensions. Its values may
    /// be anything that `f32` can hold, NaN and infinity included.
    ///
    /// # Errors
    /// If the array is absent or damaged, or the file holds columns rather than arrays.
    pub fn array(&self, name: &str) -> Result<NdArray> {
        let mut ignored = Flaws::default();
        match &self.content {
            Content::Npz(entries) => {
                let entry = npz::find(&self.path, entries, name, &Selection::new(name))?;
                npz::read(&self.path, entry, &mut ignored)
            }
            Content::Npy => self.read_single(&mut ignored),
            _ => Err(Error::file(
                &self.path,
                "holds columns; expected a file of arrays",
                "use an .npz file",
            )),
        }
    }

    fn read_npz(&self, entries: &[npz::Entry], selection: &Selection) -> Result<Table> {
        let mut parts = Vec::new();
        for name in selection.wanted() {
            let entry = npz::find(&self.path, entries, name, selection)?;
            let mut flaws = Flaws::default();
            let array = npz::read(&self.path, entry, &mut flaws)?;
            let names = match array.shape[..] {
                [_, cols] => npz::column_names(&self.path, entries, name, cols)?,
                _ => None,
            };
            parts.push(self.tabulate(array, name, &format!("array `{name}`"), names, &flaws)?);
        }
        self.side_by_side(parts, selection)
    }

    fn read_npy(&self, selections: &[&Selection]) -> Result<Vec<Table>> {
        let [selection] = selections else {
            let roles: Vec<&str> = selections
                .iter()
                .map(|selection| selection.role())
                .collect();
            return Err(Error::file(
                &self.path,
                format!("holds one array; expected {}", crate::names::list(&roles)),
                "put the arrays into one .npz file: np.savez(\"data.npz\", x=x, y=y)",
            ));
        };
        let mut flaws = Flaws::default();
        let array = self.read_single(&mut flaws)?;
        self.tabulate(array, selection.role(), "the array", None, &flaws)
            .map(|table| vec![table])
    }

    fn read_single(&self, flaws: &mut Flaws) -> Result<NdArray> {
        let failed = |refused| Error::reading(&self.path, refused);
        let file = File::open(&self.path).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        read_array(&mut BufReader::new(file), length, flaws)
            .map_err(|problem| problem.of(&self.path, "the array"))
    }

    /// An array of one or two dimensions as a table.
    fn tabulate(
        &self,
        array: NdArray,
        name: &str,
        subject: &str,
        names: Option<Vec<String>>,
        flaws: &Flaws,
    ) -> Result<Table> {
        let names = match array.shape[..] {
            [_] => vec![name.to_owned()],
            [_, cols] => names.unwrap_or_else(|| numbered_names(name, cols)),
            _ => {
                return Err(Error::file(
                    &self.path,
                    format!(
                        "{subject} has {} dimensions ({}); expected 1 or 2: rows, or rows and columns",
                        array.shape.len(),
                        shape_text(&array.shape)
                    ),
                    "reshape it before saving: values.reshape(len(values), -1)",
                ));
            }
        };
        if array.values.is_empty() {
            return Err(Error::file(
                &self.path,
                format!("{subject} is empty ({})", shape_text(&array.shape)),
                "write at least one row and one column",
            ));
        }
        flaws.check(&self.path, subject, &names, |row| format!("row {row}"))?;
        Ok(Table::new(&self.path, subject, names, array.values))
    }

    /// The columns of several tables as one.
    fn side_by_side(&self, mut parts: Vec<Table>, selection: &Selection) -> Result<Table> {
        if parts.len() == 1 {
            return Ok(parts.remove(0));
        }
        for pair in parts.windows(2) {
            pair[0].check_same_rows(&pair[1])?;
        }
        let names: Vec<String> = parts
            .iter()
            .flat_map(|part| part.names().to_vec())
            .collect();
        let mut values = Vec::with_capacity(parts[0].rows() * names.len());
        for row in 0..parts[0].rows() {
            for part in &parts {
                let cols = part.cols();
                values.extend_from_slice(&part.values()[row * cols..(row + 1) * cols]);
            }
        }
        let subject = format!("group `{}`", selection.role());
        Ok(Table::new(&self.path, subject, names, values))
    }
}
