//! A flow: maps in sequence onto the base N(0, I), and the density of the whole.
//!
//! log q(v|c) = log N(u; 0, I) + Σ_layers log |∂u/∂v|.

use super::coupling::{Coupling, CouplingShape};
use super::head::GaussianHead;
use super::umnn::{Quadrature, Umnn, UmnnShape};
use super::{Bijection, LayerGradient, LayerTape};
use crate::Stream;
use crate::density::ConditionalDensity;
use crate::kernel::Lane;
use crate::nn::activation::Activation;
use crate::nn::mlp::Mlp;
use crate::nn::parameters::Layout;

const HALF_LOG_TWO_PI: f32 = 0.918_938_5;

/// Sizes of a flow.
#[derive(Clone, Debug)]
pub(crate) struct FlowShape {
    /// Dimension of v.
    pub dim: usize,
    /// Dimension of the context; 0 for none.
    pub context: usize,
    /// Hidden units of a conditional Gaussian head in front, if there is one.
    pub head: Option<Vec<usize>>,
    /// Number of coupling layers.
    pub layers: usize,
    /// Hidden units of their networks.
    pub hidden: Vec<usize>,
    /// Function between the networks' layers.
    pub activation: Activation,
    /// How the layers move.
    pub mover: super::coupling::Mover,
}

impl FlowShape {
    fn head(&self, layout: &mut Layout) -> Option<Box<dyn Bijection>> {
        let hidden = self.head.as_ref()?;
        let (dim, context) = (self.dim, self.context);
        let head = GaussianHead::new(dim, context, hidden, self.activation, layout, "head");
        Some(Box::new(head))
    }

    fn couplings(&self, layout: &mut Layout) -> Vec<Box<dyn Bijection>> {
        let coupling = |l: usize| -> Box<dyn Bijection> {
            let sizes = CouplingShape {
                dim: self.dim,
                context: self.context,
                hidden: self.hidden.clone(),
                activation: self.activation,
                mover: self.mover,
            };
            Box::new(Coupling::new(sizes, layout, &format!("layers.{l}")))
        };
        (0..self.layers).map(coupling).collect()
    }
}

/// Maps in sequence, with their parameters.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    dim: usize,
    context: usize,
    layers: Vec<Box<dyn Bijection>>,
    layout: Layout,
    parameters: Vec<f32>,
}

/// Memory for one tile's passes through a [`Flow`].
#[derive(Debug)]
pub(crate) struct FlowTape {
    layers: Vec<LayerTape>,
    gradients: Vec<LayerGradient>,
    v: Vec<Lane>,
    share: Vec<Lane>,
    d_share: Vec<Lane>,
}

impl Flow {
    /// Lays out a flow; its parameters are zero until drawn or loaded.
    pub(crate) fn new(shape: &FlowShape) -> Self {
        let mut layout = Layout::default();
        let mut layers: Vec<Box<dyn Bijection>> = Vec::new();
        layers.extend(shape.head(&mut layout));
        layers.extend(shape.couplings(&mut layout));
        Self::assemble(shape.dim, shape.context, layers, layout)
    }

    /// The same with the head behind the couplings, for a flow that runs from noise to data: v passes the couplings while
    /// it is still of order 1, and the head moves and narrows it in the end.
    pub(crate) fn onto_head(shape: &FlowShape) -> Self {
        let mut layout = Layout::default();
        let mut layers = shape.couplings(&mut layout);
        layers.extend(shape.head(&mut layout));
        Self::assemble(shape.dim, shape.context, layers, layout)
    }

    /// Lays out a flow of UMNN layers; its parameters are zero until drawn or loaded.
    pub(crate) fn umnn(shape: &UmnnShape) -> Self {
        let mut layout = Layout::default();
        let layer = |l: usize| -> Box<dyn Bijection> {
            Box::new(Umnn::new(shape, l, &mut layout, &format!("layers.{l}")))
        };
        let layers = (0..shape.layers).map(layer).collect();
        Self::assemble(shape.dim, shape.context, layers, layout)
    }

    fn assemble(
        dim: usize,
        context: usize,
        layers: Vec<Box<dyn Bijection>>,
        layout: Layout,
    ) -> Self {
        let parameters = vec![0.0; layout.len()];
        let mut flow = Self {
            dim,
            context,
            layers,
            layout,
            parameters,
        };
        flow.refresh();
        flow
    }

    /// Draws initial parameters; the networks' last layers are scaled by `last` (near the identity if small).
    pub(crate) fn initialise(&mut self, last: f32, stream: &mut Stream) {
        for layer in &self.layers {
            for net in layer.nets() {
                net.initialise(last, stream, &mut self.parameters);
            }
        }
        self.refresh();
    }

    /// Takes the layers' integrals by this rule, or with `None` by their own rules again.
    pub(crate) fn set_quadrature(&mut self, rule: Option<Quadrature>) {
        for layer in &mut self.layers {
            layer.set_quadrature(rule);
        }
    }

    fn forward(
        &self,
        v: &mut [Lane],
        share: &[Lane],
        layers: &mut [LayerTape],
        taped: bool,
    ) -> Lane {
        let mut log_det = Lane::ZERO;
        let mut rest = share;
        for (layer, tape) in self.layers.iter().zip(layers) {
            let (this, after) = rest.split_at(layer.share_len());
            layer.forward(v, this, &mut log_det, tape, taped);
            rest = after;
        }
        log_det
    }

    /// v ↦ u in place; the log-determinant.
    pub(crate) fn to_base(&self, v: &mut [Lane], context: &[Lane], tape: &mut FlowTape) -> Lane {
        self.compute_share(context, &mut tape.share, &mut tape.layers, false);
        self.forward(v, &tape.share, &mut tape.layers, false)
    }

    /// From the gradient with respect to v = T⁻¹(u) to the one with respect to u, in place; with `learn` adds to the weight
    /// gradients kept in the workspace. `v` is where the inverse landed.
    pub(crate) fn backward_inverse(
        &self,
        v: &[Lane],
        context: &[Lane],
        tape: &mut FlowTape,
        d_v: &mut [Lane],
        d_context: &mut [Lane],
        learn: bool,
    ) {
        if learn {
            self.ensure_gradients(tape);
        }
        self.compute_share(context, &mut tape.share, &mut tape.layers, true);
        tape.v.copy_from_slice(v);
        self.forward(&mut tape.v, &tape.share, &mut tape.layers, true);
        d_context.fill(Lane::ZERO);
        tape.d_share.fill(Lane::ZERO);
        let mut start = 0;
        for (l, layer) in self.layers.iter().enumerate() {
            let range = start..start + layer.share_len();
            start = range.end;
            let d_share = &mut tape.d_share[range];
            let layer_tape = &mut tape.layers[l];
            let gradient = learn.then(|| &mut tape.gradients[l]);
            layer.backward_inverse(d_v, layer_tape, d_share, gradient);
            let gradient = learn.then(|| &mut tape.gradients[l]);
            layer.backward_share(context, d_share, layer_tape, d_context, gradient);
        }
    }

    /// v ↦ u in place, keeping what [`Flow::push_backward`] needs; log |∂u/∂v|.
    pub(crate) fn push(&self, v: &mut [Lane], context: &[Lane], tape: &mut FlowTape) -> Lane {
        self.compute_share(context, &mut tape.share, &mut tape.layers, true);
        self.forward(v, &tape.share, &mut tape.layers, true)
    }

    /// After [`Flow::push`]: in place from the gradient with respect to u, and to log |∂u/∂v|, to the one with respect
    /// to v; overwrites `d_context`; with `learn` also adds to the weight gradients kept in the workspace.
    pub(crate) fn push_backward(
        &self,
        d_v: &mut [Lane],
        d_log_det: &Lane,
        context: &[Lane],
        tape: &mut FlowTape,
        d_context: &mut [Lane],
        learn: bool,
    ) {
        if learn {
            self.ensure_gradients(tape);
        }
        d_context.fill(Lane::ZERO);
        tape.d_share.fill(Lane::ZERO);
        let mut end = tape.share.len();
        for (l, layer) in self.layers.iter().enumerate().rev() {
            let range = end - layer.share_len()..end;
            end = range.start;
            let share = &tape.share[range.clone()];
            let d_share = &mut tape.d_share[range];
            let layer_tape = &mut tape.layers[l];
            let gradient = learn.then(|| &mut tape.gradients[l]);
            layer.backward(d_v, share, d_log_det, layer_tape, d_share, gradient);
            let gradient = learn.then(|| &mut tape.gradients[l]);
            layer.backward_share(context, d_share, layer_tape, d_context, gradient);
        }
    }

    fn ensure_gradients(&self, tape: &mut FlowTape) {
        if tape.gradients.is_empty() {
            let layers = self.layers.iter();
            tape.gradients = layers
                .map(|layer| layer.nets().iter().map(Mlp::new_gradient).collect())
                .collect();
        }
    }

    fn compute_share(
        &self,
        context: &[Lane],
        share: &mut [Lane],
        layers: &mut [LayerTape],
        taped: bool,
    ) {
        let mut rest = share;
        for (layer, tape) in self.layers.iter().zip(layers) {
            let (this, after) = rest.split_at_mut(layer.share_len());
            layer.share(context, this, tape, taped);
            rest = after;
        }
    }
}

/// log N(u; 0, I) + log-determinant.
pub(crate) fn log_base(u: &[Lane], log_det: Lane) -> Lane {
    let mut value = log_det;
    for lane in u {
        for (value, u) in value.0.iter_mut().zip(lane.0) {
            *value -= 0.5 * u * u + HALF_LOG_TWO_PI;
        }
    }
    value
}

impl ConditionalDensity for Flow {
    type Workspace = FlowTape;

    fn dim(&self) -> usize {
        self.dim
    }

    fn context(&self) -> usize {
        self.context
    }

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn parameters(&self) -> &[f32] {
        &self.parameters
    }

    fn parameters_mut(&mut self) -> &mut [f32] {
        &mut self.parameters
    }

    fn refresh(&mut self) {
        for layer in &mut self.layers {
            for net in layer.nets_mut() {
                net.pack(&self.parameters);
            }
        }
    }

    fn workspace(&self) -> FlowTape {
        let share: usize = self.layers.iter().map(|layer| layer.share_len()).sum();
        FlowTape {
            layers: self.layers.iter().map(|layer| layer.new_tape()).collect(),
            gradients: Vec::new(),
            v: vec![Lane::ZERO; self.dim],
            share: vec![Lane::ZERO; share],
            d_share: vec![Lane::ZERO; share],
        }
    }

    fn share_len(&self) -> usize {
        self.layers.iter().map(|layer| layer.share_len()).sum()
    }

    fn share(&self, context: &[Lane], share: &mut [Lane], tape: &mut FlowTape) {
        self.compute_share(context, share, &mut tape.layers, false);
    }

    fn log_prob_shared(&self, v: &[Lane], share: &[Lane], tape: &mut FlowTape) -> Lane {
        tape.v.copy_from_slice(v);
        let log_det = self.forward(&mut tape.v, share, &mut tape.layers, false);
        log_base(&tape.v, log_det)
    }

    fn log_prob(&self, v: &[Lane], context: &[Lane], tape: &mut FlowTape) -> Lane {
        let mut share = std::mem::take(&mut tape.share);
        self.share(context, &mut share, tape);
        let value = self.log_prob_shared(v, &share, tape);
        tape.share = share;
        value
    }

    fn log_prob_backward(
        &self,
        v: &[Lane],
        context: &[Lane],
        weight: &Lane,
        tape: &mut FlowTape,
        d_v: &mut [Lane],
        d_context: &mut [Lane],
        learn: bool,
    ) -> Lane {
        d_v.copy_from_slice(v);
        let log_det = self.push(d_v, context, tape);
        let value = log_base(d_v, log_det);
        for d in d_v.iter_mut() {
            for (d, weight) in d.0.iter_mut().zip(weight.0) {
                *d *= -weight;
            }
        }
        self.push_backward(d_v, weight, context, tape, d_context, learn);
        value
    }

    fn collect_gradient(&self, tape: &mut FlowTape, flat: &mut [f32]) {
        for (layer, gradients) in self.layers.iter().zip(&mut tape.gradients) {
            for (net, gradient) in layer.nets().iter().zip(gradients) {
                net.unpack_gradient(gradient, flat);
                gradient.clear();
            }
        }
    }

    fn sample(&self, noise: &mut [Lane], _choice: &Lane, context: &[Lane], tape: &mut FlowTape) {
        self.compute_share(context, &mut tape.share, &mut tape.layers, false);
        let mut end = tape.share.len();
        for (layer, layer_tape) in self.layers.iter().zip(&mut tape.layers).rev() {
            let range = end - layer.share_len()..end;
            end = range.start;
            layer.inverse(noise, &tape.share[range], layer_tape);
        }
    }
}
