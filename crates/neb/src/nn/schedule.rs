//! Learning rate as a function of the step, and of the held-out value where it plateaus.

/// How the learning rate changes during training.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Schedule {
    /// The same rate throughout.
    Constant,
    /// Rises linearly over the first `warm_up` share of the steps, then falls to zero as half a cosine.
    Cosine {
        /// Share of the steps, 0 to 1.
        warm_up: f64,
    },
    /// Multiplied by `factor` whenever the held-out value has not improved for `patience` epochs.
    Plateau {
        /// Between 0 and 1.
        factor: f64,
        /// Epochs without improvement.
        patience: usize,
    },
}

impl Schedule {
    /// The factor on the base rate at `step` of `total`, after `reductions` plateaus.
    pub fn factor(&self, step: u64, total: u64, reductions: u32) -> f64 {
        match *self {
            Self::Constant => 1.0,
            Self::Cosine { warm_up } => {
                let progress = (step as f64 + 0.5) / total.max(1) as f64;
                if progress < warm_up {
                    progress / warm_up
                } else {
                    let rest = (progress - warm_up) / (1.0 - warm_up).max(f64::EPSILON);
                    0.5 * (1.0 + (std::f64::consts::PI * rest.min(1.0)).cos())
                }
            }
            Self::Plateau { factor, .. } => factor.powi(reductions as i32),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cosine_rises_then_falls_to_zero() {
        let schedule = Schedule::Cosine { warm_up: 0.1 };
        let at = |step| schedule.factor(step, 1000, 0);
        assert!(at(0) < 0.01);
        assert!((at(99) - 0.995).abs() < 1e-9);
        assert!((at(549) - 0.5).abs() < 0.01);
        assert!(at(999) < 1e-5);
    }

    #[test]
    fn plateau_counts_reductions() {
        let schedule = Schedule::Plateau {
            factor: 0.5,
            patience: 3,
        };
        assert_eq!(schedule.factor(17, 1000, 3), 0.125);
    }
}
