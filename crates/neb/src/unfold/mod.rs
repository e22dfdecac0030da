//! Unfolding: from simulated pairs and observed events to spectra with uncertainties.
//!
//! **The observed law.** The detector sees an event x with probability ε(x), as y with density q(y|x); beside such events the
//! data hold fakes and background. With the produced spectrum N q(x), in numbers of events,
//!
//! λ(y) = N ∫ q(y|x) ε(x) q(x) dx + B b(y),
//!
//! and N q(x) is what is fitted. [`unfold`] learns q(y|x), ε(x) and b(y) from simulation, puts weights on the simulated events
//! by D'Agostini's rule without bins ([`crate::source::particles`]), and fits a smooth source to them; replicas
//! ([`data_replicas`], [`simulation_replica`], [`training_replica`]) give the uncertainties of whatever is computed from the
//! weights.
//!
//! **Binned tools** every collider physicist knows: weighted histograms with explicit under- and overflow ([`Histogram`]),
//! backgrounds taken off them ([`subtract_background`]), iterative Bayesian unfolding ([`Ibu`]), covariances of spectra
//! ([`Covariance`]) and the distance of two spectra ([`triangular`]).

mod background;
mod checks;
mod contamination;
mod covariance;
mod efficiency;
mod events;
mod fit;
mod histogram;
mod ibu;
mod replicas;
mod smooth;
#[cfg(test)]
mod tests;
mod triangular;
mod weights;

pub use background::subtract_background;
pub use checks::{Recovered, TrustChecks, trust_checks};
pub use contamination::Contamination;
pub use covariance::Covariance;
pub use efficiency::{Detected, Efficiency};
pub use events::Events;
pub use fit::{Folding, UnfoldConfig, UnfoldOptions, UnfoldWatch, Unfolding, unfold};
pub use histogram::{Binning, Histogram};
pub use ibu::{Ibu, Response, SimulatedEvent, Unfolded};
pub use replicas::{
    Refit, Repeated, data_replicas, multiplicities, simulation_replica, training_replica,
};
pub use smooth::{Smooth, SmoothConfig};
pub use triangular::{Triangular, triangular};
pub use weights::{check_weights, effective_events, positive_weights};
