//! A panel: two axes in a frame, and what is drawn in their units.

use crate::axis::Axis;
use crate::style::Role;
use crate::svg::{Anchor, Frame, Svg};
use crate::text;

/// Space between an axis and its tick labels.
const GAP: f64 = 5.0;

/// How far a number may stick out beyond its panel where nothing is beside it.
const OVERHANG: f64 = 14.0;

/// Two axes in a frame.
#[derive(Clone, Copy, Debug)]
pub struct Panel {
    /// Where it is.
    pub frame: Frame,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
}

/// What is written along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Labels<'a> {
    /// Ticks alone.
    None,
    /// Ticks with numbers.
    Numbers,
    /// Numbers, and a name beside them.
    Named(&'a str),
}

impl Panel {
    /// The pixel of a point.
    pub fn at(&self, x: f64, y: f64) -> [f64; 2] {
        [
            self.frame.x + self.x.place(x) * self.frame.width,
            self.frame.bottom() - self.y.place(y) * self.frame.height,
        ]
    }

    /// The pixels of points.
    fn all_at(&self, points: &[[f64; 2]]) -> Vec<[f64; 2]> {
        points
            .iter()
            .map(|point| self.at(point[0], point[1]))
            .collect()
    }

    /// About how many ticks find room on the horizontal axis.
    fn x_count(&self) -> usize {
        (self.frame.width / 55.0).round().clamp(2.0, 8.0) as usize
    }

    fn y_count(&self) -> usize {
        (self.frame.height / 40.0).round().clamp(2.0, 7.0) as usize
    }

    /// Lines across the panel at the ticks of both axes.
    pub fn grid(&self, svg: &mut Svg) {
        let Frame { x, y, .. } = self.frame;
        for (tick, _) in self.x.ticks(self.x_count()) {
            let place = self.at(tick, self.y.low)[0];
            svg.line("nb-grid", [place, y], [place, self.frame.bottom()]);
        }
        for (tick, _) in self.y.ticks(self.y_count()) {
            let place = self.at(self.x.low, tick)[1];
            svg.line("nb-grid", [x, place], [self.frame.right(), place]);
        }
    }

    /// The frame.
    pub fn border(&self, svg: &mut Svg) {
        svg.rect("nb-axis", self.frame);
    }

    /// Ticks, numbers and name of the horizontal axis.
    pub fn x_labels(&self, svg: &mut Svg, labels: Labels) {
        self.x_labels_within(svg, labels, OVERHANG);
    }

    /// The same without numbers that would stick out by more than so many pixels, for panels close to each other.
    pub fn x_labels_within(&self, svg: &mut Svg, labels: Labels, overhang: f64) {
        let bottom = self.frame.bottom();
        let fits = |(tick, label): &(f64, String)| {
            let place = self.at(*tick, self.y.low)[0];
            let half = 0.5 * text::width(label);
            place - half > self.frame.x - overhang && place + half < self.frame.right() + overhang
        };
        // One number alone is no scale: rather more ticks than that.
        let fewest = self.x_count();
        let enough = (fewest..fewest + 3)
            .map(|count| self.x.ticks(count))
            .find(|ticks| ticks.iter().filter(|tick| fits(tick)).count() > 1);
        for tick in enough.unwrap_or_else(|| self.x.ticks(fewest)) {
            let place = self.at(tick.0, self.y.low)[0];
            svg.line("nb-axis", [place, bottom], [place, bottom + 3.5]);
            if labels != Labels::None && fits(&tick) {
                svg.text("nb-tick", [place, bottom + 15.0], Anchor::Middle, &tick.1);
            }
        }
        if let Labels::Named(name) = labels {
            let middle = self.frame.x + 0.5 * self.frame.width;
            svg.text("nb-text", [middle, bottom + 32.0], Anchor::Middle, name);
        }
    }

    /// Ticks, numbers and name of the vertical axis; the name stands `room` pixels left of the axis.
    pub fn y_labels(&self, svg: &mut Svg, labels: Labels, room: f64) {
        let left = self.frame.x;
        for (tick, label) in self.y.ticks(self.y_count()) {
            let place = self.at(self.x.low, tick)[1];
            svg.line("nb-axis", [left - 3.5, place], [left, place]);
            if labels != Labels::None {
                let at = [left - GAP - 2.0, place + 4.0];
                svg.text("nb-tick", at, Anchor::End, &label);
            }
        }
        if let Labels::Named(name) = labels {
            let middle = self.frame.y + 0.5 * self.frame.height;
            svg.turned_text(
                "nb-text",
                [left - room, middle],
                Anchor::Middle,
                -90.0,
                name,
            );
        }
    }

    /// A title above the panel.
    pub fn title(&self, svg: &mut Svg, title: &str) {
        let at = [self.frame.x, self.frame.y - 7.0];
        svg.text("nb-text", at, Anchor::Start, title);
    }

    /// What `draw` draws, cut off at the frame.
    pub fn inside(&self, svg: &mut Svg, draw: impl FnOnce(&mut Svg)) {
        svg.clipped(self.frame, draw);
    }

    /// A line through points.
    pub fn line(&self, svg: &mut Svg, role: Role, points: &[[f64; 2]]) {
        svg.path(&role.line(), &[self.all_at(points)], false);
    }

    /// A thin dashed line through points, for orientation.
    pub fn reference(&self, svg: &mut Svg, points: &[[f64; 2]]) {
        svg.path("nb-reference", &[self.all_at(points)], false);
    }

    /// The area between a lower and an upper line over the same abscissae.
    pub fn band(&self, svg: &mut Svg, class: &str, lower: &[[f64; 2]], upper: &[[f64; 2]]) {
        let mut outline = self.all_at(lower);
        outline.extend(self.all_at(upper).into_iter().rev());
        svg.path(class, &[outline], true);
    }

    /// A dot, with a bar from `low` to `high`.
    pub fn point(&self, svg: &mut Svg, role: Role, x: f64, y: f64, [low, high]: [f64; 2]) {
        let class = role.dot();
        svg.line(&class, self.at(x, low), self.at(x, high));
        if self.y.holds(y) {
            svg.circle(&class, self.at(x, y), 2.0);
        }
    }

    /// An arrow at the edge of the panel where a value lies beyond it.
    pub fn arrow(&self, svg: &mut Svg, role: Role, x: f64, value: f64) {
        let (edge, inward) = match value {
            v if v > self.y.high => (self.y.high, 1.0),
            v if v < self.y.low => (self.y.low, -1.0),
            _ => return,
        };
        let [px, py] = self.at(x, edge);
        let base = py + 7.0 * inward;
        let tip = [px, py + inward];
        let outline = vec![tip, [px - 3.0, base], [px + 3.0, base]];
        svg.path(&role.dot(), &[outline], true);
    }
}
