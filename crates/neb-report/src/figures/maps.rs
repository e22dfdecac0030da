//! Spectra in two observables: maps of density, error and ratio, each with its colour bar.

use crate::axis::Axis;
use crate::field::{BAR_ROOM, Colours};
use crate::figure::Figure;
use crate::panel::{Labels, Panel};
use crate::svg::Svg;

use super::Tiles;

/// Maps over the same two observables.
#[derive(Clone, Debug)]
pub struct Maps<'a> {
    /// Short name of the figure.
    pub name: &'a str,
    /// What it shows.
    pub title: &'a str,
    /// Names of the observables: the horizontal one, the vertical one.
    pub columns: [String; 2],
    /// Edges of their bins.
    pub edges: [Vec<f64>; 2],
    /// The maps.
    pub maps: Vec<Map>,
}

/// One map.
#[derive(Clone, Debug)]
pub struct Map {
    /// What it shows.
    pub title: String,
    /// What its colours mean.
    pub scale: Scale,
    /// One value for each cell, the vertical observable fastest; not finite where nothing is known.
    pub values: Vec<f64>,
}

/// What colours mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scale {
    /// From zero to the greatest value.
    Positive,
    /// On either side of zero; beyond this value colours are the same.
    AroundZero(f64),
}

/// Draws the maps.
pub fn maps(data: &Maps) -> Figure {
    let count = data.maps.len();
    let tiles = Tiles {
        columns: 2.min(count),
        size: [250.0, 200.0],
        margins: [56.0, 26.0, BAR_ROOM, 46.0],
        top: 0.0,
    };
    let mut svg = Svg::new(data.name);
    let [x, y] = &data.edges;
    for (number, map) in data.maps.iter().enumerate() {
        let panel = Panel {
            frame: tiles.frame(number),
            x: Axis::new(x[0], x[x.len() - 1]),
            y: Axis::new(y[0], y[y.len() - 1]),
        };
        let finite = map.values.iter().copied().filter(|value| value.is_finite());
        let colours = match map.scale {
            Scale::Positive => Colours {
                most: finite.fold(f64::MIN_POSITIVE, f64::max),
                diverging: false,
            },
            Scale::AroundZero(most) => Colours {
                most,
                diverging: true,
            },
        };
        colours.field(&mut svg, &panel, [x, y], &map.values);
        colours.bar(&mut svg, panel.frame);
        panel.border(&mut svg);
        panel.title(&mut svg, &map.title);
        panel.x_labels(&mut svg, Labels::Named(&data.columns[0]));
        panel.y_labels(&mut svg, Labels::Named(&data.columns[1]), 42.0);
    }
    Figure::new(data.name, data.title, tiles.extent(count), svg)
}
