//! The posterior of one event of the truth, by importance: draws of the source, weighted by q(y|x).

use neb::check::Sample;
use neb::{Likelihood, Matrix, Noise, Purpose, Rows};
use neb_report::figures::{Corner, CornerSample, corner};
use neb_report::{Block, Role, grouped};

use super::super::material::{Material, Truth};
use super::STEP;
use crate::files::Address;

/// Draws of the source at a time, and how often at most.
const CHUNK: usize = 50_000;
const CHUNKS: usize = 12;
/// Effective draws that are enough, and that are needed.
const ENOUGH: f64 = 3000.0;
const NEEDED: f64 = 200.0;
/// Rows of the truth that are looked at, and the effective draws of one chunk that promise enough of all.
const ROWS: usize = 50;
const PROMISING: f64 = NEEDED / CHUNKS as f64;
/// Draws whose log-weight is so much below the greatest are left out.
const NEGLIGIBLE: f32 = 18.0;

/// Weighted draws.
#[derive(Default)]
struct Posterior {
    x: Vec<f32>,
    log_weights: Vec<f32>,
    drawn: usize,
}

impl Posterior {
    /// Draws until there are enough effective draws, or the budget is spent.
    fn draw(material: &Material, y: Rows) -> Self {
        let mut posterior = Self::default();
        for chunk in 0..CHUNKS {
            posterior.add_chunk(material, y, chunk);
            let hopeless = chunk == 0 && posterior.effective() < PROMISING;
            if hopeless || posterior.effective() >= ENOUGH {
                break;
            }
        }
        posterior
    }

    fn add_chunk(&mut self, material: &Material, y: Rows, chunk: usize) {
        let noise = Noise::new(material.seed, Purpose::Posterior, STEP + chunk as u64);
        let x = material.source.source().sample(CHUNK, noise);
        let mut logs = Matrix::zeros(1, CHUNK);
        material
            .surrogate
            .log_prob_pairs(y, x.view(), logs.view_mut());
        self.add(&x, logs.row(0));
    }

    fn add(&mut self, x: &Matrix, logs: &[f32]) {
        let greatest = self.log_weights.iter().chain(logs).copied();
        let floor = greatest.fold(f32::NEG_INFINITY, f32::max) - NEGLIGIBLE;
        for (row, &log) in logs.iter().enumerate().filter(|(_, log)| **log > floor) {
            self.x.extend_from_slice(x.row(row));
            self.log_weights.push(log);
        }
        self.drawn += logs.len();
    }

    /// The weights over the greatest.
    fn weights(&self) -> Vec<f32> {
        let logs = self.log_weights.iter().copied();
        let greatest = logs.clone().fold(f32::NEG_INFINITY, f32::max);
        logs.map(|log| (log - greatest).max(-80.0).exp()).collect()
    }

    /// (Σ w)² / Σ w².
    fn effective(&self) -> f64 {
        let (mut sum, mut square) = (0.0, 0.0);
        for weight in self.weights().into_iter().map(f64::from) {
            sum += weight;
            square += weight * weight;
        }
        if square > 0.0 {
            sum * sum / square
        } else {
            0.0
        }
    }
}

/// The posterior of the first row of the truth that can be drawn so, with the x it was simulated from.
pub(super) fn example(material: &Material, truth: &Truth, y: &Matrix) -> Block {
    let to_y = material.surrogate.y_transforms();
    let rows = y.rows().min(ROWS);
    let found = (0..rows)
        .filter_map(|row| {
            let seen = y.view().slice(row..row + 1).to_matrix();
            let noise = Address::DrawY(row as u64).noise(material.seed);
            let names = material.surrogate.y_names();
            let seen = to_y.forward(seen, names, noise).ok()?;
            Some((row, Posterior::draw(material, seen.view())))
        })
        .find(|(_, posterior)| posterior.effective() >= NEEDED);
    let Some((row, posterior)) = found else {
        return Block::Words(format!(
            "No posterior is drawn: those of the first {rows} rows of the truth are so narrow that of {} draws of the source, weighted by \
             q(y|x), fewer than {NEEDED} are effective. `neb posterior` has methods for them.",
            grouped(CHUNK * CHUNKS)
        ));
    };
    let (drawn, effective) = (grouped(posterior.drawn), posterior.effective());
    let x = Matrix::from_vec(posterior.x.clone(), material.x_names.len());
    let x = material.surrogate.x_transforms().inverse(x);
    let weights = posterior.weights();
    let figure = corner(&Corner {
        name: "posterior",
        title: "Posterior of one event with its true x",
        columns: &material.x_names,
        samples: vec![CornerSample {
            label: "posterior",
            role: Role::Learned,
            sample: Sample::weighted(x.view(), &weights),
            contours: true,
        }],
        mark: Some((truth.x.values.row(row), "true x")),
    });
    let values = y.row(row).iter().map(|value| format!("{value:.3}"));
    let values: Vec<String> = values.collect();
    let caption = format!(
        "The posterior of row {} of the truth (y = {}), the first whose posterior is not too narrow for it, from {drawn} draws of the source weighted by q(y|x), {effective:.0} of them effective; the \
         cross is the x it was simulated from. The true x lies outside the 95 % region of a pair in one of twenty events; one event \
         alone proves nothing.",
        row + 1,
        values.join(", ")
    );
    Block::Figure(figure, caption)
}
