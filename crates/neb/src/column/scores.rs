//! Normal scores: a column made standard normal by its own quantiles.
//!
//! u = Φ⁻¹(F(v)), F the distribution of v in a sample, through a few hundred knots with straight lines between them and beyond
//! them. Sharp edges, long tails and the gaps beside atoms, which smooth densities cannot follow, become the even tails of a
//! Gaussian. A gap has a knot on either side, so that nothing is mapped back into it but what falls between two numbers.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, Normal};

use super::{Atom, Transform};
use crate::{Error, Result};

/// Knots, evenly spaced in probability.
const KNOTS: usize = 200;
/// Knots from either end over which the slope beyond is measured.
const BEYOND: usize = 8;

/// Normal scores after another transform.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scores {
    /// What is done first.
    pub inner: Box<Transform>,
    /// Pairs (v, u), both increasing.
    knots: Vec<[f32; 2]>,
}

impl Scores {
    /// Knots from a sample of what the first transform makes.
    pub(super) fn measure(inner: Transform, mut values: Vec<f32>, name: &str) -> Result<Self> {
        values.sort_unstable_by(f32::total_cmp);
        let last = values.len().saturating_sub(1);
        let mut ranks: Vec<usize> = (0..=KNOTS).map(|knot| knot * last / KNOTS).collect();
        let gaps: Vec<usize> = ranks
            .windows(2)
            .flat_map(|ends| {
                let half = 0.5 * (values[ends[1]] - values[ends[0]]);
                let is_gap = |rank: &usize| values[rank + 1] - values[*rank] > half;
                let gap = (ends[0]..ends[1]).find(is_gap);
                gap.into_iter().flat_map(|rank| [rank, rank + 1])
            })
            .collect();
        ranks.extend(gaps);
        ranks.sort_unstable();
        ranks.dedup();
        let normal = Normal::standard();
        let mut knots: Vec<[f32; 2]> = Vec::new();
        for rank in ranks {
            let share = (rank as f64 + 0.5) / values.len() as f64;
            let knot = [values[rank], normal.inverse_cdf(share) as f32];
            let apart = |before: &[f32; 2]| {
                let step = 1e-6 * before[0].abs().max(knot[0].abs());
                knot[0] > before[0] + step && knot[1] > before[1]
            };
            if knots.last().is_none_or(apart) {
                knots.push(knot);
            }
        }
        if knots.len() < 2 {
            return Err(Error::input(
                format!("column `{name}` holds hardly any different values"),
                "leave out what is constant: it carries no information",
            ));
        }
        Ok(Self {
            inner: Box::new(inner),
            knots,
        })
    }

    /// u of v.
    pub(super) fn score(&self, v: f32) -> f32 {
        self.along(v, 0)
    }

    /// v of u.
    pub(super) fn value(&self, u: f32) -> f32 {
        self.along(u, 1)
    }

    /// ln du/dv where x is; over the whole cell of a whole number or an atom.
    pub(super) fn log_slope(&self, x: f32) -> f64 {
        let [low, high] = match &*self.inner {
            Transform::Dequantise { .. } => [x - 0.5, x + 0.5],
            Transform::Atom(Atom { at, interval, .. }) if x == *at => *interval,
            inner => {
                let v = inner.forward(x, 0.5).unwrap_or(x);
                let (from, to) = self.segment(v, 0);
                [self.knots[from][0], self.knots[to][0]]
            }
        };
        let rise = f64::from(self.score(high)) - f64::from(self.score(low));
        (rise / (f64::from(high) - f64::from(low))).ln()
    }

    /// The other coordinate of the line at a place of the first (0) or second (1) one.
    fn along(&self, at: f32, first: usize) -> f32 {
        if !at.is_finite() {
            return at;
        }
        let (from, to) = self.segment(at, first);
        let ([a, b], second) = ([self.knots[from], self.knots[to]], 1 - first);
        let near = if at > b[first] { b } else { a };
        let slope = f64::from(b[second] - a[second]) / f64::from(b[first] - a[first]);
        (f64::from(near[second]) + (f64::from(at) - f64::from(near[first])) * slope) as f32
    }

    /// The knots whose line holds a place.
    fn segment(&self, at: f32, coordinate: usize) -> (usize, usize) {
        let last = self.knots.len() - 1;
        match self.knots.partition_point(|knot| knot[coordinate] <= at) {
            0 => (0, BEYOND.min(last)),
            after if after > last => (last - BEYOND.min(last), last),
            after => (after - 1, after),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Noise, Purpose};

    /// Of exponential numbers with a gap: scores have the quantiles of N(0, 1) and the map is undone, inside and beyond.
    #[test]
    fn scores_are_normal_and_undone() {
        let draws = Noise::new(4, Purpose::Test, 0).uniform(20_000, 1);
        let values: Vec<f32> = draws
            .values()
            .iter()
            .map(|u| match -u.ln() {
                small if small < 0.01 => small,
                large => large + 1.0,
            })
            .collect();
        let scores = Scores::measure(Transform::None, values.clone(), "v").unwrap();
        let mut all: Vec<f32> = values.iter().map(|&v| scores.score(v)).collect();
        all.sort_unstable_by(f32::total_cmp);
        for (share, exact) in [(0.025, -1.96), (0.5, 0.0), (0.8413, 1.0)] {
            let found = all[(share * 20_000.0) as usize];
            assert!((found - exact).abs() < 0.02, "{share}: {found}");
        }
        for v in [0.0, 0.005, 1.02, 1.5, 3.0, 12.0, 40.0, -1.0] {
            let back = scores.value(scores.score(v));
            assert!((back - v).abs() < 1e-3 * v.abs().max(0.1), "{v}: {back}");
        }
        // The gap from 0.01 to 1.01 is all but skipped.
        let width = scores.score(1.01) - scores.score(0.01);
        assert!(width < 0.02, "{width}");
        // ln du/dv against a difference.
        let slope = (scores.score(2.001) - scores.score(1.999)) / 0.002;
        assert!((scores.log_slope(2.0) - f64::from(slope).ln()).abs() < 0.02);
    }

    #[test]
    fn a_constant_column_is_refused_by_name() {
        let refused = Scores::measure(Transform::None, vec![2.0; 50], "flag").unwrap_err();
        assert!(refused.to_string().contains("`flag`"));
    }
}
