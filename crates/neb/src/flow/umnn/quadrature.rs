//! Quadrature on [0, 1] that includes the upper end: ∫_0^1 g(τ) dτ ≈ Σ_n w_n g(τ_n), τ_0 = 1.
//!
//! *Clenshaw-Curtis*, with the authors' weights: with τ = (1 + cos θ)/2, g is interpolated by a cosine series in θ and the
//! series integrated. The classical rule halves its last coefficient, the authors' code does not; so do we, to reproduce it. It
//! makes the rule exact to degree `steps` − 1 instead of `steps`, and changes the weights by ±1/(`steps`·(`steps`² − 1)) in turn:
//! nothing for smooth g, but 1e-4 of the gradients of a network with kinks.
//!
//! *Graded*, for training: τ = 1 − (1 − s)^p, p the grading, makes it ∫_0^1 g(τ(s)) p (1 − s)^{p−1} ds, taken by Gauss-Legendre; nodes
//! are dense towards the upper end, where the sharp features of a density are, and the end itself, where log f is wanted, has weight 0.

/// Steps of Newton's method for a node, from a guess that is right to a few per cent.
const NEWTON_STEPS: usize = 20;

/// A cheap rule for the integrals of a source while it is trained.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quadrature {
    /// Nodes, besides the upper end.
    pub nodes: usize,
    /// How dense they are towards the upper end: 1 for no more than elsewhere, 2 for quadratically so.
    pub grading: f64,
}

/// Points and weights of a rule.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    /// The points τ, descending from exactly 1.
    pub nodes: Vec<f32>,
    /// Their weights; none negative, sum 1.
    pub weights: Vec<f32>,
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
            .map(|n| (0.5 * (1.0 + angle(n).cos())) as f32)
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
        let weights = (0..=steps).map(|n| weight(n) as f32).collect();
        Self { nodes, weights }
    }

    /// The upper end and the `nodes` of a graded rule.
    pub(crate) fn graded(Quadrature { nodes, grading }: Quadrature) -> Self {
        let points = gauss_legendre(nodes);
        let weight = |&(s, w): &(f64, f64)| w * (1.0 - s).powf(grading - 1.0);
        let total: f64 = points.iter().map(weight).sum();
        let place = |(s, _): &(f64, f64)| (1.0 - (1.0 - s).powf(grading)) as f32;
        Self {
            nodes: [1.0].into_iter().chain(points.iter().map(place)).collect(),
            weights: [0.0]
                .into_iter()
                .chain(points.iter().map(|point| (weight(point) / total) as f32))
                .collect(),
        }
    }
}

/// The Gauss-Legendre rule on [0, 1]: points, descending, and weights.
fn gauss_legendre(nodes: usize) -> Vec<(f64, f64)> {
    let n = nodes as f64;
    let point = |j: usize| {
        let mut s = (std::f64::consts::PI * (j as f64 + 0.75) / (n + 0.5)).cos();
        let mut slope = 1.0;
        for _ in 0..NEWTON_STEPS {
            let (before, last) = legendre(nodes, s);
            slope = n * (s * last - before) / (s * s - 1.0);
            s -= last / slope;
        }
        (0.5 * (1.0 + s), 1.0 / ((1.0 - s * s) * slope * slope))
    };
    (0..nodes).map(point).collect()
}

/// P_{n−1}(s) and P_n(s), n ≥ 1.
fn legendre(n: usize, s: f64) -> (f64, f64) {
    let (mut before, mut last) = (1.0, s);
    for k in 1..n {
        let k = k as f64;
        (before, last) = (last, ((2.0 * k + 1.0) * s * last - k * before) / (k + 1.0));
    }
    (before, last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(rule: &Rule, k: i32) -> f64 {
        let terms = rule.nodes.iter().zip(&rule.weights);
        let sum: f64 = terms
            .map(|(&t, &w)| f64::from(t).powi(k) * f64::from(w))
            .sum();
        (sum - 1.0 / f64::from(k + 1)).abs()
    }

    fn graded(nodes: usize, grading: f64) -> Rule {
        Rule::graded(Quadrature { nodes, grading })
    }

    /// ∫ τ^k = 1/(k + 1) up to the degree of the rule, and not beyond.
    #[test]
    fn exact_for_polynomials() {
        let exact_below = [
            (Rule::clenshaw_curtis(20), 20),
            (Rule::clenshaw_curtis(4), 4),
            (graded(1, 1.0), 2),
            (graded(6, 1.0), 12),
            (graded(6, 2.0), 6),
            (graded(6, 3.0), 4),
        ];
        for (rule, degree) in exact_below {
            for k in 0..degree {
                assert!(error(&rule, k) < 2e-7, "{rule:?}: degree {k}");
            }
        }
        assert!(error(&Rule::clenshaw_curtis(4), 4) > 1e-4);
        assert!(error(&graded(2, 1.0), 4) > 1e-3);
    }

    /// A peak of width 1e-2 at the upper end, ∫ e^{−(1 − τ)/0.01} dτ = 0.01: a graded rule of six nodes has it within a
    /// quarter, an ungraded one misses more than half.
    #[test]
    fn grading_resolves_the_upper_end() {
        let share = |rule: Rule| -> f64 {
            let terms = rule.nodes.iter().zip(&rule.weights);
            let values = terms.map(|(&t, &w)| f64::from(w) * ((f64::from(t) - 1.0) / 0.01).exp());
            values.sum::<f64>() / 0.01
        };
        assert!((share(graded(6, 2.0)) - 1.0).abs() < 0.25);
        assert!((share(graded(6, 3.0)) - 1.0).abs() < 0.25);
        assert!((share(graded(6, 1.0)) - 1.0).abs() > 0.5);
    }

    #[test]
    fn starts_at_the_limit_and_weighs_positively() {
        for rule in [Rule::clenshaw_curtis(20), graded(6, 1.7), graded(20, 2.5)] {
            assert_eq!(rule.nodes[0], 1.0);
            assert!(rule.nodes.is_sorted_by(|a, b| a > b), "{rule:?}");
            assert!(rule.weights[1..].iter().all(|&w| w > 0.0));
        }
        assert_eq!(Rule::clenshaw_curtis(20).nodes[20], 0.0);
    }
}
