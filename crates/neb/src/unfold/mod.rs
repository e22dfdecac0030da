//! Unfolding: from simulated pairs and observed events to spectra with uncertainties.
//!
//! The binned tools every collider physicist knows: weighted histograms with explicit under- and overflow ([`Histogram`]), backgrounds
//! taken off them ([`subtract_background`]), iterative Bayesian unfolding ([`Ibu`]), covariances of spectra ([`Covariance`]) and the
//! distance of two spectra ([`triangular`]).

mod background;
mod covariance;
mod histogram;
mod ibu;
mod triangular;

pub use background::subtract_background;
pub use covariance::Covariance;
pub use histogram::{Binning, Histogram};
pub use ibu::{Ibu, Response, SimulatedEvent, Unfolded};
pub use triangular::{Triangular, triangular};
