//! Roots of sixteen increasing functions at once: Newton's steps, kept inside a bracket by bisection.

use crate::kernel::{LANES, Lane};

/// A step this small, relative to max(1, |v|), ends the search.
const PRECISION: f32 = 1e-6;
/// No root is looked for beyond ±this: an integrand that decays leaves far targets without one.
const FURTHEST: f32 = 1e4;
/// Enough to double a bracket up to `FURTHEST` and then halve it to the last bit of `f32`.
const MOST_STEPS: usize = 60;

/// Where a root must be, as far as is known.
#[derive(Clone, Copy)]
struct Bracket {
    low: f32,
    high: f32,
}

impl Bracket {
    const UNKNOWN: Self = Self {
        low: -FURTHEST,
        high: FURTHEST,
    };

    /// Narrows the bracket by the sign of the excess at v.
    fn learn(&mut self, v: f32, excess: f32) {
        if excess > 0.0 {
            self.high = self.high.min(v);
        } else {
            self.low = self.low.max(v);
        }
    }

    /// Newton's point if it lies inside; else the middle, or a doubled distance where one end is not known yet.
    fn next(&self, v: f32, newton: f32) -> f32 {
        let reach = 2.0 * v.abs() + 1.0;
        let newton = newton.clamp(v - reach, v + reach);
        if newton > self.low && newton < self.high {
            newton
        } else if self.low == -FURTHEST {
            (self.high - reach).max(-FURTHEST)
        } else if self.high == FURTHEST {
            (self.low + reach).min(FURTHEST)
        } else {
            self.low + 0.5 * (self.high - self.low)
        }
    }
}

/// v with function(v) = target in every lane; `function` gives values and slopes. NaN where the target is not finite,
/// ±`FURTHEST` where no v as small as that will do.
pub(super) fn solve(
    target: &Lane,
    start: Lane,
    mut function: impl FnMut(&Lane) -> (Lane, Lane),
) -> Lane {
    let mut v = start;
    let mut brackets = [Bracket::UNKNOWN; LANES];
    let mut done = target.0.map(|target| !target.is_finite());
    for (v, done) in v.0.iter_mut().zip(done) {
        if done {
            *v = f32::NAN;
        }
    }
    for _ in 0..MOST_STEPS {
        if done.iter().all(|&done| done) {
            break;
        }
        let (value, slope) = function(&v);
        for lane in 0..LANES {
            if done[lane] {
                continue;
            }
            let at = v.0[lane];
            let excess = value.0[lane] - target.0[lane];
            brackets[lane].learn(at, excess);
            let next = brackets[lane].next(at, at - excess / slope.0[lane]);
            done[lane] = excess == 0.0 || (next - at).abs() <= PRECISION * at.abs().max(1.0);
            if excess != 0.0 {
                v.0[lane] = next;
            }
        }
    }
    v
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cubic with an almost flat stretch (Newton alone is thrown far out), sixteen targets from tiny to huge.
    #[test]
    fn finds_roots_of_a_cubic() {
        let cubic = |v: f32| (v * v * v + 1e-3 * v, 3.0 * v * v + 1e-3);
        let roots: [f32; LANES] = std::array::from_fn(|lane| (lane as f32 - 7.5).powi(5) * 1e-3);
        let target = Lane(roots.map(|root| cubic(root).0));
        let found = solve(&target, Lane::ZERO, |v| {
            (Lane(v.0.map(|v| cubic(v).0)), Lane(v.0.map(|v| cubic(v).1)))
        });
        for (found, root) in found.0.iter().zip(roots) {
            assert!(
                (found - root).abs() < 2e-6 * root.abs().max(1.0),
                "{root}: {found}"
            );
        }
    }

    #[test]
    fn out_of_reach_stops_at_the_end() {
        let target = Lane([2.0; LANES]);
        let found = solve(&target, Lane::ZERO, |v| {
            let slope = v.0.map(|v| 1.0 / (1.0 + v * v));
            (Lane(v.0.map(f32::atan)), Lane(slope))
        });
        assert_eq!(found, Lane([FURTHEST; LANES]));
    }

    #[test]
    fn not_finite_stays_not_finite() {
        let mut target = Lane::ZERO;
        target.0[3] = f32::NAN;
        target.0[4] = f32::INFINITY;
        let found = solve(&target, Lane([1.0; LANES]), |v| (*v, Lane([1.0; LANES])));
        assert!(found.0[3].is_nan() && found.0[4].is_nan());
        assert_eq!(found.0[5], 0.0);
    }
}
