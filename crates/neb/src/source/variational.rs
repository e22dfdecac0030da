//! Stage 2 by a variational bound: source q_θ(x) and recognition network q_ψ(x|y) trained together.
//!
//! loss = −mean_i B(y_i), B the evidence lower bound or the importance-weighted bound over K draws x_ik = T_ψ(z_ik; y_i).
//! With w_ik = ∂B/∂ log-ratio, the estimators' slopes, the whole (reparametrised) gradient is
//! - with respect to θ: Σ w_ik ∂ log q_θ(x_ik)/∂θ;
//! - with respect to ψ: that of Σ w_ik [log q_φ(y_i|x_ik) + log q_θ(x_ik) − log q_ψ(x_ik|y_i)] through the draws, where the
//!   last term is log |∂T/∂z| up to what does not depend on ψ: one pass back through T with ∂/∂x and ∂/∂ log |∂T/∂z| given.
//!
//! The way back costs three times the way forth, and of many draws few have a share worth it: [`Kept`].

mod kept;

use self::kept::Kept;
use super::objective::gather_weights;
use super::recognition::Recognition;
use super::{Density, Pull, Quadrature, Source};
use crate::estimator::{self, Batch, LogDensities, VariationalEstimate};
use crate::train::Objective;
use crate::{Error, Likelihood, Matrix, Noise, Purpose, Result, Rows};

/// Samples of the source that the entropy and the pull are taken over.
const PULL_SAMPLES: usize = 512;
/// Observations evaluated at a time when the held-out bound is computed.
const HELD_OUT_ROWS: usize = 256;
/// Draws for each held-out observation: more of them change the lower bound's noise, not what it estimates.
const HELD_OUT_ELBO_DRAWS: usize = 4;

/// Which bound is maximised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The evidence lower bound.
    Elbo,
    /// The importance-weighted bound.
    ImportanceWeighted,
}

impl Bound {
    fn estimate(self, batch: Batch, densities: LogDensities) -> Result<VariationalEstimate> {
        match self {
            Self::Elbo => estimator::elbo(batch, densities),
            Self::ImportanceWeighted => estimator::iw(batch, densities),
        }
    }
}

/// What a bound is taken of.
#[derive(Clone, Copy)]
pub struct VariationalProblem<'a> {
    /// q_φ(y|x).
    pub likelihood: &'a dyn Likelihood,
    /// The observations.
    pub y: Rows<'a>,
    /// Their event weights v_i; all 1 if absent.
    pub weights: Option<&'a [f32]>,
    /// The bound.
    pub bound: Bound,
    /// Draws K for each observation.
    pub k: usize,
    /// The regularisation.
    pub pull: Pull<'a>,
    /// Seed of the draws.
    pub seed: u64,
}

/// Fits a source and a recognition network to observations; its parameters are θ, then ψ.
pub struct VariationalObjective<'a> {
    source: &'a mut dyn Source,
    recognition: &'a mut Recognition,
    problem: VariationalProblem<'a>,
    parameters: Vec<f32>,
    effective_samples: Option<f64>,
}

/// Draws for a batch, their log-densities, and the bound of them.
struct Evaluated {
    z: Matrix,
    x: Matrix,
    estimate: VariationalEstimate,
}

impl<'a> VariationalObjective<'a> {
    /// The objective for this source and network.
    ///
    /// # Errors
    /// A source without a density, K = 0, or dimensions that do not match.
    pub fn new(
        source: &'a mut dyn Source,
        recognition: &'a mut Recognition,
        problem: VariationalProblem<'a>,
    ) -> Result<Self> {
        check_density(source)?;
        if problem.k == 0 {
            return Err(Error::input(
                "k is 0: a bound over no draws",
                "set it to 1 or more",
            ));
        }
        let (dims, own) = (problem.likelihood.dims(), recognition.dims());
        if dims != own || source.dim() != dims.dx || problem.y.cols() != dims.dy {
            return Err(Error::input(
                format!(
                    "the likelihood is for x of {} and y of {} columns, the recognition network for {} and {}, the source \
                     for {}, and the observations have {}",
                    dims.dx,
                    dims.dy,
                    own.dx,
                    own.dy,
                    source.dim(),
                    problem.y.cols()
                ),
                "build all of them for the same columns",
            ));
        }
        let parameters = [source.parameters(), recognition.parameters()].concat();
        Ok(Self {
            source,
            recognition,
            problem,
            parameters,
            effective_samples: None,
        })
    }

    fn density(&self) -> &dyn Density {
        self.source.density().expect("checked when it was built")
    }

    /// k draws for each row of the batch and the bound they give.
    fn evaluate(&self, batch: Batch, k: usize, noise: Noise) -> Result<Evaluated> {
        let rows = batch.y.rows();
        let z = noise.normal(rows * k, self.source.dim());
        let (x, log_q) = self.recognition.push(z.view(), batch.y, k);
        let mut likelihood = vec![0.0; rows * k];
        let repeated: Vec<u32> = (0..rows * k).map(|row| (row / k) as u32).collect();
        let y = batch.y.gather(&repeated);
        self.problem
            .likelihood
            .log_prob(y.view(), x.view(), &mut likelihood);
        let mut source = vec![0.0; rows * k];
        self.density().log_prob(x.view(), &mut source);
        let densities = LogDensities {
            likelihood: Rows::new(&likelihood, k),
            source: Rows::new(&source, k),
            recognition: Rows::new(&log_q, k),
        };
        let estimate = self.problem.bound.estimate(batch, densities)?;
        Ok(Evaluated { z, x, estimate })
    }

    /// Adds the regularisation's gradient with respect to θ; its value.
    fn regularise(&self, step: u64, gradient: &mut [f32]) -> f64 {
        let pull = &self.problem.pull;
        if pull.is_none() {
            return 0.0;
        }
        let noise = Noise::new(self.problem.seed, Purpose::SourceNoise, step);
        let z = self.source.base(PULL_SAMPLES, noise);
        let x = self.source.push(z.view());
        let mut dx = Matrix::zeros(PULL_SAMPLES, self.source.dim());
        let value = pull.apply(&*self.source, x.view(), step, &mut dx, gradient);
        self.source
            .backward(z.view(), x.view(), dx.view(), gradient);
        value
    }
}

impl Objective for VariationalObjective<'_> {
    fn rows(&self) -> usize {
        self.problem.y.rows()
    }

    fn parameters(&self) -> &[f32] {
        &self.parameters
    }

    fn update(&mut self, change: &mut dyn FnMut(&mut [f32])) {
        change(&mut self.parameters);
        let (theta, psi) = self.parameters.split_at(self.source.parameters().len());
        self.source.update(&mut |own| own.copy_from_slice(theta));
        self.recognition.update(&mut |own| own.copy_from_slice(psi));
    }

    fn loss(&mut self, rows: &[u32], step: u64, gradient: &mut [f32]) -> Result<f64> {
        let y = self.problem.y.gather(rows);
        let weights = gather_weights(self.problem.weights, rows);
        let batch = Batch {
            y: y.view(),
            weights: weights.as_deref(),
            row_numbers: Some(rows),
        };
        let k = self.problem.k;
        let noise = Noise::new(self.problem.seed, Purpose::Recognition, step);
        let Evaluated { z, x, estimate } = self.evaluate(batch, k, noise)?;
        self.effective_samples = (self.problem.bound == Bound::ImportanceWeighted)
            .then(|| median_effective_samples(&estimate.slopes));
        let kept = Kept::of(&estimate.slopes, self.problem.seed, step);
        let (x, z) = (x.view().gather(&kept.draws), z.view().gather(&kept.draws));
        let own_y = y.view().gather(&kept.rows);
        let opposite: Vec<f32> = kept.slopes.iter().map(|slope| -slope).collect();
        let mut dx = Matrix::zeros(x.rows(), x.cols());
        let pairs = kept.pairs(&opposite);
        self.problem
            .likelihood
            .grad_x_pairs(y.view(), x.view(), &pairs, dx.view_mut());
        gradient.fill(0.0);
        let (theta, psi) = gradient.split_at_mut(self.source.parameters().len());
        self.density()
            .backward_log_prob(x.view(), &opposite, dx.view_mut(), Some(theta));
        self.recognition
            .backward((z.view(), own_y.view(), 1), dx.view(), &kept.slopes, psi);
        Ok(self.regularise(step, theta) - estimate.value)
    }

    fn held_out_loss(&mut self, rows: &[u32]) -> Result<f64> {
        let k = match self.problem.bound {
            Bound::Elbo => self.problem.k.max(HELD_OUT_ELBO_DRAWS),
            Bound::ImportanceWeighted => self.problem.k,
        };
        let (mut sum, mut total) = (0.0, 0.0);
        for (part, rows) in rows.chunks(HELD_OUT_ROWS).enumerate() {
            let y = self.problem.y.gather(rows);
            let batch = Batch {
                row_numbers: Some(rows),
                ..Batch::from(y.view())
            };
            let noise = Noise::new(
                self.problem.seed,
                Purpose::Recognition,
                u64::MAX - part as u64,
            );
            let values = self.evaluate(batch, k, noise)?.estimate.values;
            for (value, &row) in values.iter().zip(rows) {
                let weight = self
                    .problem
                    .weights
                    .map_or(1.0, |v| f64::from(v[row as usize]));
                sum += weight * value;
                total += weight;
            }
        }
        Ok(-sum / total)
    }

    fn set_quadrature(&mut self, rule: Option<Quadrature>) {
        self.source.set_quadrature(rule);
        self.recognition.set_quadrature(rule);
    }

    fn effective_samples(&self) -> Option<f64> {
        self.effective_samples
    }
}

/// Refuses a source whose log q(x) cannot be evaluated.
pub(super) fn check_density(source: &dyn Source) -> Result<()> {
    match source.density() {
        Some(_) => Ok(()),
        None => Err(Error::input(
            "the variational bounds (elbo, iw) need log q(x), and this source has no density",
            "use the estimator mc or roulette, or a source with a density: affine, coupling, spline or umnn",
        )),
    }
}

/// Median over the observations of (Σ w)²/Σ w² (the upper one of an even number).
fn median_effective_samples(slopes: &Matrix) -> f64 {
    let mut sizes: Vec<f64> = (0..slopes.rows())
        .map(|row| {
            let shares = slopes.row(row).iter().map(|&w| f64::from(w));
            let (sum, squares) = shares.fold((0.0, 0.0), |(s, q), w| (s + w, q + w * w));
            if squares > 0.0 {
                sum * sum / squares
            } else {
                0.0
            }
        })
        .collect();
    sizes.sort_by(f64::total_cmp);
    sizes[sizes.len() / 2]
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::super::recognition::{RecognitionConfig, Spread};
    use super::super::{Affine, Base};
    use super::*;
    use crate::nn::adam::AdamConfig;
    use crate::nn::schedule::Schedule;
    use crate::surrogate::GaussianNoise;
    use crate::train::{TrainConfig, train};

    /// x of dimension 1 seen with noise of deviation s: a Gaussian posterior, linear in y.
    fn gaussian(s: f32) -> GaussianNoise {
        GaussianNoise::new(Rows::new(&[s * s], 1)).expect("a covariance")
    }

    /// A small network; its Gaussian comes close to the exact posterior, which is linear in y.
    fn network(dim: usize) -> Recognition {
        let config = RecognitionConfig::Spline {
            layers: 1,
            hidden: vec![6],
            head: vec![16],
            bins: 4,
            bound: 4.0,
        };
        let spread = Spread {
            mean: &[0.5, -0.2][..dim],
            deviation: &[1.3, 0.8][..dim],
        };
        Recognition::new(&config, spread, spread, 4)
    }

    fn problem<'a>(
        likelihood: &'a GaussianNoise,
        y: &'a Matrix,
        bound: Bound,
    ) -> VariationalProblem<'a> {
        VariationalProblem {
            likelihood,
            y: y.view(),
            weights: None,
            bound,
            k: 4,
            pull: Pull::NONE,
            seed: 6,
        }
    }

    /// Every coordinate of the loss's gradient, with event weights and regularisation, against central differences; within
    /// 1 % of the norm (f32 rounding, spline knots).
    #[test]
    fn gradient() {
        let covariance = [0.3, 0.1, 0.1, 0.5];
        let likelihood = GaussianNoise::new(Rows::new(&covariance, 2)).unwrap();
        let y = Noise::new(2, Purpose::Test, 0).normal(7, 2);
        let weights = [1.0, 0.5, 2.0, 1.0, 3.0, 0.1, 1.0];
        let reference = Affine::new(Base::Normal, &[0.3, 0.0], &[1.0, 2.0], &[false; 2]);
        for bound in [Bound::Elbo, Bound::ImportanceWeighted] {
            let mut source = Affine::new(Base::Normal, &[0.1, 0.2], &[0.7, 1.6], &[false; 2]);
            let mut recognition = network(2);
            let mut step = Noise::new(2, Purpose::Test, 1).stream(0);
            recognition.update(&mut |p| {
                for p in p {
                    *p += 0.2 * step.normal() as f32;
                }
            });
            let problem = VariationalProblem {
                weights: Some(&weights),
                pull: Pull {
                    entropy: 0.1,
                    towards: Some((0.3, &reference)),
                    last_share: 0.5,
                    steps: 10,
                },
                ..problem(&likelihood, &y, bound)
            };
            let mut objective =
                VariationalObjective::new(&mut source, &mut recognition, problem).unwrap();
            let rows = [0, 2, 3, 4, 5, 6];
            let n = objective.parameters().len();
            let mut gradient = vec![0.0; n];
            objective.loss(&rows, 3, &mut gradient).unwrap();
            let mut unused = vec![0.0; n];
            let (mut error, mut size) = (0.0, 0.0);
            for at in 0..n {
                let h = 1e-3;
                let mut moved = |by: f32| {
                    objective.update(&mut |p| p[at] += by);
                    let value = objective.loss(&rows, 3, &mut unused).unwrap();
                    objective.update(&mut |p| p[at] -= by);
                    value
                };
                let slope = (moved(h) - moved(-h)) / (2.0 * f64::from(h));
                error += (slope - f64::from(gradient[at])).powi(2);
                size += slope * slope;
            }
            let error = (error / size).sqrt();
            assert!(error < 0.01, "{bound:?}: off by {error}");
        }
    }

    /// Of 64 draws a few are kept: over 400 steps of the same loss their gradients average to the one of all draws. Every step has
    /// draws of its own, so the loss of all is averaged over the same steps, by central differences along a random direction: the
    /// mean difference is within four standard errors (false alarm 6e-5).
    #[test]
    fn kept_draws_have_the_gradient_of_all() {
        let likelihood = gaussian(0.5);
        let y = Noise::new(2, Purpose::Test, 3).normal(6, 1);
        let mut source = Affine::new(Base::Normal, &[0.1], &[0.7], &[false]);
        let mut recognition = network(1);
        let problem = VariationalProblem {
            k: 64,
            ..problem(&likelihood, &y, Bound::ImportanceWeighted)
        };
        let mut objective =
            VariationalObjective::new(&mut source, &mut recognition, problem).unwrap();
        let rows = [0, 1, 2, 3, 4, 5];
        let n = objective.parameters().len();
        let direction = Noise::new(2, Purpose::Test, 4).normal(1, n);
        let direction = direction.values();
        let add = |p: &mut [f32], by: f32| {
            for (p, d) in p.iter_mut().zip(direction) {
                *p += by * d;
            }
        };
        let (mut gradient, mut unused) = (vec![0.0; n], vec![0.0; n]);
        let steps = 400;
        let differences: Vec<f64> = (0..steps)
            .map(|step| {
                objective.loss(&rows, step, &mut gradient).unwrap();
                let along = gradient
                    .iter()
                    .zip(direction)
                    .map(|(g, d)| f64::from(g * d));
                let h = 1e-3;
                let mut moved = |by: f32| {
                    objective.update(&mut |p| add(p, by));
                    let value = objective.loss(&rows, step, &mut unused).unwrap();
                    objective.update(&mut |p| add(p, -by));
                    value
                };
                along.sum::<f64>() - (moved(h) - moved(-h)) / (2.0 * f64::from(h))
            })
            .collect();
        let count = steps as f64;
        let mean = differences.iter().sum::<f64>() / count;
        let squares = differences.iter().map(|d| (d - mean).powi(2)).sum::<f64>();
        let error = (squares / count / count).sqrt();
        assert!(error > 0.0 && mean.abs() < 4.0 * error, "{mean} ± {error}");
    }

    /// Gaussian source and noise s: the marginal likelihood is greatest at mean ȳ and variance Var(y) − s². Bounds are four
    /// standard errors of ȳ and Var(y) over 1000 draws (of the two estimates about the data's own values there is no sampling
    /// error, only that of training).
    #[test]
    fn finds_mean_and_variance() {
        let (s, n) = (0.6f32, 1000);
        let likelihood = gaussian(s);
        let z = Noise::new(2, Purpose::Test, 2).normal(n, 2);
        let y = Matrix::from_fn(n, 1, |i, _| 0.8 + 1.2 * z.row(i)[0] + s * z.row(i)[1]);
        let values = || y.values().iter().map(|&v| f64::from(v));
        let mean = values().sum::<f64>() / n as f64;
        let variance = values().map(|v| (v - mean).powi(2)).sum::<f64>() / n as f64;
        for bound in [Bound::Elbo, Bound::ImportanceWeighted] {
            let mut source = Affine::new(Base::Normal, &[0.0], &[0.5], &[false]);
            let mut recognition = network(1);
            let mut objective = VariationalObjective::new(
                &mut source,
                &mut recognition,
                problem(&likelihood, &y, bound),
            )
            .unwrap();
            let config = TrainConfig {
                epochs: 60,
                batch: 100,
                rate: 2e-2,
                schedule: Schedule::Cosine { warm_up: 0.02 },
                adam: AdamConfig::default(),
                held_out: 0.0,
                patience: 0,
            };
            train(&mut objective, &config, 1, None, &mut |_| {
                ControlFlow::Continue(())
            })
            .unwrap();
            let error = (variance / n as f64).sqrt();
            assert!((f64::from(source.mean(0)) - mean).abs() < 4.0 * error);
            let expected = variance - f64::from(s * s);
            let found = f64::from(source.deviation(0)).powi(2);
            let error = variance * (2.0 / n as f64).sqrt();
            assert!(
                (found - expected).abs() < 4.0 * error,
                "{bound:?}: {found} is not {expected}"
            );
            // The fitted network is the posterior of the fitted source: log q(y) is met by the bound itself.
            let exact: f64 = values()
                .map(|v| {
                    let total = found + f64::from(s * s);
                    let centred = v - f64::from(source.mean(0));
                    -0.5 * (centred * centred / total + total.ln() + std::f64::consts::TAU.ln())
                })
                .sum::<f64>()
                / n as f64;
            let rows: Vec<u32> = (0..n as u32).collect();
            let problem = problem(&likelihood, &y, bound);
            let mut objective =
                VariationalObjective::new(&mut source, &mut recognition, problem).unwrap();
            let value = -objective.held_out_loss(&rows).unwrap();
            assert!((value - exact).abs() < 0.02, "{bound:?}: {value} {exact}");
        }
    }

    struct NoDensity(Affine);

    impl Source for NoDensity {
        fn dim(&self) -> usize {
            self.0.dim()
        }
        fn parameters(&self) -> &[f32] {
            self.0.parameters()
        }
        fn update(&mut self, change: &mut dyn FnMut(&mut [f32])) {
            self.0.update(change);
        }
        fn base(&self, rows: usize, noise: Noise) -> Matrix {
            self.0.base(rows, noise)
        }
        fn push(&self, z: Rows) -> Matrix {
            self.0.push(z)
        }
        fn backward(&self, z: Rows, x: Rows, dx: Rows, gradient: &mut [f32]) {
            self.0.backward(z, x, dx, gradient);
        }
        fn density(&self) -> Option<&dyn Density> {
            None
        }
    }

    #[test]
    fn what_cannot_be_bounded_is_refused() {
        let likelihood = gaussian(1.0);
        let y = Matrix::zeros(5, 1);
        let mut recognition = network(1);
        let mut source = Affine::new(Base::Normal, &[0.0], &[0.5], &[false]);
        let mut implicit = NoDensity(source.clone());
        let plain = problem(&likelihood, &y, Bound::Elbo);
        let refused = |source: &mut dyn Source, recognition: &mut Recognition, problem| {
            VariationalObjective::new(source, recognition, problem)
                .err()
                .map(|e| e.to_string())
                .unwrap_or_default()
        };
        let message = refused(&mut implicit, &mut recognition, plain);
        assert!(message.contains("no density"), "{message}");
        let none = VariationalProblem { k: 0, ..plain };
        let message = refused(&mut source, &mut recognition, none);
        assert!(message.contains("k is 0"), "{message}");
        let message = refused(&mut source, &mut network(2), plain);
        assert!(message.contains("network for 2 and 2"), "{message}");
    }
}
