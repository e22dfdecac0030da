//! Calibration curves: the fraction of events whose true x lies below each posterior quantile.

use neb::check::{Calibration, RankCurve};

use crate::axis::Axis;
use crate::figure::Figure;
use crate::legend::{self, Entry, Key};
use crate::panel::{Labels, Panel};
use crate::style::Role;
use crate::svg::Svg;

use super::Tiles;

const SIZE: f64 = 270.0;

/// Draws the curves of every column, and beside them those of the joint law.
pub fn calibration(name: &str, columns: &[String], calibration: &Calibration) -> Figure {
    let marginals: Vec<Entry> = columns
        .iter()
        .enumerate()
        .map(|(number, column)| Entry::new(Key::Line(Role::Nth(number)), column))
        .chain([Entry::new(Key::Band, "95 % of exact posteriors")])
        .collect();
    let mut joint = vec![Entry::new(Key::Line(Role::Learned), "distance (TARP)")];
    if !calibration.directions.is_empty() {
        joint.push(Entry::new(Key::Line(Role::Simulated), "random directions"));
    }
    let above = [&marginals, &joint]
        .map(|entries| legend::height(SIZE, entries))
        .into_iter()
        .fold(0.0, f64::max);
    let tiles = Tiles {
        columns: 2,
        size: [SIZE, SIZE],
        margins: [58.0, 10.0, 12.0, 42.0],
        top: above,
    };
    let mut svg = Svg::new(name);
    for (number, entries) in [&marginals, &joint].into_iter().enumerate() {
        let frame = tiles.frame(number);
        legend::rows(&mut svg, [frame.x, 4.0], SIZE, entries);
        let panel = Panel {
            frame,
            x: Axis::new(0.0, 1.0),
            y: Axis::new(0.0, 1.0),
        };
        panel.grid(&mut svg);
        panel.inside(&mut svg, |svg| {
            let limit = calibration.curve_limit;
            let line = |shift: f64| [[0.0, shift], [1.0, 1.0 + shift]];
            panel.band(svg, "nb-band", &line(-limit), &line(limit));
            panel.reference(svg, &line(0.0));
            let mut draw = |role: Role, curve: &RankCurve| {
                let points: Vec<[f64; 2]> = calibration
                    .levels
                    .iter()
                    .zip(&curve.below)
                    .map(|(&level, &below)| [level, below])
                    .collect();
                panel.line(svg, role, &points);
            };
            if number == 0 {
                for (column, marginal) in calibration.marginals.iter().enumerate() {
                    draw(Role::Nth(column), &marginal.curve);
                }
            } else {
                for curve in &calibration.directions {
                    draw(Role::Simulated, curve);
                }
                draw(Role::Learned, &calibration.coverage);
            }
        });
        panel.border(&mut svg);
        panel.x_labels(&mut svg, Labels::Named("posterior quantile"));
        let y_name = ["fraction of true x below", "fraction of events below"][number];
        panel.y_labels(&mut svg, Labels::Named(y_name), 42.0);
    }
    let title = "Calibration curves of the posterior, per column and jointly";
    Figure::new(name, title, tiles.extent(2), svg)
}
