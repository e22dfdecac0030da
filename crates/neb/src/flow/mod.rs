//! Invertible maps between data and a simple base law, with exact densities.
//!
//! Every map runs from the data v to the base u and counts log |∂u/∂v|. What a map needs to know of the
//! context (the x of q(y|x)) is its *share*: computed once per context row, used for every v.

pub(crate) mod coupling;
#[cfg(test)]
mod golden;
pub(crate) mod head;
#[cfg(test)]
mod laws;
pub(crate) mod spline;
pub(crate) mod stack;
pub(crate) mod umnn;

use self::umnn::Quadrature;
use crate::kernel::Lane;
use crate::nn::mlp::{Mlp, MlpGradient, MlpRecord, MlpTape};

/// What one map's forward pass on a tile leaves for its backward pass, and scratch.
#[derive(Clone, Debug)]
pub(crate) struct LayerTape {
    /// One for each of the map's networks.
    pub nets: Vec<MlpTape>,
    /// Records of networks that pass more than once; made by the first taped pass.
    pub records: Vec<MlpRecord>,
    /// Whatever else the map keeps.
    pub lanes: Vec<Lane>,
}

/// Sums of weight gradients, one for each of a map's networks.
pub(crate) type LayerGradient = Vec<MlpGradient>;

/// An invertible map on tiles; all its parameters are those of its networks.
pub(crate) trait Bijection: Send + Sync + std::fmt::Debug {
    /// Its networks.
    fn nets(&self) -> &[Mlp];

    /// Its networks, to bring their packed weights up to date.
    fn nets_mut(&mut self) -> &mut [Mlp];

    /// Lanes of the share.
    fn share_len(&self) -> usize;

    /// Lanes the tape needs besides those of the networks.
    fn tape_lanes(&self) -> usize;

    /// The share of a context.
    fn share(&self, context: &[Lane], share: &mut [Lane], tape: &mut LayerTape, taped: bool);

    /// v ↦ u in place; adds log |∂u/∂v|. `taped` keeps what the backward pass needs.
    fn forward(
        &self,
        v: &mut [Lane],
        share: &[Lane],
        log_det: &mut Lane,
        tape: &mut LayerTape,
        taped: bool,
    );

    /// u ↦ v in place.
    fn inverse(&self, v: &mut [Lane], share: &[Lane], tape: &mut LayerTape);

    /// In place from the gradient with respect to u, and to the log-determinant, to the one with respect to v; adds
    /// to `d_share` and, if asked for, to the weights' gradient.
    fn backward(
        &self,
        d_v: &mut [Lane],
        share: &[Lane],
        d_log_det: &Lane,
        tape: &mut LayerTape,
        d_share: &mut [Lane],
        gradient: Option<&mut LayerGradient>,
    );

    /// In place from the gradient with respect to v = T⁻¹(u) to the one with respect to u, the tape being that of a forward
    /// pass at v; adds to `d_share` and, if asked for, to the weights' gradient.
    ///
    /// By u = T(v; θ) held fixed: ∂v/∂θ = −(∂T/∂v)⁻¹ ∂T/∂θ.
    fn backward_inverse(
        &self,
        d_v: &mut [Lane],
        tape: &mut LayerTape,
        d_share: &mut [Lane],
        gradient: Option<&mut LayerGradient>,
    );

    /// From the gradient with respect to the share to the one with respect to the context (added).
    fn backward_share(
        &self,
        context: &[Lane],
        d_share: &[Lane],
        tape: &mut LayerTape,
        d_context: &mut [Lane],
        gradient: Option<&mut LayerGradient>,
    );

    /// Takes integrals, if it has any, by this rule, or with `None` by its own rule again.
    fn set_quadrature(&mut self, _rule: Option<Quadrature>) {}

    /// A copy in a box of its own.
    fn boxed_clone(&self) -> Box<dyn Bijection>;

    /// Memory for one tile's passes.
    fn new_tape(&self) -> LayerTape {
        LayerTape {
            nets: self.nets().iter().map(Mlp::new_tape).collect(),
            records: Vec::new(),
            lanes: vec![Lane::ZERO; self.tape_lanes()],
        }
    }
}

impl Clone for Box<dyn Bijection> {
    fn clone(&self) -> Self {
        self.boxed_clone()
    }
}
