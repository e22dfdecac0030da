//! Correlations of the bins of spectra, a square for each.

use crate::axis::Axis;
use crate::field::{BAR_ROOM, Colours};
use crate::figure::Figure;
use crate::panel::{Labels, Panel};
use crate::svg::Svg;

use super::Tiles;

/// Matrices of correlations.
#[derive(Clone, Debug)]
pub struct Correlations<'a> {
    /// Short name of the figure.
    pub name: &'a str,
    /// What it shows.
    pub title: &'a str,
    /// One for each spectrum.
    pub panels: Vec<CorrelationPanel>,
}

/// The correlations of one spectrum.
#[derive(Clone, Debug)]
pub struct CorrelationPanel {
    /// Name of the observable.
    pub name: String,
    /// Edges of its bins.
    pub edges: Vec<f64>,
    /// Bins × bins, row by row.
    pub values: Vec<f64>,
}

/// Draws the matrices, with one colour bar for all.
pub fn correlations(data: &Correlations) -> Figure {
    let count = data.panels.len();
    let (columns, size) = match count {
        1 => (1, 320.0),
        2 | 4 => (2, 250.0),
        _ => (3, 178.0),
    };
    let tiles = Tiles {
        columns,
        size: [size, size],
        margins: [56.0, 12.0, 8.0, 44.0],
        top: 0.0,
    };
    let colours = Colours {
        most: 1.0,
        diverging: true,
    };
    let mut svg = Svg::new(data.name);
    for (number, content) in data.panels.iter().enumerate() {
        let edges = &content.edges[..];
        let axis = Axis::new(edges[0], edges[edges.len() - 1]);
        let panel = Panel {
            frame: tiles.frame(number),
            x: axis,
            y: axis,
        };
        colours.field(&mut svg, &panel, [edges, edges], &content.values);
        panel.border(&mut svg);
        panel.x_labels(&mut svg, Labels::Named(&content.name));
        panel.y_labels(&mut svg, Labels::Named(&content.name), 42.0);
    }
    let [width, height] = tiles.extent(count);
    let last = tiles.frame(columns.min(count) - 1);
    colours.bar(&mut svg, last);
    Figure::new(data.name, data.title, [width + BAR_ROOM, height], svg)
}
