//! Legends: what each line, fill and dot means.

use crate::style::Role;
use crate::svg::{Anchor, Frame, Svg};
use crate::text;

/// Height of a line of a legend.
pub(crate) const LINE: f64 = 19.0;
/// Width of a sample of a line.
const SAMPLE: f64 = 28.0;
const GAP: f64 = 7.0;

/// How an entry is drawn in the figure, and so in the legend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    /// A line.
    Line(Role),
    /// A line on a filled area.
    Filled(Role),
    /// A dot with an error bar.
    Bar(Role),
    /// A dot alone.
    Dot(Role),
    /// A dot on crossed lines.
    Cross(Role),
    /// A grey band.
    Band,
    /// A thin dashed line.
    Reference,
    /// Words alone.
    Words,
}

/// An entry of a legend.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: Key,
    pub(crate) label: String,
}

impl Entry {
    pub(crate) fn new(key: Key, label: impl Into<String>) -> Self {
        Self {
            key,
            label: label.into(),
        }
    }

    fn width(&self) -> f64 {
        let sample = if self.key == Key::Words {
            0.0
        } else {
            SAMPLE + GAP
        };
        sample + text::width(&self.label)
    }

    /// Draws the entry; `at` is the left end of its middle line.
    fn draw(&self, svg: &mut Svg, at: [f64; 2]) {
        let [x, y] = at;
        let across = [vec![[x, y], [x + SAMPLE, y]]];
        let area = Frame {
            x,
            y: y - 6.0,
            width: SAMPLE,
            height: 12.0,
        };
        match self.key {
            Key::Line(role) => svg.path(&role.line(), &across, false),
            Key::Filled(role) => {
                svg.rect(&role.fill(), area);
                svg.path(&role.line(), &across, false);
            }
            Key::Dot(role) => svg.circle(&role.dot(), [x + 0.5 * SAMPLE, y], 3.0),
            Key::Bar(role) => {
                let middle = x + 0.5 * SAMPLE;
                svg.line(&role.dot(), [middle, y - 6.0], [middle, y + 6.0]);
                svg.circle(&role.dot(), [middle, y], 2.4);
            }
            Key::Cross(role) => {
                let middle = x + 0.5 * SAMPLE;
                svg.path(&role.line(), &across, false);
                svg.line(&role.line(), [middle, y - 8.0], [middle, y + 8.0]);
                svg.circle(&role.dot(), [middle, y], 3.0);
            }
            Key::Band => svg.rect("nb-band", area),
            Key::Reference => svg.path("nb-reference", &across, false),
            Key::Words => {}
        }
        let indent = if self.key == Key::Words {
            0.0
        } else {
            SAMPLE + GAP
        };
        svg.text("nb-text", [x + indent, y + 4.0], Anchor::Start, &self.label);
    }
}

/// Entries one below the other from the upper left corner `at`.
pub(crate) fn column(svg: &mut Svg, at: [f64; 2], entries: &[Entry]) {
    for (row, entry) in entries.iter().enumerate() {
        entry.draw(svg, [at[0], at[1] + (row as f64 + 0.5) * LINE]);
    }
}

/// Entries side by side in lines of at most `width` pixels, each entry where [`places`] puts it.
pub(crate) fn rows(svg: &mut Svg, at: [f64; 2], width: f64, entries: &[Entry]) {
    for (entry, [x, line]) in entries.iter().zip(places(width, entries)) {
        entry.draw(svg, [at[0] + x, at[1] + (line + 0.5) * LINE]);
    }
}

/// Height of [`rows`].
pub(crate) fn height(width: f64, entries: &[Entry]) -> f64 {
    let last = places(width, entries).last().map(|place| place[1] + 1.0);
    last.unwrap_or(0.0) * LINE
}

/// Left end and line of each entry.
fn places(width: f64, entries: &[Entry]) -> Vec<[f64; 2]> {
    let (mut x, mut line) = (0.0, 0.0);
    let mut places = Vec::new();
    for entry in entries {
        if x > 0.0 && x + entry.width() > width {
            (x, line) = (0.0, line + 1.0);
        }
        places.push([x, line]);
        x += entry.width() + 18.0;
    }
    places
}
