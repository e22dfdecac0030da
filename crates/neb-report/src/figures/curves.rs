//! Curves over steps, a panel for each training: losses, effective sample sizes.

use crate::axis::Axis;
use crate::figure::Figure;
use crate::legend::{self, Entry, Key};
use crate::panel::{Labels, Panel};
use crate::style::Role;
use crate::svg::Svg;

use super::Tiles;

/// Panels of curves.
#[derive(Clone, Debug)]
pub struct Curves<'a> {
    /// Short name of the figure.
    pub name: &'a str,
    /// What it shows.
    pub title: &'a str,
    /// Name of the horizontal axes, on which epochs or iterations are counted.
    pub x_name: &'a str,
    /// Name of the vertical axes.
    pub y_name: &'a str,
    /// One panel for each training.
    pub panels: Vec<CurvePanel>,
    /// A level for orientation, and what it is.
    pub level: Option<(f64, &'a str)>,
}

/// A panel.
#[derive(Clone, Debug)]
pub struct CurvePanel {
    /// Its title.
    pub title: String,
    /// Its curves.
    pub curves: Vec<Curve>,
    /// The abscissa of the state that was kept.
    pub kept: Option<f64>,
}

/// A curve.
#[derive(Clone, Debug)]
pub struct Curve {
    /// What it is called; the same in all panels.
    pub label: String,
    /// How it is drawn.
    pub role: Role,
    /// Its points.
    pub points: Vec<[f64; 2]>,
}

/// Draws the curves.
pub fn curves(data: &Curves) -> Figure {
    let count = data.panels.len();
    let mut entries: Vec<Entry> = Vec::new();
    for curve in data.panels.iter().flat_map(|panel| &panel.curves) {
        if !entries.iter().any(|entry| entry.label == curve.label) {
            entries.push(Entry::new(Key::Line(curve.role), curve.label.clone()));
        }
    }
    if data.panels.iter().any(|panel| panel.kept.is_some()) {
        entries.push(Entry::new(Key::Dot(Role::Observed), "kept"));
    }
    if let Some((_, label)) = data.level {
        entries.push(Entry::new(Key::Reference, label));
    }
    let mut tiles = Tiles {
        columns: if count <= 2 || count == 4 {
            2.min(count.max(1))
        } else {
            3
        },
        size: [
            if count <= 2 || count == 4 {
                290.0
            } else {
                178.0
            },
            140.0,
        ],
        margins: [60.0, 26.0, 10.0, 44.0],
        top: 0.0,
    };
    let width = tiles.extent(count)[0];
    tiles.top = legend::height(width - 60.0, &entries);
    let mut svg = Svg::new(data.name);
    legend::rows(&mut svg, [60.0, 4.0], width - 60.0, &entries);
    for (number, content) in data.panels.iter().enumerate() {
        let points = || content.curves.iter().flat_map(|curve| &curve.points);
        let x = Axis::around(points().map(|point| point[0]), 0.02).map(Axis::counted);
        let y = vertical(content, data.level.map(|level| level.0));
        let (Some(x), Some(y)) = (x, y) else { continue };
        let panel = Panel {
            frame: tiles.frame(number),
            x,
            y,
        };
        draw(&mut svg, content, &panel, data.level.map(|level| level.0));
        let first = number.is_multiple_of(tiles.columns);
        panel.x_labels(&mut svg, Labels::Named(data.x_name));
        let y_labels = if first {
            Labels::Named(data.y_name)
        } else {
            Labels::Numbers
        };
        panel.y_labels(&mut svg, y_labels, 47.0);
        panel.title(&mut svg, &content.title);
    }
    Figure::new(data.name, data.title, tiles.extent(count), svg)
}

fn draw(svg: &mut Svg, content: &CurvePanel, panel: &Panel, level: Option<f64>) {
    panel.grid(svg);
    panel.inside(svg, |svg| {
        if let Some(level) = level {
            panel.reference(svg, &[[panel.x.low, level], [panel.x.high, level]]);
        }
        for curve in &content.curves {
            panel.line(svg, curve.role, &curve.points);
        }
        let last = content.curves.last();
        if let (Some(kept), Some(curve)) = (content.kept, last) {
            let point = curve.points.iter().find(|point| point[0] == kept);
            if let Some(&[x, y]) = point {
                svg.circle(&Role::Observed.dot(), panel.at(x, y), 3.0);
            }
        }
    });
    panel.border(svg);
}

/// The first steps of a training tower above the rest: they may leave the panel, so that the rest can be seen.
fn vertical(content: &CurvePanel, level: Option<f64>) -> Option<Axis> {
    let later = content.curves.iter().flat_map(|curve| {
        let skip = curve.points.len() / 20;
        curve.points.iter().skip(skip).map(|point| point[1])
    });
    Axis::around(later.chain(level), 0.06)
}
