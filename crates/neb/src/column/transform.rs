//! The transform of one column.

use serde::{Deserialize, Serialize};

use super::{Atom, Scores};
use crate::source::{cut, free_coordinate, place};
use crate::{Error, Result};

/// Beyond this, numbers of 24 bits have no room for half a unit.
const LARGEST_WHOLE: f32 = (1 << 20) as f32;

/// How a column is turned into what models see, and back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "transform")]
pub enum Transform {
    /// As it is.
    #[default]
    None,
    /// ln x of positive numbers.
    Log,
    /// ln (x − low)/(high − x) of numbers between two edges.
    Logit {
        /// Lower edge.
        low: f32,
        /// Upper edge.
        high: f32,
    },
    /// Whole numbers, with U(−½, ½) added.
    Dequantise {
        /// Whether they are counts, never below 0: a model's draw below is mirrored at −½.
        counts: bool,
    },
    /// One value of positive probability beside a continuous part.
    Atom(Atom),
    /// One of these, and then normal scores.
    Scores(Scores),
}

/// What a user asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Declared {
    /// As it is; nothing is looked for.
    None,
    /// [`Transform::Log`].
    Log,
    /// [`Transform::Logit`].
    Logit {
        /// Lower edge.
        low: f32,
        /// Upper edge.
        high: f32,
    },
    /// [`Transform::Dequantise`].
    Dequantise,
    /// [`Transform::Atom`]; without a value, at the one that is most frequent.
    Atom {
        /// The value.
        at: Option<f32>,
    },
}

impl Declared {
    /// From a name and its numbers: `log`, `logit`, `logit:0:0.5`, `dequantise`, `atom`, `atom:-14`, `none`.
    ///
    /// # Errors
    /// Any other word, and edges that are not in order.
    pub fn parse(text: &str) -> Result<Self> {
        let refuse = || {
            Error::input(
                format!("`{text}` is no transform of a column"),
                "choose none, log, logit (between 0 and 1), logit:LOW:HIGH, dequantise, atom, or atom:VALUE",
            )
        };
        let mut parts = text.split(':').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let numbers = parts.map(|part| part.parse::<f32>().ok().filter(|n| n.is_finite()));
        let numbers: Vec<f32> = numbers.collect::<Option<_>>().ok_or_else(refuse)?;
        match (name, &numbers[..]) {
            ("none", []) => Ok(Self::None),
            ("log", []) => Ok(Self::Log),
            ("logit", []) => Ok(Self::Logit {
                low: 0.0,
                high: 1.0,
            }),
            ("logit", &[low, high]) if low < high => Ok(Self::Logit { low, high }),
            ("dequantise", []) => Ok(Self::Dequantise),
            ("atom", []) => Ok(Self::Atom { at: None }),
            ("atom", &[at]) => Ok(Self::Atom { at: Some(at) }),
            _ => Err(refuse()),
        }
    }
}

impl Transform {
    /// The words of [`Declared::parse`] that ask for it.
    pub fn words(&self) -> String {
        match self {
            Self::None => "none".to_owned(),
            Self::Log => "log".to_owned(),
            Self::Logit { low, high } if (*low, *high) == (0.0, 1.0) => "logit".to_owned(),
            Self::Logit { low, high } => format!("logit:{low}:{high}"),
            Self::Dequantise { .. } => "dequantise".to_owned(),
            Self::Atom(atom) => format!("atom:{}", atom.at),
            Self::Scores(scores) => scores.inner.words(),
        }
    }

    /// Whether u is drawn at random, somewhere.
    pub fn is_random(&self) -> bool {
        match self {
            Self::Scores(scores) => scores.inner.is_random(),
            _ => matches!(self, Self::Dequantise { .. } | Self::Atom(_)),
        }
    }

    /// u of x, with a number drawn evenly between 0 and 1; none where x is not what the transform is for.
    pub fn forward(&self, x: f32, uniform: f32) -> Option<f32> {
        match self {
            Self::None => Some(x),
            Self::Dequantise { .. } => {
                let whole = x == x.round() && x.abs() <= LARGEST_WHOLE;
                let (low, high) = ((x - 0.5).next_up(), (x + 0.5).next_down());
                whole.then(|| (x + (uniform - 0.5)).clamp(low, high))
            }
            Self::Atom(atom) => atom.forward(x, uniform),
            Self::Scores(scores) => {
                let inner = scores.inner.forward(x, uniform)?;
                Some(scores.score(inner))
            }
            Self::Log | Self::Logit { .. } => {
                let (low, high) = self.edges();
                (x > low && x < high).then(|| free_coordinate(low, high, x).free as f32)
            }
        }
    }

    /// x of u.
    pub fn inverse(&self, u: f32) -> f32 {
        match self {
            _ if u.is_nan() => u,
            Self::None => u,
            Self::Dequantise { counts } if *counts && u < -0.5 => (-1.0 - u).round(),
            Self::Dequantise { .. } => u.round(),
            Self::Atom(atom) => atom.inverse(u),
            Self::Scores(scores) => scores.inner.inverse(scores.value(u)),
            Self::Log | Self::Logit { .. } => {
                let (low, high) = self.edges();
                place(low, high, u)
            }
        }
    }

    /// log p(x) − log q(u): log |du/dx|, and the logarithm of the interval's width at an atom.
    pub fn log_jacobian(&self, x: f32) -> f64 {
        match self {
            Self::None | Self::Dequantise { .. } => 0.0,
            Self::Atom(atom) if x == atom.at => f64::from(atom.width()).ln(),
            Self::Atom(_) => 0.0,
            Self::Scores(scores) => scores.inner.log_jacobian(x) + scores.log_slope(x),
            Self::Log | Self::Logit { .. } => {
                let (low, high) = self.edges();
                free_coordinate(low, high, cut(low, high, x)).log_slope
            }
        }
    }

    /// Where u can be if x is between two edges (−∞ and ∞ where there is none).
    pub fn bounds(&self, low: f32, high: f32) -> [f32; 2] {
        match self {
            Self::None => [low, high],
            Self::Scores(scores) => scores.inner.bounds(low, high).map(|u| scores.score(u)),
            Self::Dequantise { .. } => [low.ceil() - 0.5, high.floor() + 0.5],
            Self::Atom(Atom { at, interval, .. }) => {
                let inside = (low..=high).contains(at);
                match inside {
                    true => [low.min(interval[0]), high.max(interval[1])],
                    false => [low, high],
                }
            }
            Self::Log | Self::Logit { .. } => {
                let (first, last) = self.edges();
                let free = |x: f32| free_coordinate(first, last, x).free as f32;
                [
                    if low <= first {
                        f32::NEG_INFINITY
                    } else {
                        free(low)
                    },
                    if high >= last {
                        f32::INFINITY
                    } else {
                        free(high)
                    },
                ]
            }
        }
    }

    /// A range of u, in the user's units.
    pub(super) fn user_range(&self, [low, high]: [f32; 2]) -> [f32; 2] {
        match self {
            Self::Atom(Atom { at, continuous, .. }) => {
                [at.min(continuous[0]), at.max(continuous[1])]
            }
            Self::Scores(scores) => {
                let inner = [scores.value(low), scores.value(high)];
                scores.inner.user_range(inner)
            }
            _ => [self.inverse(low), self.inverse(high)],
        }
    }

    /// Why x was refused.
    pub(super) fn refuse(&self, name: &str, row: usize, x: f32) -> Error {
        let (why, hint) = match self {
            Self::Dequantise { .. } if x == x.round() => (
                format!("is too large to be dequantised; the largest is {LARGEST_WHOLE}"),
                "leave the column as it is: transform none",
            ),
            Self::Dequantise { .. } => (
                "is no whole number, but the column is dequantised".to_owned(),
                "check the column, or fit with another transform",
            ),
            Self::Atom(atom) => (
                format!(
                    "is in the way: the atom at {} is spread over {} to {}, and the rest was expected within {} to {}",
                    atom.at,
                    atom.interval[0],
                    atom.interval[1],
                    atom.continuous[0],
                    atom.continuous[1]
                ),
                "fit again with data that cover this value, or leave the row out",
            ),
            Self::Log => (
                "has no logarithm".to_owned(),
                "give positive numbers, or another transform: atom for a share of zeros",
            ),
            Self::Logit { low, high } => (
                format!("is not between {low} and {high}"),
                "give edges that hold every value: logit:LOW:HIGH",
            ),
            Self::Scores(scores) => return scores.inner.refuse(name, row, x),
            Self::None => (
                "cannot be used".to_owned(),
                "report this: it is a defect of neb",
            ),
        };
        Error::input(format!("row {row}, column `{name}`: {x} {why}"), hint)
    }

    fn edges(&self) -> (f32, f32) {
        match self {
            Self::Logit { low, high } => (*low, *high),
            Self::Log => (0.0, f32::INFINITY),
            _ => (f32::NEG_INFINITY, f32::INFINITY),
        }
    }
}
