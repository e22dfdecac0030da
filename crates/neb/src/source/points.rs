//! A source with a density, fitted to given points by maximum likelihood: loss = −mean_j w_j log q_θ(x_j), all w_j = 1 unless
//! they are given.

use super::{Density, Source};
use crate::train::{self, CheckpointPolicy, Objective, Outcome, TrainConfig, Watch};
use crate::{Error, Matrix, Result, Rows};

/// Points evaluated at a time.
const ROWS_AT_A_TIME: usize = 1024;

struct PointsObjective<'a> {
    source: &'a mut dyn Source,
    points: Rows<'a>,
    /// w_j, of mean 1; all 1 if absent.
    weights: Option<&'a [f32]>,
}

impl PointsObjective<'_> {
    fn density(&self) -> &dyn Density {
        self.source.density().expect("checked before training")
    }

    fn weight(&self, row: u32) -> f32 {
        self.weights.map_or(1.0, |weights| weights[row as usize])
    }

    fn mean_log_prob(&self, rows: &[u32]) -> f64 {
        let sums = rows.chunks(ROWS_AT_A_TIME).map(|rows| {
            let x = self.points.gather(rows);
            let mut log = vec![0.0; rows.len()];
            self.density().log_prob(x.view(), &mut log);
            let each = log.into_iter().zip(rows);
            each.map(|(log, &row)| f64::from(log) * f64::from(self.weight(row)))
                .sum::<f64>()
        });
        sums.sum::<f64>() / rows.len() as f64
    }
}

impl Objective for PointsObjective<'_> {
    fn rows(&self) -> usize {
        self.points.rows()
    }

    fn parameters(&self) -> &[f32] {
        self.source.parameters()
    }

    fn update(&mut self, change: &mut dyn FnMut(&mut [f32])) {
        self.source.update(change);
    }

    fn loss(&mut self, rows: &[u32], _step: u64, gradient: &mut [f32]) -> Result<f64> {
        gradient.fill(0.0);
        let share = -1.0 / rows.len() as f32;
        let weight: Vec<f32> = rows.iter().map(|&row| share * self.weight(row)).collect();
        let x = self.points.gather(rows);
        let mut dx = Matrix::zeros(x.rows(), x.cols());
        let density = self.density();
        density.backward_log_prob(x.view(), &weight, dx.view_mut(), Some(gradient));
        Ok(-self.mean_log_prob(rows))
    }

    fn held_out_loss(&mut self, rows: &[u32]) -> Result<f64> {
        Ok(-self.mean_log_prob(rows))
    }
}

/// Fits a source with a density to points by maximum likelihood; an existing checkpoint is resumed.
///
/// # Errors
/// A source without a density, a loss that is not finite (points outside the support), too few points for a batch, a
/// checkpoint of another run, or a stop on request.
pub fn fit_points(
    source: &mut dyn Source,
    points: Rows,
    config: &TrainConfig,
    seed: u64,
    checkpoints: Option<&CheckpointPolicy>,
    watch: &mut Watch,
) -> Result<Outcome> {
    fit(source, points, None, config, seed, checkpoints, watch)
}

/// As [`fit_points`], with weights: point j counts w_j times, the w_j of mean 1.
///
/// # Errors
/// As [`fit_points`]; also weights that are not one per point, negative, not finite, or not of mean 1.
pub fn fit_weighted_points(
    source: &mut dyn Source,
    points: Rows,
    weights: &[f32],
    config: &TrainConfig,
    seed: u64,
    checkpoints: Option<&CheckpointPolicy>,
    watch: &mut Watch,
) -> Result<Outcome> {
    let usable = |weight: &f32| weight.is_finite() && *weight >= 0.0;
    let mean = weights.iter().map(|&w| f64::from(w)).sum::<f64>() / points.rows() as f64;
    let fits = weights.len() == points.rows() && weights.iter().all(usable);
    if !fits || (mean - 1.0).abs() > 1e-3 {
        return Err(Error::input(
            format!(
                "{} weights of mean {mean} for {} points",
                weights.len(),
                points.rows()
            ),
            "give one weight per point, none negative, scaled to a mean of 1",
        ));
    }
    fit(
        source,
        points,
        Some(weights),
        config,
        seed,
        checkpoints,
        watch,
    )
}

fn fit(
    source: &mut dyn Source,
    points: Rows,
    weights: Option<&[f32]>,
    config: &TrainConfig,
    seed: u64,
    checkpoints: Option<&CheckpointPolicy>,
    watch: &mut Watch,
) -> Result<Outcome> {
    if source.density().is_none() {
        return Err(no_density("a fit to points by maximum likelihood"));
    }
    let mut objective = PointsObjective {
        source,
        points,
        weights,
    };
    train::train(&mut objective, config, seed, checkpoints, watch)
}

/// What is said to whoever asks a source without a density for one.
pub(super) fn no_density(who: &str) -> Error {
    Error::input(
        format!("{who} needs the source's density, and this source (mlp) can only be drawn from"),
        "use a source of kind affine, affine-full, coupling, spline or umnn",
    )
}
