//! The push-forward against the observations, column by column, with their ratio below.

use crate::axis::Axis;
use crate::column::Column;
use crate::figure::Figure;
use crate::histogram::Histogram;
use crate::legend::{self, Entry, Key};
use crate::panel::{Labels, Panel};
use crate::style::Role;
use crate::svg::{Anchor, Frame, Svg};

use super::Tiles;

/// What is compared.
#[derive(Clone, Debug)]
pub struct PushForward<'a> {
    /// Short name of the figure.
    pub name: &'a str,
    /// What it shows.
    pub title: &'a str,
    /// Names of the columns.
    pub columns: &'a [String],
    /// The observations, column by column.
    pub observed: Vec<Column>,
    /// What the model gives, column by column.
    pub model: Vec<Column>,
    /// What the model is called.
    pub model_label: &'a str,
    /// Another sample for orientation, such as the simulated pairs.
    pub overlay: Option<Overlay<'a>>,
}

/// A sample for orientation.
#[derive(Clone, Debug)]
pub struct Overlay<'a> {
    /// What it is called.
    pub label: &'a str,
    /// Its columns.
    pub columns: Vec<Column>,
}

const RATIO_HEIGHT: f64 = 58.0;
const GAP: f64 = 8.0;

/// Draws the comparison.
pub fn push_forward(data: &PushForward) -> Figure {
    let count = data.columns.len();
    let mut entries = vec![
        Entry::new(Key::Bar(Role::Observed), "observations"),
        Entry::new(Key::Filled(Role::Learned), data.model_label),
    ];
    if let Some(overlay) = &data.overlay {
        entries.push(Entry::new(Key::Line(Role::Simulated), overlay.label));
    }
    let mut tiles = Tiles {
        columns: match count {
            1 => 1,
            2 | 4 => 2,
            _ => 3,
        },
        size: [
            if count <= 2 || count == 4 {
                290.0
            } else {
                184.0
            },
            150.0 + GAP + RATIO_HEIGHT,
        ],
        margins: [54.0, 24.0, 10.0, 48.0],
        top: 0.0,
    };
    let width = tiles.extent(count)[0];
    tiles.top = legend::height(width - 60.0, &entries);
    let mut svg = Svg::new(data.name);
    legend::rows(&mut svg, [54.0, 4.0], width - 60.0, &entries);
    for number in 0..count {
        column(&mut svg, data, number, tiles.frame(number), &tiles);
    }
    Figure::new(data.name, data.title, tiles.extent(count), svg)
}

fn column(svg: &mut Svg, data: &PushForward, number: usize, frame: Frame, tiles: &Tiles) {
    let edges = Histogram::edges_for(&data.observed[number]);
    let observed = Histogram::new(&data.observed[number], edges.clone());
    let model = Histogram::new(&data.model[number], edges.clone());
    let first = number.is_multiple_of(tiles.columns);
    let overlay = data
        .overlay
        .as_ref()
        .map(|overlay| Histogram::new(&overlay.columns[number], edges.clone()));

    let highest = (0..model.bins())
        .flat_map(|bin| {
            let (value, error) = observed.density(bin);
            [value + error, model.density(bin).0]
        })
        .fold(0.0, f64::max);
    let x = Axis::new(edges[0], edges[edges.len() - 1]);
    let upper = Panel {
        frame: Frame {
            height: frame.height - GAP - RATIO_HEIGHT,
            ..frame
        },
        x,
        y: Axis::new(0.0, 1.08 * highest),
    };
    upper.inside(svg, |svg| {
        let steps = model.steps();
        let floor: Vec<[f64; 2]> = steps.iter().map(|point| [point[0], 0.0]).collect();
        upper.band(svg, &Role::Learned.fill(), &floor, &steps);
        if let Some(overlay) = &overlay {
            upper.line(svg, Role::Simulated, &overlay.steps());
        }
        upper.line(svg, Role::Learned, &steps);
        for bin in 0..observed.bins() {
            let (value, error) = observed.density(bin);
            let bar = [value - error, value + error];
            if value > 0.0 {
                upper.point(svg, Role::Observed, observed.middle(bin), value, bar);
            }
        }
    });
    upper.border(svg);
    upper.x_labels(svg, Labels::None);
    let name = |text: &'static str| {
        if first {
            Labels::Named(text)
        } else {
            Labels::Numbers
        }
    };
    upper.y_labels(svg, name("density"), 42.0);
    let (square, bins) = observed.chi_square(&model);
    let note = format!("χ²/bins = {square:.0}/{bins}");
    let at = [upper.frame.right(), upper.frame.y - 6.0];
    svg.text("nb-note", at, Anchor::End, &note);

    ratio(
        svg,
        &observed,
        &model,
        Panel {
            frame: Frame {
                y: frame.bottom() - RATIO_HEIGHT,
                height: RATIO_HEIGHT,
                ..frame
            },
            x,
            y: Axis::new(0.0, 1.0),
        },
        [&data.columns[number], if first { "ratio" } else { "" }],
    );
}

/// Observations over model: bars are the errors of the observations, the band that of the model.
fn ratio(
    svg: &mut Svg,
    observed: &Histogram,
    model: &Histogram,
    mut panel: Panel,
    [x_name, y_name]: [&str; 2],
) {
    let ratios = observed.over(model);
    let mut distances: Vec<f64> = ratios
        .iter()
        .flat_map(|ratio| ratio.bar.map(|end| (end - 1.0).abs()))
        .collect();
    distances.sort_by(f64::total_cmp);
    let most = distances.get(distances.len() * 17 / 20).copied();
    let room = (1.3 * most.unwrap_or(0.5)).clamp(0.12, 0.95);
    panel.y = Axis::new(1.0 - room, 1.0 + room);
    panel.inside(svg, |svg| {
        for ratio in &ratios {
            let half = 0.5 * (observed.edges[1] - observed.edges[0]);
            let ends = [ratio.x - half, ratio.x + half];
            let lower = ends.map(|x| [x, 1.0 - ratio.band]);
            let upper = ends.map(|x| [x, 1.0 + ratio.band]);
            panel.band(svg, &Role::Learned.fill(), &lower, &upper);
        }
        panel.reference(svg, &[[panel.x.low, 1.0], [panel.x.high, 1.0]]);
        for ratio in &ratios {
            panel.point(svg, Role::Observed, ratio.x, ratio.value, ratio.bar);
            panel.arrow(svg, Role::Observed, ratio.x, ratio.value);
        }
    });
    panel.border(svg);
    panel.x_labels(svg, Labels::Named(x_name));
    let labels = if y_name.is_empty() {
        Labels::Numbers
    } else {
        Labels::Named(y_name)
    };
    panel.y_labels(svg, labels, 42.0);
}
