//! The flexible rungs: spline flows fitted to draws of the best affine source and to weighted particles, then refined.

use std::time::Instant;

use super::super::Source;
use super::super::config::{SourceConfig, SourceKind};
use super::super::objective::gather_weights;
use super::super::particles::{ParticleSettings, ParticleWeights, fit_particles};
use super::super::pull::Pull;
use super::climber::{Candidate, Climber, Training, column_names};
use crate::train::Progress;
use crate::{Error, Matrix, Noise, Purpose, Result, Rows};

/// Refinement is at least so many steps, however few the observations.
const FEWEST_REFINE_STEPS: usize = 200;

impl Climber<'_, '_> {
    /// A flow fitted to draws of the best source so far, then refined.
    pub(super) fn flow_on_best(&mut self, name: &str) -> Result<()> {
        let noise = Noise::new(self.options.seed, Purpose::SourceSample, 1);
        let draws = self.best()?.sample(self.config.particles, noise);
        self.flow_from(draws, name)
    }

    /// Weights on the points, and a flow fitted to them, then refined.
    pub(super) fn particles(&mut self) -> Result<ParticleWeights> {
        let first = self.points.rows().min(self.config.particles);
        let points = self.points.slice(0..first);
        let mut initial = vec![0.0; first];
        for &row in self.inside.iter().filter(|&&row| (row as usize) < first) {
            initial[row as usize] = 1.0;
        }
        self.flow_on_particles(points, &initial, "particles")
    }

    /// The same with particles that a flow has put where the observations want them: where the source is narrow, few of the
    /// pairs' own have any weight.
    pub(super) fn particles_of_flow(&mut self) -> Result<()> {
        let noise = Noise::new(self.options.seed, Purpose::SourceSample, 3);
        let points = self.best()?.sample(self.config.particles, noise);
        let initial = vec![1.0; points.rows()];
        self.flow_on_particles(points.view(), &initial, "particles of the flow")?;
        Ok(())
    }

    fn flow_on_particles(
        &mut self,
        points: Rows,
        initial: &[f32],
        name: &str,
    ) -> Result<ParticleWeights> {
        let own = self.width_for(points, self.config.refine_effective_samples);
        let width = if own.narrower_than(self.view.width) {
            self.view.width
        } else {
            own
        };
        let likelihood = width.likelihood(self.likelihood);
        let y = width.observations(self.likelihood, self.observations.y, self.options.seed);
        let y = y.view().gather(&self.train_rows);
        let weights = gather_weights(self.observations.weights, &self.train_rows);
        let settings = ParticleSettings {
            seed: self.options.seed,
            ..ParticleSettings::default()
        };
        let watch = &mut *self.options.watch;
        let fitted = fit_particles(
            &*likelihood,
            y.view(),
            weights.as_deref(),
            points,
            Some(initial),
            &settings,
            &mut |progress| watch(name, progress),
        )?;
        let noise = Noise::new(self.options.seed, Purpose::SourceSample, 2);
        let draws = points.gather(&fitted.resample(points.rows(), noise));
        self.flow_from(draws, &format!("spline on {name}"))?;
        Ok(fitted)
    }

    fn flow_from(&mut self, draws: Matrix, name: &str) -> Result<()> {
        let started = Instant::now();
        let shape = &self.config.flow;
        let kind = match shape.bins {
            0 => SourceKind::Coupling,
            _ => SourceKind::Spline,
        };
        let config = SourceConfig {
            layers: shape.layers,
            hidden: shape.hidden.clone(),
            bins: shape.bins,
            bound: shape.bound,
            ..self.kind(kind)
        };
        let seed = self.options.seed;
        let names = column_names(draws.cols());
        let mut source = config.build_from_points(draws.view(), &names, seed)?;
        let checkpoint = self.next_checkpoint();
        let watch = &mut *self.options.watch;
        source.fit_points(
            draws.view(),
            &shape.train,
            seed,
            checkpoint.as_ref(),
            &mut |progress: &Progress| watch(name, progress),
        )?;
        let reference = source.clone();
        let candidate = Candidate {
            name: name.to_owned(),
            source: source.clone(),
            is_flow: true,
            started,
            history: Vec::new(),
        };
        self.judge_flow(candidate)?;
        let started = Instant::now();
        let name = format!("{name}, refined");
        let batches = self.train_rows.len() / self.config.batch.min(self.train_rows.len());
        let towards = reference.density().ok_or_else(|| {
            Error::input(
                "a flow has no density",
                "report this: it is a defect of neb",
            )
        })?;
        let plan = Training {
            k: self.config.refine_k,
            steps: (self.config.refine_epochs * batches).max(FEWEST_REFINE_STEPS),
            rate: 1e-3,
            pull: Pull {
                towards: Some((self.config.pull, towards)),
                last_share: 0.5,
                ..Pull::NONE
            },
            tailed: false,
        };
        let wanted = self.config.refine_effective_samples;
        let view = self.wide_enough(&source, plan.k, wanted);
        let history = self.train(&mut source, &name, &view, plan)?;
        self.judge_flow(Candidate {
            name,
            source,
            is_flow: true,
            started,
            history,
        })
    }

    /// A flow is more flexible than an affine source, but no more than another flow.
    fn judge_flow(&mut self, candidate: Candidate) -> Result<()> {
        let needed = if self.best_is_flow() { 0.0 } else { 2.0 };
        self.judge(candidate, needed)?;
        Ok(())
    }
}
