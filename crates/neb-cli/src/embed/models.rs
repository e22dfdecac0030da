//! What fitted models say, in the user's units: columns that the models see otherwise (`--transform`) go there and back here.

use std::borrow::Cow;

use neb::column::Transforms;
use neb::posterior::{Draws, Maximum, Method, Posterior, PosteriorOptions, Tracker};
use neb::source::{Model, Recognition};
use neb::surrogate::Surrogate;
use neb::{Error, Likelihood, Matrix, Noise, Purpose, Rows};

use super::Result;
use crate::commands::{calibrate, log_prob, posterior, sample};
use crate::files::Address;
use neb::check::Calibration;

/// A source with the names and transforms of its columns, and the recognition network that was trained with it, if one was.
#[derive(Debug)]
pub struct FittedSource {
    /// q(x) in the model's units.
    pub model: Model,
    /// Names of the columns.
    pub names: Vec<String>,
    /// From the user's columns to the model's.
    pub transforms: Transforms,
    /// q(x|y).
    pub recognition: Option<Recognition>,
    /// Whether it is an unfolding's whose events were not all reconstructed.
    pub behind_efficiency: bool,
}

impl FittedSource {
    /// Draws of x, those of `neb sample`.
    pub fn sample(&self, n: usize, seed: u64) -> Matrix {
        let noise = Noise::new(seed, Purpose::SourceSample, sample::STEP);
        self.transforms
            .inverse(self.model.source().sample(n, noise))
    }

    /// log q(x), row by row.
    ///
    /// # Errors
    /// A source without a density; values that a transform cannot take.
    pub fn log_prob(&self, x: Rows, seed: u64) -> Result<Vec<f32>> {
        let density = self.model.source().density().ok_or_else(|| {
            Error::input(
                "this source can be sampled but has no density",
                "fit with another kind than mlp",
            )
        })?;
        let named = (x, &self.names[..]);
        Ok(log_prob::of_source(density, &self.transforms, named, seed)?)
    }
}

/// log q(y|x), row by row.
///
/// # Errors
/// Values that a transform cannot take.
pub fn log_likelihood(surrogate: &Surrogate, y: Rows, x: Rows, seed: u64) -> Result<Vec<f32>> {
    let (y, x) = ((y, surrogate.y_names()), (x, surrogate.x_names()));
    Ok(log_prob::of_surrogate(surrogate, y, x, seed)?)
}

/// One draw of y for each row of x, those of `neb sample --push --points`.
///
/// # Errors
/// Values that a transform cannot take.
pub fn push(surrogate: &Surrogate, x: Rows, seed: u64) -> Result<Matrix> {
    let noise = Address::PairsX.noise(seed);
    let x = seen(surrogate.x_transforms(), x, surrogate.x_names(), noise)?;
    let y = surrogate.sample(x.view(), Noise::new(seed, Purpose::DrawY, 0));
    Ok(surrogate.y_transforms().inverse(y))
}

/// The mean log-marginal likelihood of the rows of y over the samples x, and its gradient with respect to x.
///
/// # Errors
/// A surrogate that sees x otherwise; values that cannot be used.
pub fn log_marginal(surrogate: &Surrogate, y: Rows, x: Rows) -> Result<(f64, Matrix)> {
    if !surrogate.x_transforms().is_plain() {
        return Err(Error::input(
            "this surrogate was learned with transforms of x, through which gradients are not known",
            "learn it with the transform `none` of these columns",
        )
        .into());
    }
    let transforms = surrogate.y_transforms();
    let log_jacobian: f64 = transforms.log_jacobian(y).iter().sum();
    let noise = Address::Observations.noise(0);
    let seen_y = seen(transforms, y, surrogate.y_names(), noise)?;
    let (value, gradient) = neb::estimator::log_marginal(surrogate, seen_y.view(), x)?;
    Ok((value + log_jacobian / y.rows() as f64, gradient))
}

/// p(x|y) of a source and a surrogate.
#[derive(Clone, Copy, Debug)]
pub struct Posteriors<'a> {
    /// q(x).
    pub source: &'a FittedSource,
    /// q(y|x).
    pub surrogate: &'a Surrogate,
}

impl Posteriors<'_> {
    fn library(&self) -> neb::Result<Posterior<'_>> {
        if self.source.behind_efficiency {
            return Err(Error::input(
                "this source is an unfolding's, and its events were not all reconstructed: a posterior has to count the efficiency",
                "`neb posterior RUN` and `neb calibrate RUN` do",
            ));
        }
        let (own, other) = (&self.source.names[..], self.surrogate.x_names());
        if own != other || self.source.transforms != *self.surrogate.x_transforms() {
            return Err(Error::input(
                format!(
                    "the source is of `{}` and the surrogate of `{}`, or they see these through other transforms",
                    own.join("`, `"),
                    other.join("`, `")
                ),
                "take both from the same run",
            ));
        }
        Posterior::new(self.source.model.source(), self.surrogate)
    }

    fn draw(
        &self,
        y: Rows,
        method: Option<Method>,
        options: &PosteriorOptions,
        tracker: &Tracker,
    ) -> Result<(Draws, Vec<String>)> {
        let library = self.library()?.tracked(tracker);
        let recognition = self.source.recognition.as_ref();
        let draws = posterior::draw_from(library, recognition, y, method, options)?;
        let warnings = posterior::warnings(&draws);
        Ok((draws, warnings))
    }

    /// Draws by a method, those of `neb posterior`; and what there is to worry about.
    ///
    /// # Errors
    /// A method that this source does not allow; observations that cannot be used.
    pub fn sample(
        &self,
        y: Rows,
        method: Option<Method>,
        options: &PosteriorOptions,
        tracker: &Tracker,
    ) -> Result<(Draws, Vec<String>)> {
        let seen_y = self.observations(y, options.seed)?;
        let (draws, warnings) = self.draw(seen_y.view(), method, options, tracker)?;
        let log_jacobian = self.surrogate.y_transforms().log_jacobian(y);
        let to_x = self.surrogate.x_transforms();
        let draws = posterior::draws_for_user(draws, to_x, &log_jacobian);
        Ok((draws, warnings))
    }

    /// log q(y|x) + log q(x), row by row.
    ///
    /// # Errors
    /// A source without a density; values that cannot be used.
    pub fn log_prob(&self, y: Rows, x: Rows, seed: u64) -> Result<Vec<f32>> {
        self.library()?;
        let prior = self.source.log_prob(x, seed)?;
        let likelihood = log_likelihood(self.surrogate, y, x, seed)?;
        let both = prior.into_iter().zip(likelihood);
        // A likelihood may be anything where the prior is zero.
        let sum = |(prior, likelihood): (f32, f32)| match prior == f32::NEG_INFINITY {
            true => prior,
            false => prior + likelihood,
        };
        Ok(both.map(sum).collect())
    }

    /// The x of greatest density for each row of y, and log q(y|x) + log q(x) there.
    ///
    /// # Errors
    /// A source without a density; observations that cannot be used.
    pub fn maximum(&self, y: Rows, seed: u64, tracker: &Tracker) -> Result<Maximum> {
        let seen_y = self.observations(y, seed)?;
        let maximum = self
            .library()?
            .tracked(tracker)
            .maximum(seen_y.view(), seed)?;
        let log_jacobian = self.surrogate.y_transforms().log_jacobian(y);
        let to_x = self.surrogate.x_transforms();
        Ok(posterior::maximum_for_user(maximum, to_x, &log_jacobian))
    }

    /// Calibration with pairs whose x is known, as `neb calibrate` does it; how many were left out because their posterior is
    /// empty; and what there is to worry about.
    ///
    /// # Errors
    /// A method that this source does not allow; pairs that cannot be used.
    pub fn calibrate(
        &self,
        x: Rows,
        y: Rows,
        method: Option<Method>,
        options: &PosteriorOptions,
        tracker: &Tracker,
    ) -> Result<(Calibration, usize, Vec<String>)> {
        let (surrogate, seed) = (self.surrogate, options.seed);
        let noise = Address::PairsX.noise(seed);
        let x = seen(surrogate.x_transforms(), x, surrogate.x_names(), noise)?;
        let noise = Address::PairsY.noise(seed);
        let y = seen(surrogate.y_transforms(), y, surrogate.y_names(), noise)?;
        let (draws, warnings) = self.draw(y.view(), method, options, tracker)?;
        let (calibration, left_out) = calibrate::judge(&draws, x.view(), seed)?;
        Ok((calibration, left_out, warnings))
    }

    fn observations<'y>(&self, y: Rows<'y>, seed: u64) -> neb::Result<Seen<'y>> {
        let noise = Address::Observations.noise(seed);
        let surrogate = self.surrogate;
        seen(surrogate.y_transforms(), y, surrogate.y_names(), noise)
    }
}

/// A table in the models' units; the user's own where they are the same.
pub(super) struct Seen<'a> {
    values: Cow<'a, [f32]>,
    columns: usize,
}

impl Seen<'_> {
    pub(super) fn view(&self) -> Rows<'_> {
        Rows::new(&self.values, self.columns)
    }
}

pub(super) fn seen<'a>(
    transforms: &Transforms,
    rows: Rows<'a>,
    names: &[String],
    noise: Noise,
) -> neb::Result<Seen<'a>> {
    let values = match transforms.is_plain() {
        true => Cow::Borrowed(rows.values()),
        false => {
            let changed = transforms.forward(rows.to_matrix(), names, noise)?;
            Cow::Owned(changed.into_values())
        }
    };
    Ok(Seen {
        values,
        columns: rows.cols(),
    })
}
