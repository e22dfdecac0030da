//! One cell: both stages, then the judges.
//!
//! Folder `PRESET/PROBLEM-REPEAT` holds the surrogate that the cells of a repeat share, and for every row the folder of its
//! run and, when all of it is done, `ROW.json`. A cell with that file is never run again.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Result;
use neb::check::{
    BoostedTrees, Calibration, Classifier, CompareOptions, Estimate, Network, Sample, separate,
};
use neb::posterior::{Budget, Method, PosteriorOptions};
use neb::source::Observations;
use neb::source::ladder::LadderWatch;
use neb::surrogate::{Pairs, Surrogate};
use neb::{Matrix, Noise, Purpose, Rows};
use serde::{Deserialize, Serialize};

use super::data::{Data, JUDGED, Nature};
use super::plan::{Cell, Estimator, Setup};
use super::unfolded;
use crate::embed::{
    FittedSource, Posteriors, Settings, SourceTask, Stage, fit_source, fit_surrogate,
    load_surrogate, push,
};
use crate::failure::Failure;
use crate::files::write_json;
use crate::interrupt;
use crate::run_folder::{CALIBRATION, SUMMARY};

/// Events whose posteriors are checked, and draws for each.
const EVENTS: usize = 1000;
const DRAWS: usize = 200;

/// One comparison by both judges.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Judged {
    /// AUC of the sharper of our two classifiers.
    pub(super) ours: f64,
    pub(super) error: f64,
    /// AUC of the authors' classifier.
    pub(super) authors: f64,
}

/// Seconds of one core or more, as the cell was run.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Seconds {
    pub(super) source: f64,
    pub(super) judging: f64,
}

/// A finished cell.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Measured {
    pub(super) cell: Cell,
    /// Both configuration files.
    pub(super) settings: [String; 2],
    pub(super) x: Judged,
    pub(super) y: Judged,
    /// Greatest KS distance of the posteriors' ranks, and what exact posteriors stay below in 95 of 100 cases.
    pub(super) ks: Option<[f64; 2]>,
    /// Posteriors that a budget left empty.
    pub(super) without_posterior: usize,
    pub(super) seconds: Seconds,
    pub(super) threads: usize,
    pub(super) version: String,
}

/// Where a cell's files are.
pub(super) struct Place {
    folder: PathBuf,
    slug: String,
}

impl Place {
    pub(super) fn of(root: &Path, cell: &Cell, setup: &Setup) -> Self {
        Self {
            folder: root
                .join(setup.preset_of(cell.row))
                .join(format!("{}-{}", cell.problem, cell.repeat)),
            slug: cell.row.slug(),
        }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn surrogate(&self) -> PathBuf {
        self.folder.join("surrogate.safetensors")
    }

    pub(super) fn run(&self) -> PathBuf {
        self.folder.join(&self.slug)
    }

    fn result(&self) -> PathBuf {
        self.folder.join(format!("{}.json", self.slug))
    }

    /// Whether there is anything left to measure.
    pub(super) fn is_complete(&self, cell: &Cell, setup: &Setup) -> Result<bool> {
        let found = self.finished(cell, setup)?;
        Ok(found.is_some_and(|measured| measured.ks.is_some() || !cell.calibrated))
    }

    /// The cell as it was measured, if it was, with these settings; perhaps without its posteriors.
    pub(super) fn finished(&self, cell: &Cell, setup: &Setup) -> Result<Option<Measured>> {
        let file = self.result();
        if !file.exists() {
            return Ok(None);
        }
        let unreadable = |why: String| {
            Failure::input(
                format!("{}: {why}", file.display()),
                "remove it to run the cell again",
            )
        };
        let text = std::fs::read_to_string(&file).map_err(|error| unreadable(error.to_string()))?;
        let measured: Measured =
            serde_json::from_str(&text).map_err(|error| unreadable(error.to_string()))?;
        if measured.settings != setup.settings(cell) {
            return Err(Failure::input(
                format!("{}: was measured with other settings", file.display()),
                "choose another folder with -o, or the settings of the first run",
            ));
        }
        Ok(Some(measured))
    }
}

/// Trains the surrogate of a cell's repeat.
pub(super) fn surrogate(
    place: &Place,
    cell: &Cell,
    setup: &Setup,
    data: &Data,
    watch: &mut LadderWatch,
) -> Result<()> {
    let settings = Settings::parse(
        &setup.surrogate_settings(cell),
        "the plan",
        Stage::Surrogate,
    )?;
    std::fs::create_dir_all(&place.folder)?;
    let pairs = Pairs {
        x: data.x.values.view(),
        y: data.y.values.view(),
        x_names: &data.x.names,
        y_names: &data.y.names,
    };
    fit_surrogate(pairs, &settings, Some(&place.surrogate()), false, watch)?;
    Ok(())
}

/// Fits a source to observations, with settings given as a configuration file, unless its folder is there.
pub(super) fn source(
    run: &Path,
    settings: &str,
    surrogate: &Surrogate,
    data: &Data,
    y: Rows,
    watch: &mut LadderWatch,
) -> Result<()> {
    if run.exists() {
        return Ok(());
    }
    let task = SourceTask {
        surrogate,
        stage1: None,
        x: data.x.values.view(),
        observations: Observations { y, weights: None },
        settings: &Settings::parse(settings, "the plan", Stage::Source)?,
        output: run,
        force: false,
    };
    Ok(fit_source(task, watch)?)
}

/// What is judged: x and y of a source's draws, or of weighted events.
pub(super) struct Drawn<'a> {
    pub(super) x: Cow<'a, Matrix>,
    pub(super) y: Cow<'a, Matrix>,
    pub(super) weights: Option<Vec<f32>>,
}

/// Fits the source of a cell, if that was not done, judges it, and writes what was found.
pub(super) fn measure(
    place: &Place,
    cell: &Cell,
    setup: &Setup,
    data: &Data,
    watch: &mut LadderWatch,
) -> Result<()> {
    let run = place.run();
    let mut posteriors = (None, 0);
    let (drawn, started) = if cell.row.shares_surrogate() {
        let surrogate = load_surrogate(&place.surrogate())?;
        let text = setup.source_settings(cell);
        source(&run, &text, &surrogate, data, data.observed.view(), watch)?;
        let started = Instant::now();
        let fitted = FittedSource::load(&run)?;
        let drawn = draw(cell, data, &fitted, &surrogate)?;
        if cell.calibrated {
            let (found, left_out) = calibrate(cell, data, &fitted, &surrogate)?;
            write_json(&run.join(CALIBRATION), &found)?;
            posteriors = (Some([found.ks, found.ks_limit]), left_out);
        }
        (drawn, started)
    } else {
        let weighted = unfolded::weighted(place, cell, setup, data, watch)?;
        (weighted, Instant::now())
    };
    let sample = |rows| Sample {
        rows,
        weights: drawn.weights.as_deref(),
    };
    let x = judge(sample(drawn.x.view()), data.true_x.view(), cell.seed)?;
    let y = judge(sample(drawn.y.view()), data.true_y.view(), cell.seed)?;
    let (ks, without_posterior) = posteriors;
    let measured = Measured {
        cell: cell.clone(),
        settings: setup.settings(cell),
        x,
        y,
        ks,
        without_posterior,
        seconds: Seconds {
            source: seconds_of(&run)?,
            judging: started.elapsed().as_secs_f64(),
        },
        threads: rayon::current_num_threads(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    write_json(&place.result(), &measured)
}

/// As many draws of a source as there are rows of the truth, and what they look like when observed.
fn draw(
    cell: &Cell,
    data: &Data,
    fitted: &FittedSource,
    surrogate: &Surrogate,
) -> Result<Drawn<'static>> {
    let x = fitted.sample(data.true_x.rows(), cell.seed);
    let y = match data.nature {
        Nature::Problem(problem) => {
            let noise = Noise::new(cell.seed, Purpose::DrawY, JUDGED + 1);
            problem.corrupt(x.view(), noise)
        }
        Nature::Files(_) => push(surrogate, x.view(), cell.seed)?,
    };
    Ok(Drawn {
        x: Cow::Owned(x),
        y: Cow::Owned(y),
        weights: None,
    })
}

/// Seconds that the fit of a run took, as its summary has them: it may have been made by an earlier command.
fn seconds_of(run: &Path) -> Result<f64> {
    let file = run.join(SUMMARY);
    let summary: serde_json::Value = serde_json::from_slice(&std::fs::read(&file)?)?;
    let seconds = ["seconds", "nominal_seconds"].map(|key| summary[key].as_f64());
    seconds.into_iter().flatten().next().ok_or_else(|| {
        Failure::input(
            format!("{}: has no `seconds`", file.display()),
            "remove the folder to run the cell again",
        )
    })
}

/// AUC by our classifiers and by the authors', who train on three quarters and judge on the last: four folds of the same.
fn judge(drawn: Sample, truth: Rows, seed: u64) -> Result<Judged> {
    let options = CompareOptions {
        seed,
        ..CompareOptions::default()
    };
    let quarters = CompareOptions {
        folds: 4,
        ..options.clone()
    };
    let auc = |classifier: &dyn Classifier, options| -> Result<Estimate> {
        Ok(separate(classifier, drawn, truth, options)?.auc)
    };
    let network = auc(&Network::default(), &options)?;
    let trees = auc(&BoostedTrees::default(), &options)?;
    let ours = match trees.value > network.value {
        true => trees,
        false => network,
    };
    let authors = auc(&Network::of_the_authors(truth.cols()), &quarters)?;
    Ok(Judged {
        ours: ours.value,
        error: ours.standard_error,
        authors: authors.value,
    })
}

/// The sampler that the paper uses for an estimator; none for the one that suits.
pub(super) fn sampler(estimator: Estimator) -> Option<Method> {
    match estimator {
        Estimator::Elbo => Some(Method::Direct),
        Estimator::Iw(_) => Some(Method::Importance),
        Estimator::Auto | Estimator::Unfold => None,
        _ => Some(Method::Rejection),
    }
}

fn calibrate(
    cell: &Cell,
    data: &Data,
    source: &FittedSource,
    surrogate: &Surrogate,
) -> Result<(Calibration, usize)> {
    let events = EVENTS.min(data.true_x.rows());
    let options = PosteriorOptions {
        draws: DRAWS,
        seed: cell.seed,
        budget: Budget::default(),
    };
    let posteriors = Posteriors { source, surrogate };
    let (calibration, left_out, _) = interrupt::tracked(|tracker| {
        Ok(posteriors.calibrate(
            data.true_x.view().slice(0..events),
            data.true_y.view().slice(0..events),
            sampler(cell.row.estimator),
            &options,
            tracker,
        )?)
    })?;
    Ok((calibration, left_out))
}
