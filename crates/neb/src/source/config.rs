//! Settings of a source: the one place that turns them into a [`Model`].

use serde::{Deserialize, Serialize};

use super::affine::{Affine, Base};
use super::bounded::Bounded;
use super::domain::Domain;
use super::flow::{Direction, FlowConfig, FlowMap, FlowSource};
use super::mlp::MlpSource;
use super::model::Model;
use super::symmetric::{MOST_SUMMED, Symmetric};
use crate::flow::spline::MAX_BINS;
use crate::nn::activation::Activation;
use crate::scaling::Scaling;
use crate::{Error, Result, Rows};

/// Largest deviation to start with in a free coordinate: that of the uniform law on an interval is 1.8.
const WIDEST_FREE_START: f64 = 2.0;

/// The kinds of source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SourceKind {
    /// Scale and shift of a base law, dimension by dimension.
    Affine,
    /// The same with correlations.
    AffineFull,
    /// A flow of affine couplings.
    Coupling,
    /// A flow of spline couplings.
    Spline,
    /// A flow of unconstrained monotonic networks.
    Umnn,
    /// A network without a density.
    Mlp,
}

impl SourceKind {
    fn is_flow(self) -> bool {
        matches!(self, Self::Coupling | Self::Spline | Self::Umnn)
    }
}

/// Settings of a source; those its kind has no use for are ignored, `base` excepted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SourceConfig {
    /// Its kind.
    pub kind: SourceKind,
    /// The law an affine map starts from; all others start from the normal law.
    pub base: Base,
    /// Which way a flow runs.
    pub direction: Direction,
    /// Layers of a flow.
    pub layers: usize,
    /// Hidden units of a flow's networks (UMNN: of the embedding), or of the mlp.
    pub hidden: Vec<usize>,
    /// Function between the layers of a coupling's or spline's networks.
    pub activation: Activation,
    /// Bins of a spline.
    pub bins: usize,
    /// A spline acts on [−bound, bound], in deviations.
    pub bound: f32,
    /// UMNN: values the embedding gives each dimension.
    pub embedding: usize,
    /// UMNN: hidden units of the integrand.
    pub integrand_hidden: Vec<usize>,
    /// UMNN: steps of the quadrature; even.
    pub steps: usize,
    /// Dimensions whose law is even; empty for none.
    pub symmetric: Vec<bool>,
    /// Where x can be.
    pub domain: Option<Domain>,
}

impl SourceConfig {
    /// Settings that suit a kind: the paper's for UMNN (drawn from noise) and mlp.
    pub fn new(kind: SourceKind) -> Self {
        let (layers, hidden) = match kind {
            SourceKind::Umnn => (6, vec![75; 3]),
            SourceKind::Mlp => (1, vec![100; 3]),
            _ => (4, vec![64, 64]),
        };
        Self {
            kind,
            base: Base::Normal,
            direction: match kind {
                SourceKind::Umnn => Direction::FromNoise,
                _ => Direction::ToNoise,
            },
            layers,
            hidden,
            activation: Activation::Silu,
            bins: 8,
            bound: 4.0,
            embedding: 10,
            integrand_hidden: vec![75; 3],
            steps: 20,
            symmetric: Vec::new(),
            domain: None,
        }
    }

    /// The source, starting around these means and deviations of x.
    ///
    /// Inside a domain the start is carried to the free coordinates by the slope at the mean;
    /// [`SourceConfig::build_from_points`] measures there and starts closer.
    ///
    /// # Errors
    /// Settings that make no sense, alone or together, with the first named.
    pub fn build(&self, mean: &[f32], deviation: &[f32], seed: u64) -> Result<Model> {
        let symmetric = self.check(mean.len())?;
        let mut start = Scaling::new(mean.to_vec(), deviation.to_vec());
        let usable = |d: &f32| d.is_finite() && *d > 0.0;
        if !(deviation.len() == mean.len()
            && mean.iter().all(|m| m.is_finite())
            && deviation.iter().all(usable))
        {
            return Err(Error::input(
                format!("a source cannot start with means {mean:?} and deviations {deviation:?}"),
                "give finite means and positive deviations",
            ));
        }
        if let Some(domain) = &self.domain {
            if !domain.contains(mean) {
                return Err(Error::input(
                    format!("the domain excludes the means {mean:?} the source is to start with"),
                    "widen the domain, or simulate pairs inside it",
                ));
            }
            if self.is_mapped() {
                let at = |d: usize| domain.coordinate(d, mean[d]);
                let free = |d: usize| f64::from(deviation[d]) * at(d).log_slope.exp();
                let wide = |d: usize| match domain.edges(d) {
                    (low, high) if low.is_infinite() && high.is_infinite() => free(d) as f32,
                    _ => free(d).min(WIDEST_FREE_START) as f32,
                };
                start = Scaling::new(
                    (0..mean.len()).map(|d| at(d).free as f32).collect(),
                    (0..mean.len()).map(wide).collect(),
                );
            }
        }
        Ok(self.assemble(centred(start, &symmetric), &symmetric, seed))
    }

    /// The source, starting around the mean and deviation of points inside the domain, such as the pairs' x.
    ///
    /// # Errors
    /// As [`SourceConfig::build`]; a domain with hardly any points inside, and constant columns, by name.
    pub fn build_from_points(&self, points: Rows, names: &[String], seed: u64) -> Result<Model> {
        let symmetric = self.check(points.cols())?;
        let rows: Vec<u32> = match &self.domain {
            Some(domain) => domain.rows_inside(points, names, "the pairs' x")?,
            None => (0..points.rows() as u32).collect(),
        };
        let start = match &self.domain {
            Some(domain) if self.is_mapped() => {
                let free = domain.to_free(points.gather(&rows).view());
                let all: Vec<u32> = (0..rows.len() as u32).collect();
                Scaling::measure(free.view(), &all, names)?
            }
            _ => Scaling::measure(points, &rows, names)?,
        };
        Ok(self.assemble(centred(start, &symmetric), &symmetric, seed))
    }

    /// Whether the domain, if there is one, is reached by its map; a box of the uniform law is cut back instead.
    fn is_mapped(&self) -> bool {
        !(self.kind == SourceKind::Affine && self.base == Base::Uniform)
    }

    /// From where to start in the coordinates of the innermost source.
    fn assemble(&self, start: Scaling, symmetric: &[bool], seed: u64) -> Model {
        let (mean, deviation) = (&start.mean, &start.deviation);
        let all_even = symmetric.iter().all(|&even| even);
        let mut by_signs = symmetric.contains(&true);
        let mut model = match self.kind {
            SourceKind::Affine | SourceKind::AffineFull => {
                by_signs = false;
                let affine = Affine::new(self.base, mean, deviation, symmetric);
                Model::Affine(match (&self.domain, self.kind) {
                    (_, SourceKind::AffineFull) => affine.full(),
                    (Some(domain), _) if !self.is_mapped() => affine.within(domain.clone()),
                    _ => affine,
                })
            }
            SourceKind::Mlp => Model::Mlp(Box::new(MlpSource::new(
                &self.hidden,
                mean,
                deviation,
                seed,
            ))),
            SourceKind::Coupling | SourceKind::Spline | SourceKind::Umnn => {
                let native = self.kind == SourceKind::Umnn && all_even;
                by_signs &= !native;
                let config = self.flow(native);
                Model::Flow(Box::new(FlowSource::new(&config, mean, deviation, seed)))
            }
        };
        if let Some(domain) = self.domain.clone().filter(|_| self.is_mapped()) {
            model = Model::Bounded(Box::new(Bounded::new(model, domain)));
        }
        if by_signs {
            model = Model::Symmetric(Box::new(Symmetric::new(model, symmetric)));
        }
        model
    }

    fn flow(&self, symmetric: bool) -> FlowConfig {
        FlowConfig {
            map: match self.kind {
                SourceKind::Spline => FlowMap::Spline {
                    bins: self.bins,
                    bound: self.bound,
                },
                SourceKind::Umnn => FlowMap::Umnn {
                    embedding: self.embedding,
                    integrand_hidden: self.integrand_hidden.clone(),
                    steps: self.steps,
                    symmetric,
                },
                _ => FlowMap::Coupling,
            },
            layers: self.layers,
            hidden: self.hidden.clone(),
            activation: self.activation,
            direction: self.direction,
        }
    }

    /// Refuses settings that make no sense for so many dimensions; which of them are symmetric.
    fn check(&self, dim: usize) -> Result<Vec<bool>> {
        self.check_sizes()?;
        let symmetric = match self.symmetric.len() {
            0 => vec![false; dim],
            _ => self.symmetric.clone(),
        };
        let per_column = [
            ("symmetric", symmetric.len()),
            ("domain", self.domain.as_ref().map_or(dim, Domain::dim)),
        ];
        for (key, found) in per_column {
            if found != dim {
                return Err(Error::input(
                    format!("source: `{key}` is given for {found} columns, x has {dim}"),
                    "give one entry for every column of x",
                ));
            }
        }
        if let Some(domain) = &self.domain {
            domain.check_symmetric(&symmetric)?;
        }
        let even = symmetric.iter().filter(|even| **even).count();
        let native = self.kind == SourceKind::Umnn && even == dim;
        if self.kind.is_flow() && !native && even > MOST_SUMMED {
            return Err(Error::input(
                format!(
                    "source: {even} symmetric columns; the density of an even flow is a sum over the 2^{even} patterns of \
                     their signs, and more than {MOST_SUMMED} are too many"
                ),
                "use an affine source, or umnn with all columns symmetric",
            ));
        }
        let affine = matches!(self.kind, SourceKind::Affine | SourceKind::AffineFull);
        if self.base == Base::Uniform && !affine {
            return Err(Error::input(
                format!("source: base = uniform with kind = {}", self.name()),
                "flows and mlp start from the normal law; give them a domain to keep them inside a box",
            ));
        }
        let boxed = self.base == Base::Uniform && self.domain.is_some();
        if self.kind == SourceKind::AffineFull && boxed {
            return Err(Error::input(
                "source: kind = affine-full of base = uniform cannot be kept inside a domain",
                "use kind = affine, or base = normal",
            ));
        }
        Ok(symmetric)
    }

    fn check_sizes(&self) -> Result<()> {
        let smallest = |sizes: &[usize]| sizes.iter().copied().min().unwrap_or(0);
        let networks = self.kind.is_flow() || self.kind == SourceKind::Mlp;
        let umnn = self.kind == SourceKind::Umnn;
        let sizes = [
            ("layers", self.layers, self.kind.is_flow()),
            ("hidden", smallest(&self.hidden), networks),
            ("embedding", self.embedding, umnn),
            ("integrand-hidden", smallest(&self.integrand_hidden), umnn),
            ("steps", self.steps, umnn),
        ];
        for (key, value, used) in sizes {
            if used && value == 0 {
                return Err(Error::input(
                    format!("source: {key} is 0 or empty"),
                    "set it to 1 or more",
                ));
            }
        }
        if umnn && !self.steps.is_multiple_of(2) {
            return Err(Error::input(
                format!("source: steps is {}", self.steps),
                "the quadrature needs an even number; the paper has 20",
            ));
        }
        if self.kind == SourceKind::Spline {
            if !(2..=MAX_BINS).contains(&self.bins) {
                return Err(Error::input(
                    format!("source: bins is {}", self.bins),
                    format!("use 2 to {MAX_BINS}, or kind = coupling"),
                ));
            }
            if !(self.bound.is_finite() && self.bound > 0.0) {
                return Err(Error::input(
                    format!("source: bound is {}", self.bound),
                    "set it to 4 or so",
                ));
            }
        }
        Ok(())
    }

    fn name(&self) -> &'static str {
        match self.kind {
            SourceKind::Affine => "affine",
            SourceKind::AffineFull => "affine-full",
            SourceKind::Coupling => "coupling",
            SourceKind::Spline => "spline",
            SourceKind::Umnn => "umnn",
            SourceKind::Mlp => "mlp",
        }
    }
}

/// Symmetric dimensions start at mean zero with the root mean square as deviation.
fn centred(start: Scaling, symmetric: &[bool]) -> Scaling {
    let (mut mean, mut deviation) = (start.mean, start.deviation);
    for (d, _) in symmetric.iter().enumerate().filter(|(_, even)| **even) {
        deviation[d] = deviation[d].hypot(mean[d]);
        mean[d] = 0.0;
    }
    Scaling::new(mean, deviation)
}
