//! A learned surrogate: fitting it, and using it as a [`Likelihood`].

use super::auto::{self, Report};
use super::config::{CandidateConfig, ModelConfig, SurrogateConfig};
use super::fit::PairsObjective;
use super::mixture::Mixture;
use super::neural::Neural;
use crate::column::Transforms;
use crate::density::ConditionalDensity;
use crate::flow::coupling::Mover;
use crate::flow::spline::Spline;
use crate::flow::stack::{Flow, FlowShape};
use crate::scaling::Scaling;
use crate::train::{self, CheckpointPolicy, Outcome, Watch};
use crate::{
    Dims, Error, Likelihood, Matrix, MatrixMut, Noise, PairWeights, Purpose, Result, Rows, Widening,
};

/// Simulated pairs (x_j, y_j), row by row, with the names of their columns.
#[derive(Clone, Copy, Debug)]
pub struct Pairs<'a> {
    /// Source values.
    pub x: Rows<'a>,
    /// Observations.
    pub y: Rows<'a>,
    /// Names of x's columns, for messages.
    pub x_names: &'a [String],
    /// Names of y's columns, for messages.
    pub y_names: &'a [String],
}

/// How a fit is run.
pub struct FitOptions<'a> {
    /// Makes the run repeatable.
    pub seed: u64,
    /// Where and how often to save the state, if at all; each candidate has its own file
    /// ([`CheckpointPolicy::numbered`]). Files that exist are resumed. They stay until the caller, who alone knows
    /// when the result is safe, removes them.
    pub checkpoints: Option<CheckpointPolicy>,
    /// Told of every step with the candidate's number; may stop the run.
    pub watch: &'a mut dyn FnMut(usize, &train::Progress) -> std::ops::ControlFlow<()>,
}

/// A likelihood q(y|x) learned from pairs.
#[derive(Debug)]
pub struct Surrogate {
    pub(super) body: Body,
    pub(super) model: ModelConfig,
    pub(super) x_names: Vec<String>,
    pub(super) y_names: Vec<String>,
    /// Smallest and largest value of each column of y among the pairs.
    pub(super) y_range: Vec<[f32; 2]>,
    /// How the columns of x and y are turned into what it sees.
    pub(super) transforms: [Transforms; 2],
}

/// The forms a surrogate can have.
#[derive(Debug)]
pub(super) enum Body {
    Flow(Neural<Flow>),
    Mixture(Neural<Mixture>),
}

impl Surrogate {
    /// Trains the candidates on the pairs and keeps the one with the best held-out log-likelihood.
    ///
    /// # Errors
    /// Rows that do not match, too few rows for a batch, constant columns, values or losses that are not finite.
    pub fn fit(
        pairs: Pairs,
        config: &SurrogateConfig,
        options: FitOptions,
    ) -> Result<(Self, Report)> {
        auto::fit(pairs, config, options)
    }

    /// Trains one candidate.
    pub(super) fn fit_candidate(
        pairs: &Standardised,
        config: &CandidateConfig,
        seed: u64,
        checkpoints: Option<&CheckpointPolicy>,
        watch: &mut Watch,
    ) -> Result<(Self, Outcome)> {
        let mut surrogate = Self::untrained(&config.model, pairs);
        let mut stream = Noise::new(seed, Purpose::Initialise, 0).stream(0);
        let noise = surrogate.noise();
        let (v, context) = (&pairs.y_values, Some(&pairs.x_values));
        let outcome = match &mut surrogate.body {
            Body::Flow(neural) => {
                neural
                    .model
                    .initialise(initial_scale(&config.model), &mut stream);
                let mut objective = PairsObjective::new(&mut neural.model, v, context, noise, seed);
                train::train(&mut objective, &config.train, seed, checkpoints, watch)?
            }
            Body::Mixture(neural) => {
                neural.model.initialise(&mut stream);
                let mut objective = PairsObjective::new(&mut neural.model, v, context, noise, seed);
                train::train(&mut objective, &config.train, seed, checkpoints, watch)?
            }
        };
        Ok((surrogate, outcome))
    }

    /// The same form and scalings, trained further on other pairs, from where this one is: a fraction of the cost of a new one.
    ///
    /// # Errors
    /// As [`Surrogate::fit`].
    pub fn trained_further(
        &self,
        pairs: Pairs,
        config: &train::TrainConfig,
        seed: u64,
        watch: &mut Watch,
    ) -> Result<Self> {
        check_finite(pairs.x, pairs.x_names)?;
        check_finite(pairs.y, pairs.y_names)?;
        let noise = self.noise();
        let body = match &self.body {
            Body::Flow(neural) => Body::Flow(further(neural, pairs, noise, config, seed, watch)?),
            Body::Mixture(neural) => {
                Body::Mixture(further(neural, pairs, noise, config, seed, watch)?)
            }
        };
        Ok(Self {
            body,
            model: self.model.clone(),
            x_names: self.x_names.clone(),
            y_names: self.y_names.clone(),
            y_range: self.y_range.clone(),
            transforms: self.transforms.clone(),
        })
    }

    fn untrained(model: &ModelConfig, pairs: &Standardised) -> Self {
        let dims = Dims {
            dx: pairs.x_values.cols(),
            dy: pairs.y_values.cols(),
        };
        let body = Body::new(model, dims, pairs.x.clone(), pairs.y.clone());
        Self {
            body,
            model: model.clone(),
            x_names: pairs.x_names.clone(),
            y_names: pairs.y_names.clone(),
            y_range: pairs.y_range.clone(),
            transforms: Default::default(),
        }
    }

    /// Its form.
    pub fn model(&self) -> &ModelConfig {
        &self.model
    }

    /// Names of x's columns.
    pub fn x_names(&self) -> &[String] {
        &self.x_names
    }

    /// Names of y's columns.
    pub fn y_names(&self) -> &[String] {
        &self.y_names
    }

    /// Remembers how the columns of the pairs were turned into those it was trained on; kept in its file.
    ///
    /// As a likelihood it goes on to take and give what it was trained on.
    pub fn with_transforms(self, x: Transforms, y: Transforms) -> Self {
        Self {
            transforms: [x, y],
            ..self
        }
    }

    /// How x's columns are turned into what it takes.
    pub fn x_transforms(&self) -> &Transforms {
        &self.transforms[0]
    }

    /// How y's columns are turned into what it takes.
    pub fn y_transforms(&self) -> &Transforms {
        &self.transforms[1]
    }

    /// Smallest and largest value of each column of y among the pairs it was trained on, transformed.
    pub fn y_range(&self) -> &[[f32; 2]] {
        &self.y_range
    }

    /// Number of parameters.
    pub fn parameters(&self) -> usize {
        match &self.body {
            Body::Flow(neural) => neural.model.parameters().len(),
            Body::Mixture(neural) => neural.model.parameters().len(),
        }
    }

    fn noise(&self) -> Option<super::NoiseScale> {
        match self.model {
            ModelConfig::Mixture { noise, .. } => noise,
            _ => None,
        }
    }

    fn likelihood(&self) -> &dyn Likelihood {
        match &self.body {
            Body::Flow(neural) => neural,
            Body::Mixture(neural) => neural,
        }
    }
}

impl Body {
    /// An untrained density of this form between columns with these scalings.
    pub(super) fn new(model: &ModelConfig, dims: Dims, x: Scaling, y: Scaling) -> Self {
        let flow = |layers, hidden: &[usize], head: &[usize], activation, mover| {
            Flow::new(&FlowShape {
                dim: dims.dy,
                context: dims.dx,
                head: (!head.is_empty()).then(|| head.to_vec()),
                layers,
                hidden: hidden.to_vec(),
                activation,
                mover,
            })
        };
        match model {
            ModelConfig::Coupling {
                layers,
                hidden,
                head,
                activation,
            } => Self::Flow(Neural {
                model: flow(*layers, hidden, head, *activation, Mover::Affine),
                x,
                y,
                extra: Vec::new(),
            }),
            ModelConfig::Spline {
                layers,
                hidden,
                head,
                bins,
                bound,
                activation,
            } => {
                let mover = Mover::Spline(Spline {
                    bins: *bins,
                    bound: *bound,
                });
                Self::Flow(Neural {
                    model: flow(*layers, hidden, head, *activation, mover),
                    x,
                    y,
                    extra: Vec::new(),
                })
            }
            ModelConfig::Mixture {
                components,
                hidden,
                noise,
            } => {
                let context = dims.dx + usize::from(noise.is_some());
                Self::Mixture(Neural {
                    model: Mixture::new(dims.dy, context, *components, hidden),
                    x,
                    y,
                    extra: noise.map(|noise| noise.feature(0.0)).into_iter().collect(),
                })
            }
        }
    }
}

/// A trained density, trained further on other pairs, standardised as the first ones were.
fn further<M: ConditionalDensity + Clone>(
    neural: &Neural<M>,
    pairs: Pairs,
    noise: Option<super::NoiseScale>,
    config: &train::TrainConfig,
    seed: u64,
    watch: &mut Watch,
) -> Result<Neural<M>> {
    let mut neural = neural.clone();
    let scaled = |rows: Rows, scaling: &Scaling| {
        Matrix::from_fn(rows.rows(), rows.cols(), |row, d| {
            (rows.row(row)[d] - scaling.mean[d]) * scaling.inverse[d]
        })
    };
    let (x, y) = (scaled(pairs.x, &neural.x), scaled(pairs.y, &neural.y));
    let mut objective = PairsObjective::new(&mut neural.model, &y, Some(&x), noise, seed);
    train::train(&mut objective, config, seed, None, watch)?;
    Ok(neural)
}

/// Flows on a head start near the identity; the paper's starts as PyTorch does.
fn initial_scale(model: &ModelConfig) -> f32 {
    match model {
        ModelConfig::Coupling { head, .. } | ModelConfig::Spline { head, .. }
            if !head.is_empty() =>
        {
            0.1
        }
        _ => 1.0,
    }
}

/// Pairs ready for training.
pub(super) struct Standardised {
    pub x: Scaling,
    pub y: Scaling,
    pub x_values: Matrix,
    pub y_values: Matrix,
    pub x_names: Vec<String>,
    pub y_names: Vec<String>,
    pub y_range: Vec<[f32; 2]>,
}

impl Standardised {
    /// Checks the pairs and standardises them by their training rows.
    pub(super) fn new(pairs: Pairs, held_out: f64, seed: u64) -> Result<Self> {
        let Pairs { x, y, .. } = pairs;
        if x.rows() != y.rows() {
            return Err(Error::input(
                format!("x has {} rows and y has {}", x.rows(), y.rows()),
                "row j of both must belong to the same simulated event",
            ));
        }
        check_finite(x, pairs.x_names)?;
        check_finite(y, pairs.y_names)?;
        let (train, _) = train::split_rows(x.rows(), held_out, seed);
        if train.is_empty() {
            return Err(Error::input(
                format!("{} pairs are too few to learn from", x.rows()),
                "simulate more pairs",
            ));
        }
        let standardise = |rows: Rows, names: &[String]| -> Result<(Scaling, Matrix)> {
            let scaling = Scaling::measure(rows, &train, names)?;
            let mut matrix = rows.to_matrix();
            for row in 0..rows.rows() {
                for (d, value) in matrix.row_mut(row).iter_mut().enumerate() {
                    *value = (*value - scaling.mean[d]) * scaling.inverse[d];
                }
            }
            Ok((scaling, matrix))
        };
        let (x_scaling, x_values) = standardise(x, pairs.x_names)?;
        let (y_scaling, y_values) = standardise(y, pairs.y_names)?;
        let mut y_range = vec![[f32::INFINITY, f32::NEG_INFINITY]; y.cols()];
        for row in 0..y.rows() {
            for (range, &value) in y_range.iter_mut().zip(y.row(row)) {
                *range = [range[0].min(value), range[1].max(value)];
            }
        }
        Ok(Self {
            x: x_scaling,
            y: y_scaling,
            x_values,
            y_values,
            x_names: pairs.x_names.to_vec(),
            y_names: pairs.y_names.to_vec(),
            y_range,
        })
    }
}

fn check_finite(rows: Rows, names: &[String]) -> Result<()> {
    let bad = || {
        rows.values()
            .iter()
            .enumerate()
            .filter(|(_, value)| !value.is_finite())
    };
    match bad().next() {
        None => Ok(()),
        Some((at, value)) => Err(Error::input(
            format!(
                "{} values are not finite; the first is {value} at row {}, column {} (`{}`)",
                bad().count(),
                at / rows.cols(),
                at % rows.cols(),
                names[at % rows.cols()],
            ),
            "remove or repair these rows; neb never drops data by itself",
        )),
    }
}

impl Likelihood for Surrogate {
    fn dims(&self) -> Dims {
        self.likelihood().dims()
    }

    fn log_prob(&self, y: Rows, x: Rows, out: &mut [f32]) {
        self.likelihood().log_prob(y, x, out);
    }

    fn log_prob_pairs(&self, y: Rows, x: Rows, out: MatrixMut) {
        self.likelihood().log_prob_pairs(y, x, out);
    }

    fn grad_x_pairs(&self, y: Rows, x: Rows, weights: &PairWeights, dx: MatrixMut) {
        self.likelihood().grad_x_pairs(y, x, weights, dx);
    }

    fn sample(&self, x: Rows, noise: Noise) -> Matrix {
        self.likelihood().sample(x, noise)
    }

    fn widening(&self) -> Option<&dyn Widening> {
        self.noise().map(|_| self as &dyn Widening)
    }
}

impl Widening for Surrogate {
    fn largest_scale(&self) -> f32 {
        self.noise().map_or(0.0, |noise| noise.largest)
    }

    fn widened(&self, tau: f32) -> Box<dyn Likelihood + '_> {
        match (&self.body, self.noise()) {
            (Body::Mixture(neural), Some(noise)) => Box::new(Neural {
                extra: vec![noise.feature(tau)],
                ..neural.clone()
            }),
            (Body::Mixture(neural), None) => Box::new(neural.clone()),
            (Body::Flow(neural), _) => Box::new(neural.clone()),
        }
    }

    fn deviations(&self) -> &[f32] {
        match &self.body {
            Body::Flow(neural) => &neural.y.deviation,
            Body::Mixture(neural) => &neural.y.deviation,
        }
    }
}
