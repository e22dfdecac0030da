//! The OmniFold files: Z + jet events at particle level (`gen_`) and after a detector (`sim_`), as the six observables of a jet.
//!
//! A generator's events are in files `GENERATOR_Zjet_pTZ-200GeV_0.npz` to `…_16.npz`, 19 arrays each. Of these, per jet,
//!
//! | observable | from |
//! |---|---|
//! | m, mass | `jets[:, 3]` |
//! | M, multiplicity | `mults` |
//! | w, width | `widths` |
//! | ln ρ, groomed mass | ln (`sdms`² / `jets[:, 0]`²) |
//! | z_g, groomed momentum fraction | `zgs` |
//! | τ₂₁, N-subjettiness ratio | `tau2s` / `widths` |
//!
//! A jet of one particle has no width, one that is groomed away no groomed mass: τ₂₁ or ln ρ do not exist. Such rows are left out
//! and counted, or filled with τ₂₁ = 0 and ln ρ at a floor.

use std::fs;
use std::path::{Path, PathBuf};

use crate::dataset::Dataset;
use crate::npy::{NdArray, shape_text};
use crate::{Error, Result};

/// Names of the observables, in their order.
pub const OBSERVABLES: [&str; 6] = ["m", "M", "w", "lnrho", "zg", "tau21"];

/// What the names of the files have after the generator.
const MARK: &str = "_Zjet_pTZ-200GeV_";

/// Arrays of one value per jet that the observables are made of.
const SCALARS: [&str; 5] = ["mults", "widths", "sdms", "zgs", "tau2s"];

/// What becomes of jets without width or groomed mass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Degenerate {
    /// They are left out.
    Drop,
    /// τ₂₁ is 0 without a width, ln ρ at most this small without a groomed mass.
    Fill {
        /// ln ρ without a groomed mass, and the least ln ρ of all jets.
        floor: f32,
    },
}

/// Jets of one generator.
#[derive(Clone, Debug, PartialEq)]
pub struct Jets {
    /// Observables at particle level, row by row.
    pub generated: Vec<f32>,
    /// Observables of the same events after the detector.
    pub simulated: Vec<f32>,
    /// Rows left out or filled because a width is 0.
    pub no_width: usize,
    /// Rows left out or filled because a groomed mass is 0; those without a width are counted there.
    pub no_groomed_mass: usize,
    /// The files.
    pub files: Vec<PathBuf>,
}

impl Jets {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.generated.len() / OBSERVABLES.len()
    }
}

/// The files of one generator: `path` is a folder that holds those of one alone, a folder and a generator
/// (`omnifold/Herwig`), or one file.
///
/// # Errors
/// A folder without such files, or with those of several generators, which are listed.
pub fn omnifold_files(path: impl AsRef<Path>) -> Result<Vec<PathBuf>> {
    let path = path.as_ref();
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let (folder, wanted) = match path.is_dir() {
        true => (path, None),
        false => (
            path.parent()
                .filter(|folder| !folder.as_os_str().is_empty())
                .unwrap_or(Path::new(".")),
            path.file_name().and_then(|name| name.to_str()),
        ),
    };
    let entries = fs::read_dir(folder).map_err(|refused| Error::reading(path, refused))?;
    let mut found: Vec<(String, u32, PathBuf)> = entries
        .filter_map(|entry| {
            let file = entry.ok()?.path();
            let name = file.file_name()?.to_str()?;
            let (generator, number) = name.strip_suffix(".npz")?.split_once(MARK)?;
            Some((generator.to_owned(), number.parse().ok()?, file.clone()))
        })
        .collect();
    found.sort();
    let mut generators: Vec<String> = found.iter().map(|(name, ..)| name.clone()).collect();
    generators.dedup();
    let generator = match (wanted, &generators[..]) {
        (_, []) => {
            return Err(Error::file(
                path,
                format!(
                    "there are no files GENERATOR{MARK}NUMBER.npz in {}",
                    folder.display()
                ),
                "name the folder of the OmniFold files, or one of them",
            ));
        }
        (Some(wanted), all) if all.iter().any(|name| name == wanted) => wanted,
        (None, [one]) => one,
        (_, all) => {
            let each = all
                .iter()
                .map(|name| folder.join(name).display().to_string());
            return Err(Error::file(
                path,
                format!("there are files of {}", crate::names::list(all)),
                format!("name one: {}", each.collect::<Vec<_>>().join(" or ")),
            ));
        }
    };
    let files = found.iter().filter(|(name, ..)| name == generator);
    Ok(files.map(|(_, _, file)| file.clone()).collect())
}

/// Reads the observables of all jets of these files.
///
/// # Errors
/// Files that lack an array (named), whose arrays differ in length, or that hold values that are not finite or impossible.
pub fn read_omnifold(files: &[PathBuf], degenerate: Degenerate) -> Result<Jets> {
    let mut jets = Jets {
        generated: Vec::new(),
        simulated: Vec::new(),
        no_width: 0,
        no_groomed_mass: 0,
        files: files.to_vec(),
    };
    for path in files {
        let data = Dataset::open(path)?;
        let generated = Level::read(&data, "gen_")?;
        let simulated = Level::read(&data, "sim_")?;
        if generated.rows != simulated.rows {
            return Err(Error::file(
                path,
                format!(
                    "array `gen_jets` has {} rows but `sim_jets` has {}",
                    generated.rows, simulated.rows
                ),
                "row i of both must be the same event; download the file again",
            ));
        }
        for row in 0..generated.rows {
            let levels = [&generated, &simulated];
            let flat = levels
                .iter()
                .any(|level| level.scalar("widths", row) == 0.0);
            let groomed_away = levels.iter().any(|level| level.scalar("sdms", row) == 0.0);
            jets.no_width += usize::from(flat);
            jets.no_groomed_mass += usize::from(groomed_away && !flat);
            if (flat || groomed_away) && degenerate == Degenerate::Drop {
                continue;
            }
            jets.generated
                .extend(generated.observables(row, degenerate)?);
            jets.simulated
                .extend(simulated.observables(row, degenerate)?);
        }
    }
    if jets.generated.is_empty() {
        return Err(Error::file(
            files.first().map_or(Path::new("."), PathBuf::as_path),
            "there are no jets with all observables",
            "check the files; jets without width or groomed mass can be filled instead of left out",
        ));
    }
    Ok(jets)
}

/// The arrays of one level of one file.
struct Level<'a> {
    path: &'a Path,
    prefix: &'static str,
    rows: usize,
    jets: NdArray,
    scalars: [NdArray; SCALARS.len()],
}

impl<'a> Level<'a> {
    fn read(data: &'a Dataset, prefix: &'static str) -> Result<Self> {
        let path = data.path();
        let array = |name: &str| {
            let name = format!("{prefix}{name}");
            match data.names().contains(&name.as_str()) {
                true => data.array(&name),
                false => Err(Error::file(
                    path,
                    format!(
                        "is no OmniFold file: it has no array `{name}`; the arrays are {}",
                        crate::names::list(&data.names())
                    ),
                    "name files GENERATOR_Zjet_pTZ-200GeV_NUMBER.npz as they were downloaded",
                )),
            }
        };
        let wrong = |name: &str, found: &NdArray, expected: String| {
            Error::file(
                path,
                format!(
                    "array `{prefix}{name}` has shape {}; expected {expected}",
                    shape_text(&found.shape)
                ),
                "download the file again",
            )
        };
        let jets = array("jets")?;
        let &[rows, 4] = &jets.shape[..] else {
            return Err(wrong("jets", &jets, "rows of 4: pt, y, phi, m".to_owned()));
        };
        let mut scalars = Vec::new();
        for name in SCALARS {
            let values = array(name)?;
            if values.shape != [rows] {
                return Err(wrong(name, &values, format!("{rows} values, one per jet")));
            }
            scalars.push(values);
        }
        Ok(Self {
            path,
            prefix,
            rows,
            jets,
            scalars: scalars.try_into().expect("one array per name"),
        })
    }

    fn scalar(&self, name: &str, row: usize) -> f32 {
        let at = SCALARS.iter().position(|known| *known == name);
        self.scalars[at.expect("a known array")].values[row]
    }

    /// The six observables of a jet.
    fn observables(&self, row: usize, degenerate: Degenerate) -> Result<[f32; 6]> {
        let jet = &self.jets.values[4 * row..4 * row + 4];
        let (pt, mass) = (f64::from(jet[0]), jet[3]);
        let (width, groomed) = (self.scalar("widths", row), self.scalar("sdms", row));
        let mut lnrho = (2.0 * (f64::from(groomed) / pt).ln()) as f32;
        let mut tau21 = self.scalar("tau2s", row) / width;
        if let Degenerate::Fill { floor } = degenerate {
            lnrho = if groomed == 0.0 {
                floor
            } else {
                lnrho.max(floor)
            };
            tau21 = if width == 0.0 { 0.0 } else { tau21 };
        }
        let values = [
            mass,
            self.scalar("mults", row),
            width,
            lnrho,
            self.scalar("zgs", row),
            tau21,
        ];
        match values.iter().position(|value| !value.is_finite()) {
            None => Ok(values),
            Some(at) => Err(Error::file(
                self.path,
                format!(
                    "row {row}: the observable {} of the arrays `{}...` is {}",
                    OBSERVABLES[at], self.prefix, values[at]
                ),
                "remove or repair this row",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Array, write};

    /// Writes a file of `rows` jets, row r with pt = 100 + r; the jets of these rows have no width or no groomed mass.
    fn file(path: &Path, rows: usize, no_width: &[usize], no_mass: &[usize], without: &str) {
        let mut named: Vec<(String, Vec<usize>, Vec<f32>)> = Vec::new();
        for (level, shift) in [("gen", 0.0f32), ("sim", 0.5)] {
            let mut add = |name: &str, cols: &[usize], value: &dyn Fn(usize, usize) -> f32| {
                let width: usize = cols.iter().product();
                let shape = [&[rows], cols].concat();
                let values =
                    (0..rows * width).map(|at| value(at / width.max(1), at % width.max(1)));
                named.push((format!("{level}_{name}"), shape, values.collect()));
            };
            add("jets", &[4], &|row, col| {
                [100.0 + row as f32, 0.1, 0.2, 20.0 + shift][col]
            });
            add("particles", &[2, 4], &|row, _| row as f32);
            add("mults", &[], &|row, _| (10 + row) as f32);
            let dead = |list: &[usize], row: usize| shift > 0.0 && list.contains(&row);
            add("widths", &[], &|row, _| {
                if dead(no_width, row) { 0.0 } else { 0.25 }
            });
            add("sdms", &[], &|row, _| {
                if dead(no_mass, row) { 0.0 } else { 10.0 }
            });
            for name in ["lhas", "ang2s", "tau2s", "zgs"] {
                add(name, &[], &|_, _| 0.125);
            }
        }
        named.push(("gen_Zs".to_owned(), vec![rows, 3], vec![0.0; 3 * rows]));
        let arrays: Vec<Array> = named
            .iter()
            .filter(|(name, ..)| name != without)
            .map(|(name, shape, values)| Array::new(name, shape, &values[..]))
            .collect();
        assert_eq!(arrays.len() + usize::from(!without.is_empty()), 19);
        write(path, true, &arrays).unwrap();
    }

    #[test]
    fn observables_of_all_files_of_a_generator() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        // The tenth file comes after the second.
        file(&path("Herwig_Zjet_pTZ-200GeV_10.npz"), 3, &[1], &[1, 2], "");
        file(&path("Herwig_Zjet_pTZ-200GeV_2.npz"), 4, &[], &[], "");
        std::fs::write(path("notes.npz"), "not one of them").unwrap();
        let files = omnifold_files(folder.path()).unwrap();
        assert!(files[0].ends_with("Herwig_Zjet_pTZ-200GeV_2.npz"));
        let jets = read_omnifold(&files, Degenerate::Drop).unwrap();
        assert_eq!(
            (jets.rows(), jets.no_width, jets.no_groomed_mass),
            (5, 1, 1)
        );
        let expected = [
            20.5,
            11.0,
            0.25,
            (100f32 / (101.0 * 101.0)).ln(),
            0.125,
            0.5,
        ];
        for (value, expected) in jets.simulated[6..12].iter().zip(expected) {
            assert!(
                (value - expected).abs() < 1e-6,
                "{:?}",
                &jets.simulated[6..12]
            );
        }
        assert_eq!(jets.generated[0], 20.0);

        let filled = read_omnifold(&files, Degenerate::Fill { floor: -14.0 }).unwrap();
        assert_eq!(
            (filled.rows(), filled.no_width, filled.no_groomed_mass),
            (7, 1, 1)
        );
        let row = |row: usize| &filled.simulated[6 * row..6 * row + 6];
        assert_eq!((row(5)[3], row(5)[5]), (-14.0, 0.0));
        assert_eq!((row(6)[3], row(6)[5]), (-14.0, 0.5));

        file(&path("Pythia26_Zjet_pTZ-200GeV_0.npz"), 2, &[], &[], "");
        let message = omnifold_files(folder.path()).unwrap_err();
        assert!(
            message.to_string().contains("`Herwig`, `Pythia26`"),
            "{message}"
        );
        let one = omnifold_files(path("Pythia26")).unwrap();
        assert_eq!(one, [path("Pythia26_Zjet_pTZ-200GeV_0.npz")]);
        assert_eq!(omnifold_files(&one[0]).unwrap(), one);
    }

    #[test]
    fn what_is_no_omnifold_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let empty = omnifold_files(folder.path()).unwrap_err().to_string();
        assert!(
            empty.contains("there are no files GENERATOR_Zjet"),
            "{empty}"
        );
        let path = folder.path().join("Herwig_Zjet_pTZ-200GeV_0.npz");
        file(&path, 2, &[], &[], "sim_sdms");
        let refused = |words: &[&str]| {
            let error = read_omnifold(std::slice::from_ref(&path), Degenerate::Drop)
                .unwrap_err()
                .to_string();
            for word in words {
                assert!(error.contains(word), "{error}");
            }
        };
        refused(&["Herwig_Zjet_pTZ-200GeV_0.npz", "no array `sim_sdms`"]);
        file(&path, 2, &[0, 1], &[], "");
        refused(&["no jets with all observables"]);
        write(
            &path,
            true,
            &[Array::new("gen_jets", &[2, 3], &[0.0f32; 6][..])],
        )
        .unwrap();
        refused(&["`gen_jets` has shape 2×3"]);
    }
}
