//! Event weights: what is refused, and what becomes of negative ones.
//!
//! Generators beyond leading order give some events negative weights. Histograms keep them: only sums matter there. A fit of
//! shares cannot: no event has a negative probability. What it needs is the weight expected at x, E[w|x] = E[|w| | x] (2p(x) − 1),
//! with p(x) the chance that an event at x, drawn by |w|, has a positive weight. p is learned by a small network, and |w| (2p − 1)
//! takes the place of w: all sums over regions are kept up to the network's error, nothing is negative, and no event is dropped.

use crate::check::Network;
use crate::{Error, Result, Rows};

/// Refuses weights that are not one per row, not finite, or add up to nothing; `name` says whose they are.
///
/// # Errors
/// Names the first row that cannot be used and its weight.
pub fn check_weights(weights: &[f32], rows: usize, name: &str) -> Result<()> {
    if weights.len() != rows {
        return Err(Error::input(
            format!("{name}: {} weights for {rows} rows", weights.len()),
            "give one weight per row",
        ));
    }
    if let Some(row) = weights.iter().position(|weight| !weight.is_finite()) {
        return Err(Error::input(
            format!("{name}: the weight of row {row} is {}", weights[row]),
            "give finite weights; leave out rows that are not to count",
        ));
    }
    let total = total(weights);
    if total <= 0.0 {
        return Err(Error::input(
            format!("{name}: the weights add up to {total}"),
            "their sum must be above zero: check that the right column was chosen",
        ));
    }
    Ok(())
}

/// Sum of the weights.
pub(super) fn total(weights: &[f32]) -> f64 {
    weights.iter().map(|&weight| f64::from(weight)).sum()
}

/// Sum of their squares.
pub(super) fn squares(weights: &[f32]) -> f64 {
    weights.iter().map(|&w| f64::from(w).powi(2)).sum()
}

/// (Σ w)² / Σ w²: so many events of equal weight would be as informative.
pub fn effective_events(weights: &[f32]) -> f64 {
    total(weights).powi(2) / squares(weights)
}

/// Weights none of which is negative, with the same expectation at every x; those given where none is negative.
///
/// # Errors
/// Those of training a network.
pub fn positive_weights(x: Rows, weights: &[f32], seed: u64) -> Result<Vec<f32>> {
    if weights.iter().all(|&weight| weight >= 0.0) {
        return Ok(weights.to_vec());
    }
    let positive: Vec<bool> = weights.iter().map(|&weight| weight > 0.0).collect();
    let mean = weights.iter().map(|w| f64::from(w.abs())).sum::<f64>() / weights.len() as f64;
    let sizes: Vec<f32> = weights
        .iter()
        .map(|weight| (f64::from(weight.abs()) / mean) as f32)
        .collect();
    let network = Network::smooth();
    let committee = network.fit_committee(x, &positive, &sizes, seed)?;
    let log_odds = committee.log_odds(x);
    // 2p − 1 of the log-odds s is tanh(s/2).
    let shares = log_odds.iter().map(|s| (0.5 * s).tanh().max(0.0));
    let fitted: Vec<f32> = weights
        .iter()
        .zip(shares)
        .map(|(w, s)| w.abs() * s)
        .collect();
    let factor = (total(weights) / total(&fitted)) as f32;
    Ok(fitted.into_iter().map(|weight| weight * factor).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Matrix, Noise, Purpose};

    /// x uniform on (−1, 1); a weight is −1 with probability ¼ (1 + x), else 1, so that E[w|x] = ½ (1 − x). In ten slices of x
    /// the positive weights must add up to what the signed ones are expected to: 4000 events per slice, standard error of the
    /// network's mean over a slice about 1/√4000; bound 0.08, five of them, so that the false-alarm rate is below 1e-5.
    #[test]
    fn positive_weights_keep_the_sums() {
        let rows = 40_000;
        let uniform = Noise::new(3, Purpose::Test, 0).uniform(rows, 2);
        let x = Matrix::from_fn(rows, 1, |row, _| 2.0 * uniform.row(row)[0] - 1.0);
        let weights: Vec<f32> = (0..rows)
            .map(
                |row| match uniform.row(row)[1] < 0.25 * (1.0 + x.row(row)[0]) {
                    true => -1.0,
                    false => 1.0,
                },
            )
            .collect();
        let positive = positive_weights(x.view(), &weights, 1).unwrap();
        assert!(positive.iter().all(|&weight| weight >= 0.0));
        for slice in 0..10 {
            let low = -1.0 + 0.2 * slice as f32;
            let inside: Vec<usize> = (0..rows)
                .filter(|&row| (low..low + 0.2).contains(&x.row(row)[0]))
                .collect();
            let mean = inside.iter().map(|&row| positive[row]).sum::<f32>() / inside.len() as f32;
            let exact = 0.5 * (1.0 - (low + 0.1));
            assert!(
                (mean - exact).abs() < 0.08,
                "at {low}: {mean} is not {exact}"
            );
        }
    }

    #[test]
    fn weights_that_cannot_be_used_are_named() {
        let refused = |weights: &[f32]| check_weights(weights, 2, "data").unwrap_err().to_string();
        assert!(refused(&[1.0]).contains("1 weights for 2 rows"));
        assert!(refused(&[1.0, f32::NAN]).contains("row 1 is NaN"));
        assert!(refused(&[1.0, -1.0]).contains("add up to 0"));
        assert!(check_weights(&[1.0, -0.5], 2, "data").is_ok());
    }
}
