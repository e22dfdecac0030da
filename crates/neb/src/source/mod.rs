//! Sources q(x): what the observations are believed to come from.

pub mod particles;
