//! A source with a density, fitted to given points by maximum likelihood: loss = −mean_j log q_θ(x_j).

use super::{Density, Source};
use crate::train::{self, CheckpointPolicy, Objective, Outcome, TrainConfig, Watch};
use crate::{Error, Matrix, Result, Rows};

/// Points evaluated at a time.
const ROWS_AT_A_TIME: usize = 1024;

struct PointsObjective<'a> {
    source: &'a mut dyn Source,
    points: Rows<'a>,
}

impl PointsObjective<'_> {
    fn density(&self) -> &dyn Density {
        self.source.density().expect("checked before training")
    }

    fn mean_log_prob(&self, rows: &[u32]) -> f64 {
        let sums = rows.chunks(ROWS_AT_A_TIME).map(|rows| {
            let x = self.points.gather(rows);
            let mut log = vec![0.0; rows.len()];
            self.density().log_prob(x.view(), &mut log);
            log.into_iter().map(f64::from).sum::<f64>()
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
        let weight = vec![-1.0 / rows.len() as f32; rows.len()];
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
    if source.density().is_none() {
        return Err(no_density("a fit to points by maximum likelihood"));
    }
    let mut objective = PointsObjective { source, points };
    train::train(&mut objective, config, seed, checkpoints, watch)
}

/// What is said to whoever asks a source without a density for one.
pub(super) fn no_density(who: &str) -> Error {
    Error::input(
        format!("{who} needs the source's density, and this source (mlp) can only be drawn from"),
        "use a source of kind affine, affine-full, coupling, spline or umnn",
    )
}
