//! Iterative Bayesian unfolding (D'Agostini 1995), in cells of one or more observables.
//!
//! With the response R_ij, the probability that an event of true cell j is seen in cell i, and ε_j = Σ_i R_ij its efficiency, a
//! spectrum t and data d give the next spectrum
//!
//! t'_j = (t_j/ε_j) Σ_i R_ij d_i/p_i, p_i = Σ_k R_ik t_k:
//!
//! expectation-maximisation for Poisson counts, stopped early. Data without a true partner (fakes) are taken off first, as a share of
//! each cell. The statistical covariance follows the data through all iterations: with M_ji = t_j R_ij/(ε_j p_i) and J = ∂t/∂d,
//!
//! J'_ji = M_ji + (t'_j/t_j) J_ji − Σ_lk M_jl (d_l/p_l) R_lk J_ki.

use rayon::prelude::*;

use super::Covariance;
use crate::{Error, Result};

/// An event of the simulation, by cells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SimulatedEvent {
    /// Its true cell; none for a fake, which has no true partner.
    pub truth: Option<usize>,
    /// The cell it is seen in; none where it is not reconstructed.
    pub seen: Option<usize>,
    /// Its weight, which may be negative.
    pub weight: f64,
}

/// How events of each true cell are seen.
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    seen: usize,
    truth: usize,
    /// R_ij, row by row over i.
    matrix: Vec<f64>,
    /// ε_j.
    efficiency: Vec<f64>,
    /// Share of the events seen in a cell that have no true partner.
    fakes: Vec<f64>,
    /// The simulation's own spectrum.
    prior: Vec<f64>,
}

impl Response {
    /// From the probabilities R_ij, one row for each cell i; without fakes, with an even prior.
    ///
    /// # Errors
    /// Rows of different lengths, probabilities that are negative or add up to more than 1 over i.
    pub fn new(rows: &[Vec<f64>]) -> Result<Self> {
        let truth = rows.first().map_or(0, Vec::len);
        let column = |j: usize| rows.iter().map(move |row| row[j]);
        let wrong = |hint: &str| Error::input("this is no matrix of a response", hint);
        if truth == 0 || rows.iter().any(|row| row.len() != truth) {
            return Err(wrong("give as many probabilities in every row"));
        }
        let efficiency: Vec<f64> = (0..truth).map(|j| column(j).sum()).collect();
        let negative = rows.iter().flatten().any(|&r| r.is_nan() || r < 0.0);
        if negative || efficiency.iter().any(|&sum| sum > 1.0 + 1e-9) {
            return Err(wrong(
                "rows are cells of the data, columns true cells; each column adds up to its efficiency, at most 1",
            ));
        }
        Ok(Self {
            seen: rows.len(),
            truth,
            matrix: rows.concat(),
            efficiency,
            fakes: vec![0.0; rows.len()],
            prior: vec![1.0; truth],
        })
    }

    /// From simulated events, in so many cells of the data and true cells. Cells whose weights add up to less than nothing, as
    /// negative weights can make them, count as empty.
    ///
    /// # Errors
    /// Events in cells that do not exist, weights that are not finite, no event with both cells.
    pub fn of_events(
        seen: usize,
        truth: usize,
        events: impl IntoIterator<Item = SimulatedEvent>,
    ) -> Result<Self> {
        let mut matrix = vec![0.0; seen * truth];
        let mut prior = vec![0.0; truth];
        let (mut fakes, mut all) = (vec![0.0; seen], vec![0.0; seen]);
        for (number, event) in events.into_iter().enumerate() {
            let inside =
                event.truth.is_none_or(|j| j < truth) && event.seen.is_none_or(|i| i < seen);
            if !inside || !event.weight.is_finite() {
                return Err(Error::input(
                    format!("event {number} cannot be counted: {event:?}"),
                    format!("give finite weights, and cells below {seen} and {truth}"),
                ));
            }
            if let Some(j) = event.truth {
                prior[j] += event.weight;
            }
            if let Some(i) = event.seen {
                all[i] += event.weight;
                match event.truth {
                    Some(j) => matrix[i * truth + j] += event.weight,
                    None => fakes[i] += event.weight,
                }
            }
        }
        for value in prior.iter_mut().chain(&mut matrix) {
            *value = value.max(0.0);
        }
        for (fakes, all) in fakes.iter_mut().zip(&all) {
            *fakes = match *all > 0.0 {
                true => (*fakes / all).clamp(0.0, 1.0),
                false => 0.0,
            };
        }
        let mut efficiency = vec![0.0; truth];
        for row in matrix.chunks_exact_mut(truth.max(1)) {
            for (j, value) in row.iter_mut().enumerate() {
                *value = match prior[j] > 0.0 {
                    true => *value / prior[j],
                    false => 0.0,
                };
                efficiency[j] += *value;
            }
        }
        if efficiency.iter().all(|&share| share <= 0.0) {
            return Err(Error::input(
                "no simulated event has both a true cell and one it is seen in",
                "check bins, masks and weights of the simulation",
            ));
        }
        Ok(Self {
            seen,
            truth,
            matrix,
            efficiency,
            fakes,
            prior,
        })
    }

    /// ε_j of each true cell.
    pub fn efficiency(&self) -> &[f64] {
        &self.efficiency
    }

    /// Share of fakes in each cell of the data.
    pub fn fakes(&self) -> &[f64] {
        &self.fakes
    }

    /// The simulation's own spectrum, where a fit starts.
    pub fn prior(&self) -> &[f64] {
        &self.prior
    }

    /// What a spectrum looks like in the detector: R t, with fakes.
    ///
    /// # Panics
    /// If there is not one value for each true cell.
    pub fn fold(&self, spectrum: &[f64]) -> Vec<f64> {
        let folded = self.push(spectrum);
        let with_fakes = folded
            .iter()
            .zip(&self.fakes)
            .map(|(p, fakes)| match fakes {
                1.0 => 0.0,
                fakes => p / (1.0 - fakes),
            });
        with_fakes.collect()
    }

    /// R t.
    fn push(&self, spectrum: &[f64]) -> Vec<f64> {
        assert_eq!(spectrum.len(), self.truth, "one value for each true cell");
        let dot = |row: &[f64]| row.iter().zip(spectrum).map(|(r, t)| r * t).sum();
        self.matrix.chunks_exact(self.truth).map(dot).collect()
    }

    fn at(&self, i: usize, j: usize) -> f64 {
        self.matrix[i * self.truth + j]
    }
}

/// Settings of iterative Bayesian unfolding.
#[derive(Clone, Copy, Debug)]
pub struct Ibu<'a> {
    /// Iterations; the fewer, the nearer to the prior.
    pub iterations: usize,
    /// The spectrum to start from; the simulation's where none is given.
    pub prior: Option<&'a [f64]>,
    /// Whether to compute the covariance, which takes (cells)³ operations an iteration.
    pub covariance: bool,
}

impl Default for Ibu<'_> {
    /// Three iterations from the simulation's spectrum, with covariance.
    fn default() -> Self {
        Self {
            iterations: 3,
            prior: None,
            covariance: true,
        }
    }
}

/// An unfolded spectrum.
#[derive(Clone, Debug, PartialEq)]
pub struct Unfolded {
    /// Number of events of each true cell, corrected for the efficiency.
    pub spectrum: Vec<f64>,
    /// Its statistical covariance, from the variances of the data.
    pub covariance: Option<Covariance>,
    /// Data, without fakes, in cells that no simulated event is seen in: lost.
    pub unexplained: f64,
}

impl Ibu<'_> {
    /// Unfolds data with these variances (sums of squared weights), one for each cell.
    ///
    /// ```
    /// use neb::unfold::{Ibu, Response};
    ///
    /// let response = Response::new(&[vec![0.9, 0.1], vec![0.1, 0.9]])?;
    /// let ibu = Ibu { iterations: 4, ..Ibu::default() };
    /// let unfolded = ibu.unfold(&response, &[100.0, 150.0], &[100.0, 150.0])?;
    /// assert!((unfolded.spectrum[0] - 94.32086967).abs() < 1e-8);
    /// assert!((unfolded.spectrum[1] - 155.67913033).abs() < 1e-8);
    /// # Ok::<(), neb::Error>(())
    /// ```
    ///
    /// # Errors
    /// Data or a prior of other lengths, negative or not finite; no data at all.
    pub fn unfold(&self, response: &Response, data: &[f64], variances: &[f64]) -> Result<Unfolded> {
        self.check(response, data, variances)?;
        let matched = |values: &[f64], power: i32| -> Vec<f64> {
            let each = values.iter().zip(&response.fakes);
            each.map(|(value, fakes)| value * (1.0 - fakes).powi(power))
                .collect()
        };
        let (data, variances) = (matched(data, 1), matched(variances, 2));
        let total: f64 = data.iter().sum();
        let start = self.prior.unwrap_or(&response.prior);
        let seen: f64 = response.push(start).iter().sum();
        if seen <= 0.0 {
            return Err(Error::input(
                "nothing of the prior is ever seen",
                "give a prior where the efficiency is not 0",
            ));
        }
        let scale = total / seen;
        let mut spectrum: Vec<f64> = start.iter().map(|t| t * scale).collect();
        let mut jacobian = vec![
            0.0;
            match self.covariance {
                true => response.truth * response.seen,
                false => 0,
            }
        ];
        for _ in 0..self.iterations {
            let step = Step::new(response, &spectrum, &data);
            if self.covariance {
                jacobian = step.jacobian(&jacobian);
            }
            spectrum = step.next;
        }
        let reached = response.matrix.chunks_exact(response.truth);
        let lost = reached
            .zip(&data)
            .filter(|(row, _)| row.iter().all(|&r| r <= 0.0));
        Ok(Unfolded {
            unexplained: lost.map(|(_, data)| data).sum(),
            covariance: self
                .covariance
                .then(|| Covariance::propagated(&jacobian, &variances)),
            spectrum,
        })
    }

    fn check(&self, response: &Response, data: &[f64], variances: &[f64]) -> Result<()> {
        let groups = [
            ("data", data, response.seen),
            ("variances", variances, response.seen),
            (
                "prior",
                self.prior.unwrap_or(&response.prior),
                response.truth,
            ),
        ];
        for (name, values, expected) in groups {
            if values.len() != expected {
                return Err(Error::input(
                    format!("{name}: {} values for {expected} cells", values.len()),
                    "give one value for each cell, under- and overflow included",
                ));
            }
            if let Some(cell) = values.iter().position(|v| !v.is_finite() || *v < 0.0) {
                return Err(Error::input(
                    format!("{name}: cell {cell} holds {}", values[cell]),
                    "unfolding wants numbers that are not negative; see subtract_background",
                ));
            }
            if values.iter().sum::<f64>() <= 0.0 && name != "variances" {
                return Err(Error::input(
                    format!("{name}: all cells are empty"),
                    "choose bins that hold the data, and check their units",
                ));
            }
        }
        Ok(())
    }
}

/// One iteration.
struct Step<'a> {
    response: &'a Response,
    now: &'a [f64],
    next: Vec<f64>,
    /// d_i/p_i, 0 where nothing is expected.
    ratio: Vec<f64>,
    /// 1/p_i, likewise.
    inverse: Vec<f64>,
}

impl<'a> Step<'a> {
    fn new(response: &'a Response, now: &'a [f64], data: &[f64]) -> Self {
        let expected = response.push(now);
        let invert = |p: &f64| if *p > 0.0 { 1.0 / p } else { 0.0 };
        let inverse: Vec<f64> = expected.iter().map(invert).collect();
        let ratio: Vec<f64> = data.iter().zip(&inverse).map(|(d, p)| d * p).collect();
        let mut step = Self {
            response,
            now,
            next: Vec::new(),
            ratio,
            inverse,
        };
        step.next = (0..response.truth)
            .map(|j| {
                let seen = 0..response.seen;
                step.prefactor(j) * seen.map(|i| response.at(i, j) * step.ratio[i]).sum::<f64>()
            })
            .collect();
        step
    }

    /// t_j/ε_j, 0 where nothing is ever seen.
    fn prefactor(&self, j: usize) -> f64 {
        match self.response.efficiency[j] > 0.0 {
            true => self.now[j] / self.response.efficiency[j],
            false => 0.0,
        }
    }

    /// ∂t'/∂d from ∂t/∂d, one row for each true cell.
    fn jacobian(&self, before: &[f64]) -> Vec<f64> {
        let (seen, truth) = (self.response.seen, self.response.truth);
        // R J, one row for each cell of the data.
        let mut folded = vec![0.0; seen * seen];
        folded
            .par_chunks_mut(seen)
            .enumerate()
            .for_each(|(l, row)| {
                for k in 0..truth {
                    let r = self.response.at(l, k);
                    if r > 0.0 {
                        let of_k = &before[k * seen..(k + 1) * seen];
                        row.iter_mut().zip(of_k).for_each(|(sum, j)| *sum += r * j);
                    }
                }
            });
        let mut after = vec![0.0; truth * seen];
        after.par_chunks_mut(seen).enumerate().for_each(|(j, row)| {
            let (factor, own) = (self.prefactor(j), &before[j * seen..(j + 1) * seen]);
            let growth = if self.now[j] > 0.0 {
                self.next[j] / self.now[j]
            } else {
                0.0
            };
            for (i, value) in row.iter_mut().enumerate() {
                *value = factor * self.response.at(i, j) * self.inverse[i] + growth * own[i];
            }
            for l in 0..seen {
                let m = factor * self.response.at(l, j) * self.inverse[l] * self.ratio[l];
                if m > 0.0 {
                    let of_l = &folded[l * seen..(l + 1) * seen];
                    row.iter_mut().zip(of_l).for_each(|(sum, f)| *sum -= m * f);
                }
            }
        });
        after
    }
}

#[cfg(test)]
mod tests;
