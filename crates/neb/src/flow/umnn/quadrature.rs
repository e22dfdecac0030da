//! Clenshaw-Curtis quadrature on [0, 1], with the authors' weights.
//!
//! With τ = (1 + cos θ)/2, g is interpolated by a cosine series in θ and the series integrated. The classical rule
//! halves its last coefficient, the authors' code does not; so do we, to reproduce it. It makes the rule exact to degree
//! `steps` − 1 instead of `steps`, and changes the weights by ±1/(`steps`·(`steps`² − 1)) in turn: nothing for smooth g, but
//! 1e-4 of the gradients of a network with kinks.

/// ∫_0^1 g(τ) dτ ≈ Σ_n `weights[n]` · g(`nodes[n]`).
#[derive(Clone, Debug)]
pub(crate) struct ClenshawCurtis {
    /// The points τ, descending from exactly 1 to exactly 0.
    pub nodes: Vec<f32>,
    /// Their weights; positive, sum 1.
    pub weights: Vec<f32>,
}

impl ClenshawCurtis {
    /// The rule with `steps` + 1 nodes, τ_n = (1 + cos nπ/steps) / 2.
    ///
    /// # Panics
    /// If `steps` is odd or zero.
    pub(crate) fn new(steps: usize) -> Self {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ∫ τ^k = 1/(k + 1) up to the degree of the rule, and not beyond.
    #[test]
    fn exact_for_polynomials() {
        let error = |steps: usize, k: i32| -> f64 {
            let rule = ClenshawCurtis::new(steps);
            let terms = rule.nodes.iter().zip(&rule.weights);
            let sum: f64 = terms
                .map(|(&t, &w)| f64::from(t).powi(k) * f64::from(w))
                .sum();
            (sum - 1.0 / f64::from(k + 1)).abs()
        };
        for k in 0..20 {
            assert!(error(20, k) < 1e-7, "degree {k}");
        }
        for k in 0..4 {
            assert!(error(4, k) < 1e-7, "degree {k}");
        }
        assert!(error(4, 4) > 1e-4);
    }

    #[test]
    fn starts_at_the_limit_and_weighs_positively() {
        let rule = ClenshawCurtis::new(20);
        assert_eq!((rule.nodes[0], rule.nodes[20]), (1.0, 0.0));
        assert!(rule.weights.iter().all(|&w| w > 0.0));
    }
}
