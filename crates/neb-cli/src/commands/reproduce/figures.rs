//! The paper's figures, from the first repeat: learned against true sources, what two-moons shows of them,
//! calibration curves, and an SLCP posterior.

use std::path::{Path, PathBuf};

use anyhow::Result;
use neb::posterior::{Budget, Method, Posterior, PosteriorOptions};
use neb::simulator::{self, ProductLaw};
use neb::source::{Affine, Base};
use neb::surrogate::Exact;
use neb::{Matrix, Rows};
use neb_report::figures::{Corner, CornerSample, calibration, corner};
use neb_report::{Figure, Role};

use super::cell::{Place, sampler};
use super::data::{Data, Nature};
use super::plan::{Cell, Setup};
use crate::commands::report;
use crate::embed::{FittedSource, Posteriors, load_surrogate};
use crate::interrupt;
use crate::run_folder::CALIBRATION;

/// Draws of a posterior that is drawn.
const DRAWS: usize = 4000;
/// What a true source is called in a legend.
const TRUE: &str = "true";

/// A picture and what it shows.
pub(super) struct Picture {
    pub(super) file: PathBuf,
    pub(super) caption: String,
}

/// Draws the pictures of a cell into `folder`.
pub(super) fn of_cell(
    place: &Place,
    cell: &Cell,
    setup: &Setup,
    data: &Data,
    folder: &Path,
) -> Result<Vec<Picture>> {
    let source = FittedSource::load(&place.run())?;
    let drawn = source.sample(data.true_x.rows(), cell.seed);
    let name = format!(
        "{}-{}-{}",
        cell.problem,
        setup.preset_of(cell.row),
        cell.row.slug()
    );
    let title = format!("{}, {}", cell.problem, cell.row.title());
    let mut pictures = vec![save(
        compared(
            &name,
            &title,
            &data.x.names,
            &drawn,
            (TRUE, &data.true_x),
            None,
        ),
        folder,
        format!(
            "{title}: the learned source (blue) against the true one (dashed), 68-95-99.7 % contours."
        ),
    )?];
    if cell.problem == "two-moons" {
        let names = ["|x1 + x2|", "x2 - x1"].map(str::to_owned);
        let figure = compared(
            &format!("{name}-seen"),
            &title,
            &names,
            &seen(drawn.view()),
            (TRUE, &seen(data.true_x.view())),
            None,
        );
        let caption = format!("{title}: what the simulator sees of x.");
        pictures.push(save(figure, folder, caption)?);
    }
    if let Some(found) = report::calibration(&place.run().join(CALIBRATION))? {
        let figure = calibration(&format!("{name}-calibration"), &data.x.names, &found);
        let caption = format!("{title}. {}", report::calibration_caption(&found));
        pictures.push(save(figure, folder, caption)?);
    }
    if let (Nature::Problem(problem), "slcp") = (&data.nature, &*cell.problem) {
        let surrogate = load_surrogate(&place.surrogate())?;
        let y = data.true_y.view().slice(0..1);
        let options = PosteriorOptions {
            draws: DRAWS,
            seed: cell.seed,
            budget: Budget::default(),
        };
        let posteriors = Posteriors {
            source: &source,
            surrogate: &surrogate,
        };
        // Rejection may need ten million samples, and annealing inverts a UMNN that was trained to give samples at every step.
        let method = match sampler(cell.row.estimator) {
            Some(Method::Rejection) => Some(Method::Importance),
            other => other,
        };
        let (learned, _) =
            interrupt::tracked(|tracker| Ok(posteriors.sample(y, method, &options, tracker)?))?;
        let exact = Exact::new(*problem);
        let prior = exact_source(&problem.source());
        let exact = Posterior::new(&prior, &exact)?.annealed(y, &options)?;
        let figure = compared(
            &format!("{name}-posterior"),
            &format!("{title}: posterior of one observation"),
            &data.x.names,
            &learned.of(0).to_matrix(),
            ("exact", &exact.of(0).to_matrix()),
            Some(data.true_x.row(0)),
        );
        let caption = format!(
            "{title}: the posterior of one observation (blue) against the exact one (dashed: true source and likelihood, annealed \
             Monte Carlo); the cross is the x behind it."
        );
        pictures.push(save(figure, folder, caption)?);
    }
    Ok(pictures)
}

/// The set of x that may have produced a few observations of two-moons: learned, and exact with a flat prior.
pub(super) fn of_few(
    source: &FittedSource,
    y: Rows,
    seed: u64,
    folder: &Path,
) -> Result<(Picture, f64)> {
    let problem = simulator::by_name("two-moons")?;
    let drawn = source.sample(DRAWS, seed);
    let prior = exact_source(&problem.covering_proposal());
    let exact = Exact::new(problem);
    let options = PosteriorOptions {
        draws: DRAWS / y.rows(),
        seed,
        budget: Budget::default(),
    };
    let set = Posterior::new(&prior, &exact)?.annealed(y, &options)?;
    let n = y.rows();
    let caption = format!(
        "two-moons, N = {n}: draws of the learned source (blue) against the x that may have produced the observations (dashed: \
         exact likelihood, flat prior)."
    );
    let names = ["x1", "x2"].map(str::to_owned);
    let title = format!("two-moons, N = {n}");
    let figure = compared(
        &format!("few-{n}"),
        &title,
        &names,
        &drawn,
        ("possible", &set.x),
        None,
    );
    Ok((save(figure, folder, caption)?, plausible(drawn.view(), y)))
}

/// Share of the draws that can have produced one of the observations: y − what x shifts lies within 5 deviations of the moon.
fn plausible(x: Rows, y: Rows) -> f64 {
    let reached = |x: &[f32]| {
        (0..y.rows()).any(|row| {
            let y = y.row(row);
            let root = std::f32::consts::SQRT_2;
            let a = y[0] + (x[0] + x[1]).abs() / root - 0.25;
            let b = y[1] - (x[1] - x[0]) / root;
            (a.hypot(b) - 0.1).abs() < 0.05 && a > -0.05
        })
    };
    (0..x.rows()).filter(|&row| reached(x.row(row))).count() as f64 / x.rows() as f64
}

/// What two-moons shows of x.
fn seen(x: Rows) -> Matrix {
    Matrix::from_fn(x.rows(), 2, |row, column| {
        let x = x.row(row);
        match column {
            0 => (x[0] + x[1]).abs(),
            _ => x[1] - x[0],
        }
    })
}

/// A true source, as a prior.
fn exact_source(law: &ProductLaw) -> Affine {
    let (base, deviation) = match law {
        ProductLaw::Uniform { half_width, dim } => {
            (Base::Uniform, vec![(half_width / 3f64.sqrt()) as f32; *dim])
        }
        ProductLaw::Normal { deviations } => {
            let deviations = deviations.iter().map(|&deviation| deviation as f32);
            (Base::Normal, deviations.collect())
        }
    };
    let dim = deviation.len();
    Affine::new(base, &vec![0.0; dim], &deviation, &vec![false; dim])
}

fn compared(
    name: &str,
    title: &str,
    columns: &[String],
    learned: &Matrix,
    (label, truth): (&str, &Matrix),
    mark: Option<&[f32]>,
) -> Figure {
    corner(&Corner {
        name,
        title,
        columns,
        samples: vec![
            CornerSample {
                label: "learned",
                role: Role::Learned,
                sample: learned.view().into(),
                contours: true,
            },
            CornerSample {
                label,
                role: Role::Truth,
                sample: truth.view().into(),
                contours: true,
            },
        ],
        mark: mark.map(|mark| (mark, "x behind it")),
    })
}

fn save(figure: Figure, folder: &Path, caption: String) -> Result<Picture> {
    let [_, png] = report::save(&figure, folder)?;
    Ok(Picture { file: png, caption })
}
