//! Quadrature on [0, 1] that includes the upper end: ∫_0^1 g(τ) dτ ≈ Σ_n w_n g(τ_n), τ_0 = 1.
//!
//! *Clenshaw-Curtis*, with the authors' weights: with τ = (1 + cos θ)/2, g is interpolated by a cosine series in θ and the
//! series integrated. The classical rule halves its last coefficient, the authors' code does not; so do we, to reproduce it. It
//! makes the rule exact to degree `steps` − 1 instead of `steps`, and changes the weights by ±1/(`steps`·(`steps`² − 1)) in turn:
//! nothing for smooth g, but 1e-4 of the gradients of a network with kinks.
//!
//! *Gauss-Radau*, for training: no rule with so many nodes, one of them the upper end (where log f is wanted), is exact to a higher
//! degree, 2·`nodes` − 2.

/// Steps of Newton's method for a node, from a guess that is right to a few per cent.
const NEWTON_STEPS: usize = 20;

/// Points and weights of a rule.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    /// The points τ, descending from exactly 1.
    pub nodes: Vec<f32>,
    /// Their weights; positive, sum 1.
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

    /// The Gauss-Radau rule: τ = (1 + s)/2 with s = 1 and the zeros of P_{n−1}(s) − P_n(s), n = `nodes`, weights
    /// (1 + s) / (2 n² P_{n−1}(s)²).
    ///
    /// # Panics
    /// If `nodes` is zero.
    pub(crate) fn gauss_radau(nodes: usize) -> Self {
        assert!(nodes > 0, "a rule has at least one node");
        let n = nodes as f64;
        let point = |j: usize| {
            let mut s = (2.0 * std::f64::consts::PI * j as f64 / (2.0 * n - 1.0)).cos();
            for _ in 0..if j == 0 { 0 } else { NEWTON_STEPS } {
                let (before, last) = legendre(nodes, s);
                let slope =
                    |degree: f64, p: f64, below: f64| degree * (s * p - below) / (s * s - 1.0);
                let below = if nodes < 2 {
                    0.0
                } else {
                    legendre(nodes - 1, s).0
                };
                s -= (before - last) / (slope(n - 1.0, before, below) - slope(n, last, before));
            }
            s
        };
        let points: Vec<f64> = (0..nodes).map(point).collect();
        let weight = |s: &f64| (1.0 + s) / (2.0 * (n * legendre(nodes, *s).0).powi(2));
        Self {
            nodes: points.iter().map(|s| (0.5 * (1.0 + s)) as f32).collect(),
            weights: points.iter().map(|s| weight(s) as f32).collect(),
        }
    }
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

    /// ∫ τ^k = 1/(k + 1) up to the degree of the rule, and not beyond.
    #[test]
    fn exact_for_polynomials() {
        let exact_below = [
            (Rule::clenshaw_curtis(20), 20),
            (Rule::clenshaw_curtis(4), 4),
            (Rule::gauss_radau(1), 1),
            (Rule::gauss_radau(2), 3),
            (Rule::gauss_radau(5), 9),
            (Rule::gauss_radau(12), 23),
        ];
        for (rule, degree) in exact_below {
            for k in 0..degree {
                assert!(error(&rule, k) < 1e-7, "{rule:?}: degree {k}");
            }
        }
        assert!(error(&Rule::clenshaw_curtis(4), 4) > 1e-4);
        assert!(error(&Rule::gauss_radau(2), 3) > 1e-3);
        assert!(error(&Rule::gauss_radau(3), 5) > 1e-4);
    }

    #[test]
    fn starts_at_the_limit_and_weighs_positively() {
        for rule in [Rule::clenshaw_curtis(20), Rule::gauss_radau(5)] {
            assert_eq!(rule.nodes[0], 1.0);
            assert!(rule.nodes.is_sorted_by(|a, b| a > b), "{rule:?}");
            assert!(rule.weights.iter().all(|&w| w > 0.0));
        }
        assert_eq!(Rule::clenshaw_curtis(20).nodes[20], 0.0);
    }
}
