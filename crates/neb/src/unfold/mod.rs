//! Unfolding: from simulated pairs and observed events to spectra with uncertainties.
//!
//! The binned tools every collider physicist knows: weighted histograms with explicit under- and overflow ([`Histogram`]).

mod histogram;

pub use histogram::{Binning, Histogram};
