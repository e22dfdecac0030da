//! What the data hold besides the signal: background events, and fakes (reconstructed, but never produced).
//!
//! Both are known as samples on the observed side. Background comes with its absolute normalisation: its weights add up to the
//! number of events expected in the data. Fakes come with the simulation: their share of its reconstructed events, φ, is their
//! share of the data that is not background. Together they are the share
//!
//! β = [B + φ (N − B)] / N
//!
//! of the data, N and B the sums of weights, with one density b(y), a flow fitted by maximum likelihood.

use std::ops::ControlFlow;

use super::events::Events;
use super::weights::{positive_weights, squares, total};
use crate::nn::adam::AdamConfig;
use crate::nn::schedule::Schedule;
use crate::source::{Model, SourceConfig, SourceKind};
use crate::train::TrainConfig;
use crate::{Error, Matrix, Noise, Purpose, Result, Rows};

/// Fewest events a density can be fitted to.
const FEWEST: usize = 50;
/// Slices of each column in which background and data are compared.
const SLICES: usize = 20;
/// Standard errors by which the background may exceed the data in a slice.
const TOLERANCE: f64 = 4.0;

/// Share and density of what is not signal.
pub struct Contamination {
    /// β, of the data's weight.
    pub share: f64,
    density: Model,
}

impl Contamination {
    /// Fits the density of the fakes and the background together; none where the events have neither.
    ///
    /// # Errors
    /// Too few events, or more background than data: all in all, or in some region, which is named.
    pub fn fit(events: &Events, names: &[String], seed: u64) -> Result<Option<Self>> {
        let data = total(&events.data_weights);
        let background = total(&events.background_weights);
        if background >= data {
            return Err(Error::input(
                format!("the background weighs {background}, the data {data}"),
                "scale the background's weights to the number of events expected in the data",
            ));
        }
        let fake_share = events.fake_share();
        let fakes = fake_share * (data - background);
        if background + fakes == 0.0 {
            return Ok(None);
        }
        // Both samples with the weights they have in the data.
        let fake_scale = match fake_share > 0.0 {
            true => fakes / total(&events.fake_weights),
            false => 0.0,
        };
        let mut y = events.background.values().to_vec();
        y.extend_from_slice(events.fakes.values());
        let y = Matrix::from_vec(y, events.data.cols());
        let mut weights = events.background_weights.clone();
        let scaled = events.fake_weights.iter();
        weights.extend(scaled.map(|&weight| (f64::from(weight) * fake_scale) as f32));
        if y.rows() < FEWEST {
            return Err(Error::input(
                format!("{} events of background and fakes", y.rows()),
                format!("the density of what is not signal needs at least {FEWEST}"),
            ));
        }
        check_regions(events, y.view(), &weights, names)?;
        let weights = positive_weights(y.view(), &weights, seed)?;
        let points = resampled(y.view(), &weights, seed);
        let mut density = SourceConfig {
            hidden: vec![32, 32],
            ..SourceConfig::new(SourceKind::Spline)
        }
        .build_from_points(points.view(), names, seed)?;
        let rows = points.rows();
        let train = TrainConfig {
            epochs: 60,
            batch: 128.min(rows / 4),
            rate: 2e-3,
            schedule: Schedule::Cosine { warm_up: 0.05 },
            adam: AdamConfig {
                clip_norm: 5.0,
                ..AdamConfig::default()
            },
            held_out: 0.2,
            patience: 10,
        };
        let never = &mut |_: &crate::train::Progress| ControlFlow::Continue(());
        density.fit_points(points.view(), &train, seed, None, never)?;
        Ok(Some(Self {
            share: (background + fakes) / data,
            density,
        }))
    }

    /// log b(y), row by row.
    ///
    /// # Errors
    /// A density that is none; a defect.
    pub fn log_density(&self, y: Rows) -> Result<Vec<f32>> {
        let mut log = vec![0.0; y.rows()];
        self.density
            .require_density("the background")?
            .log_prob(y, &mut log);
        Ok(log)
    }
}

/// As many rows, drawn by their weights: each so many times as its weight says, rounded up or down at random.
fn resampled(y: Rows, weights: &[f32], seed: u64) -> Matrix {
    let mut stream = Noise::new(seed, Purpose::Unfold, 0).stream(0);
    let scale = y.rows() as f64 / total(weights);
    let mut rows = Vec::with_capacity(y.rows());
    let (mut reached, offset) = (0.0, stream.uniform());
    for (row, &weight) in weights.iter().enumerate() {
        reached += f64::from(weight) * scale;
        while (rows.len() as f64) + offset < reached {
            rows.push(row as u32);
        }
    }
    y.gather(&rows)
}

/// Refuses a background that exceeds the data somewhere by more than chance.
fn check_regions(events: &Events, y: Rows, weights: &[f32], names: &[String]) -> Result<()> {
    let data = events.data.view();
    for column in 0..data.cols() {
        let mut values: Vec<f32> = (0..y.rows()).map(|row| y.row(row)[column]).collect();
        values.sort_unstable_by(f32::total_cmp);
        let edge = |slice: usize| match slice {
            0 => f32::NEG_INFINITY,
            SLICES => f32::INFINITY,
            _ => values[slice * values.len() / SLICES],
        };
        for slice in 0..SLICES {
            let (low, high) = (edge(slice), edge(slice + 1));
            let inside = |rows: Rows, weights: &[f32]| -> Vec<f32> {
                let is_in = |row: &usize| (low..high).contains(&rows.row(*row)[column]);
                (0..rows.rows())
                    .filter(is_in)
                    .map(|row| weights[row])
                    .collect()
            };
            let other = inside(y, weights);
            let seen = inside(data, &events.data_weights);
            let (expected, found) = (total(&other), total(&seen));
            // No data at all may still be a fluctuation of what one event weighs.
            let one = squares(&events.data_weights) / total(&events.data_weights);
            let error = (squares(&other) + squares(&seen) + one * one).sqrt();
            if expected > found + TOLERANCE * error {
                return Err(Error::input(
                    format!(
                        "column `{}` from {low} to {high}: background and fakes weigh {expected:.1}, the data only {found:.1} \
                         ± {error:.1}",
                        names.get(column).map_or("?", |name| name)
                    ),
                    "check the weights of the background, and that it was selected as the data were",
                ));
            }
        }
    }
    Ok(())
}
