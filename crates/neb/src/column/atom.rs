//! A value that a share of all rows has exactly, in a column that is continuous otherwise: a floor, a ceiling, "nothing found".
//!
//! Its mass is spread evenly over an interval that the continuous part leaves empty, beyond the end of that part the atom is
//! nearest to. Between the two is a gap; a model's draw belongs to the atom where it is nearer to the interval than to the
//! continuous part. A draw in the other half of the gap is mirrored back into the continuous part.

use serde::{Deserialize, Serialize};

/// Width of the interval and of the gap, as shares of the continuous part's central range.
const WIDTH: f32 = 0.1;

/// An atom and where its mass is spread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Atom {
    /// The value.
    pub at: f32,
    /// Where its mass is spread.
    pub interval: [f32; 2],
    /// First and last value of the continuous part when the interval was chosen.
    pub continuous: [f32; 2],
}

impl Atom {
    /// An atom beside a continuous part with these first and last values, most of which are within `central`.
    pub fn beside(at: f32, continuous: [f32; 2], central: [f32; 2]) -> Self {
        let [first, last] = continuous;
        let width = WIDTH * (central[1] - central[0]);
        let interval = if at - first <= last - at {
            let end = at.min(first - width);
            [end - width, end]
        } else {
            let start = at.max(last + width);
            [start, start + width]
        };
        Self {
            at,
            interval,
            continuous,
        }
    }

    /// Whether the interval lies below the continuous part.
    fn is_below(&self) -> bool {
        self.interval[1] < self.continuous[0]
    }

    /// Whether a continuous value would be taken for the atom.
    fn claims(&self, u: f32) -> bool {
        match self.is_below() {
            true => u < (self.interval[1] + self.continuous[0]) / 2.0,
            false => u > (self.interval[0] + self.continuous[1]) / 2.0,
        }
    }

    /// u of x; none where x is in the way of the interval.
    pub(super) fn forward(&self, x: f32, uniform: f32) -> Option<f32> {
        let [low, high] = self.interval;
        match x == self.at {
            true => Some((low + (high - low) * uniform).clamp(low, high)),
            false => (!self.claims(x)).then_some(x),
        }
    }

    /// x of u.
    pub(super) fn inverse(&self, u: f32) -> f32 {
        let [first, last] = self.continuous;
        if self.claims(u) {
            self.at
        } else if self.is_below() {
            u.max(2.0 * first - u)
        } else {
            u.min(2.0 * last - u)
        }
    }

    /// Width of the interval.
    pub(super) fn width(&self) -> f32 {
        self.interval[1] - self.interval[0]
    }
}
