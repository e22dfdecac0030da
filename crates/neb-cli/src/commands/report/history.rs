//! `history.csv`: every epoch of every training, its columns found by name.

use std::path::Path;

use anyhow::Result;

use super::unusable;

/// One training.
#[derive(Debug, PartialEq)]
pub(super) struct Training {
    /// `surrogate` or `source`.
    pub(super) stage: String,
    /// The candidate or rung.
    pub(super) name: String,
    pub(super) epochs: Vec<Epoch>,
}

/// One epoch; what was not recorded is not a number.
#[derive(Debug, PartialEq)]
pub(super) struct Epoch {
    pub(super) epoch: f64,
    pub(super) train: f64,
    pub(super) held_out: f64,
    pub(super) effective_samples: f64,
}

impl Training {
    /// The epochs as points of one of their values, without those that were not recorded.
    pub(super) fn points(&self, value: impl Fn(&Epoch) -> f64) -> Vec<[f64; 2]> {
        let points = self.epochs.iter().map(|epoch| [epoch.epoch, value(epoch)]);
        points.filter(|point| point[1].is_finite()).collect()
    }

    /// The epoch of the least held-out loss.
    pub(super) fn best(&self) -> Option<f64> {
        let points = self.points(|epoch| epoch.held_out);
        let best = points.into_iter().min_by(|a, b| a[1].total_cmp(&b[1]));
        best.map(|point| point[0])
    }

    /// What the last tenth of the epochs still gained in held-out loss; none where there are too few.
    pub(super) fn last_gain(&self) -> Option<f64> {
        let points = self.points(|epoch| epoch.held_out);
        let least = |points: &[[f64; 2]]| points.iter().fold(f64::INFINITY, |m, p| m.min(p[1]));
        let before = points.len() - points.len() / 10;
        (points.len() >= 10).then(|| least(&points[..before]) - least(&points))
    }
}

/// Reads the file.
pub(super) fn read(path: &Path) -> Result<Vec<Training>> {
    let mut reader = csv::Reader::from_path(path).map_err(|error| unusable(path, error))?;
    let names = reader
        .headers()
        .map_err(|error| unusable(path, error))?
        .clone();
    let column = |name: &str| names.iter().position(|known| known == name);
    let required = |name: &str| {
        column(name).ok_or_else(|| unusable(path, format!("there is no column `{name}`")))
    };
    let (stage, rung, epoch) = (required("stage")?, required("rung")?, required("epoch")?);
    let values = ["train", "held_out", "effective_samples"].map(column);
    let mut trainings: Vec<Training> = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| unusable(path, error))?;
        let number = |column: Option<usize>| {
            let cell = column.and_then(|column| record.get(column));
            cell.and_then(|cell| cell.parse().ok()).unwrap_or(f64::NAN)
        };
        let (stage, name) = (&record[stage], &record[rung]);
        let same = |training: &Training| training.stage == stage && training.name == name;
        if !trainings.last().is_some_and(same) {
            trainings.push(Training {
                stage: stage.to_owned(),
                name: name.to_owned(),
                epochs: Vec::new(),
            });
        }
        let training = trainings.last_mut().expect("one was just added");
        training.epochs.push(Epoch {
            epoch: number(Some(epoch)),
            train: number(values[0]),
            held_out: number(values[1]),
            effective_samples: number(values[2]),
        });
    }
    Ok(trainings)
}
