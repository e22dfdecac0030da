//! From wide to narrow: the widths that a search passes through on its way to the likelihood itself.
//!
//! A very narrow likelihood guides nobody who is not there already. Where the likelihood knows the density of y + τ·noise, the
//! way leads through falling τ: each law is close to the next one, and no flat floor of the likelihood (a mixture's widest
//! component) stands between a point and the peak. Where it does not, it is raised to a rising power.

use crate::Likelihood;
use crate::source::Width;

/// Smallest noise scale on the way, in deviations of y.
const SMALLEST_SCALE: f32 = 1e-3;
/// Smallest power on the way.
const SMALLEST_POWER: f32 = 1e-6;

/// Falling noise scales, each `ratio` of the one before, or powers that narrow a Gaussian likelihood as fast; the last one is
/// the likelihood itself.
pub(super) fn narrowing(likelihood: &dyn Likelihood, ratio: f32) -> Vec<Width> {
    let mut widths = Vec::new();
    if let Some(widening) = likelihood.widening() {
        let mut scale = widening.largest_scale();
        while scale > SMALLEST_SCALE {
            widths.push(Width::Noise(scale));
            scale *= ratio;
        }
    } else {
        let mut power = SMALLEST_POWER;
        while power < 1.0 {
            widths.push(Width::Power(power));
            power /= ratio * ratio;
        }
    }
    widths.push(Width::None);
    widths
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimator::testing::GaussianModel;

    #[test]
    fn powers_rise_to_the_likelihood_itself() {
        let widths = narrowing(&GaussianModel::STANDARD.likelihood(), 0.5);
        let powers: Vec<f32> = widths
            .iter()
            .filter_map(|width| match width {
                Width::Power(power) => Some(*power),
                _ => None,
            })
            .collect();
        assert_eq!(powers[0], SMALLEST_POWER);
        assert!(powers.windows(2).all(|pair| pair[1] == 4.0 * pair[0]));
        assert!(*powers.last().unwrap() < 1.0 && 4.0 * powers.last().unwrap() >= 1.0);
        assert_eq!(
            (widths.len(), widths.last()),
            (powers.len() + 1, Some(&Width::None))
        );
    }
}
