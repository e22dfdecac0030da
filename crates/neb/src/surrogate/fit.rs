//! Stage 1: maximise Σ_j log q_φ(y_j|x_j) over the simulated pairs.

use rayon::prelude::*;

use crate::density::ConditionalDensity;
use crate::kernel::{LANES, Lane, tile};
use crate::train::Objective;
use crate::{Matrix, Noise, Purpose, Result};

/// Rows of a batch that one worker handles; fixed, so that sums do not depend on the number of threads.
const ROWS_PER_WORKER: usize = 64;

/// The mean negative log-density of standardised pairs.
pub(crate) struct PairsObjective<'a, M: ConditionalDensity> {
    model: &'a mut M,
    /// Standardised v (y), row by row.
    v: &'a Matrix,
    /// Standardised context (x), row by row, for densities that have one.
    context: Option<&'a Matrix>,
    workers: Vec<Worker<M>>,
    noise: Option<NoiseScale>,
    seed: u64,
}

/// Training with noise of random size added to v, its scale τ told to the model behind the context.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct NoiseScale {
    /// Smallest τ but zero, in deviations of y.
    pub smallest: f32,
    /// Largest τ.
    pub largest: f32,
}

impl NoiseScale {
    /// What the network sees of τ: −1 for τ = 0 up to 1 for the largest.
    pub(crate) fn feature(&self, tau: f32) -> f32 {
        let log = |t: f32| (1.0 + t / self.smallest).ln();
        2.0 * log(tau) / log(self.largest) - 1.0
    }

    /// τ = 0 for half of the rows, else log-uniform.
    fn draw(&self, uniform: f32) -> f32 {
        if uniform < 0.5 {
            0.0
        } else {
            let t = 2.0 * uniform - 1.0;
            (self.smallest.ln() * (1.0 - t) + self.largest.ln() * t).exp()
        }
    }
}

/// One worker's memory.
struct Worker<M: ConditionalDensity> {
    workspace: M::Workspace,
    v: Vec<Lane>,
    context: Vec<Lane>,
    d_v: Vec<Lane>,
    d_context: Vec<Lane>,
    sum: f64,
}

impl<'a, M: ConditionalDensity> PairsObjective<'a, M> {
    /// The objective for a model, its standardised pairs and, with `noise`, added noise.
    pub(crate) fn new(
        model: &'a mut M,
        v: &'a Matrix,
        context: Option<&'a Matrix>,
        noise: Option<NoiseScale>,
        seed: u64,
    ) -> Self {
        Self {
            model,
            v,
            context,
            workers: Vec::new(),
            noise,
            seed,
        }
    }

    fn ensure_workers(&mut self, rows: usize) -> usize {
        let needed = rows.div_ceil(ROWS_PER_WORKER);
        while self.workers.len() < needed {
            let (dim, context) = (self.model.dim(), self.model.context());
            self.workers.push(Worker {
                workspace: self.model.workspace(),
                v: vec![Lane::ZERO; dim],
                context: vec![Lane::ZERO; context],
                d_v: vec![Lane::ZERO; dim],
                d_context: vec![Lane::ZERO; context],
                sum: 0.0,
            });
        }
        needed
    }

    /// Sum of log q over the rows, worker by worker; `scale` is each row's weight in the gradient (none: no gradient).
    fn sum_log_prob(&mut self, rows: &[u32], step: u64, scale: Option<f32>) -> f64 {
        let needed = self.ensure_workers(rows.len());
        let (model, v, context, noise) = (&*self.model, self.v, self.context, self.noise);
        let augment = Noise::new(self.seed, Purpose::Augment, step);
        self.workers[..needed]
            .par_iter_mut()
            .zip(rows.par_chunks(ROWS_PER_WORKER))
            .enumerate()
            .for_each(|(w, (worker, rows))| {
                let mut stream = augment.stream(w as u64);
                worker.sum = 0.0;
                for rows in rows.chunks(LANES) {
                    tile::gather(v.view(), rows, &mut worker.v);
                    if let Some(context) = context {
                        tile::gather(context.view(), rows, &mut worker.context);
                    }
                    if let Some(noise) = noise {
                        let tau_lane = worker.context.len() - 1;
                        for lane in 0..LANES {
                            let tau = match scale {
                                Some(_) => noise.draw(stream.uniform() as f32),
                                None => 0.0,
                            };
                            worker.context[tau_lane].0[lane] = noise.feature(tau);
                            if tau > 0.0 {
                                for v in &mut worker.v {
                                    v.0[lane] += tau * stream.normal() as f32;
                                }
                            }
                        }
                    }
                    let value = match scale {
                        Some(scale) => {
                            let mut weight = Lane::ZERO;
                            weight.0[..rows.len()].fill(scale);
                            model.log_prob_backward(
                                &worker.v,
                                &worker.context,
                                &weight,
                                &mut worker.workspace,
                                &mut worker.d_v,
                                &mut worker.d_context,
                                true,
                            )
                        }
                        None => model.log_prob(&worker.v, &worker.context, &mut worker.workspace),
                    };
                    worker.sum += value.0[..rows.len()]
                        .iter()
                        .map(|&value| f64::from(value))
                        .sum::<f64>();
                }
            });
        self.workers[..needed].iter().map(|worker| worker.sum).sum()
    }
}

impl<M: ConditionalDensity> Objective for PairsObjective<'_, M> {
    fn rows(&self) -> usize {
        self.v.rows()
    }

    fn parameters(&self) -> &[f32] {
        self.model.parameters()
    }

    fn update(&mut self, change: &mut dyn FnMut(&mut [f32])) {
        change(self.model.parameters_mut());
        self.model.refresh();
    }

    fn loss(&mut self, rows: &[u32], step: u64, gradient: &mut [f32]) -> Result<f64> {
        let scale = -1.0 / rows.len() as f32;
        let sum = self.sum_log_prob(rows, step, Some(scale));
        gradient.fill(0.0);
        for worker in &mut self.workers {
            self.model.collect_gradient(&mut worker.workspace, gradient);
        }
        Ok(-sum / rows.len() as f64)
    }

    fn held_out_loss(&mut self, rows: &[u32]) -> Result<f64> {
        Ok(-self.log_prob_chunked(rows) / rows.len() as f64)
    }
}

impl<M: ConditionalDensity> PairsObjective<'_, M> {
    /// Σ log q of many rows, in pieces so that the number of workers stays small.
    fn log_prob_chunked(&mut self, rows: &[u32]) -> f64 {
        rows.chunks(16 * ROWS_PER_WORKER)
            .map(|rows| self.sum_log_prob(rows, 0, None))
            .sum()
    }
}
