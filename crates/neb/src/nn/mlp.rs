//! Multilayer perceptron on tiles, with its inputs split in a *free* part and a *context*.
//!
//! The first layer is W_f·free + (W_c·context + b). The bracket, the network's *share* of the context,
//! is computed on its own, so that all pairs (y_i, x_k) can re-use it: context x_k is seen once, not
//! once per y_i. Masks (as in MADE) are multiplied into the weights when they are packed.

use fearless_simd::{Simd, dispatch};

use super::activation::{Activate, Activation, Rectified, Rectify};
use super::parameters::Layout;
use crate::Stream;
use crate::kernel::dense::{
    Added, Block, Panels, Plain, Scaled, Start, add_gradient, add_lanes, dense, gradient_lanes,
    transposed_lanes, weight_gradient,
};
use crate::kernel::{Lane, level};

/// Sizes of a network.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    /// Inputs that differ from pair to pair.
    pub free: usize,
    /// Inputs that are shared; they follow the free ones in the weight matrix.
    pub context: usize,
    /// Units of the hidden layers; at least one layer.
    pub hidden: Vec<usize>,
    /// Outputs.
    pub outputs: usize,
    /// Function between the layers.
    pub activation: Activation,
}

#[derive(Clone, Debug)]
struct Linear {
    inputs: usize,
    outputs: usize,
    weight: usize,
    bias: usize,
    /// One entry per weight; empty where nothing is masked.
    mask: Vec<bool>,
    biases: Vec<f32>,
    forward: Panels,
    backward: Panels,
}

/// A network: where its parameters are, and the packed copy the kernels read.
#[derive(Clone, Debug)]
pub(crate) struct Mlp {
    shape: Shape,
    layers: Vec<Linear>,
    context_forward: Panels,
    context_backward: Panels,
}

/// What a forward pass leaves for the backward pass.
#[derive(Clone, Debug)]
pub(crate) struct MlpRecord {
    activations: Vec<Vec<Lane>>,
    /// Empty where the slope can be told from the activation.
    slopes: Vec<Vec<Lane>>,
}

/// The record of the latest pass, and scratch.
#[derive(Clone, Debug)]
pub(crate) struct MlpTape {
    record: MlpRecord,
    delta: Vec<Lane>,
    next_delta: Vec<Lane>,
    transposed: Vec<Lane>,
}

/// Sums of weight gradients over tiles, in the kernel's padded form.
#[derive(Clone, Debug)]
pub(crate) struct MlpGradient {
    weights: Vec<Vec<Lane>>,
    biases: Vec<Vec<Lane>>,
    context: Vec<Lane>,
}

impl Mlp {
    /// Lays out a network; `names` gives the name of each linear layer's tensors without suffix.
    pub(crate) fn new(shape: Shape, layout: &mut Layout, names: impl Fn(usize) -> String) -> Self {
        assert!(!shape.hidden.is_empty(), "a network has a hidden layer");
        let mut sizes = vec![shape.free + shape.context];
        sizes.extend(&shape.hidden);
        sizes.push(shape.outputs);
        let layers = (0..sizes.len() - 1)
            .map(|l| {
                let (inputs, outputs) = (sizes[l], sizes[l + 1]);
                let name = names(l);
                Linear {
                    inputs: if l == 0 { shape.free } else { inputs },
                    outputs,
                    weight: layout.add(format!("{name}.weight"), &[outputs, inputs]),
                    bias: layout.add(format!("{name}.bias"), &[outputs]),
                    mask: Vec::new(),
                    biases: Vec::new(),
                    forward: Panels::default(),
                    backward: Panels::default(),
                }
            })
            .collect();
        Self {
            shape,
            layers,
            context_forward: Panels::default(),
            context_backward: Panels::default(),
        }
    }

    /// Holds at zero the weights of layer l whose `connected(l, output, input)` is false; the first layer's inputs
    /// are counted free ones first.
    pub(crate) fn masked(mut self, connected: impl Fn(usize, usize, usize) -> bool) -> Self {
        for l in 0..self.layers.len() {
            let stride = self.stride(l);
            let entries = stride * self.layers[l].outputs;
            self.layers[l].mask = (0..entries)
                .map(|at| connected(l, at / stride, at % stride))
                .collect();
        }
        self
    }

    /// Number of lanes of the share.
    pub(crate) fn share_len(&self) -> usize {
        self.layers[0].outputs
    }

    /// Sizes.
    pub(crate) fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Draws initial parameters: uniform on ±1/√inputs, the last layer scaled by `last`.
    pub(crate) fn initialise(&self, last: f32, stream: &mut Stream, parameters: &mut [f32]) {
        for (l, layer) in self.layers.iter().enumerate() {
            let inputs = self.stride(l);
            let scale = if l + 1 == self.layers.len() {
                last
            } else {
                1.0
            };
            let bound = scale / (inputs.max(1) as f32).sqrt();
            let weights = layer.weight..layer.weight + inputs * layer.outputs;
            let biases = layer.bias..layer.bias + layer.outputs;
            for range in [weights, biases] {
                for value in &mut parameters[range] {
                    *value = bound * (2.0 * stream.uniform() as f32 - 1.0);
                }
            }
        }
    }

    /// Inputs of a layer as its weight matrix has them, context included.
    fn stride(&self, l: usize) -> usize {
        let layer = &self.layers[l];
        layer.inputs + if l == 0 { self.shape.context } else { 0 }
    }

    /// Brings the kernels' copy up to date with the parameters.
    pub(crate) fn pack(&mut self, parameters: &[f32]) {
        let context = self.shape.context;
        for l in 0..self.layers.len() {
            let stride = self.stride(l);
            let layer = &mut self.layers[l];
            let weights = &parameters[layer.weight..layer.weight + stride * layer.outputs];
            let masked: Vec<f32>;
            let values = if layer.mask.is_empty() {
                weights
            } else {
                let kept = weights.iter().zip(&layer.mask);
                masked = kept.map(|(&w, &keep)| if keep { w } else { 0.0 }).collect();
                &masked
            };
            let block = |first, columns| Block {
                values,
                stride,
                first,
                columns,
                rows: layer.outputs,
            };
            let free = block(0, layer.inputs);
            layer.forward.pack(&free, false);
            layer.backward.pack(&free, true);
            if l == 0 {
                let shared = block(layer.inputs, context);
                self.context_forward.pack(&shared, false);
                self.context_backward.pack(&shared, true);
            }
            layer.biases.clear();
            layer
                .biases
                .extend_from_slice(&parameters[layer.bias..layer.bias + layer.outputs]);
        }
    }

    /// Memory for what one forward pass leaves, to be swapped in by [`MlpTape::swap_record`].
    pub(crate) fn new_record(&self) -> MlpRecord {
        let lanes = |&n: &usize| vec![Lane::ZERO; n];
        let hidden = &self.shape.hidden;
        let kept = if self.shape.activation.leak().is_some() {
            0
        } else {
            hidden.len()
        };
        MlpRecord {
            activations: hidden.iter().map(lanes).collect(),
            slopes: hidden[..kept].iter().map(lanes).collect(),
        }
    }

    /// Memory for one tile's passes.
    pub(crate) fn new_tape(&self) -> MlpTape {
        let lanes = |n: usize| vec![Lane::ZERO; n];
        let widest = self.shape.hidden.iter().copied().max().unwrap_or(0);
        let inputs = widest.max(self.shape.free).max(self.shape.context);
        MlpTape {
            record: self.new_record(),
            delta: lanes(widest),
            next_delta: lanes(widest),
            transposed: lanes(transposed_lanes(inputs)),
        }
    }

    /// Zeroed sums of weight gradients.
    pub(crate) fn new_gradient(&self) -> MlpGradient {
        let lanes =
            |outputs: usize, inputs: usize| vec![Lane::ZERO; outputs * gradient_lanes(inputs)];
        MlpGradient {
            weights: self
                .layers
                .iter()
                .map(|layer| lanes(layer.outputs, layer.inputs))
                .collect(),
            biases: self
                .layers
                .iter()
                .map(|layer| vec![Lane::ZERO; layer.outputs])
                .collect(),
            context: lanes(self.layers[0].outputs, self.shape.context),
        }
    }

    /// share = W_c·context + b.
    pub(crate) fn share(&self, context: &[Lane], share: &mut [Lane]) {
        let start = Start::Bias(&self.layers[0].biases);
        dispatch!(level(), simd => dense(
            simd, &self.context_forward, start, context, &mut Plain(share)
        ));
    }

    /// The outputs; `taped` keeps what [`Mlp::backward`] needs.
    pub(crate) fn forward(
        &self,
        free: &[Lane],
        share: &[Lane],
        out: &mut [Lane],
        tape: &mut MlpTape,
        taped: bool,
    ) {
        dispatch!(level(), simd => self.forward_on(simd, free, share, out, tape, taped));
    }

    #[inline(always)]
    fn forward_on<S: Simd>(
        &self,
        simd: S,
        free: &[Lane],
        share: &[Lane],
        out: &mut [Lane],
        tape: &mut MlpTape,
        taped: bool,
    ) {
        for (l, layer) in self.layers.iter().enumerate() {
            let record = &mut tape.record;
            let (before, after) = record.activations.split_at_mut(l);
            let input = if l == 0 { free } else { &before[l - 1] };
            let start = if l == 0 {
                Start::Lanes(share)
            } else {
                Start::Bias(&layer.biases)
            };
            if let (Some(out), Some(leak)) = (after.first_mut(), self.shape.activation.leak()) {
                let mut finish = Rectify { out, leak };
                dense(simd, &layer.forward, start, input, &mut finish);
            } else if let Some(out) = after.first_mut() {
                let slopes = record.slopes.get_mut(l).filter(|_| taped);
                let mut finish = Activate {
                    function: self.shape.activation,
                    out,
                    slope: slopes.map(|slopes| &mut slopes[..]),
                };
                dense(simd, &layer.forward, start, input, &mut finish);
            } else {
                dense(simd, &layer.forward, start, input, &mut Plain(out));
            }
        }
    }

    /// From the gradient with respect to the outputs to those with respect to the free inputs (added to
    /// `d_free`), the share (added to `d_share`) and, if asked for, the weights.
    pub(crate) fn backward(
        &self,
        free: &[Lane],
        d_out: &[Lane],
        tape: &mut MlpTape,
        d_free: &mut [Lane],
        d_share: &mut [Lane],
        gradient: Option<&mut MlpGradient>,
    ) {
        dispatch!(level(), simd => self.backward_on(
            simd, free, d_out, tape, d_free, d_share, gradient
        ));
    }

    #[inline(always)]
    #[expect(
        clippy::too_many_arguments,
        reason = "one pass, inlined into the dispatch"
    )]
    fn backward_on<S: Simd>(
        &self,
        simd: S,
        free: &[Lane],
        d_out: &[Lane],
        tape: &mut MlpTape,
        d_free: &mut [Lane],
        d_share: &mut [Lane],
        mut gradient: Option<&mut MlpGradient>,
    ) {
        for l in (0..self.layers.len()).rev() {
            let layer = &self.layers[l];
            let last = l + 1 == self.layers.len();
            let delta: &[Lane] = if last {
                d_out
            } else {
                &tape.delta[..layer.outputs]
            };
            if let Some(gradient) = gradient.as_deref_mut() {
                let input = if l == 0 {
                    free
                } else {
                    &tape.record.activations[l - 1]
                };
                let sums = &mut gradient.weights[l];
                weight_gradient(simd, delta, input, &mut tape.transposed, sums);
                add_lanes(simd, &mut gradient.biases[l], delta);
            }
            if l == 0 {
                add_lanes(simd, d_share, delta);
                let zero = Start::Zero;
                dense(simd, &layer.backward, zero, delta, &mut Added(d_free));
            } else {
                let out = &mut tape.next_delta[..layer.inputs];
                let zero = Start::Zero;
                if let Some(leak) = self.shape.activation.leak() {
                    let activation = &tape.record.activations[l - 1];
                    let mut finish = Rectified {
                        out,
                        activation,
                        leak,
                    };
                    dense(simd, &layer.backward, zero, delta, &mut finish);
                } else {
                    let slope = &tape.record.slopes[l - 1];
                    let mut finish = Scaled { out, slope };
                    dense(simd, &layer.backward, zero, delta, &mut finish);
                }
                std::mem::swap(&mut tape.delta, &mut tape.next_delta);
            }
        }
    }

    /// From the gradient with respect to the share to the one with respect to the context (added to
    /// `d_context`) and, if asked for, the context's weights.
    pub(crate) fn backward_share(
        &self,
        context: &[Lane],
        d_share: &[Lane],
        tape: &mut MlpTape,
        d_context: &mut [Lane],
        gradient: Option<&mut MlpGradient>,
    ) {
        if self.shape.context == 0 {
            return;
        }
        dispatch!(level(), simd => {
            if let Some(gradient) = gradient {
                let sums = &mut gradient.context;
                weight_gradient(simd, d_share, context, &mut tape.transposed, sums);
            }
            dense(simd, &self.context_backward, Start::Zero, d_share, &mut Added(d_context));
        });
    }

    /// Adds the sums to a gradient laid out like the parameters.
    pub(crate) fn unpack_gradient(&self, gradient: &MlpGradient, flat: &mut [f32]) {
        for (l, layer) in self.layers.iter().enumerate() {
            let stride = self.stride(l);
            let weights = &mut flat[layer.weight..layer.weight + stride * layer.outputs];
            add_gradient(&gradient.weights[l], layer.inputs, weights, stride, 0);
            if l == 0 {
                let context = self.shape.context;
                add_gradient(&gradient.context, context, weights, stride, layer.inputs);
            }
            for (weight, _) in weights
                .iter_mut()
                .zip(&layer.mask)
                .filter(|(_, kept)| !**kept)
            {
                *weight = 0.0;
            }
            let biases = &mut flat[layer.bias..layer.bias + layer.outputs];
            for (bias, lane) in biases.iter_mut().zip(&gradient.biases[l]) {
                *bias += lane.0.iter().sum::<f32>();
            }
        }
    }
}

impl MlpTape {
    /// Exchanges the record, so that several forward passes can wait for their backward passes.
    pub(crate) fn swap_record(&mut self, record: &mut MlpRecord) {
        std::mem::swap(&mut self.record, record);
    }
}

impl MlpGradient {
    /// Starts the sums anew.
    pub(crate) fn clear(&mut self) {
        for lanes in self.weights.iter_mut().chain(&mut self.biases) {
            lanes.fill(Lane::ZERO);
        }
        self.context.fill(Lane::ZERO);
    }
}
