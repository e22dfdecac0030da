//! Networks with explicit backward passes, the optimiser and its schedules.

pub mod activation;
pub mod adam;
pub(crate) mod made;
pub(crate) mod mlp;
pub(crate) mod parameters;
pub mod schedule;
