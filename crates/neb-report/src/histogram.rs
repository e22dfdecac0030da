//! Histograms with statistical errors, and their ratios.
//!
//! Bin i holds Σw and Σw²; its density is Σw/(W·Δ_i) with error √Σw²/(W·Δ_i), W the sum over all bins and what lies outside.

use crate::column::Column;

/// Upper end of the 68 % interval of a Poisson mean when nothing was counted.
const NOTHING_COUNTED: f64 = 1.841;

/// A histogram of rows with weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    /// Edges of the bins, ascending.
    pub edges: Vec<f64>,
    /// Sum of the weights in each bin.
    pub sums: Vec<f64>,
    /// Sum of the squared weights in each bin.
    pub squares: Vec<f64>,
    /// Sum of all weights, also of rows outside the bins.
    pub total: f64,
}

/// A ratio of two bins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// Middle of the bin.
    pub x: f64,
    /// The ratio of the densities.
    pub value: f64,
    /// Ends of its error bar: of the numerator alone.
    pub bar: [f64; 2],
    /// Relative error of the denominator.
    pub band: f64,
}

impl Histogram {
    /// Counts the rows of a column; the last bin holds its upper edge.
    pub fn new(column: &Column, edges: Vec<f64>) -> Self {
        let bins = edges.len() - 1;
        let (mut sums, mut squares) = (vec![0.0; bins], vec![0.0; bins]);
        let mut total = 0.0;
        for (row, &value) in column.values.iter().enumerate() {
            let weight = column.weight(row);
            total += weight;
            let bin = edges.partition_point(|&edge| edge <= value);
            let bin = if value == edges[bins] { bins } else { bin };
            if (1..=bins).contains(&bin) {
                sums[bin - 1] += weight;
                squares[bin - 1] += weight * weight;
            }
        }
        Self {
            edges,
            sums,
            squares,
            total,
        }
    }

    /// Edges of bins of equal width over the range in which nearly all of a column lies: bins of Freedman and Diaconis' width,
    /// at least 12 and at most 36 of them.
    pub fn edges_for(column: &Column) -> Vec<f64> {
        let [low, first, last, high] = column.quantiles([0.001, 0.25, 0.75, 0.999]);
        let (low, high) = if high > low {
            (low, high)
        } else {
            (low - 0.5, low + 0.5)
        };
        let width = 2.0 * (last - first) * column.effective_rows().powf(-1.0 / 3.0);
        let bins = ((high - low) / width).round().clamp(12.0, 36.0);
        let bins = if bins.is_nan() { 12.0 } else { bins };
        let step = (high - low) / bins;
        (0..=bins as usize)
            .map(|edge| low + edge as f64 * step)
            .collect()
    }

    /// Number of bins.
    pub fn bins(&self) -> usize {
        self.sums.len()
    }

    /// Middle of a bin.
    pub fn middle(&self, bin: usize) -> f64 {
        0.5 * (self.edges[bin] + self.edges[bin + 1])
    }

    /// Density in a bin, and its error.
    pub fn density(&self, bin: usize) -> (f64, f64) {
        let unit = self.total * (self.edges[bin + 1] - self.edges[bin]);
        (self.sums[bin] / unit, self.squares[bin].sqrt() / unit)
    }

    /// The density as a line with steps, from zero to zero.
    pub fn steps(&self) -> Vec<[f64; 2]> {
        let mut points = vec![[self.edges[0], 0.0]];
        for bin in 0..self.bins() {
            let (density, _) = self.density(bin);
            points.push([self.edges[bin], density]);
            points.push([self.edges[bin + 1], density]);
        }
        points.push([self.edges[self.bins()], 0.0]);
        points
    }

    /// This histogram over another of the same bins; bins in which the other is empty are left out.
    pub fn over(&self, other: &Self) -> Vec<Ratio> {
        assert_eq!(
            self.edges, other.edges,
            "histograms of the same bins have ratios"
        );
        let bins = (0..self.bins()).filter(|&bin| other.sums[bin] > 0.0);
        let each = self.squares.iter().sum::<f64>() / self.sums.iter().sum::<f64>();
        bins.map(|bin| {
            let expected = other.sums[bin] * self.total / other.total;
            let (sum, error) = (self.sums[bin], self.squares[bin].sqrt());
            let bar = if sum == 0.0 {
                [0.0, NOTHING_COUNTED * each]
            } else {
                [sum - error, sum + error]
            };
            Ratio {
                x: self.middle(bin),
                value: sum / expected,
                bar: bar.map(|end| end / expected),
                band: other.squares[bin].sqrt() / other.sums[bin],
            }
        })
        .collect()
    }

    /// χ² between the densities of two histograms of the same bins, and the number of bins that count (those with at least
    /// 5 rows, in effect, in both).
    pub fn chi_square(&self, other: &Self) -> (f64, usize) {
        let enough =
            |h: &Self, bin: usize| h.sums[bin] * h.sums[bin] >= 5.0 * h.squares[bin].max(1e-300);
        let bins = (0..self.bins()).filter(|&bin| enough(self, bin) && enough(other, bin));
        bins.fold((0.0, 0), |(sum, count), bin| {
            let ((a, a_error), (b, b_error)) = (self.density(bin), other.density(bin));
            let pull = (a - b).powi(2) / (a_error * a_error + b_error * b_error);
            (sum + pull, count + 1)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bins [0, 1), [1, 2], computed by hand.
    #[test]
    fn ratios_and_errors_are_those_computed_by_hand() {
        let edges = vec![0.0, 1.0, 2.0];
        let seen = Column::new(vec![0.1, 0.2, 0.3, 0.9, 1.0, 1.5, 2.0, 7.0]);
        let seen = Histogram::new(&seen, edges.clone());
        assert_eq!((seen.sums[0], seen.sums[1], seen.total), (4.0, 3.0, 8.0));
        let model = Column {
            values: vec![0.5, 0.5, 1.5, -1.0],
            weights: Some(vec![1.0, 2.0, 4.0, 1.0]),
        };
        let model = Histogram::new(&model, edges);
        assert_eq!(model.squares, [5.0, 16.0]);
        let (density, error) = model.density(0);
        assert!((density - 3.0 / 8.0).abs() < 1e-12);
        assert!((error - 5f64.sqrt() / 8.0).abs() < 1e-12);

        let ratios = seen.over(&model);
        // (4/8) / (3/8), error √4/8 over 3/8; the model's own √5/3.
        assert!((ratios[0].value - 4.0 / 3.0).abs() < 1e-12);
        assert!((ratios[0].bar[0] - 2.0 / 3.0).abs() < 1e-12);
        assert!((ratios[0].bar[1] - 2.0).abs() < 1e-12);
        assert!((ratios[0].band - 5f64.sqrt() / 3.0).abs() < 1e-12);
        // (3/8) / (4/8), error √3/8 over 4/8; the model's own 4/4.
        assert!((ratios[1].value - 0.75).abs() < 1e-12);
        assert!((ratios[1].bar[1] - 0.75 - 3f64.sqrt() / 4.0).abs() < 1e-12);
        assert!((ratios[1].band - 1.0).abs() < 1e-12);
    }

    #[test]
    fn an_empty_bin_of_the_numerator_is_shown_and_of_the_denominator_is_not() {
        let edges = vec![0.0, 1.0, 2.0];
        let low = Histogram::new(&Column::new(vec![0.5; 4]), edges.clone());
        let both = Histogram::new(&Column::new(vec![0.5, 0.5, 0.5, 1.5]), edges);
        let ratios = low.over(&both);
        assert_eq!((ratios[1].value, ratios[1].bar), (0.0, [0.0, 1.841]));
        assert_eq!(both.over(&low).len(), 1);
    }

    /// Equal laws: χ² of 40 bins lies within 40 ± 5·√80 but for one case in a million.
    #[test]
    fn chi_square_counts_bins_where_nothing_differs() {
        use neb::{Noise, Purpose};
        let column = |seed, rows| {
            let sample = Noise::new(seed, Purpose::DrawX, 0).uniform(rows, 1);
            Column::of(sample.view().into(), 0)
        };
        let edges: Vec<f64> = (0..=40).map(|edge| f64::from(edge) / 40.0).collect();
        let a = Histogram::new(&column(1, 10_000), edges.clone());
        let b = Histogram::new(&column(2, 20_000), edges);
        let (square, bins) = a.chi_square(&b);
        assert_eq!(bins, 40);
        assert!((square - 40.0).abs() < 5.0 * 80f64.sqrt(), "{square}");
    }
}
