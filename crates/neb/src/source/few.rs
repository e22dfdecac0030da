//! One or a few observations: the x that may have produced them.
//!
//! Of fewer than [`FEW_OBSERVATIONS`](super::FEW_OBSERVATIONS) observations the likeliest source is a handful of points, and
//! nothing tells sources apart. What can be learned is which x may have produced the observations:
//! q(x) = Σ_i v_i p(x|y_i) / Σ_i v_i, the posteriors with the law of the pairs' x as prior, which is the first iterate of
//! expectation-maximisation from there. They are drawn by annealing ([`Posterior::annealed`]), which finds modes that are apart,
//! and a flow is fitted to the draws.

use super::Model;
use super::points::fit_weighted_points;
use super::single::{Observations, check_observations};
use crate::posterior::{Posterior, PosteriorOptions};
use crate::train::{CheckpointPolicy, Outcome, TrainConfig, Watch};
use crate::{Error, Likelihood, Result};

/// Draws of all posteriors together that the flow is fitted to.
const DRAWS: usize = 8192;

/// How a fit is run.
pub struct FewOptions<'a, 'w> {
    /// Makes the run repeatable.
    pub seed: u64,
    /// The training of the flow.
    pub train: &'a TrainConfig,
    /// Where and how often the training saves its state, if at all; a file that exists is resumed.
    pub checkpoints: Option<&'a CheckpointPolicy>,
    /// Told of every step; may stop the fit.
    pub watch: &'a mut Watch<'w>,
}

/// Fits `source` to the x that may have produced the observations, `prior` being the law of x before they were seen.
///
/// # Errors
/// Dimensions that do not match, a prior without a density, values or losses that are not finite, or a stop on request.
pub fn fit_few(
    source: &mut Model,
    prior: &Model,
    likelihood: &dyn Likelihood,
    observations: Observations,
    options: FewOptions,
) -> Result<Outcome> {
    check_observations(likelihood, observations)?;
    let y = observations.y;
    let event_weight = |row: usize| observations.weights.map_or(1.0, |v| f64::from(v[row]));
    let total: f64 = (0..y.rows()).map(event_weight).sum();
    if total <= 0.0 {
        return Err(Error::input(
            format!("the event weights add up to {total}"),
            "their sum must be positive",
        ));
    }
    let each = DRAWS.div_ceil(y.rows());
    let posteriors = Posterior::new(prior.source(), likelihood)?;
    let drawn = posteriors.annealed(
        y,
        &PosteriorOptions {
            draws: each,
            seed: options.seed,
            ..PosteriorOptions::default()
        },
    )?;
    let weights: Vec<f32> = (0..each * y.rows())
        .map(|draw| (event_weight(draw / each) * y.rows() as f64 / total) as f32)
        .collect();
    fit_weighted_points(
        source.source_mut(),
        drawn.x.view(),
        &weights,
        options.train,
        options.seed,
        options.checkpoints,
        options.watch,
    )
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::super::{Source, SourceConfig, SourceKind, ladder::LadderConfig};
    use super::*;
    use crate::surrogate::Exact;
    use crate::{Matrix, Noise, Purpose};

    /// One and two observations of two-moons through the exact likelihood. What may have produced y are two crescents of radius 0.1
    /// about √2-rotated centres, x1 + x2 of either sign. Draws of the fit, pushed through the simulator, land near an observation;
    /// each observation has its share, and so has either sign.
    #[test]
    fn all_that_may_have_produced_them_is_found() {
        let likelihood = Exact::new(crate::simulator::by_name("two-moons").unwrap());
        let spline = SourceConfig::new(SourceKind::Spline);
        let prior = SourceConfig::new(SourceKind::Affine).build(&[0.0; 2], &[1.0; 2], 2);
        let prior = prior.unwrap();
        let mut train = LadderConfig::default().flow.train;
        train.epochs = 20;
        let draws = 1000;
        for values in [vec![-0.1, 0.2], vec![-0.1, 0.2, -0.6, -0.5]] {
            let y = Matrix::from_vec(values, 2);
            let mut source = spline.build(&[0.0; 2], &[1.0; 2], 2).unwrap();
            let observations = Observations {
                y: y.view(),
                weights: None,
            };
            let options = FewOptions {
                seed: 2,
                train: &train,
                checkpoints: None,
                watch: &mut |_| ControlFlow::Continue(()),
            };
            fit_few(&mut source, &prior, &likelihood, observations, options).unwrap();
            let x = source.sample(draws, Noise::new(1, Purpose::SourceSample, 9));
            let pushed = likelihood.sample(x.view(), Noise::new(1, Purpose::DrawY, 9));
            let mut near = 0;
            for i in 0..y.rows() {
                let of_this = (0..draws).filter(|&k| {
                    let row = pushed.row(k);
                    (row[0] - y.row(i)[0]).hypot(row[1] - y.row(i)[1]) < 0.3
                });
                let signs: Vec<bool> = of_this.map(|k| x.row(k)[0] + x.row(k)[1] > 0.0).collect();
                let share = draws / y.rows();
                let positive = signs.iter().filter(|&&sign| sign).count();
                near += signs.len();
                assert!(signs.len() > share * 3 / 4, "{} near {i}", signs.len());
                assert!((share / 4..share * 3 / 4).contains(&positive), "{positive}");
            }
            assert!(near > 900, "{near} near");
        }
    }

    #[test]
    fn weights_that_add_up_to_nothing_are_refused() {
        let likelihood = Exact::new(crate::simulator::by_name("two-moons").unwrap());
        let affine = SourceConfig::new(SourceKind::Affine);
        let mut source = affine.build(&[0.0; 2], &[1.0; 2], 2).unwrap();
        let (prior, y) = (source.clone(), Matrix::zeros(2, 2));
        let observations = Observations {
            y: y.view(),
            weights: Some(&[0.0, 0.0]),
        };
        let options = FewOptions {
            seed: 2,
            train: &LadderConfig::default().flow.train,
            checkpoints: None,
            watch: &mut |_| ControlFlow::Continue(()),
        };
        let refused = fit_few(&mut source, &prior, &likelihood, observations, options);
        assert!(refused.unwrap_err().to_string().contains("add up to 0"));
    }
}
