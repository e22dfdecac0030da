//! One column of a sample, with weights: what histograms and density estimates are made of.

use neb::check::Sample;

/// Values of one column and how often each counts.
#[derive(Clone, Debug)]
pub struct Column {
    /// The values.
    pub values: Vec<f64>,
    /// One weight per value, none of them negative; none where each counts once.
    pub weights: Option<Vec<f64>>,
}

impl Column {
    /// Values that count once each.
    pub fn new(values: Vec<f64>) -> Self {
        Self {
            values,
            weights: None,
        }
    }

    /// Column `number` of a sample.
    pub fn of(sample: Sample, number: usize) -> Self {
        let rows = sample.rows;
        Self {
            values: (0..rows.rows())
                .map(|row| f64::from(rows.row(row)[number]))
                .collect(),
            weights: sample
                .weights
                .map(|weights| weights.iter().map(|&weight| f64::from(weight)).collect()),
        }
    }

    /// The weight of a value.
    pub fn weight(&self, row: usize) -> f64 {
        self.weights.as_ref().map_or(1.0, |weights| weights[row])
    }

    /// Effective number of rows (Σ w)² / Σ w².
    pub fn effective_rows(&self) -> f64 {
        let rows = 0..self.values.len();
        let (mut sum, mut square) = (0.0, 0.0);
        for weight in rows.map(|row| self.weight(row)) {
            sum += weight;
            square += weight * weight;
        }
        if square > 0.0 {
            sum * sum / square
        } else {
            0.0
        }
    }

    /// The values below which these shares of the weight lie; the shares ascend.
    pub fn quantiles<const N: usize>(&self, shares: [f64; N]) -> [f64; N] {
        let mut order: Vec<usize> = (0..self.values.len()).collect();
        order.sort_by(|&a, &b| self.values[a].total_cmp(&self.values[b]));
        let total: f64 = order.iter().map(|&row| self.weight(row)).sum();
        let mut found = [f64::NAN; N];
        let (mut sum, mut next) = (0.0, 0);
        for &row in &order {
            sum += self.weight(row);
            while next < N && sum >= shares[next] * total {
                found[next] = self.values[row];
                next += 1;
            }
        }
        if let Some(&last) = order.last() {
            found[next..].fill(self.values[last]);
        }
        found
    }

    /// A scale that neither long tails nor distant modes blow up without end: the smaller of deviation and interquartile
    /// range over 1.349, which agree for a normal law.
    pub fn scale(&self) -> f64 {
        let rows = 0..self.values.len();
        let total: f64 = rows.clone().map(|row| self.weight(row)).sum();
        let mean = rows
            .clone()
            .map(|row| self.weight(row) * self.values[row])
            .sum::<f64>()
            / total;
        let variance = rows
            .map(|row| self.weight(row) * (self.values[row] - mean).powi(2))
            .sum::<f64>()
            / total;
        let [low, high] = self.quantiles([0.25, 0.75]);
        let (deviation, robust) = (variance.sqrt(), (high - low) / 1.349);
        if robust > 0.0 {
            deviation.min(robust)
        } else {
            deviation
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_count_as_repeated_rows() {
        let repeated = Column::new(vec![1.0, 2.0, 2.0, 2.0, 5.0, 5.0]);
        let weighted = Column {
            values: vec![5.0, 1.0, 2.0],
            weights: Some(vec![2.0, 1.0, 3.0]),
        };
        let shares = [0.1, 0.3, 0.6, 0.9];
        assert_eq!(weighted.quantiles(shares), repeated.quantiles(shares));
        assert!((weighted.scale() - repeated.scale()).abs() < 1e-12);
        assert!((weighted.effective_rows() - 36.0 / 14.0).abs() < 1e-12);
    }
}
