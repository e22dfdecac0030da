//! Networks with explicit backward passes, the optimiser and its schedules.

pub(crate) mod activation;
pub mod adam;
pub(crate) mod mlp;
pub(crate) mod parameters;
pub mod schedule;
