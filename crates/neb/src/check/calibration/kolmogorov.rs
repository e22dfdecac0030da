//! Kolmogorov-Smirnov distance of ranks from the uniform law, its p-value and its critical value.
//!
//! D = sup_t |F_n(t) − t|. With λ = D (√n + 0.12 + 0.11/√n) (Stephens 1970, good to a few 10⁻³ for n ≥ 4),
//! P(D' ≥ D) = 2 Σ_k (−1)^(k−1) e^(−2 k² λ²).

/// Greatest distance between the distribution function of `ranks` and the diagonal.
pub(super) fn distance(ranks: &[f64]) -> f64 {
    let mut sorted = ranks.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let count = sorted.len() as f64;
    let mut distance = 0.0f64;
    for (below, rank) in sorted.iter().enumerate() {
        let above = (below + 1) as f64 / count - rank;
        distance = distance.max(above).max(rank - below as f64 / count);
    }
    distance
}

/// Chance of at least this distance for `count` uniform ranks.
pub(super) fn p_value(distance: f64, count: usize) -> f64 {
    let lambda = distance * scale(count);
    if lambda < 0.2 {
        return 1.0;
    }
    let mut sum = 0.0;
    for k in 1..=100 {
        let term = (-2.0 * f64::from(k * k) * lambda * lambda).exp();
        sum += if k % 2 == 1 { term } else { -term };
    }
    (2.0 * sum).clamp(0.0, 1.0)
}

/// The distance that `count` uniform ranks exceed with probability `level`.
pub(super) fn critical(level: f64, count: usize) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if p_value(middle, count) > level {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

fn scale(count: usize) -> f64 {
    let root = (count as f64).sqrt();
    root + 0.12 + 0.11 / root
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_by_hand() {
        assert!((distance(&[0.9, 0.5, 0.1]) - (1.0 / 3.0 - 0.1)).abs() < 1e-12);
        assert!((distance(&[0.7, 0.8]) - 0.7).abs() < 1e-12);
    }

    /// Exact tables (Miller 1956): D at 5 % is 0.13403 for n = 100, at 1 % 0.35241 for n = 20.
    #[test]
    fn critical_values_of_the_tables() {
        assert!((critical(0.05, 100) - 0.134_03).abs() < 5e-4);
        assert!((critical(0.01, 20) - 0.352_41).abs() < 2e-3);
        assert!((p_value(0.134_03, 100) - 0.05).abs() < 1e-3);
    }
}
