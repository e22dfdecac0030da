//! Binned spectra with their errors, as they are published: npz, csv, and (see [`write_hepdata`](crate::write_hepdata)) HEPData.

use std::path::Path;

use crate::atomic::write_atomically;
use crate::error::Problem;
use crate::format::Format;
use crate::write::{Array, write};
use crate::{Dataset, Error, Result};

/// Spectra in the same bins: the unfolded one, and others to compare it with.
#[derive(Clone, Debug, PartialEq)]
pub struct Spectrum {
    /// A short name: letters, digits, `-` and `_`.
    pub name: String,
    /// What it is, in a sentence.
    pub description: String,
    /// The observable, or several: bins are numbered row by row, the last observable fastest.
    pub axes: Vec<SpectrumAxis>,
    /// The spectra.
    pub series: Vec<Series>,
}

/// The bins of an observable.
#[derive(Clone, Debug, PartialEq)]
pub struct SpectrumAxis {
    /// Its name.
    pub name: String,
    /// Its unit; empty where it has none.
    pub units: String,
    /// Edges of the bins, in increasing order.
    pub edges: Vec<f64>,
}

impl SpectrumAxis {
    /// Number of bins.
    pub fn bins(&self) -> usize {
        self.edges.len().saturating_sub(1)
    }
}

/// One spectrum.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// A short name: `unfolded`, `ibu`, `truth`.
    pub name: String,
    /// Unit of the values; empty where they have none.
    pub units: String,
    /// One value for each bin.
    pub values: Vec<f64>,
    /// Errors by their labels (`data`, `simulation`, `training`), one for each bin.
    pub errors: Vec<(String, Vec<f64>)>,
    /// Covariances by their labels, bins × bins, row by row.
    pub covariances: Vec<(String, Vec<f64>)>,
    /// What a reader must know to use the numbers: names and values.
    pub qualifiers: Vec<(String, String)>,
}

impl Spectrum {
    /// Number of bins.
    pub fn bins(&self) -> usize {
        self.axes.iter().map(SpectrumAxis::bins).product()
    }

    /// Lower and upper edge of a bin in an observable.
    pub fn bin(&self, bin: usize, axis: usize) -> [f64; 2] {
        let after: usize = self.axes[axis + 1..]
            .iter()
            .map(SpectrumAxis::bins)
            .product();
        let axis = &self.axes[axis];
        let place = bin / after % axis.bins();
        [axis.edges[place], axis.edges[place + 1]]
    }

    /// The series of this name, made where there is none.
    fn own(&mut self, name: &str) -> &mut Series {
        let found = self.series.iter().position(|series| series.name == name);
        let at = found.unwrap_or(self.series.len());
        if found.is_none() {
            self.series.push(Series {
                name: name.to_owned(),
                ..Series::default()
            });
        }
        &mut self.series[at]
    }

    /// Refuses numbers that do not match the bins, are not finite, or names that cannot be those of files and columns.
    pub(crate) fn check(&self) -> std::result::Result<(), Problem> {
        let wrong = |message: String| {
            Err(Problem::new(
                format!("spectrum `{}`: {message}", self.name),
                "report this: it is a defect of neb, or of the program that uses it",
            ))
        };
        let plain = |name: &str| {
            let usable = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            !name.is_empty() && name.chars().all(usable)
        };
        let bins = self.bins();
        if !plain(&self.name) || self.series.iter().any(|series| !plain(&series.name)) {
            return wrong("names are made of letters, digits, `-` and `_`".to_owned());
        }
        if bins == 0 {
            return wrong("it has no bins".to_owned());
        }
        for series in &self.series {
            let values = [("values".to_owned(), &series.values, bins)];
            let errors = series
                .errors
                .iter()
                .map(|(label, e)| (format!("error `{label}`"), e, bins));
            let covariances = series
                .covariances
                .iter()
                .map(|(label, c)| (format!("covariance `{label}`"), c, bins * bins));
            for (what, numbers, expected) in values.into_iter().chain(errors).chain(covariances) {
                let name = &series.name;
                if numbers.len() != expected {
                    return wrong(format!(
                        "{what} of `{name}` has {} numbers; expected {expected}",
                        numbers.len()
                    ));
                }
                if let Some(at) = numbers.iter().position(|number| !number.is_finite()) {
                    return wrong(format!("{what} of `{name}` is {} at {at}", numbers[at]));
                }
            }
        }
        Ok(())
    }
}

/// Writes a spectrum, atomically, as npz (edges, values, errors, covariances and correlations) or csv (edges, values and errors,
/// one bin per row), by the extension of `path`.
///
/// # Errors
/// Another extension, numbers that do not match the bins, a target that exists without `force`.
pub fn write_spectrum(path: impl AsRef<Path>, force: bool, spectrum: &Spectrum) -> Result<()> {
    let path = path.as_ref();
    spectrum.check().map_err(|problem| problem.at(path))?;
    match Format::of(path)? {
        Format::Npz => write_npz(path, force, spectrum),
        Format::Csv => write_atomically(path, force, |output| {
            for row in csv_rows(spectrum) {
                writeln!(output, "{}", row.join(","))?;
            }
            Ok(())
        }),
        _ => Err(Error::file(
            path,
            "spectra are written as .npz or .csv",
            format!("write to {}", path.with_extension("npz").display()),
        )),
    }
}

fn write_npz(path: &Path, force: bool, spectrum: &Spectrum) -> Result<()> {
    let bins = spectrum.bins();
    let mut named: Vec<(String, Vec<usize>, Vec<f64>)> = Vec::new();
    for (number, axis) in spectrum.axes.iter().enumerate() {
        let name = format!("edges{}", number + 1);
        named.push((name, vec![axis.edges.len()], axis.edges.clone()));
    }
    let shape: Vec<usize> = spectrum.axes.iter().map(SpectrumAxis::bins).collect();
    for series in &spectrum.series {
        let name = &series.name;
        named.push((name.clone(), shape.clone(), series.values.clone()));
        for (label, errors) in &series.errors {
            named.push((
                format!("{name}_error_{label}"),
                shape.clone(),
                errors.clone(),
            ));
        }
        for (label, covariance) in &series.covariances {
            let square = vec![bins, bins];
            let correlation = correlation(covariance, bins);
            named.push((
                format!("{name}_covariance_{label}"),
                square.clone(),
                covariance.clone(),
            ));
            named.push((format!("{name}_correlation_{label}"), square, correlation));
        }
    }
    let arrays: Vec<Array> = named
        .iter()
        .map(|(name, shape, values)| Array::new(name, shape, &values[..]))
        .collect();
    write(path, force, &arrays)
}

/// Reads a spectrum that [`write_spectrum`] wrote as npz, in single precision; `axes` names its observables. What the file does not
/// hold (description, units, qualifiers) is empty.
///
/// # Errors
/// A file that cannot be read or holds another number of observables.
pub fn read_spectrum(path: impl AsRef<Path>, axes: &[String]) -> Result<Spectrum> {
    let path = path.as_ref();
    let data = Dataset::open(path)?;
    let read = |name: &str| -> Result<Vec<f64>> {
        let values = data.array(name)?.values;
        Ok(values.into_iter().map(f64::from).collect())
    };
    let each = axes.iter().enumerate();
    let axes = each.map(|(number, name)| {
        Ok(SpectrumAxis {
            name: name.clone(),
            units: String::new(),
            edges: read(&format!("edges{}", number + 1))?,
        })
    });
    let mut spectrum = Spectrum {
        name: path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned(),
        description: String::new(),
        axes: axes.collect::<Result<_>>()?,
        series: Vec::new(),
    };
    for name in data.names() {
        let part = |kind: &str| {
            let (series, label) = name.split_once(kind)?;
            Some((series.to_owned(), label.to_owned()))
        };
        if let Some((series, label)) = part("_error_") {
            spectrum.own(&series).errors.push((label, read(name)?));
        } else if let Some((series, label)) = part("_covariance_") {
            spectrum.own(&series).covariances.push((label, read(name)?));
        } else if part("_correlation_").is_none() && !name.starts_with("edges") {
            spectrum.own(name).values = read(name)?;
        }
    }
    spectrum.check().map_err(|problem| problem.at(path))?;
    Ok(spectrum)
}

/// Correlations of a covariance, row by row: 1 on the diagonal, 0 where a bin has no variance.
pub fn correlation(covariance: &[f64], bins: usize) -> Vec<f64> {
    let of = |place: usize| {
        let (i, j) = (place / bins, place % bins);
        let product = (covariance[i * bins + i] * covariance[j * bins + j]).sqrt();
        match (i == j, product > 0.0) {
            (true, _) => 1.0,
            (false, true) => (covariance[place] / product).clamp(-1.0, 1.0),
            (false, false) => 0.0,
        }
    };
    (0..covariance.len()).map(of).collect()
}

fn csv_rows(spectrum: &Spectrum) -> Vec<Vec<String>> {
    let mut header: Vec<String> = Vec::new();
    for axis in &spectrum.axes {
        header.extend([format!("{}_low", axis.name), format!("{}_high", axis.name)]);
    }
    for series in &spectrum.series {
        header.push(series.name.clone());
        let labels = series.errors.iter().map(|(label, _)| label);
        header.extend(labels.map(|label| format!("{}_error_{label}", series.name)));
    }
    let row = |bin: usize| {
        let edges = (0..spectrum.axes.len()).flat_map(|axis| spectrum.bin(bin, axis));
        let values = spectrum.series.iter().flat_map(|series| {
            let errors = series.errors.iter().map(|(_, errors)| errors[bin]);
            std::iter::once(series.values[bin]).chain(errors)
        });
        edges
            .chain(values)
            .map(|number| number.to_string())
            .collect()
    };
    std::iter::once(header)
        .chain((0..spectrum.bins()).map(row))
        .collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::Selection;

    pub(crate) fn example() -> Spectrum {
        let axis = |name: &str, units: &str, edges: &[f64]| SpectrumAxis {
            name: name.to_owned(),
            units: units.to_owned(),
            edges: edges.to_vec(),
        };
        Spectrum {
            name: "mass-zg".to_owned(),
            description: "Mass and z_g of the \"leading\" jet: two observables.".to_owned(),
            axes: vec![
                axis("m", "GEV", &[0.0, 20.0, 60.0]),
                axis("zg", "", &[0.0, 0.1, 0.3, 0.5]),
            ],
            series: vec![
                Series {
                    name: "unfolded".to_owned(),
                    units: "1/GEV".to_owned(),
                    values: vec![0.1, 1e-7, 0.3, 0.4, 0.0, 0.6],
                    errors: vec![
                        ("data".to_owned(), vec![0.01, 0.02, 0.03, 0.04, 0.0, 0.06]),
                        ("training".to_owned(), vec![0.001; 6]),
                    ],
                    covariances: vec![(
                        "data".to_owned(),
                        (0..36)
                            .map(|at| if at % 7 == 0 { 4e-4 } else { 1e-4 })
                            .collect(),
                    )],
                    qualifiers: vec![("SQRT(S)".to_owned(), "14000 GEV".to_owned())],
                },
                Series {
                    name: "truth".to_owned(),
                    values: vec![0.1; 6],
                    ..Series::default()
                },
            ],
        }
    }

    #[test]
    fn npz_and_csv_hold_every_number() {
        let folder = tempfile::tempdir().unwrap();
        let spectrum = example();
        let npz = folder.path().join("s.npz");
        write_spectrum(&npz, false, &spectrum).unwrap();
        let data = Dataset::open(&npz).unwrap();
        let array = |name: &str| data.array(name).unwrap();
        assert_eq!(array("edges2").values, [0.0, 0.1, 0.3, 0.5]);
        assert_eq!(array("unfolded").shape, [2, 3]);
        assert_eq!(array("unfolded_error_training").values, [0.001; 6]);
        assert_eq!(array("unfolded_covariance_data").shape, [6, 6]);
        assert_eq!(
            array("unfolded_correlation_data").values[..3],
            [1.0, 0.25, 0.25]
        );
        assert!(write_spectrum(&npz, false, &spectrum).is_err());
        let again = read_spectrum(&npz, &["m".to_owned(), "zg".to_owned()]).unwrap();
        assert_eq!(again.axes[1].edges[3], 0.5);
        let series =
            |s: &Spectrum| -> Vec<String> { s.series.iter().map(|s| s.name.clone()).collect() };
        assert_eq!(series(&again), series(&spectrum));
        let (read, own) = (&again.series[0], &spectrum.series[0]);
        for (read, own) in read.covariances.iter().zip(&own.covariances) {
            assert_eq!(read.0, own.0);
            assert!(
                read.1
                    .iter()
                    .zip(&own.1)
                    .all(|(a, b)| (a - b).abs() <= 1e-7 * b.abs())
            );
        }
        assert_eq!((read.errors.len(), read.covariances.len()), (2, 1));
        assert!(read_spectrum(&npz, &["m".to_owned()]).is_err());

        let csv = folder.path().join("s.csv");
        write_spectrum(&csv, false, &spectrum).unwrap();
        let data = Dataset::open(&csv).unwrap();
        let all = data.names().join(",");
        assert_eq!(
            all,
            "m_low,m_high,zg_low,zg_high,unfolded,unfolded_error_data,unfolded_error_training,truth"
        );
        let table = data.group(&Selection::named("x", &all)).unwrap();
        assert_eq!(table.rows(), 6);
        assert_eq!(
            table.values()[8 * 4..][..8],
            [20.0, 60.0, 0.1, 0.3, 0.0, 0.0, 0.001, 0.1]
        );
        assert!(write_spectrum(folder.path().join("s.npy"), false, &spectrum).is_err());
    }

    #[test]
    fn numbers_that_do_not_match_the_bins_are_refused() {
        let mut short = example();
        short.series[0].values.pop();
        let mut infinite = example();
        infinite.series[0].covariances[0].1[3] = f64::INFINITY;
        let mut name = example();
        name.name = "a/b".to_owned();
        for (spectrum, words) in [
            (short, "values of `unfolded` has 5 numbers; expected 6"),
            (infinite, "covariance `data` of `unfolded` is inf at 3"),
            (name, "names are made of letters"),
        ] {
            let message = spectrum.check().unwrap_err().message;
            assert!(message.contains(words), "{message}");
        }
    }
}
