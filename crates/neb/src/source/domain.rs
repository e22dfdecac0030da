//! Where x can be at all: an interval, a half-line or all numbers, dimension by dimension, and the map onto it.
//!
//! u is a *free* coordinate. Between two edges a and b: u = log((x − a)/(b − x)), the logistic map's inverse; above a:
//! u = log(x − a); below b: u = −log(b − x); no edge: u = x. All increase. The maps are odd bit for bit where b = −a.

use serde::{Deserialize, Serialize};

use crate::{Error, Matrix, Result, Rows};

/// Fewest points, and smallest share of them, inside a domain for a source to start from.
const FEWEST_INSIDE: usize = 10;
const SMALLEST_SHARE_INSIDE: f64 = 0.01;

/// A box whose edges may be infinite.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Edges", into = "Edges")]
pub struct Domain {
    lower: Vec<f32>,
    upper: Vec<f32>,
}

/// x seen from its free coordinate u.
pub(crate) struct Coordinate {
    /// u.
    pub free: f64,
    /// log ∂u/∂x.
    pub log_slope: f64,
    /// ∂ log(∂u/∂x)/∂x.
    pub bend: f64,
}

impl Domain {
    /// The box between these edges; −∞ and ∞ where there is none.
    ///
    /// # Errors
    /// Edges that are not numbers, not in order, or so close that hardly a number lies between them.
    pub fn new(lower: &[f32], upper: &[f32]) -> Result<Self> {
        let refuse = |message: String| {
            Error::input(
                message,
                "give every column of x a lower and a larger upper edge, -inf or inf where there is none",
            )
        };
        if lower.len() != upper.len() || lower.is_empty() {
            return Err(refuse(format!(
                "the domain has {} lower and {} upper edges",
                lower.len(),
                upper.len()
            )));
        }
        for (d, (&low, &high)) in lower.iter().zip(upper).enumerate() {
            let usable = low < high && low < f32::INFINITY && high > f32::NEG_INFINITY;
            if !usable || low.next_up() >= high.next_down() {
                return Err(refuse(format!(
                    "the domain of column {} of x runs from {low} to {high}",
                    d + 1
                )));
            }
        }
        Ok(Self {
            lower: lower.to_vec(),
            upper: upper.to_vec(),
        })
    }

    /// Number of dimensions.
    pub fn dim(&self) -> usize {
        self.lower.len()
    }

    /// Lower edges.
    pub fn lower(&self) -> &[f32] {
        &self.lower
    }

    /// Upper edges.
    pub fn upper(&self) -> &[f32] {
        &self.upper
    }

    /// Edges of dimension d.
    pub(super) fn edges(&self, d: usize) -> (f64, f64) {
        (f64::from(self.lower[d]), f64::from(self.upper[d]))
    }

    /// Whether x is inside or on an edge.
    pub fn contains(&self, x: &[f32]) -> bool {
        let edges = self.lower.iter().zip(&self.upper);
        x.iter().zip(edges).all(|(x, (l, u))| x >= l && x <= u)
    }

    /// The number nearest to x strictly between the edges.
    pub(super) fn cut(&self, d: usize, x: f32) -> f32 {
        cut(self.lower[d], self.upper[d], x)
    }

    /// The rows of points inside: what a source in the domain can start from.
    ///
    /// # Errors
    /// Another number of columns, or hardly any points inside; names the worst column; `what` says what the points are.
    pub fn rows_inside(&self, points: Rows, names: &[String], what: &str) -> Result<Vec<u32>> {
        if points.cols() != self.dim() {
            return Err(Error::input(
                format!(
                    "the domain has {} columns, {what} {}",
                    self.dim(),
                    points.cols()
                ),
                "give one pair of edges for every column of x",
            ));
        }
        let all = 0..points.rows() as u32;
        let inside: Vec<u32> = all
            .filter(|&row| self.contains(points.row(row as usize)))
            .collect();
        let share = inside.len() as f64 / points.rows().max(1) as f64;
        if share >= SMALLEST_SHARE_INSIDE && inside.len() >= FEWEST_INSIDE {
            return Ok(inside);
        }
        let outside = |d: usize| {
            let (low, high) = (self.lower[d], self.upper[d]);
            let inside = |x: f32| x >= low && x <= high;
            (0..points.rows())
                .filter(|&row| !inside(points.row(row)[d]))
                .count()
        };
        let worst = (0..self.dim()).max_by_key(|&d| outside(d)).unwrap_or(0);
        Err(Error::input(
            format!(
                "the domain holds {} of {} rows of {what}; in column `{}`, which it bounds by {} and {}, {} lie outside",
                inside.len(),
                points.rows(),
                names.get(worst).map_or("?", |name| name),
                self.lower[worst],
                self.upper[worst],
                outside(worst)
            ),
            "widen the domain, or simulate pairs inside it",
        ))
    }

    /// Refuses symmetric dimensions whose edges are not mirror images of each other.
    pub(super) fn check_symmetric(&self, symmetric: &[bool]) -> Result<()> {
        let dimensions = symmetric.iter().enumerate().filter(|(_, even)| **even);
        for (d, _) in dimensions {
            if self.lower[d] != -self.upper[d] {
                return Err(Error::input(
                    format!(
                        "column {} of x is to be symmetric, but its domain runs from {} to {}",
                        d + 1,
                        self.lower[d],
                        self.upper[d]
                    ),
                    "make the domain symmetric about zero, or leave the column out of `symmetric`",
                ));
            }
        }
        Ok(())
    }

    /// x in dimension d, seen from its free coordinate; on an edge, the number next to it inside.
    pub(crate) fn coordinate(&self, d: usize, x: f32) -> Coordinate {
        free_coordinate(self.lower[d], self.upper[d], x)
    }

    /// x of a free coordinate; never on or beyond an edge.
    pub(crate) fn place(&self, d: usize, free: f32) -> f32 {
        place(self.lower[d], self.upper[d], free)
    }

    /// The free coordinates of points inside; points on an edge count as the numbers next to it.
    ///
    /// Whoever measures means and deviations to start a bounded source with measures them here.
    pub fn to_free(&self, x: Rows) -> Matrix {
        Matrix::from_fn(x.rows(), x.cols(), |row, d| {
            self.coordinate(d, x.row(row)[d]).free as f32
        })
    }

    /// Points inside from free coordinates.
    pub fn from_free(&self, free: Rows) -> Matrix {
        Matrix::from_fn(free.rows(), free.cols(), |row, d| {
            self.place(d, free.row(row)[d])
        })
    }
}

/// The number nearest to x strictly between two edges.
pub(crate) fn cut(lower: f32, upper: f32, x: f32) -> f32 {
    x.clamp(lower.next_up(), upper.next_down())
}

/// x between two edges, seen from its free coordinate; on an edge, the number next to it inside.
pub(crate) fn free_coordinate(lower: f32, upper: f32, x: f32) -> Coordinate {
    let (low, high) = (f64::from(lower), f64::from(upper));
    let x = f64::from(cut(lower, upper, x));
    let (above, below) = (x - low, high - x);
    match (low.is_finite(), high.is_finite()) {
        (true, true) => Coordinate {
            // Of the larger ratio, so that mirror images have opposite coordinates bit for bit.
            free: if above >= below {
                (above / below).ln()
            } else {
                -(below / above).ln()
            },
            log_slope: (high - low).ln() - (above.ln() + below.ln()),
            bend: 1.0 / below - 1.0 / above,
        },
        (true, false) => Coordinate {
            free: above.ln(),
            log_slope: -above.ln(),
            bend: -1.0 / above,
        },
        (false, true) => Coordinate {
            free: -below.ln(),
            log_slope: -below.ln(),
            bend: 1.0 / below,
        },
        (false, false) => Coordinate {
            free: x,
            log_slope: 0.0,
            bend: 0.0,
        },
    }
}

/// x of a free coordinate; never on or beyond an edge.
pub(crate) fn place(lower: f32, upper: f32, free: f32) -> f32 {
    let (low, high) = (f64::from(lower), f64::from(upper));
    let free = f64::from(free);
    let x = match (low.is_finite(), high.is_finite()) {
        (true, true) => {
            let small = (-free.abs()).exp();
            let distance = (high - low) * small / (1.0 + small);
            if free < 0.0 {
                low + distance
            } else {
                high - distance
            }
        }
        (true, false) => low + free.exp(),
        (false, true) => high - (-free).exp(),
        (false, false) => free,
    };
    cut(lower, upper, x as f32)
}

/// A domain as it is written: pairs of edges, infinite ones as words, since JSON has no number for them.
#[derive(Serialize, Deserialize)]
struct Edges(Vec<[Edge; 2]>);

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Edge {
    Number(f32),
    Word(String),
}

impl From<Domain> for Edges {
    fn from(domain: Domain) -> Self {
        let write = |edge: f32| match edge {
            f32::INFINITY => Edge::Word("inf".to_owned()),
            f32::NEG_INFINITY => Edge::Word("-inf".to_owned()),
            edge => Edge::Number(edge),
        };
        let edges = domain.lower.iter().zip(&domain.upper);
        Self(edges.map(|(&l, &u)| [write(l), write(u)]).collect())
    }
}

impl TryFrom<Edges> for Domain {
    type Error = Error;

    fn try_from(edges: Edges) -> Result<Self> {
        let read = |edge: &Edge| match edge {
            Edge::Number(number) => Ok(*number),
            Edge::Word(word) => word.parse().map_err(|_| {
                Error::input(
                    format!("`{word}` is no edge of a domain"),
                    "write a number, -inf or inf",
                )
            }),
        };
        let lower = edges.0.iter().map(|[low, _]| read(low));
        let upper = edges.0.iter().map(|[_, high]| read(high));
        Self::new(
            &lower.collect::<Result<Vec<f32>>>()?,
            &upper.collect::<Result<Vec<f32>>>()?,
        )
    }
}
