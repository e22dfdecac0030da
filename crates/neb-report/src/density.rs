//! Density estimates on a grid, and the highest-density regions of given mass.
//!
//! Rows are spread over the cells of a grid (linear binning) and smoothed with a Gaussian kernel. Samples that are drawn on
//! top of each other are smoothed with the same kernel, so that a difference between them is never one of smoothing.
//!
//! The kernel: as narrow as leaves so many rows under it, at the density that bounds the 68 % region, as Scott's rule leaves
//! for a uniform law (so that the noise of a contour does not depend on its shape), but no wider than Scott's rule, which is
//! right for one normal peak. Narrow crescents and separate modes, whose deviation says nothing of their width, thus stay
//! narrow.
//!
//! The highest-density region of mass p is {x : f(x) ≥ t} with t such that it holds p: cells are taken in the order of
//! their density until p is reached.

use crate::column::Column;

/// The masses of the regions that are drawn.
pub const MASSES: [f64; 3] = [0.68, 0.95, 0.997];
/// Cells of a grid in each dimension.
const CELLS: usize = 320;
/// The kernel is cut off at so many deviations.
const REACH: f64 = 4.0;
/// Widths of the kernel that are tried, as parts of Scott's.
const WIDTHS: [f64; 9] = [0.06, 0.09, 0.13, 0.18, 0.26, 0.37, 0.53, 0.75, 1.0];

/// Cells of equal width along one dimension.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grid {
    /// Lower edge of the first cell.
    pub low: f64,
    /// Width of a cell.
    pub step: f64,
    /// Number of cells.
    pub cells: usize,
}

impl Grid {
    /// A grid over a range.
    pub fn new(low: f64, high: f64) -> Self {
        Self {
            low,
            step: (high - low) / CELLS as f64,
            cells: CELLS,
        }
    }

    /// Middle of a cell.
    pub fn middle(&self, cell: usize) -> f64 {
        self.low + (cell as f64 + 0.5) * self.step
    }

    /// The two cells whose middles enclose a value, and the share of the second; none outside the grid.
    fn spread(&self, value: f64) -> Option<(usize, f64)> {
        let place = (value - self.low) / self.step - 0.5;
        let inside = place >= 0.0 && place < (self.cells - 1) as f64;
        inside.then(|| (place as usize, place.fract()))
    }
}

/// The range in which nearly all of several columns lie, with room for what a kernel of Scott's width adds to the outermost
/// contour.
pub fn common_range(columns: &[&Column]) -> [f64; 2] {
    let (mut low, mut high, mut room) = (f64::INFINITY, f64::NEG_INFINITY, 0.0f64);
    for column in columns {
        let [first, last] = column.quantiles([0.001, 0.999]);
        (low, high) = (low.min(first), high.max(last));
        room = room.max(2.6 * column.scale() * column.effective_rows().powf(-1.0 / 6.0));
    }
    let room = room.clamp(0.03 * (high - low), 0.3 * (high - low));
    let room = if room > 0.0 {
        room
    } else {
        0.1 * low.abs().max(1.0)
    };
    [low - room, high + room]
}

/// A density along one dimension.
#[derive(Clone, Debug)]
pub struct Density1 {
    /// Where.
    pub grid: Grid,
    /// The density in each cell.
    pub values: Vec<f64>,
}

impl Density1 {
    /// The estimate with a kernel of this deviation.
    pub fn estimate(column: &Column, grid: Grid, width: f64) -> Self {
        let mut mass = vec![0.0; grid.cells];
        let mut total = 0.0;
        for (row, &value) in column.values.iter().enumerate() {
            let weight = column.weight(row);
            total += weight;
            if let Some((cell, share)) = grid.spread(value) {
                mass[cell] += weight * (1.0 - share);
                mass[cell + 1] += weight * share;
            }
        }
        let mut values = vec![0.0; grid.cells];
        smooth(&mass, &mut values, &kernel(width / grid.step));
        values.iter_mut().for_each(|v| *v /= total * grid.step);
        Self { grid, values }
    }

    /// A width of the kernel that suits a column.
    pub fn width(column: &Column, grid: Grid) -> f64 {
        let rows = column.effective_rows();
        let scott = 1.06 * column.scale() * rows.powf(-0.2);
        narrowest(scott, |width| {
            let density = Self::estimate(column, grid, width);
            let level = levels(&density.values, [MASSES[0]])[0];
            let under = 2.0 * std::f64::consts::PI.sqrt() * width * rows * level;
            under >= 1.1 * rows.powf(0.8)
        })
    }
}

/// A density over two dimensions.
#[derive(Clone, Debug)]
pub struct Density2 {
    /// Along the first dimension.
    pub x: Grid,
    /// Along the second dimension.
    pub y: Grid,
    /// The density in each cell: all x of the first y, then those of the second, and so on.
    pub values: Vec<f64>,
}

impl Density2 {
    /// The estimate with a kernel of these deviations. Both columns have the same rows and weights.
    pub fn estimate(columns: [&Column; 2], grids: [Grid; 2], widths: [f64; 2]) -> Self {
        let [x, y] = grids;
        let mut mass = vec![0.0; x.cells * y.cells];
        let mut total = 0.0;
        let rows = columns[0].values.iter().zip(&columns[1].values);
        for (row, (&first, &second)) in rows.enumerate() {
            let weight = columns[0].weight(row);
            total += weight;
            let (Some((i, a)), Some((j, b))) = (x.spread(first), y.spread(second)) else {
                continue;
            };
            let cell = j * x.cells + i;
            mass[cell] += weight * (1.0 - a) * (1.0 - b);
            mass[cell + 1] += weight * a * (1.0 - b);
            mass[cell + x.cells] += weight * (1.0 - a) * b;
            mass[cell + x.cells + 1] += weight * a * b;
        }
        let along_x = kernel(widths[0] / x.step);
        let mut half = vec![0.0; mass.len()];
        for (from, to) in mass.chunks(x.cells).zip(half.chunks_mut(x.cells)) {
            smooth(from, to, &along_x);
        }
        let along_y = kernel(widths[1] / y.step);
        let mut values = vec![0.0; mass.len()];
        let (mut line, mut smoothed) = (vec![0.0; y.cells], vec![0.0; y.cells]);
        for i in 0..x.cells {
            for (j, value) in line.iter_mut().enumerate() {
                *value = half[j * x.cells + i];
            }
            smooth(&line, &mut smoothed, &along_y);
            for (j, value) in smoothed.iter().enumerate() {
                values[j * x.cells + i] = value / (total * x.step * y.step);
            }
        }
        Self { x, y, values }
    }

    /// Widths of the kernel that suit two columns.
    pub fn widths(columns: [&Column; 2], grids: [Grid; 2]) -> [f64; 2] {
        let rows = columns[0].effective_rows();
        let scott = columns.map(|column| column.scale() * rows.powf(-1.0 / 6.0));
        let part = narrowest(1.0, |part| {
            let widths = scott.map(|width| part * width);
            let density = Self::estimate(columns, grids, widths);
            let level = levels(&density.values, [MASSES[0]])[0];
            4.0 * std::f64::consts::PI * widths[0] * widths[1] * rows * level
                >= rows.powf(2.0 / 3.0)
        });
        scott.map(|width| part * width)
    }

    /// Closed lines where the density is `level`.
    pub fn contour(&self, level: f64) -> Vec<Vec<[f64; 2]>> {
        let builder = contour::ContourBuilder::new(self.x.cells, self.y.cells, true)
            .x_origin(self.x.low)
            .y_origin(self.y.low)
            .x_step(self.x.step)
            .y_step(self.y.step);
        let lines = builder
            .lines(&self.values, &[level])
            .expect("as many values as cells");
        let lines = lines.into_iter().flat_map(|line| line.into_inner().0.0);
        lines
            .map(|line| line.0.into_iter().map(|point| [point.x, point.y]).collect())
            .collect()
    }
}

/// The smallest of the widths tried that is enough, else the widest.
fn narrowest(widest: f64, enough: impl Fn(f64) -> bool) -> f64 {
    let mut widths = WIDTHS.iter().map(|part| part * widest);
    widths.find(|&width| enough(width)).unwrap_or(widest)
}

/// The densities whose regions hold these masses of all there is in the cells.
pub fn levels<const N: usize>(values: &[f64], masses: [f64; N]) -> [f64; N] {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|&v| v > 0.0).collect();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let total: f64 = sorted.iter().sum();
    masses.map(|mass| {
        let mut sum = 0.0;
        let reached = |value: &&f64| {
            sum += **value;
            sum >= mass * total
        };
        sorted.iter().find(reached).copied().unwrap_or(0.0)
    })
}

/// A Gaussian of this deviation, in cells, from its middle outwards; it adds up to one.
fn kernel(width: f64) -> Vec<f64> {
    let width = width.max(0.3);
    let reach = (REACH * width).ceil() as usize;
    let mut half: Vec<f64> = (0..=reach)
        .map(|cell| (-0.5 * (cell as f64 / width).powi(2)).exp())
        .collect();
    let sum = half[0] + 2.0 * half[1..].iter().sum::<f64>();
    half.iter_mut().for_each(|value| *value /= sum);
    half
}

/// Writes the convolution of `from` with a symmetric kernel; what would fall off the ends is lost.
fn smooth(from: &[f64], to: &mut [f64], kernel: &[f64]) {
    to.fill(0.0);
    for (cell, &mass) in from.iter().enumerate().filter(|(_, mass)| **mass != 0.0) {
        to[cell] += mass * kernel[0];
        for (distance, weight) in kernel.iter().enumerate().skip(1) {
            if cell >= distance {
                to[cell - distance] += mass * weight;
            }
            if cell + distance < to.len() {
                to[cell + distance] += mass * weight;
            }
        }
    }
}

#[cfg(test)]
mod tests;
