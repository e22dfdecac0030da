//! Weighted histograms in one or more observables, with under- and overflow as cells of their own.

use serde::{Deserialize, Serialize};

use crate::{Error, Result, Rows};

/// Bins of one observable: [e₀, e₁), [e₁, e₂), …, the last one with its upper edge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Binning {
    edges: Vec<f64>,
}

impl Binning {
    /// Bins between these edges.
    ///
    /// # Errors
    /// Fewer than two edges, or edges that are not finite or do not increase.
    pub fn new(edges: Vec<f64>) -> Result<Self> {
        let increasing = edges.windows(2).all(|pair| pair[0] < pair[1]);
        if edges.len() < 2 || !increasing || !edges.iter().all(|edge| edge.is_finite()) {
            return Err(Error::input(
                format!("these edges make no bins: {edges:?}"),
                "give at least two finite edges in increasing order",
            ));
        }
        Ok(Self { edges })
    }

    /// So many bins of one width.
    ///
    /// # Errors
    /// No bins, or edges out of order.
    pub fn uniform(low: f64, high: f64, bins: usize) -> Result<Self> {
        let edge = |number: usize| match number == bins {
            true => high,
            false => low + (high - low) * number as f64 / bins as f64,
        };
        match bins {
            0 => Self::new(Vec::new()),
            _ => Self::new((0..=bins).map(edge).collect()),
        }
    }

    /// The edges, one more than bins.
    pub fn edges(&self) -> &[f64] {
        &self.edges
    }

    /// Number of bins.
    pub fn bins(&self) -> usize {
        self.edges.len() - 1
    }

    /// Number of cells: the bins, underflow before them and overflow after.
    pub fn cells(&self) -> usize {
        self.bins() + 2
    }

    /// Width of each bin.
    pub fn widths(&self) -> Vec<f64> {
        self.edges
            .windows(2)
            .map(|pair| pair[1] - pair[0])
            .collect()
    }

    /// The cell of a value: 0 below the first edge, 1 to `bins()` inside, `bins() + 1` above the last edge.
    pub fn cell(&self, value: f64) -> usize {
        let last = self.bins();
        if value == self.edges[last] {
            return last;
        }
        self.edges.partition_point(|&edge| edge <= value)
    }
}

/// Sums of weights and of their squares, cell by cell.
///
/// The cells of several observables are numbered row by row, the last observable fastest, under- and overflow of each
/// included; [`Self::inside`] and its like leave these out.
///
/// ```
/// use neb::unfold::{Binning, Histogram};
/// use neb::Matrix;
///
/// let mass = Matrix::from_vec(vec![12.0, 55.0, 61.0, 190.0], 1);
/// let bins = Binning::new(vec![0.0, 50.0, 100.0])?;
/// let spectrum = Histogram::of(mass.view(), &[0], Some(&[1.0, 2.0, -0.5, 1.0]), &[bins])?;
/// assert_eq!(spectrum.inside(), [1.0, 1.5]);
/// assert_eq!(spectrum.inside_squares(), [1.0, 4.25]);
/// assert_eq!(spectrum.outside(), 1.0);
/// # Ok::<(), neb::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Histogram {
    axes: Vec<Binning>,
    sums: Vec<f64>,
    squares: Vec<f64>,
}

impl Histogram {
    /// An empty histogram of these observables.
    ///
    /// # Errors
    /// No observable at all.
    pub fn new(axes: &[Binning]) -> Result<Self> {
        if axes.is_empty() {
            return Err(Error::input(
                "a histogram needs bins of at least one observable",
                "give one or two observables",
            ));
        }
        let cells = axes.iter().map(Binning::cells).product();
        Ok(Self {
            axes: axes.to_vec(),
            sums: vec![0.0; cells],
            squares: vec![0.0; cells],
        })
    }

    /// The histogram of some columns of a table, one for each axis; rows count with their weights, or 1.
    ///
    /// # Errors
    /// Columns that do not exist, as many weights as there are not rows, values or weights that are not numbers.
    pub fn of(
        rows: Rows,
        columns: &[usize],
        weights: Option<&[f32]>,
        axes: &[Binning],
    ) -> Result<Self> {
        let mut histogram = Self::new(axes)?;
        let cells = histogram.cells_of(rows, columns)?;
        if let Some(weights) = weights
            && weights.len() != rows.rows()
        {
            return Err(Error::input(
                format!(
                    "there are {} weights for {} rows",
                    weights.len(),
                    rows.rows()
                ),
                "give one weight per row",
            ));
        }
        for (row, cell) in cells.into_iter().enumerate() {
            let weight = weights.map_or(1.0, |weights| f64::from(weights[row]));
            if !weight.is_finite() {
                return Err(Error::input(
                    format!("the weight of row {row} is {weight}"),
                    "give finite weights",
                ));
            }
            histogram.add(cell, weight);
        }
        Ok(histogram)
    }

    /// The cell of every row of a table, by the columns of the axes.
    ///
    /// # Errors
    /// Columns that do not exist, values that are not numbers.
    pub fn cells_of(&self, rows: Rows, columns: &[usize]) -> Result<Vec<usize>> {
        let wrong = columns.iter().find(|&&column| column >= rows.cols());
        if columns.len() != self.axes.len() || wrong.is_some() {
            return Err(Error::input(
                format!(
                    "{} observables are to be columns {columns:?} of a table of {}",
                    self.axes.len(),
                    rows.cols()
                ),
                "name one column for each observable",
            ));
        }
        let cell = |row: usize| {
            let values = rows.row(row);
            columns
                .iter()
                .zip(&self.axes)
                .try_fold(0, |cell, (&column, axis)| {
                    let value = f64::from(values[column]);
                    if value.is_nan() {
                        return Err(Error::input(
                            format!("row {row}, column {column}: the value is not a number"),
                            "leave such rows out",
                        ));
                    }
                    Ok(cell * axis.cells() + axis.cell(value))
                })
        };
        (0..rows.rows()).map(cell).collect()
    }

    /// Adds an entry to a cell.
    ///
    /// # Panics
    /// If there is no such cell.
    pub fn add(&mut self, cell: usize, weight: f64) {
        self.sums[cell] += weight;
        self.squares[cell] += weight * weight;
    }

    /// A histogram of the same bins with these sums and squares, one for each cell.
    ///
    /// # Panics
    /// If there are not as many as cells.
    pub fn with_contents(&self, sums: Vec<f64>, squares: Vec<f64>) -> Self {
        assert_eq!(sums.len(), self.sums.len(), "one sum for each cell");
        assert_eq!(squares.len(), self.sums.len(), "one square for each cell");
        Self {
            axes: self.axes.clone(),
            sums,
            squares,
        }
    }

    /// The bins of each observable.
    pub fn axes(&self) -> &[Binning] {
        &self.axes
    }

    /// Sum of weights of every cell, under- and overflow included.
    pub fn sums(&self) -> &[f64] {
        &self.sums
    }

    /// Sum of squared weights of every cell, under- and overflow included.
    pub fn squares(&self) -> &[f64] {
        &self.squares
    }

    /// Numbers of the cells that are bins in every observable, in order.
    pub fn inner_cells(&self) -> Vec<usize> {
        let is_inner = |cell: &usize| {
            let mut rest = *cell;
            self.axes.iter().rev().all(|axis| {
                let place = rest % axis.cells();
                rest /= axis.cells();
                (1..=axis.bins()).contains(&place)
            })
        };
        (0..self.sums.len()).filter(is_inner).collect()
    }

    /// Where a cell is, in words: "between 0 and 50", "below 0", for each observable.
    pub fn place(&self, cell: usize) -> String {
        let mut rest = cell;
        let mut words: Vec<String> = Vec::new();
        for axis in self.axes.iter().rev() {
            let (place, edges) = (rest % axis.cells(), axis.edges());
            rest /= axis.cells();
            words.push(match place {
                0 => format!("below {}", edges[0]),
                place if place > axis.bins() => format!("above {}", edges[axis.bins()]),
                place => format!("between {} and {}", edges[place - 1], edges[place]),
            });
        }
        words.reverse();
        words.join(", ")
    }

    /// Of values of all cells, those of the bins.
    pub fn inner(&self, of_cells: &[f64]) -> Vec<f64> {
        let inner = self.inner_cells().into_iter();
        inner.map(|cell| of_cells[cell]).collect()
    }

    /// Sum of weights of every bin.
    pub fn inside(&self) -> Vec<f64> {
        self.inner(&self.sums)
    }

    /// Sum of squared weights of every bin.
    pub fn inside_squares(&self) -> Vec<f64> {
        self.inner(&self.squares)
    }

    /// Sum of all weights.
    pub fn total(&self) -> f64 {
        self.sums.iter().sum()
    }

    /// Sum of the weights outside the bins.
    pub fn outside(&self) -> f64 {
        self.total() - self.inside().iter().sum::<f64>()
    }

    /// Volume of every bin: width, or product of widths.
    pub fn volumes(&self) -> Vec<f64> {
        self.axes.iter().fold(vec![1.0], |volumes, axis| {
            let widths = axis.widths();
            let products = |volume: f64| widths.iter().map(move |width| volume * width);
            volumes.into_iter().flat_map(products).collect()
        })
    }

    /// What every bin is multiplied by to be a density: 1/volume, and with `normalised` also 1 over the sum of the bins, so
    /// that the density integrates to 1 over the bins.
    ///
    /// # Errors
    /// Bins whose sum is not positive.
    pub fn density_factors(&self, normalised: bool) -> Result<Vec<f64>> {
        let sum = match normalised {
            true => self.positive_inside()?,
            false => 1.0,
        };
        Ok(self
            .volumes()
            .iter()
            .map(|volume| 1.0 / (sum * volume))
            .collect())
    }

    /// The sum of the bins.
    ///
    /// # Errors
    /// Where it is not positive: the bins miss the data.
    pub fn positive_inside(&self) -> Result<f64> {
        let sum: f64 = self.inside().iter().sum();
        if sum > 0.0 {
            return Ok(sum);
        }
        Err(Error::input(
            format!(
                "the bins hold a weight of {sum}, {} lies outside of them",
                self.outside()
            ),
            "choose bins that hold the data, and check their units",
        ))
    }

    /// Effective number of entries in the bins: (Σ w)² / Σ w².
    pub fn effective_entries(&self) -> f64 {
        let sum: f64 = self.inside().iter().sum();
        let squares: f64 = self.inside_squares().iter().sum();
        match squares > 0.0 {
            true => sum * sum / squares,
            false => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Matrix;

    #[test]
    fn edges_belong_to_the_bin_above_and_the_last_to_the_last() {
        let bins = Binning::uniform(0.0, 1.0, 4).unwrap();
        assert_eq!(bins.edges(), [0.0, 0.25, 0.5, 0.75, 1.0]);
        let cells = [-0.1, 0.0, 0.2, 0.25, 0.99, 1.0, 1.01, f64::INFINITY];
        assert_eq!(cells.map(|x| bins.cell(x)), [0, 1, 1, 2, 4, 4, 5, 5]);
        assert_eq!(bins.cell(f64::NEG_INFINITY), 0);
    }

    #[test]
    fn bins_that_are_none_are_refused() {
        for edges in [
            vec![],
            vec![1.0],
            vec![1.0, 1.0],
            vec![0.0, f64::NAN],
            vec![2.0, 1.0],
        ] {
            assert!(Binning::new(edges).is_err());
        }
        assert!(Binning::uniform(0.0, 1.0, 0).is_err());
    }

    /// A grid of 3 × 2 points with weights, counted by hand.
    #[test]
    fn two_observables_with_overflow() {
        let rows = Matrix::from_vec(
            vec![
                0.5, 10.0, 1.5, 10.0, 1.5, 30.0, 5.0, 30.0, -1.0, 10.0, 0.5, 99.0,
            ],
            2,
        );
        let axes = [
            Binning::new(vec![0.0, 1.0, 2.0]).unwrap(),
            Binning::new(vec![0.0, 20.0, 40.0]).unwrap(),
        ];
        let weights = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let histogram = Histogram::of(rows.view(), &[0, 1], Some(&weights), &axes).unwrap();
        assert_eq!(histogram.inside(), [1.0, 0.0, 2.0, 3.0]);
        assert_eq!(histogram.inside_squares(), [1.0, 0.0, 4.0, 9.0]);
        assert_eq!(histogram.total(), 21.0);
        assert_eq!(histogram.outside(), 15.0);
        // Overflow of the first observable, second bin of the other: (2 + 1) · 4 + 2.
        assert_eq!(histogram.sums()[14], 4.0);
        assert_eq!(histogram.sums()[1], 5.0);
        assert_eq!(histogram.sums()[7], 6.0);
        assert_eq!(histogram.volumes(), [20.0; 4]);
        let density = histogram.density_factors(true).unwrap();
        let integral: f64 = histogram
            .inside()
            .iter()
            .zip(&density)
            .map(|(sum, factor)| sum * factor * 20.0)
            .sum();
        assert!((integral - 1.0).abs() < 1e-12);
        // (1 + 2 + 3)² / (1 + 4 + 9).
        assert!((histogram.effective_entries() - 36.0 / 14.0).abs() < 1e-12);
    }

    #[test]
    fn bins_that_miss_the_data_are_named_as_such() {
        let rows = Matrix::from_vec(vec![5.0, 6.0], 1);
        let bins = [Binning::uniform(0.0, 1.0, 2).unwrap()];
        let histogram = Histogram::of(rows.view(), &[0], None, &bins).unwrap();
        let message = histogram.density_factors(true).unwrap_err().to_string();
        assert!(message.contains("2 lies outside"), "{message}");
        assert!(Histogram::of(rows.view(), &[1], None, &bins).is_err());
        assert!(Histogram::of(rows.view(), &[0], Some(&[1.0]), &bins).is_err());
        assert!(Histogram::of(rows.view(), &[0], Some(&[1.0, f32::NAN]), &bins).is_err());
    }
}
