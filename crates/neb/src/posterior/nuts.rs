//! Hamiltonian chains (NUTS, crate `nuts-rs`) through the source's density.
//!
//! Several chains per observation start from samples of the source, chosen by their likelihood, and forget where they began
//! during warm-up. A bounded source is seen through coordinates without edges ([`Unconstrained`]); where its
//! support is not known to be a box, stepping outside counts as a divergence.
//!
//! **When a mode is missed.** A chain cannot cross a region of no density between two modes: each stays in the mode it began
//! in. Starting points fall into the modes by their weight, so four chains on two equal modes miss one in 1 of 8 cases,
//! and even if both are met, the share of each is that of the starting points, not of the posterior. Chains in different modes
//! show as R-hat above 1.01; chains that all began in the same one show nothing. Where modes are expected, compare with
//! [`Posterior::rejection`] or [`Posterior::importance`].

use std::collections::HashMap;

use nuts_rs::{
    Chain, CpuLogpFunc, CpuMath, CpuMathError, DiagNutsSettings, HasDims, LogpError, Settings,
};
use rayon::prelude::*;

use super::ascent::PILOT;
use super::bank::{Bank, Extent};
use super::clock::Clock;
use super::importance::systematic;
use super::potential::Potential;
use super::{
    Draws, Method, Posterior, PosteriorOptions, Scaled, Stopped, Unconstrained, effective_size,
    split_r_hat,
};
use crate::{Error, Matrix, Noise, Purpose, Result, Rows};

/// Settings of the chains.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct NutsOptions {
    /// Chains per observation.
    pub chains: usize,
    /// Draws of each chain that are thrown away.
    pub warm_up: usize,
    /// A trajectory has at most two to this power steps.
    pub max_depth: u64,
}

impl Default for NutsOptions {
    fn default() -> Self {
        Self {
            chains: 4,
            warm_up: 500,
            max_depth: 8,
        }
    }
}

impl Posterior<'_> {
    /// Draws from every observation's posterior by Hamiltonian chains.
    ///
    /// # Errors
    /// A source without a density; observations or settings that cannot be used.
    pub fn nuts(&self, y: Rows, options: &PosteriorOptions, nuts: &NutsOptions) -> Result<Draws> {
        self.check(y)?;
        let density = self.density()?;
        if options.draws == 0 || nuts.chains == 0 {
            return Err(Error::input(
                format!("{} draws from {} chains", options.draws, nuts.chains),
                "ask for at least 1 of each",
            ));
        }
        let bank = Bank {
            source: self.prior,
            seed: options.seed,
        };
        let x = bank.first(PILOT.min(options.budget.max_samples.max(1) as usize));
        let coordinates: Box<dyn Unconstrained> = match density.support() {
            Some(domain) => Box::new(domain),
            None => {
                let Extent {
                    mean, deviation, ..
                } = Extent::of(&x);
                Box::new(Scaled { mean, deviation })
            }
        };
        let plan = Plan {
            posterior: *self,
            coordinates: &*coordinates,
            length: options.draws.div_ceil(nuts.chains),
            seed: options.seed,
            nuts,
            clock: self.clock(&options.budget),
        };
        plan.clock.tell(0, y.rows());
        let rows: Vec<Result<Vec<Traced>>> = (0..y.rows())
            .into_par_iter()
            .map(|row| {
                let chains = plan.chains(row, y.slice(row..row + 1), &x);
                plan.clock.tell_one();
                chains
            })
            .collect();
        let mut draws = Draws::empty(Method::Nuts, y.rows(), self.prior.dim(), options.draws);
        draws.samples = x.rows() as u64;
        for (row, chains) in rows.into_iter().enumerate() {
            draws.take_chains(row, &chains?);
        }
        if !draws.complete() && plan.clock.is_over() {
            draws.stopped = Some(Stopped::Seconds);
        }
        Ok(draws)
    }
}

/// What every chain needs to know.
struct Plan<'a> {
    posterior: Posterior<'a>,
    coordinates: &'a dyn Unconstrained,
    length: usize,
    seed: u64,
    nuts: &'a NutsOptions,
    clock: Clock<'a>,
}

/// The draws of one chain after warm-up.
struct Traced {
    x: Matrix,
    divergences: usize,
}

impl Plan<'_> {
    /// All chains of one observation; none where no sample of the bank has a likelihood.
    fn chains(&self, row: usize, y: Rows, bank: &Matrix) -> Result<Vec<Traced>> {
        let mut logs = Matrix::zeros(1, bank.rows());
        self.posterior
            .likelihood
            .log_prob_pairs(y, bank.view(), logs.view_mut());
        // Beside the steps of the other methods.
        let noise = Noise::new(self.seed, Purpose::Posterior, (4 << 40) + row as u64);
        let (starts, _) = systematic(logs.values(), self.nuts.chains, &mut noise.stream(0));
        starts
            .into_par_iter()
            .enumerate()
            .map(|(chain, start)| self.chain(chain as u64, y, bank.row(start), noise))
            .collect()
    }

    fn chain(&self, chain: u64, y: Rows, start: &[f32], noise: Noise) -> Result<Traced> {
        let settings = DiagNutsSettings {
            num_tune: self.nuts.warm_up as u64,
            num_draws: self.length as u64,
            maxdepth: self.nuts.max_depth,
            ..DiagNutsSettings::default()
        };
        let likelihood = self.posterior.likelihood;
        let density = self.posterior.density()?;
        let target = Target(Potential::new(likelihood, density, self.coordinates, y));
        let mut stream = noise.stream(chain + 1);
        let mut sampler = settings
            .new_chain(chain, CpuMath::new(target), stream.generator())
            .map_err(failed)?;
        let start = self.coordinates.to_u(start);
        sampler.set_position(&start).map_err(failed)?;
        let dim = density.dim();
        let mut x = Vec::with_capacity(self.length * dim);
        let mut point = vec![0.0; dim];
        let mut divergences = 0;
        for draw in 0..self.nuts.warm_up + self.length {
            if self.clock.is_over() {
                break;
            }
            let (u, progress) = sampler.draw().map_err(failed)?;
            if draw >= self.nuts.warm_up {
                divergences += usize::from(progress.diverging);
                self.coordinates.to_x(&u, &mut point);
                x.extend_from_slice(&point);
            }
        }
        Ok(Traced {
            x: Matrix::from_vec(x, dim),
            divergences,
        })
    }
}

impl Draws {
    fn take_chains(&mut self, row: usize, chains: &[Traced]) {
        let dim = self.x.cols();
        let values: Vec<f32> = chains
            .iter()
            .flat_map(|chain| chain.x.values().iter().copied())
            .take(self.per_observation * dim)
            .collect();
        self.put(row, &values);
        let (mut ess, mut r_hat) = (self.per_observation as f64, 1.0f64);
        for d in 0..dim {
            let column = |chain: &Traced| -> Vec<f64> {
                let rows = 0..chain.x.rows();
                rows.map(|row| f64::from(chain.x.row(row)[d])).collect()
            };
            let columns: Vec<Vec<f64>> = chains.iter().map(column).collect();
            ess = ess.min(effective_size(&columns));
            let found = split_r_hat(&columns);
            r_hat = if found.is_nan() {
                found
            } else {
                r_hat.max(found)
            };
        }
        self.ess[row] = ess;
        self.r_hat.push(r_hat);
        self.divergences
            .push(chains.iter().map(|chain| chain.divergences).sum());
    }
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::non_finite(
        format!("a chain could not go on: {error:#}"),
        "draw these posteriors by rejection or importance",
    )
}

/// The potential as `nuts-rs` takes it.
struct Target<'a>(Potential<'a>);

/// No density at this point: the trajectory ends there.
#[derive(Debug, thiserror::Error)]
#[error("the log-density is {0}")]
struct OutsideSupport(f64);

impl LogpError for OutsideSupport {
    fn is_recoverable(&self) -> bool {
        true
    }
}

impl HasDims for Target<'_> {
    fn dim_sizes(&self) -> HashMap<String, u64> {
        HashMap::from([("x".to_owned(), self.dim() as u64)])
    }
}

impl CpuLogpFunc for Target<'_> {
    type LogpError = OutsideSupport;
    type FlowParameters = ();
    type ExpandedVector = Vec<f64>;

    fn dim(&self) -> usize {
        self.0.density.dim()
    }

    fn logp(
        &mut self,
        position: &[f64],
        gradient: &mut [f64],
    ) -> std::result::Result<f64, OutsideSupport> {
        let value = self.0.evaluate(position, gradient);
        if value.is_finite() && gradient.iter().all(|g| g.is_finite()) {
            Ok(value)
        } else {
            Err(OutsideSupport(value))
        }
    }

    fn expand_vector<R: nuts_rs::rand::Rng + ?Sized>(
        &mut self,
        _rng: &mut R,
        position: &[f64],
    ) -> std::result::Result<Vec<f64>, CpuMathError> {
        Ok(position.to_vec())
    }
}
