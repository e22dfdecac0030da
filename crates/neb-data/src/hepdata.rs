//! Spectra as a HEPData submission: `submission.yaml` and one data file for each table.
//!
//! A spectrum is a table, with its series as dependent variables; each covariance and its correlation are tables of their own. The
//! files are the subset of YAML that the schema wants, with strings in double quotes.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::atomic::{check_target, write_atomically};
use crate::spectrum::{Series, Spectrum, correlation};
use crate::{Error, Result};

/// The file that lists the tables.
const SUBMISSION: &str = "submission.yaml";

/// What is published together.
#[derive(Clone, Debug, PartialEq)]
pub struct Submission {
    /// What it is, for the reader of the record.
    pub comment: String,
    /// Keywords of every table: `reactions`, `observables`, `cmenergies`, `phrases` and their values.
    pub keywords: Vec<(String, Vec<String>)>,
    /// The spectra.
    pub spectra: Vec<Spectrum>,
}

/// Writes a submission into a folder, which is made if need be; returns the files. `submission.yaml` is written last.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// use neb_data::{Series, Spectrum, SpectrumAxis, Submission, write_hepdata};
///
/// let spectrum = Spectrum {
///     name: "mass".into(),
///     description: "Unfolded mass of the leading jet.".into(),
///     axes: vec![SpectrumAxis { name: "m".into(), units: "GEV".into(), edges: vec![0.0, 20.0, 60.0] }],
///     series: vec![Series {
///         name: "unfolded".into(),
///         values: vec![0.02, 0.015],
///         errors: vec![("data".into(), vec![0.001, 0.002])],
///         ..Series::default()
///     }],
/// };
/// let submission = Submission {
///     comment: "Unfolded with neb.".into(),
///     keywords: vec![("reactions".into(), vec!["P P --> Z0 JET X".into()])],
///     spectra: vec![spectrum],
/// };
/// let files = write_hepdata(folder.path(), false, &submission)?;
/// assert!(files[0].ends_with("mass.yaml") && files[1].ends_with("submission.yaml"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Numbers that do not match the bins, files that exist without `force`, whatever the operating system refuses.
pub fn write_hepdata(
    folder: impl AsRef<Path>,
    force: bool,
    submission: &Submission,
) -> Result<Vec<PathBuf>> {
    let folder = folder.as_ref();
    let mut files: Vec<(String, String)> = Vec::new();
    let mut list = format!("comment: {}\n", quoted(&submission.comment));
    for spectrum in &submission.spectra {
        spectrum.check().map_err(|problem| problem.at(folder))?;
        for table in tables(spectrum) {
            let file = format!("{}.yaml", table.name);
            push_entry(&mut list, &table, &file, &submission.keywords);
            files.push((file, table.content));
        }
    }
    files.push((SUBMISSION.to_owned(), list));
    std::fs::create_dir_all(folder).map_err(|refused| Error::writing(folder, refused))?;
    for (name, _) in &files {
        check_target(folder.join(name), force)?;
    }
    let mut written = Vec::new();
    for (name, text) in files {
        let path = folder.join(name);
        write_atomically(&path, force, |output| output.write_all(text.as_bytes()))?;
        written.push(path);
    }
    Ok(written)
}

/// A table before it is a file.
struct Table {
    name: String,
    description: String,
    observables: Vec<String>,
    content: String,
}

fn push_entry(list: &mut String, table: &Table, file: &str, keywords: &[(String, Vec<String>)]) {
    let _ = write!(
        list,
        "---\nname: {}\ndescription: {}\nkeywords:\n",
        quoted(&table.name),
        quoted(&table.description)
    );
    let own = [("observables".to_owned(), table.observables.clone())];
    let given = |name: &str| keywords.iter().any(|(known, _)| known == name);
    let own = own.iter().filter(|(name, _)| !given(name));
    for (name, values) in keywords.iter().chain(own) {
        let values: Vec<String> = values.iter().map(|value| quoted(value)).collect();
        let _ = writeln!(
            list,
            "- name: {}\n  values: [{}]",
            quoted(name),
            values.join(", ")
        );
    }
    let _ = writeln!(list, "data_file: {}", quoted(file));
}

/// The spectrum itself, then its covariances and correlations.
fn tables(spectrum: &Spectrum) -> Vec<Table> {
    let observables: Vec<String> = spectrum.axes.iter().map(|axis| axis.name.clone()).collect();
    let mut tables = vec![Table {
        name: spectrum.name.clone(),
        description: spectrum.description.clone(),
        observables: observables.clone(),
        content: spectrum_content(spectrum),
    }];
    let bins = spectrum.bins();
    for series in &spectrum.series {
        for (label, covariance) in &series.covariances {
            let of = |kind: &str, values: &[f64]| Table {
                name: format!("{}-{}-{kind}-{}", spectrum.name, series.name, slug(label)),
                description: format!(
                    "{} of the bins of `{}` in table `{}`, from {label}.",
                    capital(kind),
                    series.name,
                    spectrum.name
                ),
                observables: observables.clone(),
                content: matrix_content(spectrum, series, kind, label, values),
            };
            tables.push(of("covariance", covariance));
            tables.push(of("correlation", &correlation(covariance, bins)));
        }
    }
    tables
}

fn spectrum_content(spectrum: &Spectrum) -> String {
    let mut text = "independent_variables:\n".to_owned();
    for (number, axis) in spectrum.axes.iter().enumerate() {
        push_header(&mut text, &axis.name, &axis.units);
        text.push_str("  values:\n");
        for bin in 0..spectrum.bins() {
            push_bin(&mut text, spectrum.bin(bin, number));
        }
    }
    text.push_str("dependent_variables:\n");
    for series in &spectrum.series {
        push_header(&mut text, &series.name, &series.units);
        push_qualifiers(&mut text, &series.qualifiers);
        text.push_str("  values:\n");
        for (bin, value) in series.values.iter().enumerate() {
            let _ = writeln!(text, "  - value: {value}");
            // HEPData refuses errors of 0: a bin that nothing is known about has none.
            let errors: Vec<(&String, f64)> = series
                .errors
                .iter()
                .map(|(label, errors)| (label, errors[bin]))
                .filter(|(_, error)| *error > 0.0)
                .collect();
            if !errors.is_empty() {
                text.push_str("    errors:\n");
            }
            for (label, error) in errors {
                let _ = writeln!(
                    text,
                    "    - symerror: {error}\n      label: {}",
                    quoted(label)
                );
            }
        }
    }
    text
}

fn matrix_content(
    spectrum: &Spectrum,
    series: &Series,
    kind: &str,
    label: &str,
    values: &[f64],
) -> String {
    let bins = spectrum.bins();
    let mut text = "independent_variables:\n".to_owned();
    for side in 0..2 {
        let of = |place: usize| match side {
            0 => place / bins,
            _ => place % bins,
        };
        match &spectrum.axes[..] {
            [axis] => push_header(&mut text, &axis.name, &axis.units),
            _ => push_header(&mut text, &format!("bin {}", side + 1), ""),
        }
        text.push_str("  values:\n");
        for place in 0..bins * bins {
            match spectrum.axes.len() {
                1 => push_bin(&mut text, spectrum.bin(of(place), 0)),
                _ => {
                    let _ = writeln!(text, "  - value: {}", of(place) + 1);
                }
            }
        }
    }
    text.push_str("dependent_variables:\n");
    let units = match (kind, series.units.is_empty()) {
        ("covariance", false) => format!("({})^2", series.units),
        _ => String::new(),
    };
    push_header(&mut text, &format!("{kind} of {}", series.name), &units);
    let source = [("source".to_owned(), label.to_owned())];
    push_qualifiers(&mut text, &[&series.qualifiers[..], &source[..]].concat());
    text.push_str("  values:\n");
    for value in values {
        let _ = writeln!(text, "  - value: {value}");
    }
    text
}

fn push_header(text: &mut String, name: &str, units: &str) {
    let units = match units {
        "" => String::new(),
        units => format!(", units: {}", quoted(units)),
    };
    let _ = writeln!(text, "- header: {{name: {}{units}}}", quoted(name));
}

fn push_qualifiers(text: &mut String, qualifiers: &[(String, String)]) {
    if !qualifiers.is_empty() {
        text.push_str("  qualifiers:\n");
    }
    for (name, value) in qualifiers {
        let _ = writeln!(
            text,
            "  - {{name: {}, value: {}}}",
            quoted(name),
            quoted(value)
        );
    }
}

fn push_bin(text: &mut String, [low, high]: [f64; 2]) {
    let _ = writeln!(text, "  - {{low: {low}, high: {high}}}");
}

/// A string of YAML in double quotes.
fn quoted(text: &str) -> String {
    let mut out = "\"".to_owned();
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A label as part of a file's name.
fn slug(label: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    label.chars().map(plain).collect()
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().chain(letters).collect())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spectrum::tests::example;

    fn submission() -> Submission {
        Submission {
            comment: "Two lines\nand \"quotes\".".to_owned(),
            keywords: vec![("cmenergies".to_owned(), vec!["14000.0".to_owned()])],
            spectra: vec![example()],
        }
    }

    /// The text that `tests/hepdata` has accepted by hepdata-validator.
    #[test]
    fn a_submission_as_it_is_accepted() {
        let folder = tempfile::tempdir().unwrap();
        let files = write_hepdata(folder.path(), false, &submission()).unwrap();
        let names: Vec<_> = files
            .iter()
            .map(|f| f.file_name().unwrap().to_str().unwrap())
            .collect();
        assert_eq!(
            names,
            [
                "mass-zg.yaml",
                "mass-zg-unfolded-covariance-data.yaml",
                "mass-zg-unfolded-correlation-data.yaml",
                "submission.yaml"
            ]
        );
        let text = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
        let list = text("submission.yaml");
        assert!(
            list.starts_with(
                "comment: \"Two lines\\nand \\\"quotes\\\".\"\n---\nname: \"mass-zg\"\n"
            )
        );
        assert_eq!(list.matches("data_file: ").count(), 3);
        assert!(list.contains("- name: \"observables\"\n  values: [\"m\", \"zg\"]\n"));
        let table = text("mass-zg.yaml");
        assert!(table.contains(
            "  - value: 0.0000001\n    errors:\n    - symerror: 0.02\n      label: \"data\"\n    - symerror: 0.001\n      label: \"training\"\n"
        ));
        // An error of 0 is left out.
        assert!(table.contains("  - value: 0\n    errors:\n    - symerror: 0.001\n"));
        assert!(table.contains(
            "- header: {name: \"m\", units: \"GEV\"}\n  values:\n  - {low: 0, high: 20}\n"
        ));
        assert!(table.contains("  - {name: \"SQRT(S)\", value: \"14000 GEV\"}\n"));
        let covariance = text("mass-zg-unfolded-covariance-data.yaml");
        assert_eq!(covariance.matches("- value: 0.0004\n").count(), 6);
        assert_eq!(covariance.matches("  - value: ").count(), 3 * 36);

        let again = write_hepdata(folder.path(), false, &submission()).unwrap_err();
        assert!(again.to_string().contains("mass-zg.yaml"), "{again}");
        write_hepdata(folder.path(), true, &submission()).unwrap();
    }
}
