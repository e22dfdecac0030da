//! The importance-weighted bound: log (1/K) Σ_k q_φ(y|x_k) q_θ(x_k) / q_ψ(x_k|y), x_k ~ q_ψ(x|y).
//!
//! Below log q_θ(y) in expectation, rising to it with K, and exact for every K where q_ψ is the
//! posterior. K = 1 is the evidence lower bound.

use super::Batch;
use super::log_sum::{LogSum, exp_or_zero};
use crate::{Error, Matrix, Result, Rows};

/// The three log-densities at K samples x_ik ~ q_ψ(x|y_i) for each observation: B rows, K columns.
#[derive(Clone, Copy, Debug)]
pub struct LogDensities<'a> {
    /// log q_φ(y_i|x_ik), the surrogate.
    pub likelihood: Rows<'a>,
    /// log q_θ(x_ik), the source.
    pub source: Rows<'a>,
    /// log q_ψ(x_ik|y_i), the recognition model.
    pub recognition: Rows<'a>,
}

/// Value and slopes of a variational bound on the mean log-marginal likelihood of a batch.
#[derive(Clone, Debug)]
pub struct VariationalEstimate {
    /// (Weighted) mean over the batch.
    pub value: f64,
    /// The bound for each observation.
    pub values: Vec<f64>,
    /// w_ik = ∂ `value` / ∂ log q_φ(y_i|x_ik) = ∂ `value` / ∂ log q_θ(x_ik) = −∂ `value` / ∂ log q_ψ(x_ik|y_i).
    pub slopes: Matrix,
}

/// The importance-weighted bound of every observation, their mean, and its slopes: softmax shares over K.
///
/// # Errors
/// If the tables differ in shape, or the bound of an observation is not finite.
pub fn iw(batch: Batch, densities: LogDensities) -> Result<VariationalEstimate> {
    bound(batch, densities, |log_ratios, slopes| {
        let sum = LogSum::of(log_ratios).value();
        for (slope, &log_ratio) in slopes.iter_mut().zip(log_ratios) {
            *slope = exp_or_zero((f64::from(log_ratio) - sum) as f32);
        }
        sum - (log_ratios.len() as f64).ln()
    })
}

/// A bound given by its rule for one observation: from log-ratios to the value, writing its slopes.
pub(super) fn bound(
    batch: Batch,
    densities: LogDensities,
    rule: impl Fn(&[f32], &mut [f32]) -> f64,
) -> Result<VariationalEstimate> {
    let event_weights = batch.normalised_weights()?;
    let rows = batch.y.rows();
    let k = check_shapes(rows, densities)?;
    let mut slopes = Matrix::zeros(rows, k);
    let mut values = Vec::with_capacity(rows);
    let mut log_ratios = vec![0.0; k];
    for (row, &event_weight) in event_weights.iter().enumerate() {
        for (column, log_ratio) in log_ratios.iter_mut().enumerate() {
            let at = |table: Rows| f64::from(table.row(row)[column]);
            *log_ratio = (at(densities.likelihood) + at(densities.source)
                - at(densities.recognition)) as f32;
        }
        let value = rule(&log_ratios, slopes.row_mut(row));
        if !value.is_finite() {
            return Err(Error::non_finite(
                format!(
                    "observation row {}: the bound over {k} samples is {value}",
                    batch.row_number(row)
                ),
                "a log-density is not finite there: lower the learning rate, or check the models at this row",
            ));
        }
        values.push(value);
        for slope in slopes.row_mut(row) {
            *slope *= event_weight as f32;
        }
    }
    Ok(VariationalEstimate {
        value: values.iter().zip(&event_weights).map(|(l, v)| l * v).sum(),
        values,
        slopes,
    })
}

/// The number of samples for each observation.
fn check_shapes(rows: usize, densities: LogDensities) -> Result<usize> {
    let shape = |table: Rows| (table.rows(), table.cols());
    let expected = (rows, densities.likelihood.cols());
    let tables = [
        ("log q(y|x)", densities.likelihood),
        ("log q(x)", densities.source),
        ("log q(x|y)", densities.recognition),
    ];
    for (name, table) in tables {
        if shape(table) != expected {
            return Err(Error::input(
                format!(
                    "{name} has {} rows and {} columns, expected {} and {}",
                    table.rows(),
                    table.cols(),
                    expected.0,
                    expected.1
                ),
                "give one row for each observation and one column for each of its samples",
            ));
        }
    }
    Ok(expected.1)
}

#[cfg(test)]
mod tests {
    use super::super::elbo;
    use super::super::testing::{GaussianModel, log_normal};
    use super::*;
    use crate::{Noise, Purpose};

    type Rule = fn(Batch, LogDensities) -> Result<VariationalEstimate>;

    /// y, and the three tables at x ~ N(a + b·y, v) for `model`.
    fn tables(
        model: &GaussianModel,
        y: &Matrix,
        k: usize,
        recognition: impl Fn(f64) -> (f64, f64),
        step: u64,
    ) -> [Matrix; 3] {
        let z = Noise::new(3, Purpose::Test, step).normal(y.rows(), k);
        let at = |row: usize, column: usize| {
            let y = f64::from(y.row(row)[0]);
            let (mean, deviation) = recognition(y);
            let x = mean + deviation * f64::from(z.row(row)[column]);
            [
                log_normal(y, x, model.noise),
                log_normal(x, model.mean, model.deviation),
                log_normal(x, mean, deviation),
            ]
        };
        [0, 1, 2].map(|table| Matrix::from_fn(y.rows(), k, |r, c| at(r, c)[table] as f32))
    }

    fn views(tables: &[Matrix; 3]) -> LogDensities<'_> {
        LogDensities {
            likelihood: tables[0].view(),
            source: tables[1].view(),
            recognition: tables[2].view(),
        }
    }

    /// Recognition = posterior makes every log-ratio equal log q(y): no Monte Carlo error at all.
    #[test]
    fn exact_posterior_gives_the_exact_value() {
        let model = GaussianModel::STANDARD;
        let y = Matrix::from_vec(vec![0.0, 1.0, 2.0], 1);
        for k in [1, 2, 17, 128] {
            let tables = tables(&model, &y, k, |y| model.posterior(y), k as u64);
            for rule in [iw as Rule, elbo as Rule] {
                let estimate = rule(Batch::from(y.view()), views(&tables)).unwrap();
                for (value, exact) in estimate
                    .values
                    .iter()
                    .zip([-1.030510, -1.430510, -2.630510])
                {
                    assert!(
                        (value - exact).abs() < 3e-6,
                        "k = {k}: {value} is not {exact}"
                    );
                }
                for &slope in estimate.slopes.values() {
                    assert!((slope * 3.0 * k as f32 - 1.0).abs() < 1e-5);
                }
            }
        }
    }

    /// With recognition N(1, 1) for y = 1: KL(N(1, 1) ‖ N(0.8, 0.2)) = ½(5 + 0.2 − 1 − ln 5) = 1.295281.
    /// Bounds are 4.5 standard errors (false-alarm rate 7e-6 each), estimated from the 4000 rows.
    #[test]
    fn elbo_misses_by_the_divergence_and_iw_closes_the_gap() {
        let model = GaussianModel::STANDARD;
        let rows = 4000;
        let y = Matrix::from_vec(vec![1.0; rows], 1);
        let exact = model.log_marginal(1.0);
        let mean_of = |rule: Rule, k: usize| {
            let tables = tables(&model, &y, k, |_| (1.0, 1.0), 100 + k as u64);
            let estimate = rule(Batch::from(y.view()), views(&tables)).unwrap();
            let spread = estimate
                .values
                .iter()
                .map(|v| (v - estimate.value).powi(2))
                .sum::<f64>();
            (estimate.value, spread.sqrt() / rows as f64)
        };
        for k in [1, 8] {
            let (value, error) = mean_of(elbo, k);
            assert!((value - (exact - 1.295281)).abs() < 4.5 * error);
        }
        let (one, error) = mean_of(iw, 1);
        assert!((one - (exact - 1.295281)).abs() < 4.5 * error);
        let (eight, _) = mean_of(iw, 8);
        let (many, error) = mean_of(iw, 512);
        assert!(
            one + 0.5 < eight && eight + 0.02 < many,
            "{one} {eight} {many}"
        );
        assert!((many - exact).abs() < 4.5 * error + 0.01);
    }

    #[test]
    fn slopes_are_the_derivatives() {
        let model = GaussianModel::STANDARD;
        let y = Matrix::from_vec(vec![0.3, -1.2], 1);
        let event_weights = [0.5, 2.0];
        let base = tables(&model, &y, 5, |y| (y, 0.8), 9);
        for (rule, is_iw) in [(iw as Rule, true), (elbo as Rule, false)] {
            let batch = Batch {
                weights: Some(&event_weights),
                ..Batch::from(y.view())
            };
            let slopes = rule(batch, views(&base)).unwrap().slopes;
            let bound = |tables: &[Vec<f64>; 3]| -> f64 {
                (0..2)
                    .map(|row| {
                        let ratio = |c: usize| {
                            let at = row * 5 + c;
                            tables[0][at] + tables[1][at] - tables[2][at]
                        };
                        let value = if is_iw {
                            ((0..5).map(|c| ratio(c).exp()).sum::<f64>() / 5.0).ln()
                        } else {
                            (0..5).map(ratio).sum::<f64>() / 5.0
                        };
                        f64::from(event_weights[row]) / 2.5 * value
                    })
                    .sum()
            };
            let wide = |m: &Matrix| m.values().iter().map(|&v| f64::from(v)).collect::<Vec<_>>();
            let exact = [wide(&base[0]), wide(&base[1]), wide(&base[2])];
            for (table, sign) in [(0, 1.0), (1, 1.0), (2, -1.0)] {
                for at in 0..10 {
                    let moved = |step: f64| {
                        let mut tables = exact.clone();
                        tables[table][at] += step;
                        bound(&tables)
                    };
                    let slope = (moved(1e-5) - moved(-1e-5)) / 2e-5;
                    let found = sign * f64::from(slopes.values()[at]);
                    assert!((found - slope).abs() < 1e-6, "{found} is not {slope}");
                }
            }
        }
    }

    #[test]
    fn an_impossible_observation_is_named() {
        let table = Matrix::from_vec(vec![0.0, -1.0, f32::NEG_INFINITY, f32::NEG_INFINITY], 2);
        let zeros = Matrix::zeros(2, 2);
        let y = Matrix::zeros(2, 1);
        let batch = Batch {
            row_numbers: Some(&[40, 137]),
            ..Batch::from(y.view())
        };
        let densities = LogDensities {
            likelihood: table.view(),
            source: zeros.view(),
            recognition: zeros.view(),
        };
        for rule in [iw as Rule, elbo as Rule] {
            let error = rule(batch, densities).unwrap_err();
            assert!(error.to_string().contains("row 137"), "{error}");
        }
    }
}
