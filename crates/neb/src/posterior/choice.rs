//! The method for a run whose user names none: rejection where the budget lets it finish, else annealing.
//!
//! Rejection accepts the share E_source[q(y|x)]/max_x q(y|x) of the samples, which a small bank estimates well enough to tell
//! one in a hundred from one in a million.

use super::ascent::PILOT;
use super::bank::Bank;
use super::{Method, Posterior, PosteriorOptions};
use crate::{Matrix, Result, Rows};

/// Observations the choice is made by.
const PROBES: usize = 64;

impl Posterior<'_> {
    /// [`Method::Rejection`] if half of the observations would have all their draws within the budget's samples; else
    /// [`Method::Annealed`], or [`Method::Importance`] for a source without a density.
    ///
    /// # Errors
    /// As [`Posterior::rejection`].
    pub fn suggested_method(&self, y: Rows, options: &PosteriorOptions) -> Result<Method> {
        self.check(y)?;
        let y = y.slice(0..y.rows().min(PROBES));
        let maxima = self.likelihood_maxima(y, options, self.clock(&options.budget))?;
        let bank = Bank {
            source: self.prior,
            seed: options.seed,
        };
        let x = bank.first(PILOT);
        let mut logs = Matrix::zeros(y.rows(), x.rows());
        self.likelihood.log_prob_pairs(y, x.view(), logs.view_mut());
        let share = |(row, max): (usize, f32)| {
            let accepted = logs.row(row).iter().map(|log| f64::from(log - max).exp());
            accepted.sum::<f64>() / x.rows() as f64
        };
        let mut shares: Vec<f64> = maxima.into_iter().enumerate().map(share).collect();
        shares.sort_by(f64::total_cmp);
        let draws = shares[shares.len() / 2] * options.budget.max_samples as f64;
        Ok(if draws >= options.draws as f64 {
            Method::Rejection
        } else if self.prior.density().is_some() {
            Method::Annealed
        } else {
            Method::Importance
        })
    }
}
