//! `neb report`: a run as one page, with its figures as files.

mod contents;
mod history;
mod material;
mod unfolding;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use neb::check::Estimate;
use neb_report::{Figure, Level, Verdict};
use serde::Serialize;

use super::Session;
use crate::args;
use crate::failure::Failure;
pub(super) use contents::calibration_caption;
use material::Material;
pub(super) use material::calibration;

/// The page in the folder of a run.
const REPORT: &str = "report.html";
/// The folder of the figures, beside the page.
const FIGURES: &str = "figures";
/// The formats of a figure.
const KINDS: [&str; 2] = ["svg", "png"];
/// Pixels of a PNG for each of the figure's own.
const PNG_SCALE: f32 = 2.0;

/// What was written, and the gist of it.
#[derive(Serialize)]
pub(crate) struct Written {
    pub(super) report: PathBuf,
    figures: Vec<PathBuf>,
    verdict: Verdict,
    /// Draws of the source, pushed through the surrogate, against the observations.
    y_auc: Option<Estimate>,
    /// Draws of the source against the truth.
    pub(super) x_auc: Option<Estimate>,
}

/// Runs the command.
pub(crate) fn run(args: &args::Report, session: Session) -> Result<()> {
    let written = write(args, session)?;
    session.output.result(&written, text)
}

/// Writes the page and its figures. Those in the folder of the run are replaced, since they follow from it; a page or figures
/// elsewhere only with --force.
pub(crate) fn write(args: &args::Report, session: Session) -> Result<Written> {
    if args.run.is_file() {
        return Err(Failure::input(
            format!("{}: is a file; a run is a folder", args.run.display()),
            "name the folder that `neb fit` or `neb unfold` wrote",
        ));
    }
    let page = args.output.clone().unwrap_or_else(|| args.run.join(REPORT));
    let replace = session.force || args.output.is_none();
    let folder = page.with_file_name(FIGURES);
    neb_data::check_target(&page, replace)?;
    for figure in known_figures(&folder)? {
        neb_data::check_target(&figure, replace)?;
    }
    let (report, found) = match unfolding::is_one(&args.run) {
        true => unfolding::report(args)?,
        false => contents::report(&Material::read(args, session.seed_flag)?)?,
    };
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    // An earlier report may have figures that this one lacks.
    for figure in known_figures(&folder)? {
        fs::remove_file(&figure).with_context(|| figure.display().to_string())?;
    }
    let mut figures = Vec::new();
    for figure in report.figures() {
        figures.extend(save(figure, &folder)?);
    }
    put(&page, report.to_html().as_bytes())?;
    Ok(Written {
        report: page,
        figures,
        verdict: report.verdict,
        y_auc: found.y_auc,
        x_auc: found.x_auc,
    })
}

/// The top of the page alone, judged from at most `rows` observations.
pub(crate) fn top(args: &args::Report, rows: usize) -> Result<String> {
    if unfolding::is_one(&args.run) {
        return Ok(unfolding::report(args)?.0.top());
    }
    let material = Material::read(args, None)?;
    let (report, _) = contents::without_pictures(&material, rows)?;
    Ok(report.top())
}

/// The files of a folder, if there is one, that have names of a report's figures.
fn known_figures(folder: &Path) -> Result<Vec<PathBuf>> {
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let part = |part: Option<&std::ffi::OsStr>| {
        let text = part.unwrap_or_default();
        text.to_string_lossy().into_owned()
    };
    let mut known = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let file = entry?.path();
        let (name, kind) = (part(file.file_stem()), part(file.extension()));
        let is_known = contents::FIGURES.contains(&name.as_str()) || unfolding::draws(&name);
        if is_known && KINDS.contains(&kind.as_str()) {
            known.push(file);
        }
    }
    Ok(known)
}

/// Writes a figure as SVG and as PNG.
pub(super) fn save(figure: &Figure, folder: &Path) -> Result<[PathBuf; 2]> {
    let files = KINDS.map(|kind| folder.join(format!("{}.{kind}", figure.name)));
    put(&files[0], figure.to_svg().as_bytes())?;
    put(&files[1], &figure.to_png(PNG_SCALE)?)?;
    Ok(files)
}

fn put(path: &Path, bytes: &[u8]) -> Result<()> {
    Ok(neb_data::write_atomically(path, true, |file| {
        file.write_all(bytes)
    })?)
}

/// What was written, in words.
pub(super) fn text(written: &Written) -> String {
    let mut text = format!("{}\n", written.verdict.headline);
    for finding in &written.verdict.findings {
        let mark = match finding.level {
            Level::Good => "ok",
            Level::Note => "note",
            Level::Caution => "caution",
            Level::Problem => "problem",
        };
        text.push_str(&format!("  {mark:<8} {}\n", finding.text));
    }
    text.push_str(&format!(
        "\n{}: the page, and {} figures beside it as SVG and PNG",
        written.report.display(),
        written.figures.len() / 2
    ));
    text
}

/// The failure where a run cannot be reported on.
fn unusable(path: &Path, what: impl std::fmt::Display) -> anyhow::Error {
    Failure::input(
        format!("{}: {what}", path.display()),
        "`neb report` needs the folder of a run that `neb fit`, `neb source` or `neb unfold` finished",
    )
}
