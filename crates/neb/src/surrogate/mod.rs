//! Likelihoods q(y|x) that stage 2 can use in place of the simulator.

mod exact;
mod gaussian_noise;
#[cfg(test)]
mod testing;

pub use exact::Exact;
pub use gaussian_noise::GaussianNoise;
