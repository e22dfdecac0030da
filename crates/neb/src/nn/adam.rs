//! Adam (Kingma and Ba 2015), with weight decay added to the gradient (L2) or decoupled from it (AdamW); without its second
//! moment it is stochastic gradient descent with momentum.

use fearless_simd::dispatch;

use crate::kernel::level;

/// How weight decay enters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decay {
    /// Added to the gradient, as PyTorch's `Adam` and the paper have it.
    L2,
    /// Applied to the weights directly (AdamW).
    Decoupled,
}

/// The optimiser's settings; the learning rate comes from the schedule.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct AdamConfig {
    /// Decay rate of the mean of the gradient.
    pub beta1: f32,
    /// Decay rate of the mean of its square.
    pub beta2: f32,
    /// Added to the root of the latter.
    pub epsilon: f32,
    /// Weight decay per unit of learning rate.
    pub weight_decay: f32,
    /// How it enters.
    pub decay: Decay,
    /// The gradient's norm is scaled down to this, if larger; 0 switches clipping off.
    pub clip_norm: f32,
    /// Divide by the root of the mean square. Without it a step is the rate times the mean gradient: descent with momentum
    /// `beta1`, whose customary rate is this one times 1 − `beta1`.
    #[serde(default = "adaptive")]
    pub adaptive: bool,
}

fn adaptive() -> bool {
    true
}

impl Default for AdamConfig {
    fn default() -> Self {
        Self {
            beta1: 0.9,
            beta2: 0.999,
            epsilon: 1e-8,
            weight_decay: 0.0,
            decay: Decay::L2,
            clip_norm: 0.0,
            adaptive: true,
        }
    }
}

/// The optimiser's memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Adam {
    /// Running mean of the gradient.
    pub(crate) mean: Vec<f32>,
    /// Running mean of its square.
    pub(crate) square: Vec<f32>,
    /// Steps made.
    pub(crate) steps: u64,
}

impl Adam {
    /// Starts with no memory.
    pub fn new(parameters: usize) -> Self {
        Self {
            mean: vec![0.0; parameters],
            square: vec![0.0; parameters],
            steps: 0,
        }
    }

    /// One step downhill; returns the gradient's norm before clipping.
    pub fn step(
        &mut self,
        config: &AdamConfig,
        rate: f32,
        parameters: &mut [f32],
        gradient: &mut [f32],
    ) -> f64 {
        let norm = sum_of_squares(gradient).sqrt();
        if config.clip_norm > 0.0 && norm > f64::from(config.clip_norm) {
            let factor = (f64::from(config.clip_norm) / norm) as f32;
            for g in gradient.iter_mut() {
                *g *= factor;
            }
        }
        self.steps += 1;
        let power = i32::try_from(self.steps).unwrap_or(i32::MAX);
        let bias1 = 1.0 - f64::from(config.beta1).powi(power);
        let bias2 = 1.0 - f64::from(config.beta2).powi(power);
        let step = (f64::from(rate) / bias1) as f32;
        let root = (1.0 / bias2.sqrt()) as f32;
        let (l2, decoupled) = match config.decay {
            Decay::L2 => (config.weight_decay, 0.0),
            Decay::Decoupled => (0.0, rate * config.weight_decay),
        };
        let (mean, square) = (&mut self.mean[..], &mut self.square[..]);
        let (beta1, beta2, epsilon) = (config.beta1, config.beta2, config.epsilon);
        if !config.adaptive {
            for ((p, &mut g), mean) in parameters.iter_mut().zip(gradient).zip(mean) {
                *mean = beta1 * *mean + (1.0 - beta1) * (g + l2 * *p);
                *p -= decoupled * *p + rate * *mean;
            }
            return norm;
        }
        // Plain loops, compiled for the machine's vectors by the dispatch around them.
        dispatch!(level(), _simd => {
            let moments = mean.iter_mut().zip(square);
            for ((p, &mut g), (mean, square)) in parameters.iter_mut().zip(gradient).zip(moments) {
                let g = g + l2 * *p;
                *mean = beta1 * *mean + (1.0 - beta1) * g;
                *square = beta2 * *square + (1.0 - beta2) * g * g;
                *p -= decoupled * *p + step * *mean / (square.sqrt() * root + epsilon);
            }
        });
        norm
    }
}

/// Σ v², in eight partial sums.
fn sum_of_squares(values: &[f32]) -> f64 {
    let (chunks, rest) = values.as_chunks::<8>();
    let mut sums = [0.0f64; 8];
    dispatch!(level(), _simd => {
        for chunk in chunks {
            for (sum, &v) in sums.iter_mut().zip(chunk) {
                *sum += f64::from(v) * f64::from(v);
            }
        }
    });
    let rest = rest.iter().map(|&v| f64::from(v) * f64::from(v));
    sums.into_iter().chain(rest).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three steps of torch.optim.Adam (lr 0.1, weight_decay 0.01) on f(p) = p²/2 from p = 1, worked
    /// out by hand from the published update rule in f64.
    fn reference(decay: Decay) -> f64 {
        let (mut p, mut m, mut v) = (1.0f64, 0.0f64, 0.0f64);
        for t in 1..=3 {
            let mut g = p;
            match decay {
                Decay::L2 => g += 0.01 * p,
                Decay::Decoupled => p -= 0.1 * 0.01 * p,
            }
            m = 0.9 * m + 0.1 * g;
            v = 0.999 * v + 0.001 * g * g;
            let (mh, vh) = (m / (1.0 - 0.9f64.powi(t)), v / (1.0 - 0.999f64.powi(t)));
            p -= 0.1 * mh / (vh.sqrt() + 1e-8);
        }
        p
    }

    #[test]
    fn follows_the_published_rule() {
        for decay in [Decay::L2, Decay::Decoupled] {
            let config = AdamConfig {
                weight_decay: 0.01,
                decay,
                ..AdamConfig::default()
            };
            let mut adam = Adam::new(1);
            let mut p = [1.0f32];
            for _ in 0..3 {
                let mut gradient = [p[0]];
                adam.step(&config, 0.1, &mut p, &mut gradient);
            }
            let expected = reference(decay);
            assert!(
                (f64::from(p[0]) - expected).abs() < 1e-6,
                "{decay:?}: {} {expected}",
                p[0]
            );
        }
    }

    /// v ← 0.9 v + g, p ← p − 0.01 v (scikit-learn's and PyTorch's form) on f(p) = p²/2 from p = 1.
    #[test]
    fn without_the_second_moment_it_is_descent_with_momentum() {
        let config = AdamConfig {
            adaptive: false,
            ..AdamConfig::default()
        };
        let (mut adam, mut p) = (Adam::new(1), [1.0f32]);
        let (mut velocity, mut expected) = (0.0f64, 1.0f64);
        for _ in 0..5 {
            let mut gradient = [p[0]];
            adam.step(&config, 0.1, &mut p, &mut gradient);
            velocity = 0.9 * velocity + expected;
            expected -= 0.01 * velocity;
        }
        assert!((f64::from(p[0]) - expected).abs() < 1e-6, "{}", p[0]);
    }

    #[test]
    fn clips_the_norm_and_reports_it_unclipped() {
        let config = AdamConfig {
            clip_norm: 1.0,
            ..AdamConfig::default()
        };
        let mut gradient = [3.0, 4.0];
        let norm = Adam::new(2).step(&config, 0.1, &mut [0.0, 0.0], &mut gradient);
        assert_eq!(norm, 5.0);
        assert!((gradient[0] - 0.6).abs() < 1e-6 && (gradient[1] - 0.8).abs() < 1e-6);
    }
}
