//! Where the truth falls among the draws of its posterior.
//!
//! Without ties the truth has b of L draws below it; if the truth is a draw of the posterior like the others, b is uniform
//! on 0 ..= L and (b + u) / (L + 1), u uniform on (0, 1), is uniform on (0, 1). Draws equal to the truth count for the
//! part u. Weighted draws stand for as many as their effective number.

/// The rank in (0, 1) of a truth among weighted draws, `u` uniform on (0, 1).
pub(super) fn rank(draws: impl Iterator<Item = (f64, f64)>, truth: f64, u: f64) -> f64 {
    let (mut below, mut equal, mut total, mut squares) = (0.0, 0.0, 0.0, 0.0);
    for (value, weight) in draws {
        if value < truth {
            below += weight;
        } else if value == truth {
            equal += weight;
        }
        total += weight;
        squares += weight * weight;
    }
    let effective = total * total / squares;
    (effective * (below + u * equal) / total + u) / (effective + 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_by_hand() {
        let unit = |values: &'static [f64]| values.iter().map(|&v| (v, 1.0));
        assert!((rank(unit(&[1.0, 2.0, 5.0, 4.0]), 3.0, 0.25) - 2.25 / 5.0).abs() < 1e-12);
        assert!((rank(unit(&[3.0, 3.0, 5.0]), 3.0, 0.5) - 1.5 / 4.0).abs() < 1e-12);
        assert!((rank(unit(&[0.0]), 1.0, 1.0) - 1.0).abs() < 1e-12);
        let weighted = [(0.0, 3.0), (9.0, 0.0), (2.0, 3.0)];
        assert!((rank(weighted.into_iter(), 1.0, 0.5) - 0.5).abs() < 1e-12);
    }
}
