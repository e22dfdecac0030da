//! What chains say about themselves: split R-hat and the effective number of draws.

/// Split R-hat of one quantity: each chain is cut in two, and the variance of all draws is compared with that within
/// the halves (Gelman et al., *Bayesian Data Analysis*). 1 if all halves agree; NaN for fewer than four draws a chain.
pub fn split_r_hat(chains: &[Vec<f64>]) -> f64 {
    let Some((between, within, length)) = variances(&halves(chains)) else {
        return f64::NAN;
    };
    if within == 0.0 {
        return if between == 0.0 { 1.0 } else { f64::INFINITY };
    }
    let pooled = (length - 1.0) / length * within + between / length;
    (pooled / within).sqrt()
}

/// Effective number of draws of one quantity: Geyer's initial monotone sequence over all split chains.
pub fn effective_size(chains: &[Vec<f64>]) -> f64 {
    let halves = halves(chains);
    let Some((between, within, length)) = variances(&halves) else {
        return 0.0;
    };
    let total = length * halves.len() as f64;
    let pooled = (length - 1.0) / length * within + between / length;
    if pooled == 0.0 {
        return 1.0;
    }
    // Autocorrelation of all chains at one lag.
    let correlation = |lag: usize| {
        let covariance: f64 = halves
            .iter()
            .map(|chain| {
                let mean = mean(chain);
                let pairs = chain.iter().zip(&chain[lag..]);
                pairs.map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>() / length
            })
            .sum();
        let within_biased = covariance / halves.len() as f64;
        1.0 - (within - within_biased * length / (length - 1.0)) / pooled
    };
    let mut time = -1.0;
    let mut least = f64::INFINITY;
    for lag in (0..length as usize - 1).step_by(2) {
        let pair = if lag == 0 { 1.0 } else { correlation(lag) } + correlation(lag + 1);
        if pair <= 0.0 {
            break;
        }
        least = least.min(pair);
        time += 2.0 * least;
    }
    total / time.max(1.0 / total.log10().max(1.0))
}

/// Both halves of every chain, all of the length of the shortest.
fn halves(chains: &[Vec<f64>]) -> Vec<&[f64]> {
    let half = chains.iter().map(Vec::len).min().unwrap_or(0) / 2;
    chains
        .iter()
        .flat_map(|chain| [&chain[..half], &chain[chain.len() - half..]])
        .collect()
}

/// Variance of the means times the length, mean of the variances, and the length.
fn variances(chains: &[&[f64]]) -> Option<(f64, f64, f64)> {
    let length = chains.first()?.len() as f64;
    if length < 2.0 {
        return None;
    }
    let means: Vec<f64> = chains.iter().map(|chain| mean(chain)).collect();
    let centre = mean(&means);
    let count = chains.len() as f64;
    let between = means.iter().map(|m| (m - centre).powi(2)).sum::<f64>() * length / (count - 1.0);
    let within = chains
        .iter()
        .zip(&means)
        .map(|(chain, m)| chain.iter().map(|x| (x - m).powi(2)).sum::<f64>() / (length - 1.0))
        .sum::<f64>();
    Some((between, within / count, length))
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Noise, Purpose};

    /// Four chains x_t = a x_{t−1} + √(1 − a²) z_t: N(1 + a)/(1 − a) draws are worth (1 − a)/(1 + a) each.
    fn autoregressive(a: f64, length: usize) -> Vec<Vec<f64>> {
        (0..4)
            .map(|chain| {
                let mut stream = Noise::new(6, Purpose::Test, 0).stream(chain);
                let mut x = stream.normal();
                (0..length)
                    .map(|_| {
                        x = a * x + (1.0 - a * a).sqrt() * stream.normal();
                        x
                    })
                    .collect()
            })
            .collect()
    }

    /// The estimate's own error is a few per cent at 4 × 5000 draws; 20 % would be a wrong formula.
    #[test]
    fn the_effective_size_of_autoregressive_chains() {
        for a in [0.0, 0.5, 0.9] {
            let chains = autoregressive(a, 5000);
            let expected = 20_000.0 * (1.0 - a) / (1.0 + a);
            let found = effective_size(&chains);
            assert!(
                (found / expected - 1.0).abs() < 0.2,
                "{a}: {found} {expected}"
            );
            assert!(split_r_hat(&chains) < 1.01);
        }
    }

    /// Two chains around 0 and two around 3: between-variance 3, within 1, so R-hat² = 1 + 3.
    #[test]
    fn chains_in_different_modes_disagree() {
        let mut chains = autoregressive(0.0, 1000);
        for chain in &mut chains[2..] {
            chain.iter_mut().for_each(|x| *x += 3.0);
        }
        let expected = (1.0f64 + 2.25 * 8.0 / 7.0).sqrt();
        assert!((split_r_hat(&chains) - expected).abs() < 0.1);
        let drifting: Vec<Vec<f64>> = (0..2).map(|_| (0..100).map(f64::from).collect()).collect();
        assert!(split_r_hat(&drifting) > 1.5);
        assert!(split_r_hat(&[vec![1.0; 3]]).is_nan());
    }
}
