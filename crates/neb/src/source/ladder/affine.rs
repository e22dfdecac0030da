//! The lowest rungs: affine maps of a normal and of a uniform law.

use std::time::Instant;

use super::super::affine::Base;
use super::super::config::{SourceConfig, SourceKind};
use super::super::model::Model;
use super::super::pull::Pull;
use super::climber::{Candidate, Climber, Training, column_names};
use crate::Result;

/// Steps on the scales alone, which come first lest shifts break a symmetry by accident; then on scales and shifts.
const SCALE_STEPS: usize = 100;
const SHIFT_STEPS: usize = 120;
/// Steps with more samples and a narrower likelihood: enough passes over the observations for their noise to average out.
const POLISH_STEPS: usize = 200;
/// Steps on the shifts where the scales are polished already.
const SHIFT_POLISH_STEPS: usize = 70;
/// How many more samples.
const POLISH_SAMPLES: usize = 4;

impl Climber<'_, '_> {
    /// Fits both base laws and polishes the better one.
    pub(super) fn affine_rungs(&mut self) -> Result<()> {
        let mut candidates = Vec::new();
        for (base, name) in [
            (Base::Normal, "affine of normal"),
            (Base::Uniform, "affine of uniform"),
        ] {
            candidates.push(self.affine(base, name)?);
        }
        let k = POLISH_SAMPLES * self.config.affine_k;
        let wanted = self.config.refine_effective_samples;
        for candidate in &candidates {
            self.narrow(&candidate.source, k, wanted);
        }
        let mut best = String::new();
        for candidate in candidates {
            let name = candidate.name.clone();
            if self.judge(candidate, 0.0)? {
                best = name;
            }
        }
        self.polish(&best, k)
    }

    fn affine(&mut self, base: Base, name: &str) -> Result<Candidate> {
        let started = Instant::now();
        let config = SourceConfig {
            base,
            ..self.kind(SourceKind::Affine)
        };
        let points = self.points.gather(&self.inside);
        let names = column_names(points.cols());
        let model = config.build_from_points(points.view(), &names, self.options.seed)?;
        let mut model = model.scales_only(true);
        let entropy = self.config.entropy;
        self.train_affine(&mut model, name, SCALE_STEPS, 3e-2, entropy)?;
        let mut model = model.scales_only(false);
        let wanted = self.config.effective_samples;
        self.narrow(&model, self.config.affine_k, wanted);
        let history = self.train_affine(&mut model, name, SHIFT_STEPS, 1.5e-2, 0.2 * entropy)?;
        Ok(Candidate {
            name: name.to_owned(),
            source: model,
            is_flow: false,
            started,
            history,
        })
    }

    fn train_affine(
        &mut self,
        model: &mut Model,
        name: &str,
        steps: usize,
        rate: f64,
        entropy: f64,
    ) -> Result<Vec<crate::train::Epoch>> {
        let plan = Training {
            k: self.config.affine_k,
            steps,
            rate,
            pull: Pull {
                entropy,
                last_share: 0.0,
                ..Pull::NONE
            },
            tailed: false,
        };
        let view = self.view.clone();
        self.train(model, name, &view, plan)
    }

    /// More samples bear a narrower likelihood, which tells more. First with the means of the points, which is simpler and
    /// kept if no worse by two standard errors; then with shifts, which must be better by as much.
    fn polish(&mut self, name: &str, k: usize) -> Result<()> {
        let shifted = self.best()?.clone();
        let plan = |steps: usize| Training {
            k,
            steps,
            rate: 1e-2,
            pull: Pull::NONE,
            tailed: true,
        };
        if let Some(unshifted) = shifted.unshifted() {
            let model = unshifted.scales_only(true);
            let unshifted =
                self.polished(model, format!("{name}, unshifted"), plan(POLISH_STEPS))?;
            if self.judge(unshifted, -2.0)? {
                let start = self.best()?.clone();
                let name = format!("{name}, polished");
                let polished = self.polished(start, name, plan(SHIFT_POLISH_STEPS))?;
                self.judge(polished, 2.0)?;
                return Ok(());
            }
        }
        let polished = self.polished(shifted, format!("{name}, polished"), plan(POLISH_STEPS))?;
        self.judge(polished, 0.0)?;
        Ok(())
    }

    fn polished(&mut self, model: Model, name: String, plan: Training) -> Result<Candidate> {
        let started = Instant::now();
        let mut model = model;
        let view = self.view.clone();
        let history = self.train(&mut model, &name, &view, plan)?;
        Ok(Candidate {
            name,
            source: model.scales_only(false),
            is_flow: false,
            started,
            history,
        })
    }
}
