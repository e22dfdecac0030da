//! What every rung shares: the likelihood at the present width, training, and the judgement on held-out observations.

use std::rc::Rc;
use std::time::Instant;

use super::super::Source;
use super::super::config::{SourceConfig, SourceKind};
use super::super::model::Model;
use super::super::objective::{Estimator, MarginalObjective, gather_weights, weighted_mean};
use super::super::particles::ParticleWeights;
use super::super::pull::Pull;
use super::super::single::Observations;
use super::super::tails::Draws;
use super::super::view::{Width, narrowest_width};
use super::{LadderConfig, LadderOptions, LadderOutcome, LadderReport, Rung, training};
use crate::estimator::corrected_log_marginal_values;
use crate::train::{self, CheckpointPolicy, Epoch};
use crate::{Error, Likelihood, Matrix, Noise, Purpose, Result, Rows};

/// The likelihood and the observations, widened alike.
pub(super) struct View<'a> {
    pub(super) width: Width,
    likelihood: Box<dyn Likelihood + 'a>,
    y: Matrix,
}

/// A ladder under way.
pub(super) struct Climber<'a, 'w> {
    pub(super) likelihood: &'a dyn Likelihood,
    pub(super) observations: Observations<'a>,
    pub(super) points: Rows<'a>,
    /// Rows of `points` inside the domain.
    pub(super) inside: Vec<u32>,
    pub(super) config: &'a LadderConfig,
    pub(super) options: LadderOptions<'a, 'w>,
    pub(super) train_rows: Vec<u32>,
    held_rows: Vec<u32>,
    /// As narrow as the rungs so far allow; what they are judged with.
    pub(super) view: Rc<View<'a>>,
    trainings: usize,
    rungs: Vec<Rung>,
    winner: usize,
    best: Option<Best>,
}

/// The best source so far.
struct Best {
    source: Model,
    is_flow: bool,
    /// Its held-out log-marginals.
    values: Vec<f64>,
}

/// A rung after training, before it is judged.
pub(super) struct Candidate {
    pub(super) name: String,
    pub(super) source: Model,
    pub(super) is_flow: bool,
    pub(super) started: Instant,
    pub(super) history: Vec<Epoch>,
}

/// One training with L_K.
pub(super) struct Training<'p> {
    pub(super) k: usize,
    pub(super) steps: usize,
    pub(super) rate: f64,
    pub(super) pull: Pull<'p>,
    /// Whether half of the samples come from a wider law.
    pub(super) tailed: bool,
}

impl<'a, 'w> Climber<'a, 'w> {
    pub(super) fn new(
        likelihood: &'a dyn Likelihood,
        observations: Observations<'a>,
        points: Rows<'a>,
        config: &'a LadderConfig,
        options: LadderOptions<'a, 'w>,
    ) -> Result<Self> {
        let rows = observations.y.rows();
        let (train_rows, held_rows) = train::split_rows(rows, config.held_out, options.seed);
        let names = column_names(points.cols());
        let inside = match &config.domain {
            Some(domain) => domain.rows_inside(points, &names, "the pairs' x")?,
            None => (0..points.rows() as u32).collect(),
        };
        let view = View::new(likelihood, observations.y, Width::None, options.seed);
        let view = Rc::new(view);
        let mut climber = Self {
            likelihood,
            observations,
            points,
            inside,
            config,
            options,
            train_rows,
            held_rows,
            view,
            trainings: 0,
            rungs: Vec::new(),
            winner: 0,
            best: None,
        };
        let few = climber.inside.len().min(config.affine_k);
        let few = points.gather(&climber.inside[..few]);
        climber.view = climber.view_at(climber.width_for(few.view(), config.effective_samples));
        Ok(climber)
    }

    /// Settings of a source of this kind with the symmetry and the domain that were asked for.
    pub(super) fn kind(&self, kind: SourceKind) -> SourceConfig {
        SourceConfig {
            symmetric: self.config.symmetric.clone(),
            domain: self.config.domain.clone(),
            ..SourceConfig::new(kind)
        }
    }

    fn view_at(&self, width: Width) -> Rc<View<'a>> {
        let y = self.observations.y;
        Rc::new(View::new(self.likelihood, y, width, self.options.seed))
    }

    /// The narrowest width at which these samples serve the observations.
    pub(super) fn width_for(&self, x: Rows, wanted: f64) -> Width {
        let y = self.observations.y;
        narrowest_width(self.likelihood, y, x, wanted, self.options.seed)
    }

    fn width_of(&self, source: &dyn Source, k: usize, wanted: f64) -> Width {
        let noise = Noise::new(self.options.seed, Purpose::SourceNoise, u64::MAX);
        self.width_for(source.sample(k, noise).view(), wanted)
    }

    /// Narrows the view if k of the source's own samples allow it.
    pub(super) fn narrow(&mut self, source: &dyn Source, k: usize, wanted: f64) {
        let width = self.width_of(source, k, wanted);
        if width.narrower_than(self.view.width) {
            self.view = self.view_at(width);
        }
    }

    /// The present view, or a wider one where k of the source's own samples need it.
    pub(super) fn wide_enough(&self, source: &dyn Source, k: usize, wanted: f64) -> Rc<View<'a>> {
        let width = self.width_of(source, k, wanted);
        if self.view.width.narrower_than(width) {
            self.view_at(width)
        } else {
            self.view.clone()
        }
    }

    /// The best source so far.
    pub(super) fn best(&self) -> Result<&Model> {
        let best = self.best.as_ref().map(|best| &best.source);
        best.ok_or_else(no_rung)
    }

    /// Whether the best source so far is a flow.
    pub(super) fn best_is_flow(&self) -> bool {
        self.best.as_ref().is_some_and(|best| best.is_flow)
    }

    /// Where the next training saves its state.
    pub(super) fn next_checkpoint(&mut self) -> Option<CheckpointPolicy> {
        let number = self.trainings;
        self.trainings += 1;
        let policy = self.options.checkpoints.as_ref();
        policy.map(|policy| policy.numbered(number))
    }

    /// Trains a source with L_K; at least one pass over the observations.
    pub(super) fn train(
        &mut self,
        source: &mut dyn Source,
        name: &str,
        view: &View,
        plan: Training,
    ) -> Result<Vec<Epoch>> {
        let checkpoint = self.next_checkpoint();
        let rows = self.train_rows.len();
        let batch = self.config.batch.min(rows);
        let epochs = plan.steps.div_ceil(rows / batch);
        let config = training(epochs, batch, plan.rate, self.config.held_out);
        let mut objective = MarginalObjective {
            source,
            likelihood: &*view.likelihood,
            y: view.y.view(),
            weights: self.observations.weights,
            estimator: match plan.tailed {
                true => Estimator::Tailed { k: plan.k },
                false => Estimator::Corrected { k: plan.k },
            },
            pull: Pull {
                steps: (epochs * (rows / batch)) as u64,
                ..plan.pull
            },
            held_out_k: plan.k,
            seed: self.options.seed,
            effective_samples: None,
        };
        let watch = &mut *self.options.watch;
        let outcome = train::train(
            &mut objective,
            &config,
            self.options.seed,
            checkpoint.as_ref(),
            &mut |progress| watch(name, progress),
        )?;
        Ok(outcome.history)
    }

    /// Compares a rung with the best before it on the held-out observations, each by draws of the kind it was last trained with;
    /// it is kept if its gain is more than `needed` standard errors. Returns whether it was.
    pub(super) fn judge(&mut self, candidate: Candidate, needed: f64) -> Result<bool> {
        let noise = Noise::new(self.options.seed, Purpose::SourceSample, 0);
        let (source, k) = (&candidate.source, self.config.judge_k);
        let draws = match candidate.is_flow {
            true => Draws::plain(source, k, noise),
            false => Draws::tailed(source, k, noise),
        };
        let held = self.view.y.view().gather(&self.held_rows);
        let weights = gather_weights(self.observations.weights, &self.held_rows);
        let likelihood = &*self.view.likelihood;
        let values = corrected_log_marginal_values(likelihood, held.view(), draws.samples())?;
        let (gain, standard_error) = match &self.best {
            None => (f64::NAN, f64::NAN),
            Some(before) => paired(&values, &before.values, weights.as_deref()),
        };
        let kept = self.best.is_none() || gain > needed * standard_error;
        let last = candidate.history.last();
        let effective_samples = last.and_then(|epoch| epoch.effective_samples);
        self.rungs.push(Rung {
            name: candidate.name,
            held_out: weighted_mean(&values, weights.as_deref()),
            gain,
            standard_error,
            kept,
            seconds: candidate.started.elapsed().as_secs_f64(),
            effective_samples: effective_samples.unwrap_or(f64::NAN),
            history: candidate.history,
        });
        if kept {
            self.winner = self.rungs.len() - 1;
            self.best = Some(Best {
                source: candidate.source,
                is_flow: candidate.is_flow,
                values,
            });
        }
        Ok(kept)
    }

    pub(super) fn finish(self, particles: ParticleWeights) -> Result<LadderOutcome> {
        let report = LadderReport {
            particles: (particles.effective_particles(), particles.iteration),
            rungs: self.rungs,
            winner: self.winner,
            width: self.view.width,
        };
        let source = self.best.map(|best| best.source).ok_or_else(no_rung)?;
        Ok(LadderOutcome {
            source,
            particles,
            report,
        })
    }
}

impl<'a> View<'a> {
    fn new(likelihood: &'a dyn Likelihood, y: Rows, width: Width, seed: u64) -> Self {
        Self {
            width,
            likelihood: width.likelihood(likelihood),
            y: width.observations(likelihood, y, seed),
        }
    }
}

fn no_rung() -> Error {
    Error::input("no rung was fitted", "report this: it is a defect of neb")
}

/// x1, x2, ...: the library knows no names.
pub(super) fn column_names(columns: usize) -> Vec<String> {
    (1..=columns).map(|d| format!("x{d}")).collect()
}

/// Mean of the differences with event weights and its standard error; values have the floor of [`weighted_mean`].
fn paired(values: &[f64], before: &[f64], weights: Option<&[f32]>) -> (f64, f64) {
    let floor = |v: f64| v.max(-1000.0);
    let pairs = values.iter().zip(before);
    let differences: Vec<f64> = pairs.map(|(&a, &b)| floor(a) - floor(b)).collect();
    let weight = |row: usize| weights.map_or(1.0, |weights| f64::from(weights[row]));
    let mean = weighted_mean(&differences, weights);
    let (mut squares, mut total) = (0.0, 0.0);
    for (row, difference) in differences.iter().enumerate() {
        squares += (weight(row) * (difference - mean)).powi(2);
        total += weight(row);
    }
    let n = differences.len() as f64;
    (mean, (squares * n / (n - 1.0)).sqrt() / total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paired_differences_by_hand() {
        let (mean, error) = paired(&[1.0, 2.0, 4.0], &[0.0, 2.0, 1.0], None);
        assert!((mean - 4.0 / 3.0).abs() < 1e-12);
        let variance =
            ((1.0f64 / 3.0).powi(2) + (4.0f64 / 3.0).powi(2) + (5.0f64 / 3.0).powi(2)) / 2.0;
        assert!((error - (variance / 3.0).sqrt()).abs() < 1e-12);
        let weighted = paired(&[1.0, 2.0, 4.0], &[0.0, 2.0, 1.0], Some(&[2.0, 2.0, 2.0]));
        assert!((weighted.0 - mean).abs() < 1e-12 && (weighted.1 - error).abs() < 1e-12);
        let impossible = paired(&[f64::NEG_INFINITY], &[0.0], None);
        assert_eq!(impossible.0, -1000.0);
    }
}
