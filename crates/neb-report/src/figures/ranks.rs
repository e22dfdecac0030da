//! Rank histograms of simulation-based calibration.

use neb::check::Calibration;

use crate::axis::Axis;
use crate::figure::Figure;
use crate::legend::{self, Entry, Key};
use crate::panel::{Labels, Panel};
use crate::svg::{Frame, Svg};

use super::Tiles;

/// Draws the rank histogram of every column with the band of exact posteriors.
pub fn rank_histograms(name: &str, columns: &[String], calibration: &Calibration) -> Figure {
    let count = calibration.marginals.len();
    let entries = [
        Entry::new(Key::Reference, "uniform"),
        Entry::new(Key::Band, "95 % of the bins of exact posteriors"),
    ];
    let wide = count <= 2 || count == 4;
    let mut tiles = Tiles {
        columns: if wide { 2.min(count) } else { 3 },
        size: [if wide { 290.0 } else { 184.0 }, 130.0],
        margins: [54.0, 24.0, 10.0, 42.0],
        top: 0.0,
    };
    let width = tiles.extent(count)[0] - 54.0;
    tiles.top = legend::height(width, &entries);
    let mut svg = Svg::new(name);
    legend::rows(&mut svg, [54.0, 4.0], width, &entries);
    let band = calibration.histogram_band;
    let highest = calibration
        .marginals
        .iter()
        .flat_map(|marginal| &marginal.histogram)
        .fold(band.high, |highest, &bin| highest.max(bin as f64));
    for (number, marginal) in calibration.marginals.iter().enumerate() {
        let panel = Panel {
            frame: tiles.frame(number),
            x: Axis::new(0.0, 1.0),
            y: Axis::new(0.0, 1.15 * highest),
        };
        let bins = marginal.histogram.len() as f64;
        panel.inside(&mut svg, |svg| {
            for (bin, &events) in marginal.histogram.iter().enumerate() {
                let [left, top] = panel.at(bin as f64 / bins, events as f64);
                let [right, bottom] = panel.at((bin as f64 + 1.0) / bins, 0.0);
                let bar = Frame {
                    x: left,
                    y: top,
                    width: right - left,
                    height: bottom - top,
                };
                svg.rect("nb-bars", bar);
            }
            let line = |height: f64| [[0.0, height], [1.0, height]];
            panel.band(svg, "nb-band", &line(band.low), &line(band.high));
            panel.reference(svg, &line(calibration.events as f64 / bins));
        });
        panel.border(&mut svg);
        panel.title(&mut svg, &columns[number]);
        panel.x_labels(&mut svg, Labels::Named("rank of the true x"));
        let first = number.is_multiple_of(tiles.columns);
        let labels = if first {
            Labels::Named("events")
        } else {
            Labels::Numbers
        };
        panel.y_labels(&mut svg, labels, 42.0);
    }
    let title = "Ranks of the true x among posterior draws, per column";
    Figure::new(name, title, tiles.extent(count), svg)
}
