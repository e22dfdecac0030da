//! `neb posterior`: draws from the posterior of every observation.

use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use neb::column::Transforms;
use neb::posterior::{
    Budget, Draws, Maximum, Method, NutsOptions, Posterior, PosteriorOptions, Stopped, direct,
};
use neb::source::Recognition;
use neb::surrogate::Surrogate;
use neb::unfold::{Detected, Efficiency};
use neb::{Likelihood, Matrix, Rows};
use neb_data::{Array, Format};
use serde::Serialize;

use super::{Session, log_prob};
use crate::args;
use crate::failure::{self, Failure};
use crate::files::{self, Address};
use crate::run_folder::{EFFICIENCY, RECOGNITION};

/// Importance weights with a heavier tail than this cannot be trusted.
const HEAVIEST_TAIL: f64 = 0.7;
/// Chains that disagree by more than this have not mixed.
const LARGEST_R_HAT: f64 = 1.01;
/// Fewer effective draws than this say little about a posterior.
const FEWEST_EFFECTIVE: f64 = 50.0;
/// Below this share of accepted samples another method is worth a try.
const LOWEST_ACCEPTANCE: f64 = 1e-4;

/// Least, median and greatest of what is known about each observation.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Spread {
    least: f64,
    median: f64,
    greatest: f64,
}

impl Spread {
    fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        Some(Self {
            least: *values.first()?,
            median: values[values.len() / 2],
            greatest: *values.last()?,
        })
    }
}

/// How the draws of all observations came about.
#[derive(Debug, Serialize)]
pub(super) struct Summary {
    method: Method,
    observations: usize,
    draws: usize,
    /// Observations that have all draws.
    complete: usize,
    /// Samples of the source behind all of them.
    samples: u64,
    /// The budget that ended it early.
    stopped: Option<Stopped>,
    effective_draws: Option<Spread>,
    acceptance: Option<Spread>,
    pareto_k: Option<Spread>,
    r_hat: Option<Spread>,
    divergences: Option<usize>,
    warnings: Vec<String>,
    seed: u64,
    seconds: f64,
}

impl Summary {
    pub(super) fn new(draws: &Draws, seed: u64, seconds: f64) -> Self {
        let spread = |values: &[f64]| Spread::of(values.iter().copied());
        let wanted = draws.per_observation;
        Self {
            method: draws.method,
            observations: draws.observations(),
            draws: wanted,
            complete: draws.found.iter().filter(|&&f| f == wanted).count(),
            samples: draws.samples,
            stopped: draws.stopped,
            effective_draws: spread(&draws.ess),
            acceptance: spread(&draws.acceptance),
            pareto_k: spread(&draws.pareto_k),
            r_hat: spread(&draws.r_hat),
            divergences: (!draws.divergences.is_empty()).then(|| draws.divergences.iter().sum()),
            warnings: warnings(draws),
            seed,
            seconds,
        }
    }

    /// Says what there is to worry about.
    pub(super) fn warn(&self, session: Session) {
        for warning in &self.warnings {
            session.output.note(format!("warning: {warning}"));
        }
    }

    /// Fails where a budget ended it early; what was found has been written.
    pub(super) fn check_budget(&self) -> Result<()> {
        let missing = self.observations - self.complete;
        let hint = match self.method {
            Method::Rejection => {
                "raise --max-samples or --max-seconds, or try --method importance or annealed, which need no acceptance"
            }
            _ => "raise --max-seconds, or give fewer observations",
        };
        match self.stopped {
            Some(Stopped::Seconds) if missing == 0 => Err(Failure::computation(
                "the time was over before every observation had its larger bank; all draws are kept, some from few samples",
                hint,
            )),
            Some(Stopped::Seconds) => Err(Failure::computation(
                format!(
                    "the time was over when {missing} of {} observations did not have all draws; what was found is kept",
                    self.observations
                ),
                hint,
            )),
            Some(Stopped::Samples) => Err(Failure::computation(
                format!(
                    "all {} samples were drawn when {missing} of {} observations did not have all draws; what was found is kept",
                    self.samples, self.observations
                ),
                hint,
            )),
            None if missing > 0 => Err(Failure::computation(
                format!(
                    "{missing} of {} observations have no posterior: q(y|x) is zero for every sample of the source",
                    self.observations
                ),
                "check that these observations are in the range of the pairs",
            )),
            None => Ok(()),
        }
    }

    pub(super) fn text(&self) -> String {
        let mut text = format!(
            "{} draws for each of {} observations by {}",
            self.draws, self.observations, self.method
        );
        if self.complete < self.observations {
            text.push_str(&format!(" ({} have all of them)", self.complete));
        }
        if self.samples > 0 {
            text.push_str(&format!(", from {} samples", self.samples));
        }
        text.push_str(&format!(", seed {}, {:.1} s\n", self.seed, self.seconds));
        let rows = [
            ("effective draws", self.effective_draws, 0),
            ("acceptance", self.acceptance, 6),
            ("Pareto k", self.pareto_k, 2),
            ("R-hat", self.r_hat, 4),
        ];
        for (name, spread, places) in rows {
            if let Some(s) = spread {
                text.push_str(&format!(
                    "{name:<16} least {:.places$}, median {:.places$}, greatest {:.places$}\n",
                    s.least, s.median, s.greatest
                ));
            }
        }
        if let Some(divergences) = self.divergences {
            text.push_str(&format!("divergences      {divergences}\n"));
        }
        text
    }
}

pub(crate) fn warnings(draws: &Draws) -> Vec<String> {
    let count = |values: &[f64], bad: &dyn Fn(f64) -> bool| {
        values.iter().filter(|&&value| bad(value)).count()
    };
    let all = draws.observations();
    let mut warnings = Vec::new();
    let heavy = count(&draws.pareto_k, &|k| k > HEAVIEST_TAIL);
    if heavy > 0 {
        warnings.push(format!(
            "{heavy} of {all} observations have weights of Pareto k above {HEAVIEST_TAIL}: their draws come from too few samples; use --method annealed, or raise --max-samples"
        ));
    }
    let apart = count(&draws.r_hat, &|r| r.is_nan() || r > LARGEST_R_HAT);
    if apart > 0 {
        warnings.push(format!(
            "{apart} of {all} observations have chains that disagree (R-hat above {LARGEST_R_HAT}): a mode may be missed or have the wrong weight; compare with --method rejection or importance"
        ));
    }
    let rare = count(&draws.acceptance, &|share| share < LOWEST_ACCEPTANCE);
    if draws.method == Method::Rejection && rare > 0 {
        warnings.push(format!(
            "{rare} of {all} observations accept less than one sample in ten thousand; --method importance or annealed need fewer samples"
        ));
    }
    let needed = FEWEST_EFFECTIVE.min(draws.per_observation as f64);
    let few = count(&draws.ess, &|ess| ess < needed);
    if few > 0 && draws.stopped.is_none() {
        warnings.push(format!(
            "{few} of {all} observations have fewer than {needed:.0} effective draws"
        ));
    }
    warnings
}

/// ε(x) of an unfolding with events that were not reconstructed: its observations are reconstructed ones.
fn efficiency(run: &Path) -> Result<Option<Efficiency>> {
    let file = run.join(EFFICIENCY);
    Ok(match file.exists() {
        true => Some(Efficiency::load(&file)?),
        false => None,
    })
}

/// q(y|x), times ε(x) where there is one: what makes the posterior of an event that was reconstructed, ∝ q(y|x) ε(x) q(x).
fn likelihood<'a>(
    surrogate: &'a Surrogate,
    detected: Option<&'a Detected<'a>>,
) -> &'a dyn Likelihood {
    match detected {
        Some(detected) => detected,
        None => surrogate,
    }
}

/// Draws by the method that was asked for; y and the draws are in the models' units.
pub(super) fn draw(
    run: &Path,
    y: Rows,
    n: usize,
    sampler: &args::Sampler,
    seed: u64,
) -> Result<Draws> {
    let surrogate = files::load_surrogate(run)?;
    let (source, _, _) = files::load_source(run)?;
    let efficiency = efficiency(run)?;
    let detected = efficiency.as_ref().map(|e| Detected::new(&surrogate, e));
    let likelihood = likelihood(&surrogate, detected.as_ref());
    let posterior = Posterior::new(source.source(), likelihood)?;
    let options = PosteriorOptions {
        draws: n,
        seed,
        budget: Budget {
            max_seconds: sampler.max_seconds,
            max_samples: sampler.max_samples.max(1),
        },
    };
    let file = run.join(RECOGNITION);
    let recognition = match file.exists() {
        true => Some(Recognition::load(&file)?),
        false => None,
    };
    let method = sampler.method.named();
    draw_from(posterior, recognition.as_ref(), y, method, &options)
        .map_err(|error| failure::in_file(run, error))
}

/// Draws by a method, or by the one that suits, with the recognition network that stage 2 trained, if it did.
pub(crate) fn draw_from(
    posterior: Posterior,
    recognition: Option<&Recognition>,
    y: Rows,
    method: Option<Method>,
    options: &PosteriorOptions,
) -> neb::Result<Draws> {
    let method = match method {
        Some(method) => method,
        None => posterior.suggested_method(y, options)?,
    };
    match (method, recognition) {
        (Method::Rejection, _) => posterior.rejection(y, options),
        (Method::Importance, Some(network)) => posterior.importance_from(network, y, options),
        (Method::Importance, None) => posterior.importance(y, options),
        (Method::Annealed, _) => posterior.annealed(y, options),
        (Method::Nuts, _) => posterior.nuts(y, options, &NutsOptions::default()),
        (Method::Direct, Some(network)) => direct(network, y, options),
        (Method::Direct, None) => Err(neb::Error::input(
            "this run has no recognition network",
            "only a variational stage 2 (elbo, iw) trains one; use --method rejection",
        )),
    }
}

#[derive(Serialize)]
struct Written<'a> {
    #[serde(flatten)]
    summary: Summary,
    output: &'a Path,
}

/// Draws in the user's units; `log_jacobian` is that of the observations.
pub(crate) fn draws_for_user(draws: Draws, to_x: &Transforms, log_jacobian: &[f64]) -> Draws {
    let mut draws = draws;
    draws.x = to_x.inverse(draws.x);
    for (value, log) in draws.max_log_likelihood.iter_mut().zip(log_jacobian) {
        *value += *log as f32;
    }
    draws
}

/// The best points in the user's units, likewise.
pub(crate) fn maximum_for_user(
    maximum: Maximum,
    to_x: &Transforms,
    log_jacobian: &[f64],
) -> Maximum {
    let x = to_x.inverse(maximum.x);
    let both = log_prob::add(maximum.log_prob, to_x.log_jacobian(x.view()));
    Maximum {
        log_prob: log_prob::add(both, log_jacobian.to_vec()),
        x,
    }
}

/// Runs the command.
pub(crate) fn run(args: &args::Posterior, session: Session) -> Result<()> {
    files::check_data_target(&args.output, session.force)?;
    if Format::of(&args.output)? != Format::Npz {
        return Err(Failure::input(
            format!(
                "{}: posteriors are an array of three dimensions",
                args.output.display()
            ),
            format!("write to {}", args.output.with_extension("npz").display()),
        ));
    }
    let started = Instant::now();
    let surrogate = files::load_surrogate(&args.run)?;
    let (y, _) = files::read_observations(&args.observations, args.y.as_deref())?;
    files::check_columns("y", &args.observations, &y, &surrogate)?;
    let log_jacobian = surrogate.y_transforms().log_jacobian(y.values.view());
    let noise = Address::Observations.noise(session.seed());
    let y = y.transformed(surrogate.y_transforms(), noise, &args.observations)?;
    let y = y.values.view();
    let draws = draw(&args.run, y, args.n, &args.sampler, session.seed())?;
    let maximum = if args.map {
        let (source, _, _) = files::load_source(&args.run)?;
        let efficiency = efficiency(&args.run)?;
        let detected = efficiency.as_ref().map(|e| Detected::new(&surrogate, e));
        let likelihood = likelihood(&surrogate, detected.as_ref());
        let posterior = Posterior::new(source.source(), likelihood)?;
        Some(posterior.maximum(y, session.seed())?)
    } else {
        None
    };
    // From here on in the user's units.
    let to_x = surrogate.x_transforms();
    let maximum = maximum.map(|maximum| maximum_for_user(maximum, to_x, &log_jacobian));
    let draws = draws_for_user(draws, to_x, &log_jacobian);
    write(args, &draws, maximum.as_ref(), session)?;
    let written = Written {
        summary: Summary::new(&draws, session.seed(), started.elapsed().as_secs_f64()),
        output: &args.output,
    };
    written.summary.warn(session);
    session.output.result(&written, |written| {
        format!("{}: {}", written.output.display(), written.summary.text())
    })?;
    written.summary.check_budget()
}

fn write(
    args: &args::Posterior,
    draws: &Draws,
    maximum: Option<&Maximum>,
    session: Session,
) -> Result<()> {
    let (rows, n, dim) = (draws.observations(), draws.per_observation, draws.x.cols());
    let weights = draws.weights();
    let whole =
        |counts: &[usize]| -> Vec<i64> { counts.iter().map(|&count| count as i64).collect() };
    let (found, divergences) = (whole(&draws.found), whole(&draws.divergences));
    let mut arrays = vec![
        Array::new("x", &[rows, n, dim], draws.x.values()),
        Array::new("weight", &[rows, n], &weights[..]),
        Array::new("found", &[rows], &found[..]),
        Array::new("ess", &[rows], &draws.ess[..]),
    ];
    let known = [
        ("acceptance", &draws.acceptance),
        ("pareto_k", &draws.pareto_k),
        ("r_hat", &draws.r_hat),
    ];
    for (name, values) in known {
        if !values.is_empty() {
            arrays.push(Array::new(name, &[rows], &values[..]));
        }
    }
    if !draws.max_log_likelihood.is_empty() {
        let values = &draws.max_log_likelihood[..];
        arrays.push(Array::new("max_log_likelihood", &[rows], values));
    }
    if !divergences.is_empty() {
        arrays.push(Array::new("divergences", &[rows], &divergences[..]));
    }
    if let Some(Maximum { x, log_prob }) = maximum {
        arrays.push(Array::new("map", &[rows, dim], x.values()));
        arrays.push(Array::new("map_log_prob", &[rows], &log_prob[..]));
    }
    Ok(neb_data::write(&args.output, session.force, &arrays)?)
}

/// The draws as the calibration takes them: places without a draw hold a zero and count for nothing.
pub(super) fn with_weights(draws: &Draws) -> (Matrix, Vec<f32>) {
    let mut x = draws.x.clone();
    for value in x.values_mut() {
        if value.is_nan() {
            *value = 0.0;
        }
    }
    (x, draws.weights())
}
