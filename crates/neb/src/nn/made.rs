//! MADE: a masked network whose outputs for dimension i see the context and the inputs before i only.
//!
//! The context and z form one sequence, the context first. Every hidden unit has a *reach* r: it reads the first r values
//! of the sequence, and units of reach ≤ r in the layer below. Outputs of dimension i read units of reach ≤ c + i, c the
//! dimension of the context, so no path leads from z_j to them unless j < i.

use super::activation::Activation;
use super::mlp::{Mlp, Shape};
use super::parameters::Layout;

/// Which reaches the hidden units take, in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reaches {
    /// All from c + dim down to 1, as the authors': most units see only part of the context, and those that see all of
    /// z serve nobody.
    Authors,
    /// Those that see the whole context and serve some dimension: c .. c + dim, without 0.
    Useful,
}

/// Sizes of a MADE.
#[derive(Clone, Debug)]
pub(crate) struct MadeShape {
    /// Number of inputs in order.
    pub dim: usize,
    /// Inputs every output may see.
    pub context: usize,
    /// Units of the hidden layers.
    pub hidden: Vec<usize>,
    /// Outputs of each dimension; those of dimension i are `i * per_dim ..`.
    pub per_dim: usize,
    /// Function between the layers.
    pub activation: Activation,
    /// Reaches of the hidden units.
    pub reaches: Reaches,
}

impl MadeShape {
    /// Reach of hidden unit `unit`, the same in every layer.
    fn reach(&self, unit: usize) -> usize {
        let all = self.context + self.dim;
        match self.reaches {
            Reaches::Authors => all - unit % all,
            Reaches::Useful => {
                let least = self.context.max(1);
                least + unit % all.saturating_sub(least).max(1)
            }
        }
    }

    /// Place of an input, counted as in the weight matrix, in the sequence.
    fn place(&self, input: usize) -> usize {
        if input < self.dim {
            self.context + input
        } else {
            input - self.dim
        }
    }

    /// Whether unit `output` of layer l reads its input `input`.
    fn connected(&self, l: usize, output: usize, input: usize) -> bool {
        if l == 0 {
            self.place(input) < self.reach(output)
        } else if l < self.hidden.len() {
            self.reach(input) <= self.reach(output)
        } else {
            self.reach(input) <= self.context + output / self.per_dim
        }
    }
}

/// Lays out the masked network; its free inputs are the ordered ones.
pub(crate) fn made(shape: &MadeShape, layout: &mut Layout, names: impl Fn(usize) -> String) -> Mlp {
    let sizes = Shape {
        free: shape.dim,
        context: shape.context,
        hidden: shape.hidden.clone(),
        outputs: shape.dim * shape.per_dim,
        activation: shape.activation,
    };
    Mlp::new(sizes, layout, names).masked(|l, output, input| shape.connected(l, output, input))
}
