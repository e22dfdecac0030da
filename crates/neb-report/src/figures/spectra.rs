//! Spectra in bins, an observable in each panel, with their ratio to one of them below.

use crate::axis::Axis;
use crate::figure::Figure;
use crate::legend::{self, Entry, Key};
use crate::panel::{Labels, Panel};
use crate::style::Role;
use crate::svg::{Anchor, Frame, Svg};

use super::Tiles;

/// Spectra to be compared.
#[derive(Clone, Debug)]
pub struct Spectra<'a> {
    /// Short name of the figure.
    pub name: &'a str,
    /// What it shows.
    pub title: &'a str,
    /// Name of the upper vertical axes.
    pub y_name: &'a str,
    /// Name of the lower vertical axes; where it is empty, there are no ratios, and the values are ratios themselves.
    pub ratio_name: &'a str,
    /// One for each observable.
    pub panels: Vec<SpectraPanel>,
}

/// The spectra of one observable.
#[derive(Clone, Debug)]
pub struct SpectraPanel {
    /// Name of the observable.
    pub name: String,
    /// A remark above the panel; may be empty.
    pub note: String,
    /// Edges of the bins.
    pub edges: Vec<f64>,
    /// The spectra, in the order of the legend; lines are drawn first, then bands, then dots. The first is what the others are divided by.
    pub series: Vec<SpectraSeries>,
}

/// One spectrum.
#[derive(Clone, Debug)]
pub struct SpectraSeries {
    /// What it is called; the same in all panels.
    pub label: String,
    /// Its colour and dash.
    pub role: Role,
    /// How it is drawn.
    pub look: Look,
    /// One value for each bin.
    pub values: Vec<f64>,
    /// One standard error for each bin; empty where there are none.
    pub errors: Vec<f64>,
    /// Whether its ratio is drawn too.
    pub in_ratio: bool,
}

/// How a spectrum is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Steps alone.
    Line,
    /// Steps on a band of one standard error.
    Band,
    /// Dots with bars of one standard error.
    Points,
}

const RATIO_HEIGHT: f64 = 84.0;
const GAP: f64 = 14.0;
/// Share of the bins whose bars must find room in a panel of ratios, and the least and most room.
const SEEN: f64 = 0.85;
const ROOM: [f64; 2] = [0.06, 0.95];

impl SpectraSeries {
    fn error(&self, bin: usize) -> f64 {
        self.errors.get(bin).copied().unwrap_or(0.0)
    }

    /// This spectrum over another; not a number where the other has nothing.
    fn over(&self, other: &Self) -> Self {
        let ratio = |values: &[f64]| -> Vec<f64> {
            let pairs = values.iter().zip(&other.values);
            let each = pairs.map(|(value, &of)| if of > 0.0 { value / of } else { f64::NAN });
            each.collect()
        };
        Self {
            values: ratio(&self.values),
            errors: ratio(&self.errors),
            ..self.clone()
        }
    }

    fn key(&self) -> Key {
        match self.look {
            Look::Line => Key::Line(self.role),
            Look::Band => Key::Filled(self.role),
            Look::Points => Key::Bar(self.role),
        }
    }

    /// Draws it; `shift` moves dots sideways, in bins, so that they can be told from others. Bins in which nothing was counted have no dot.
    fn draw(&self, svg: &mut Svg, panel: &Panel, edges: &[f64], shift: f64) {
        if self.look == Look::Points {
            for (bin, &value) in self
                .values
                .iter()
                .enumerate()
                .filter(|(_, v)| v.is_finite())
            {
                let x = edges[bin] + (0.5 + shift) * (edges[bin + 1] - edges[bin]);
                let error = self.error(bin);
                if value == 0.0 && panel.y.low == 0.0 {
                    continue;
                }
                let bar = [value - error, value + error];
                panel.point(svg, self.role, x, value, bar);
                panel.arrow(svg, self.role, x, value);
            }
            return;
        }
        // Bins without a value interrupt the line.
        let known = |bin: &usize| self.values[*bin].is_finite();
        let bins: Vec<usize> = (0..self.values.len()).filter(known).collect();
        for run in bins.chunk_by(|a, b| a + 1 == *b) {
            let steps = |of: &dyn Fn(usize) -> f64| -> Vec<[f64; 2]> {
                let ends = run.iter().flat_map(|&bin| {
                    let value = of(bin);
                    [[edges[bin], value], [edges[bin + 1], value]]
                });
                ends.collect()
            };
            if self.look == Look::Band {
                let lower = steps(&|bin| self.values[bin] - self.error(bin));
                let upper = steps(&|bin| self.values[bin] + self.error(bin));
                panel.band(svg, &self.role.fill(), &lower, &upper);
            }
            panel.line(svg, self.role, &steps(&|bin| self.values[bin]));
        }
    }
}

/// Draws the spectra.
pub fn spectra(data: &Spectra) -> Figure {
    let count = data.panels.len();
    let mut entries: Vec<Entry> = Vec::new();
    for series in data.panels.iter().flat_map(|panel| &panel.series) {
        if !entries.iter().any(|entry| entry.label == series.label) {
            entries.push(Entry::new(series.key(), series.label.clone()));
        }
    }
    let below = if data.ratio_name.is_empty() {
        0.0
    } else {
        GAP + RATIO_HEIGHT
    };
    let mut tiles = Tiles {
        columns: 2.min(count),
        size: [if count == 1 { 420.0 } else { 306.0 }, 170.0 + below],
        margins: [60.0, 24.0, 14.0, 48.0],
        top: 0.0,
    };
    let width = tiles.extent(count)[0];
    tiles.top = legend::height(width - 70.0, &entries);
    let mut svg = Svg::new(data.name);
    legend::rows(&mut svg, [60.0, 4.0], width - 70.0, &entries);
    for (number, content) in data.panels.iter().enumerate() {
        let first = number.is_multiple_of(tiles.columns);
        observable(&mut svg, data, content, tiles.frame(number), first);
    }
    Figure::new(data.name, data.title, tiles.extent(count), svg)
}

fn observable(svg: &mut Svg, data: &Spectra, content: &SpectraPanel, frame: Frame, first: bool) {
    let edges = &content.edges;
    let x = Axis::new(edges[0], edges[edges.len() - 1]);
    let has_ratio = !data.ratio_name.is_empty();
    let room = if has_ratio { GAP + RATIO_HEIGHT } else { 0.0 };
    let highest = content.series.iter().flat_map(|series| {
        let bins = 0..series.values.len();
        bins.map(|bin| series.values[bin] + series.error(bin))
    });
    let upper = Panel {
        frame: Frame {
            height: frame.height - room,
            ..frame
        },
        x,
        y: match has_ratio {
            true => Axis::new(0.0, 1.08 * highest.fold(0.0, f64::max)),
            false => around_one(&content.series, true),
        },
    };
    draw_panel(svg, &upper, content, &content.series, !has_ratio);
    let named = |name| {
        if first {
            Labels::Named(name)
        } else {
            Labels::Numbers
        }
    };
    upper.y_labels(svg, named(data.y_name), 46.0);
    if !content.note.is_empty() {
        let at = [upper.frame.right(), upper.frame.y - 6.0];
        svg.text("nb-note", at, Anchor::End, &content.note);
    }
    if !has_ratio {
        upper.x_labels(svg, Labels::Named(&content.name));
        return;
    }
    upper.x_labels(svg, Labels::None);
    let ratios: Vec<SpectraSeries> = content
        .series
        .iter()
        .filter(|series| series.in_ratio)
        .map(|series| series.over(&content.series[0]))
        .collect();
    let lower = Panel {
        frame: Frame {
            y: frame.bottom() - RATIO_HEIGHT,
            height: RATIO_HEIGHT,
            ..frame
        },
        x,
        y: around_one(&ratios, false),
    };
    draw_panel(svg, &lower, content, &ratios, true);
    lower.x_labels(svg, Labels::Named(&content.name));
    lower.y_labels(svg, named(data.ratio_name), 46.0);
}

fn draw_panel(
    svg: &mut Svg,
    panel: &Panel,
    content: &SpectraPanel,
    series: &[SpectraSeries],
    with_one: bool,
) {
    let dotted: Vec<usize> = (0..series.len())
        .filter(|&number| series[number].look == Look::Points)
        .collect();
    panel.inside(svg, |svg| {
        if with_one {
            panel.reference(svg, &[[panel.x.low, 1.0], [panel.x.high, 1.0]]);
        }
        let order = |number: &usize| match series[*number].look {
            Look::Line => 0,
            Look::Band => 1,
            Look::Points => 2,
        };
        let mut numbers: Vec<usize> = (0..series.len()).collect();
        numbers.sort_by_key(order);
        for number in numbers {
            let series = &series[number];
            let place = dotted.iter().position(|&own| own == number);
            let place = place.unwrap_or(0) as f64 - 0.5 * (dotted.len() as f64 - 1.0);
            series.draw(svg, panel, &content.edges, 0.3 * place);
        }
    });
    panel.border(svg);
}

/// Room for most of the bars and bands; lines, which are for orientation, find room too only `with_lines`.
fn around_one(series: &[SpectraSeries], with_lines: bool) -> Axis {
    let distances = |lines: bool| -> Vec<f64> {
        let chosen = series
            .iter()
            .filter(|series| (series.look == Look::Line) == lines);
        let mut distances: Vec<f64> = chosen
            .flat_map(|series| {
                let bins = 0..series.values.len();
                bins.map(|bin| (series.values[bin] - 1.0).abs() + series.error(bin))
            })
            .filter(|distance| distance.is_finite())
            .collect();
        distances.sort_by(f64::total_cmp);
        distances
    };
    let own = distances(false);
    let most = own.get((own.len() as f64 * SEEN) as usize);
    let lines = distances(true).last().copied().filter(|_| with_lines);
    let most = most
        .copied()
        .unwrap_or(ROOM[1])
        .max(0.85 * lines.unwrap_or(0.0));
    let room = (1.3 * most).clamp(ROOM[0], ROOM[1]);
    Axis::new(1.0 - room, 1.0 + room)
}
