//! The corner plot: densities of every column on the diagonal, highest-density contours of every pair below it.

use neb::check::Sample;

use crate::axis::Axis;
use crate::column::Column;
use crate::density::{Density1, Density2, Grid, MASSES, common_range, levels};
use crate::figure::Figure;
use crate::legend::{self, Entry, Key, LINE};
use crate::panel::{Labels, Panel};
use crate::simplify::simplify;
use crate::style::Role;
use crate::svg::{Frame, Svg};

/// Columns that find room; further ones are left out.
pub const MOST_COLUMNS: usize = 8;

/// Samples to be drawn over each other.
#[derive(Clone, Debug)]
pub struct Corner<'a> {
    /// Short name of the figure.
    pub name: &'a str,
    /// What it shows.
    pub title: &'a str,
    /// Names of the columns.
    pub columns: &'a [String],
    /// The samples; the first is filled.
    pub samples: Vec<CornerSample<'a>>,
    /// A point to mark, such as the true x, and what it is called.
    pub mark: Option<(&'a [f32], &'a str)>,
}

/// One sample.
#[derive(Clone, Copy, Debug)]
pub struct CornerSample<'a> {
    /// What it is called.
    pub label: &'a str,
    /// How it is drawn.
    pub role: Role,
    /// Its rows.
    pub sample: Sample<'a>,
    /// Whether its contours are drawn, or only its densities on the diagonal.
    pub contours: bool,
}

const LEFT: f64 = 62.0;
const BELOW: f64 = 32.0;
const GAP: f64 = 9.0;

/// What is known of one column.
struct Dimension<'a> {
    name: &'a str,
    /// One for each sample.
    columns: Vec<Column>,
    /// Wider than the axis, so that the kernel loses nothing.
    grid: Grid,
    axis: Axis,
}

impl<'a> Dimension<'a> {
    fn new(corner: &Corner<'a>, number: usize) -> Self {
        let columns: Vec<Column> = corner
            .samples
            .iter()
            .map(|sample| Column::of(sample.sample, number))
            .collect();
        let shown: Vec<&Column> = corner
            .samples
            .iter()
            .zip(&columns)
            .filter(|(sample, _)| sample.contours)
            .map(|(_, column)| column)
            .collect();
        let [mut low, mut high] = common_range(&shown);
        if let Some((mark, _)) = corner.mark {
            let value = f64::from(mark[number]);
            let room = 0.04 * (high - low);
            (low, high) = (low.min(value - room), high.max(value + room));
        }
        let room = 0.1 * (high - low);
        Self {
            name: &corner.columns[number],
            columns,
            grid: Grid::new(low - room, high + room),
            axis: Axis::new(low, high),
        }
    }
}

/// Draws a corner plot.
pub fn corner(corner: &Corner) -> Figure {
    let dims = corner.columns.len().min(MOST_COLUMNS);
    let dimensions: Vec<Dimension> = (0..dims)
        .map(|number| Dimension::new(corner, number))
        .collect();
    let fewest = fewest_rows(corner, &dimensions[0]);
    let size = (680.0 / dims as f64).clamp(96.0, 230.0);
    let entries = entries(corner);
    let legend_width = if dims == 1 { 170.0 } else { 0.0 };
    let extent = [
        LEFT + dims as f64 * (size + GAP) + 6.0 + legend_width,
        10.0 + dims as f64 * (size + GAP) + BELOW,
    ];
    let frame = |column: usize, row: usize| Frame {
        x: LEFT + column as f64 * (size + GAP),
        y: 10.0 + row as f64 * (size + GAP),
        width: size,
        height: size,
    };
    let mut svg = Svg::new(corner.name);
    for row in 0..dims {
        for column in 0..=row {
            let frame = frame(column, row);
            let panel = if column == row {
                diagonal(&mut svg, corner, &dimensions[row], frame, fewest)
            } else {
                let pair = [&dimensions[column], &dimensions[row]];
                below(&mut svg, corner, pair, [column, row], frame, fewest)
            };
            let name = |number: usize| dimensions[number].name;
            let x_labels = if row + 1 == dims {
                Labels::Named(name(column))
            } else {
                Labels::None
            };
            panel.x_labels_within(&mut svg, x_labels, 0.5 * GAP);
            match (column, row) {
                (c, r) if c == r => {}
                (0, _) => panel.y_labels(&mut svg, Labels::Named(name(row)), LEFT - 14.0),
                _ => panel.y_labels(&mut svg, Labels::None, 0.0),
            }
        }
    }
    let x = if dims == 2 {
        frame(1, 0).x + 8.0
    } else {
        frame(0, 0).right() + 2.0 * GAP + if dims > 2 { size + GAP } else { 0.0 }
    };
    legend::column(&mut svg, [x, 12.0], &entries);
    let height = extent[1].max(14.0 + entries.len() as f64 * LINE);
    Figure::new(corner.name, corner.title, [extent[0], height], svg)
}

/// The sample with contours that has the fewest rows, in effect: the kernel is made for it.
fn fewest_rows(corner: &Corner, dimension: &Dimension) -> usize {
    let with_contours = (0..corner.samples.len()).filter(|&n| corner.samples[n].contours);
    let rows = |number: &usize| dimension.columns[*number].effective_rows();
    with_contours
        .min_by(|a, b| rows(a).total_cmp(&rows(b)))
        .unwrap_or(0)
}

fn entries(corner: &Corner) -> Vec<Entry> {
    let mut entries = Vec::new();
    for (number, sample) in corner.samples.iter().enumerate() {
        let key = if number == 0 && sample.contours {
            Key::Filled(sample.role)
        } else {
            Key::Line(sample.role)
        };
        entries.push(Entry::new(key, sample.label));
    }
    if let Some((_, label)) = corner.mark {
        entries.push(Entry::new(Key::Cross(Role::Truth), label));
    }
    if corner.columns.len() > 1 {
        entries.push(Entry::new(Key::Words, "68, 95 and 99.7 % regions"));
    }
    entries
}

/// The densities of one column, each with area one, on a common scale.
fn diagonal(
    svg: &mut Svg,
    corner: &Corner,
    dimension: &Dimension,
    frame: Frame,
    fewest: usize,
) -> Panel {
    let width = Density1::width(&dimension.columns[fewest], dimension.grid);
    let densities: Vec<Density1> = dimension
        .columns
        .iter()
        .map(|column| Density1::estimate(column, dimension.grid, width))
        .collect();
    let highest = densities
        .iter()
        .flat_map(|density| &density.values)
        .fold(0.0, |highest, &value| value.max(highest));
    let panel = Panel {
        frame,
        x: dimension.axis,
        y: Axis::new(0.0, 1.12 * highest),
    };
    panel.inside(svg, |svg| {
        for (number, density) in densities.iter().enumerate() {
            let sample = &corner.samples[number];
            let points: Vec<[f64; 2]> = density
                .values
                .iter()
                .enumerate()
                .map(|(cell, &value)| [density.grid.middle(cell), value])
                .collect();
            if number == 0 && sample.contours {
                let floor: Vec<[f64; 2]> = points.iter().map(|p| [p[0], 0.0]).collect();
                panel.band(svg, &sample.role.fill(), &floor, &points);
            }
            panel.line(svg, sample.role, &points);
        }
        if let Some((mark, _)) = corner.mark {
            let number = corner.columns.iter().position(|n| n == dimension.name);
            let value = f64::from(mark[number.unwrap_or(0)]);
            panel.line(svg, Role::Truth, &[[value, 0.0], [value, 2.0 * highest]]);
        }
    });
    panel.border(svg);
    panel
}

/// The contours of one pair of columns.
fn below(
    svg: &mut Svg,
    corner: &Corner,
    pair: [&Dimension; 2],
    numbers: [usize; 2],
    frame: Frame,
    fewest: usize,
) -> Panel {
    let grids = pair.map(|dimension| dimension.grid);
    let columns = |sample: usize| pair.map(|dimension| &dimension.columns[sample]);
    let widths = Density2::widths(columns(fewest), grids);
    let panel = Panel {
        frame,
        x: pair[0].axis,
        y: pair[1].axis,
    };
    panel.inside(svg, |svg| {
        for (number, sample) in corner.samples.iter().enumerate() {
            if !sample.contours {
                continue;
            }
            let density = Density2::estimate(columns(number), grids, widths);
            for level in levels(&density.values, MASSES) {
                let rings: Vec<Vec<[f64; 2]>> = density
                    .contour(level)
                    .into_iter()
                    .map(|ring| simplify(ring.into_iter().map(|p| panel.at(p[0], p[1])).collect()))
                    .collect();
                if number == 0 {
                    svg.path(&sample.role.fill(), &rings, true);
                }
                svg.path(&sample.role.line(), &rings, true);
            }
        }
        if let Some((mark, _)) = corner.mark {
            let [x, y] = numbers.map(|number| f64::from(mark[number]));
            let [low, high] = [panel.x.low, panel.x.high];
            panel.line(svg, Role::Truth, &[[low, y], [high, y]]);
            panel.line(svg, Role::Truth, &[[x, panel.y.low], [x, panel.y.high]]);
            svg.circle(&Role::Truth.dot(), panel.at(x, y), 3.0);
        }
    });
    panel.border(svg);
    panel
}
