//! Stage 1: surrogate likelihoods q(y|x) learned from simulated pairs.

pub(crate) mod fit;
pub(crate) mod mixture;
pub(crate) mod neural;
