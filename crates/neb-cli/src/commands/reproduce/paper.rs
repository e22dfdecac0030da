//! What the paper prints: mean and standard deviation over its five runs.

use super::plan::{Estimator, Metric, Row, Table};

/// Mean and standard deviation.
pub(super) type Printed = (f64, f64);

/// Problems in the order of [`VALUES`]' columns.
const PROBLEMS: [&str; 3] = ["slcp", "two-moons", "ik"];

type Line = (Estimator, [Printed; 3]);

use Estimator::{Elbo, Iw, Mc, Mlp, RouletteSingle};

const ESTIMATORS_X: [Line; 3] = [
    (Elbo, [(1.00, 0.00), (0.75, 0.00), (1.00, 0.00)]),
    (Iw(128), [(0.82, 0.09), (0.75, 0.00), (0.95, 0.05)]),
    (Mc(1024), [(0.75, 0.03), (0.55, 0.02), (0.74, 0.03)]),
];
const ESTIMATORS_Y: [Line; 3] = [
    (Elbo, [(0.92, 0.04), (0.50, 0.01), (0.51, 0.01)]),
    (Iw(128), [(0.50, 0.00), (0.50, 0.00), (0.50, 0.01)]),
    (Mc(1024), [(0.53, 0.01), (0.52, 0.01), (0.62, 0.03)]),
];
const SYMMETRIC_X: [Line; 3] = [
    (Elbo, [(0.99, 0.01), (0.51, 0.01), (0.97, 0.01)]),
    (Iw(128), [(0.59, 0.05), (0.50, 0.01), (0.72, 0.02)]),
    (Mc(1024), [(0.81, 0.02), (0.51, 0.02), (0.66, 0.04)]),
];
const MLP_X: [Line; 2] = [
    (Mlp(1024), [(0.94, 0.01), (0.68, 0.04), (0.92, 0.01)]),
    (Mlp(4096), [(0.92, 0.01), (0.62, 0.05), (0.90, 0.02)]),
];
const MLP_Y: [Line; 2] = [
    (Mlp(1024), [(0.55, 0.01), (0.53, 0.02), (0.66, 0.03)]),
    (Mlp(4096), [(0.52, 0.01), (0.52, 0.01), (0.58, 0.02)]),
];
const CALIBRATION: [Line; 3] = [
    (Elbo, [(0.37, 0.01), (0.40, 0.01), (0.65, 0.04)]),
    (Iw(128), [(0.15, 0.02), (0.45, 0.01), (0.47, 0.05)]),
    (Mc(1024), [(0.14, 0.01), (0.10, 0.01), (0.09, 0.02)]),
];
/// The table that compares L_K with its de-biased form; its L_1024 on IK is not that of the other table.
const BIASED: [Line; 8] = [
    (Mc(10), [(0.82, 0.01), (0.69, 0.02), (0.80, 0.13)]),
    (Mc(128), [(0.57, 0.01), (0.53, 0.01), (0.65, 0.04)]),
    (Mc(256), [(0.55, 0.02), (0.52, 0.01), (0.66, 0.02)]),
    (Mc(1024), [(0.53, 0.01), (0.52, 0.01), (0.66, 0.03)]),
    (
        RouletteSingle(10),
        [(0.65, 0.04), (0.56, 0.02), (0.67, 0.08)],
    ),
    (
        RouletteSingle(128),
        [(0.59, 0.02), (0.57, 0.06), (0.67, 0.12)],
    ),
    (
        RouletteSingle(256),
        [(0.54, 0.00), (0.52, 0.02), (0.71, 0.09)],
    ),
    (
        RouletteSingle(1024),
        [(0.52, 0.01), (0.53, 0.01), (0.62, 0.03)],
    ),
];
/// x- and y-space of the collider study, on the paper's own sample of 1.6 million events.
const COLLIDER: [(Estimator, [Printed; 2]); 3] = [
    (Elbo, [(0.99, 0.02), (0.87, 0.08)]),
    (Iw(128), [(0.63, 0.06), (0.51, 0.01)]),
    (Mc(1024), [(0.57, 0.05), (0.50, 0.01)]),
];

/// The paper's value of a cell, where it prints one.
pub(super) fn printed(table: Table, row: Row, metric: Metric, problem: &str) -> Option<Printed> {
    if table == Table::Collider {
        let (_, both) = COLLIDER.iter().find(|(e, _)| *e == row.estimator)?;
        return match metric {
            Metric::X => Some(both[0]),
            Metric::Y => Some(both[1]),
            Metric::Ks => None,
        };
    }
    let lines: &[Line] = match (table, metric) {
        (Table::Estimators, Metric::X) => &ESTIMATORS_X,
        (Table::Estimators, Metric::Y) => &ESTIMATORS_Y,
        (Table::Symmetric, Metric::X) => &SYMMETRIC_X,
        (Table::MlpSource, Metric::X) => &MLP_X,
        (Table::MlpSource, Metric::Y) => &MLP_Y,
        (Table::Calibration, Metric::Ks) => &CALIBRATION,
        (Table::BiasedVsUnbiased, Metric::Y) => &BIASED,
        _ => return None,
    };
    let column = PROBLEMS.iter().position(|name| *name == problem)?;
    let line = lines.iter().find(|(e, _)| *e == row.estimator)?;
    Some(line.1[column])
}

/// The smallest of the paper's values for a problem and metric of a table: what our own row is measured against.
pub(super) fn best(table: Table, metric: Metric, problem: &str) -> Option<f64> {
    let rows = table.rows().into_iter();
    let values = rows.filter_map(|row| printed(table, row, metric, problem));
    values.map(|(mean, _)| mean).min_by(f64::total_cmp)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_but_ours_has_a_value_in_its_table() {
        for table in Table::PRINTED {
            for row in table.rows() {
                for metric in table.metrics() {
                    let value = printed(table, row, *metric, "ik");
                    let ours = matches!(row.estimator, Estimator::Auto | Estimator::Roulette(_));
                    assert_eq!(value.is_none(), ours, "{table:?} {row:?} {metric:?}");
                }
            }
        }
        assert_eq!(best(Table::Estimators, Metric::X, "two-moons"), Some(0.55));
        assert_eq!(best(Table::Calibration, Metric::Ks, "slcp"), Some(0.14));
    }
}
