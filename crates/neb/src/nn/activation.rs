//! Activation functions, applied where a dense layer's outputs leave the registers.

use fearless_simd::prelude::*;
use fearless_simd::{Simd, f32x16};

use crate::kernel::Lane;
use crate::kernel::dense::Finish;
use crate::kernel::math;

/// Slope of the leaky rectifier below zero (PyTorch's default, used by UMNN's integrand).
const LEAK: f32 = 0.01;

/// The function between two layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activation {
    /// max(h, 0).
    Relu,
    /// h above zero, 0.01·h below.
    LeakyRelu,
    /// h·sigmoid(h).
    Silu,
    /// tanh(h).
    Tanh,
}

impl Activation {
    /// Slope below zero of a rectifier (above it is 1): its slope can be told from its value.
    #[inline(always)]
    pub(crate) fn leak(self) -> Option<f32> {
        match self {
            Self::Relu => Some(0.0),
            Self::LeakyRelu => Some(LEAK),
            Self::Silu | Self::Tanh => None,
        }
    }

    /// Value and slope of a function that is no rectifier.
    #[inline(always)]
    fn apply<S: Simd>(self, h: f32x16<S>) -> (f32x16<S>, f32x16<S>) {
        let constant = |value| f32x16::splat(h.simd, value);
        match self {
            Self::Relu | Self::LeakyRelu => unreachable!("rectifiers are finished by Rectify"),
            Self::Silu => {
                let gate = math::sigmoid(h);
                (
                    h * gate,
                    gate * (constant(1.0) + h * (constant(1.0) - gate)),
                )
            }
            Self::Tanh => {
                let value = math::tanh(h);
                (value, constant(1.0) - value * value)
            }
        }
    }
}

/// Finishes a hidden layer of rectifiers: their slopes are told from what is stored.
pub(crate) struct Rectify<'a> {
    /// Where the activations go.
    pub out: &'a mut [Lane],
    /// Slope below zero.
    pub leak: f32,
}

impl<S: Simd> Finish<S> for Rectify<'_> {
    #[inline(always)]
    fn store(&mut self, output: usize, value: f32x16<S>) {
        let on = value.simd_gt(0.0);
        on.select(value, value * self.leak)
            .store_array(&mut self.out[output].0);
    }
}

/// Finishes any other hidden layer: stores the activation and, for a backward pass, its slope.
pub(crate) struct Activate<'a> {
    /// Which function.
    pub function: Activation,
    /// Where the activations go.
    pub out: &'a mut [Lane],
    /// Where the slopes go, if anybody will ask for them.
    pub slope: Option<&'a mut [Lane]>,
}

impl<S: Simd> Finish<S> for Activate<'_> {
    #[inline(always)]
    fn store(&mut self, output: usize, value: f32x16<S>) {
        let (activated, slope) = self.function.apply(value);
        activated.store_array(&mut self.out[output].0);
        if let Some(slopes) = &mut self.slope {
            slope.store_array(&mut slopes[output].0);
        }
    }
}

/// Finishes the way back through a rectifier: multiplies by the slope told from the activation's sign.
pub(crate) struct Rectified<'a> {
    /// Where the products go.
    pub out: &'a mut [Lane],
    /// The activations.
    pub activation: &'a [Lane],
    /// Slope below zero.
    pub leak: f32,
}

impl<S: Simd> Finish<S> for Rectified<'_> {
    #[inline(always)]
    fn store(&mut self, output: usize, value: f32x16<S>) {
        let on = f32x16::load_array_ref(value.simd, &self.activation[output].0).simd_gt(0.0);
        on.select(value, value * self.leak)
            .store_array(&mut self.out[output].0);
    }
}
