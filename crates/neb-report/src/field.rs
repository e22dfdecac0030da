//! A field: a value for every cell of two binned axes, as colours.
//!
//! Zero is paper; positive values are vermilion, negative ones blue, or all of them blue where there are none below zero: the
//! eye tells the two apart whatever kind of colour vision it has, in light and in dark. The strength goes in steps, so that
//! cells of one step are one element and a large field stays a small file.

use crate::axis::Axis;
use crate::panel::Panel;
use crate::svg::{Anchor, Frame, Svg};

/// Steps of strength.
const STEPS: usize = 20;

/// Width of a colour bar.
const BAR: f64 = 11.0;
/// Room a colour bar takes to the right of its panel, with its numbers.
pub(crate) const BAR_ROOM: f64 = 58.0;

/// What colours mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Colours {
    /// The value of the strongest colour.
    pub(crate) most: f64,
    /// Whether there are two colours, for values on either side of zero.
    pub(crate) diverging: bool,
}

impl Colours {
    /// Class and step of a value; the step 0 is paper.
    fn of(self, value: f64) -> (&'static str, usize) {
        let strength = (value.abs() / self.most).min(1.0) * STEPS as f64;
        let class = match (self.diverging, value < 0.0) {
            (true, false) => "nb-warm",
            _ => "nb-cold",
        };
        (class, strength.round() as usize)
    }

    /// Draws the cells between these edges; values go row by row, the second axis fastest, and are not finite where nothing
    /// is known.
    pub(crate) fn field(self, svg: &mut Svg, panel: &Panel, edges: [&[f64]; 2], values: &[f64]) {
        let [x, y] = edges;
        let rows = y.len() - 1;
        let cell = |place: usize| {
            let (column, row) = (place / rows, place % rows);
            let [left, bottom] = panel.at(x[column], y[row]);
            let [right, top] = panel.at(x[column + 1], y[row + 1]);
            Frame {
                x: left,
                y: top,
                width: right - left,
                height: bottom - top,
            }
        };
        let chosen = |wanted: &dyn Fn(f64) -> bool| -> Vec<Frame> {
            let places = (0..values.len()).filter(|&place| wanted(values[place]));
            places.map(cell).collect()
        };
        panel.inside(svg, |svg| {
            svg.cells("nb-unknown", 1.0, &chosen(&|value| !value.is_finite()));
            for class in ["nb-cold", "nb-warm"] {
                for step in 1..=STEPS {
                    let of_step = |value: f64| value.is_finite() && self.of(value) == (class, step);
                    svg.cells(class, step as f64 / STEPS as f64, &chosen(&of_step));
                }
            }
        });
    }

    /// Draws the colour bar to the right of a panel's frame.
    pub(crate) fn bar(self, svg: &mut Svg, beside: Frame) {
        let low = if self.diverging { -self.most } else { 0.0 };
        let panel = Panel {
            frame: Frame {
                x: beside.right() + 9.0,
                width: BAR,
                ..beside
            },
            x: Axis::new(0.0, 1.0),
            y: Axis::new(low, self.most),
        };
        let cells = if self.diverging { 2 * STEPS } else { STEPS };
        let step = (self.most - low) / cells as f64;
        let edges: Vec<f64> = (0..=cells).map(|edge| low + edge as f64 * step).collect();
        let values: Vec<f64> = edges[..cells]
            .iter()
            .map(|edge| edge + 0.5 * step)
            .collect();
        self.field(svg, &panel, [&[0.0, 1.0], &edges], &values);
        panel.border(svg);
        let right = panel.frame.right();
        let count = (beside.height / 45.0).clamp(2.0, 5.0) as usize;
        for (tick, label) in panel.y.ticks(count) {
            let height = panel.at(0.0, tick)[1];
            svg.line("nb-axis", [right, height], [right + 3.5, height]);
            let at = [right + 6.0, height + 4.0];
            svg.text("nb-tick", at, Anchor::Start, &label);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_have_a_sign_and_a_strength() {
        let two = Colours {
            most: 2.0,
            diverging: true,
        };
        assert_eq!(two.of(1.0), ("nb-warm", STEPS / 2));
        assert_eq!(two.of(-5.0), ("nb-cold", STEPS));
        assert_eq!(two.of(0.01).1, 0);
        let one = Colours {
            diverging: false,
            ..two
        };
        assert_eq!(one.of(2.0), ("nb-cold", STEPS));
    }

    /// Two by two cells over 100 pixels: the second value is above the first, the third to the right of it.
    #[test]
    fn the_second_axis_goes_upwards_and_is_the_fastest() {
        let panel = Panel {
            frame: Frame {
                x: 0.0,
                y: 0.0,
                width: 100.0,
                height: 100.0,
            },
            x: Axis::new(0.0, 2.0),
            y: Axis::new(0.0, 2.0),
        };
        let colours = Colours {
            most: 1.0,
            diverging: true,
        };
        let edges = [0.0, 1.0, 2.0];
        let mut svg = Svg::new("test");
        let values = [0.0, 1.0, -1.0, f64::NAN];
        colours.field(&mut svg, &panel, [&edges, &edges], &values);
        let body = svg.into_body();
        for element in [
            r#"class="nb-warm" fill-opacity="1" d="M0 0h50v50h-50z""#,
            r#"class="nb-cold" fill-opacity="1" d="M50 50h50v50h-50z""#,
            r#"class="nb-unknown" fill-opacity="1" d="M50 0h50v50h-50z""#,
        ] {
            assert!(body.contains(element), "{element} is not in {body}");
        }
        assert_eq!(body.matches("<path").count(), 3);
    }
}
