//! Quadrature on [0, 1] that includes the upper end: ∫_0^1 g(τ) dτ ≈ Σ_n w_n g(τ_n), τ_0 = 1.
//!
//! *Clenshaw-Curtis*, with the authors' weights: with τ = (1 + cos θ)/2, g is interpolated by a cosine series in θ and the
//! series integrated. The classical rule halves its last coefficient, the authors' code does not; so do we, to reproduce it. It
//! makes the rule exact to degree `steps` − 1 instead of `steps`, and changes the weights by ±1/(`steps`·(`steps`² − 1)) in turn:
//! nothing for smooth g, but 1e-4 of the gradients of a network with kinks.
//!
//! *Random*, for training: [0, 1] is cut into equal panels, and on each, with s in [−1, 1] its coordinate, the mean of g is taken as
//! (1 − 1/3ρ²) g(0) + (g(ρ) + g(−ρ)) / 6ρ², ρ drawn with density 3ρ² on [0, 1] (Siegel and O'Brien 1985). Every draw is exact for
//! cubics, and their mean is the integral of *any* g: what is learned with it cannot hide from its nodes, as it can from those of a
//! fixed rule of as few. Every row of a tile has a ρ of its own. The upper end, where log f is wanted, has weight 0.

use crate::kernel::{LANES, Lane};

/// Nodes of a random rule on each panel.
pub(crate) const NODES_OF_PANEL: usize = 3;
/// ρ³ is not smaller: the weights would grow beyond what `f32` can cancel, and what is lost is a chance of as much.
const LEAST_CUBE: f64 = 1e-4;

/// A cheap rule for the integrals of a source while it is trained.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quadrature {
    /// Panels of three nodes each, besides the upper end.
    pub panels: usize,
    /// What the rule is drawn by: uniform on [0, 1).
    pub chance: f64,
}

/// Points and weights of a rule, row by row of a tile.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    /// The points τ; the first is exactly 1.
    pub nodes: Vec<Lane>,
    /// Their weights, with sum 1.
    pub weights: Vec<Lane>,
}

impl Rule {
    /// The Clenshaw-Curtis rule with `steps` + 1 nodes, τ_n = (1 + cos nπ/steps) / 2.
    ///
    /// # Panics
    /// If `steps` is odd or zero.
    pub(crate) fn clenshaw_curtis(steps: usize) -> Self {
        assert!(
            steps > 0 && steps.is_multiple_of(2),
            "a Clenshaw-Curtis rule takes an even number of steps, got {steps}"
        );
        let angle = |n: usize| n as f64 * std::f64::consts::PI / steps as f64;
        let nodes = (0..=steps)
            .map(|n| same((0.5 * (1.0 + angle(n).cos())) as f32))
            .collect();
        let weight = |n: usize| {
            let coefficients = (0..=steps).step_by(2).map(|k| {
                let integral = if k == 0 {
                    1.0
                } else {
                    2.0 / (1.0 - (k * k) as f64)
                };
                integral * (angle(n) * k as f64).cos()
            });
            let end = if n == 0 || n == steps { 0.5 } else { 1.0 };
            end / steps as f64 * coefficients.sum::<f64>()
        };
        let weights = (0..=steps).map(|n| same(weight(n) as f32)).collect();
        Self { nodes, weights }
    }

    /// The upper end and the nodes of a random rule; the rows' ρ³ are evenly spread, `chance` turns them.
    pub(crate) fn random(Quadrature { panels, chance }: Quadrature) -> Self {
        let cube: [f64; LANES] =
            std::array::from_fn(|lane| (chance + lane as f64 / LANES as f64).fract());
        let squares = cube.map(|cube| cube.max(LEAST_CUBE).powf(2.0 / 3.0));
        let share = 1.0 / panels as f64;
        let side = Lane(squares.map(|square| (share / (6.0 * square)) as f32));
        let middle = Lane(squares.map(|square| (share * (1.0 - 1.0 / (3.0 * square))) as f32));
        let (mut nodes, mut weights) = (vec![same(1.0)], vec![Lane::ZERO]);
        for panel in (0..panels).rev() {
            let at = |s: f64| (share * (panel as f64 + 0.5 * (1.0 + s))) as f32;
            nodes.push(Lane(squares.map(|square| at(square.sqrt()))));
            nodes.push(same(at(0.0)));
            nodes.push(Lane(squares.map(|square| at(-square.sqrt()))));
            weights.extend([side, middle, side]);
        }
        Self { nodes, weights }
    }
}

/// The same in every row.
fn same(value: f32) -> Lane {
    Lane([value; LANES])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What row `lane` of the rule makes of ∫ g.
    fn integral(rule: &Rule, lane: usize, g: impl Fn(f64) -> f64) -> f64 {
        let terms = rule.nodes.iter().zip(&rule.weights);
        terms
            .map(|(t, w)| g(f64::from(t.0[lane])) * f64::from(w.0[lane]))
            .sum()
    }

    /// Largest error of any row for ∫ τ^k = 1/(k + 1).
    fn error(rule: &Rule, k: i32) -> f64 {
        let errors = (0..LANES).map(|lane| {
            let exact = 1.0 / f64::from(k + 1);
            (integral(rule, lane, |t| t.powi(k)) - exact).abs()
        });
        errors.fold(0.0, f64::max)
    }

    fn random(panels: usize, chance: f64) -> Rule {
        Rule::random(Quadrature { panels, chance })
    }

    /// ∫ τ^k = 1/(k + 1) up to the degree of the rule, and not beyond; a random rule's weights of up to 150 round more.
    #[test]
    fn exact_for_polynomials() {
        let exact_below = [
            (Rule::clenshaw_curtis(20), 20, 2e-7),
            (Rule::clenshaw_curtis(4), 4, 2e-7),
            (random(1, 0.3), 4, 3e-5),
            (random(1, 0.0), 4, 3e-5),
            (random(4, 0.9), 4, 3e-5),
        ];
        for (rule, degree, bound) in exact_below {
            for k in 0..degree {
                assert!(error(&rule, k) < bound, "{rule:?}: degree {k}");
            }
        }
        assert!(error(&Rule::clenshaw_curtis(4), 4) > 1e-4);
        assert!(error(&random(1, 0.3), 4) > 1e-3);
    }

    /// A random rule is right on average, also about what three nodes cannot see: a peak of width 1e-2 at the upper end and a step in
    /// the middle of nowhere. Means of 1000 evenly spread chances, 16 rows each: the midpoint rule in ρ³, within 1 %.
    #[test]
    fn random_rules_are_right_on_average() {
        let peak = |t: f64| ((t - 1.0) / 0.01).exp();
        let step = |t: f64| if t > 0.3137 { 1.0 } else { 0.0 };
        for panels in [1, 2] {
            let (mut peaks, mut steps, mut apart) = (0.0, 0.0, 0f64);
            let count = 1000;
            for c in 0..count {
                let rule = random(panels, (f64::from(c) + 0.5) / (16.0 * f64::from(count)));
                for lane in 0..LANES {
                    let found = integral(&rule, lane, peak);
                    apart = apart.max((found - 0.01).abs());
                    peaks += found / f64::from(16 * count);
                    steps += integral(&rule, lane, step) / f64::from(16 * count);
                }
            }
            assert!((peaks / 0.01 - 1.0).abs() < 0.01, "{peaks}");
            assert!((steps / (1.0 - 0.3137) - 1.0).abs() < 0.01, "{steps}");
            assert!(apart > 0.05, "single rules are far off: {apart}");
        }
    }

    #[test]
    fn rules_start_at_the_limit_and_stay_inside() {
        for rule in [Rule::clenshaw_curtis(20), random(1, 0.999), random(6, 0.5)] {
            assert_eq!(rule.nodes[0], same(1.0));
            let mut all = rule.nodes.iter().flat_map(|node| node.0);
            assert!(all.all(|t| (0.0..=1.0).contains(&t)), "{rule:?}");
        }
        let own = Rule::clenshaw_curtis(20);
        assert!(own.weights.iter().skip(1).all(|w| w.0[0] > 0.0));
        assert_eq!(own.nodes[20], Lane::ZERO);
    }
}
