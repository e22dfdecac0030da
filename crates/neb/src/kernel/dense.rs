//! The one micro-kernel behind every network pass: out = W·in on a tile, weights broadcast over lanes.
//!
//! Weights are packed in *panels* of [`PANEL`] outputs, so that one pass over the inputs feeds
//! that many accumulators from registers. A layer packs W for the forward pass and Wᵀ for the backward
//! pass; [`outer`] accumulates the weight gradient.

use fearless_simd::prelude::*;
use fearless_simd::{Simd, f32x16};

use super::{LANES, Lane};

/// Outputs computed together: 6 × 16 lanes fill 12 of AVX2's 16 registers.
const PANEL: usize = 6;

/// Weights below this size are packed as zero: denormals slow the kernel several times over.
const NEGLIGIBLE: f32 = 1e-20;

/// A weight matrix (outputs × inputs) in panels.
#[derive(Clone, Debug, Default)]
pub(crate) struct Panels {
    weights: Vec<f32>,
    inputs: usize,
    outputs: usize,
}

impl Panels {
    /// Packs the matrix whose entry (output, input) is `weight(output, input)`, reusing memory.
    pub(crate) fn pack(
        &mut self,
        outputs: usize,
        inputs: usize,
        weight: impl Fn(usize, usize) -> f32,
    ) {
        self.inputs = inputs;
        self.outputs = outputs;
        self.weights.clear();
        self.weights.reserve(inputs * outputs);
        for first in (0..outputs).step_by(PANEL) {
            let width = PANEL.min(outputs - first);
            for input in 0..inputs {
                self.weights.extend((0..width).map(|j| {
                    let w = weight(first + j, input);
                    if w.abs() < NEGLIGIBLE { 0.0 } else { w }
                }));
            }
        }
    }

    /// Number of inputs.
    pub(crate) fn inputs(&self) -> usize {
        self.inputs
    }
}

/// What is added to W·in before it is stored.
#[derive(Clone, Copy)]
pub(crate) enum Start<'a> {
    /// Nothing.
    Zero,
    /// One number per output, the same in every row.
    Bias(&'a [f32]),
    /// A lane per output.
    Lanes(&'a [Lane]),
}

/// What happens to a finished output before it is stored.
pub(crate) trait Finish<S: Simd> {
    /// Stores the finished value of one output.
    fn store(&mut self, output: usize, value: f32x16<S>);
}

/// out = start + W·in, every output handed to `finish`.
#[inline(always)]
pub(crate) fn dense<S: Simd>(
    simd: S,
    panels: &Panels,
    start: Start,
    input: &[Lane],
    finish: &mut impl Finish<S>,
) {
    let input = &input[..panels.inputs];
    let mut weights = &panels.weights[..];
    let mut first = 0;
    while first + PANEL <= panels.outputs {
        let (panel, rest) = weights.split_at(PANEL * panels.inputs);
        one_panel::<S, PANEL>(simd, panel, start, first, input, finish);
        weights = rest;
        first += PANEL;
    }
    match panels.outputs - first {
        1 => one_panel::<S, 1>(simd, weights, start, first, input, finish),
        2 => one_panel::<S, 2>(simd, weights, start, first, input, finish),
        3 => one_panel::<S, 3>(simd, weights, start, first, input, finish),
        4 => one_panel::<S, 4>(simd, weights, start, first, input, finish),
        5 => one_panel::<S, 5>(simd, weights, start, first, input, finish),
        _ => {}
    }
}

#[inline(always)]
fn one_panel<S: Simd, const R: usize>(
    simd: S,
    weights: &[f32],
    start: Start,
    first: usize,
    input: &[Lane],
    finish: &mut impl Finish<S>,
) {
    let mut sums: [f32x16<S>; R] = match start {
        Start::Zero => [f32x16::splat(simd, 0.0); R],
        Start::Bias(bias) => {
            let bias = &bias[first..first + R];
            std::array::from_fn(|j| f32x16::splat(simd, bias[j]))
        }
        Start::Lanes(lanes) => {
            let lanes = &lanes[first..first + R];
            std::array::from_fn(|j| f32x16::load_array_ref(simd, &lanes[j].0))
        }
    };
    let (rows, _) = weights.as_chunks::<R>();
    for (row, lane) in rows.iter().zip(input) {
        let lane = f32x16::load_array_ref(simd, &lane.0);
        for j in 0..R {
            sums[j] = lane.mul_add(f32x16::splat(simd, row[j]), sums[j]);
        }
    }
    for (j, sum) in sums.into_iter().enumerate() {
        finish.store(first + j, sum);
    }
}

/// Stores outputs as they are.
pub(crate) struct Plain<'a>(pub &'a mut [Lane]);

impl<S: Simd> Finish<S> for Plain<'_> {
    #[inline(always)]
    fn store(&mut self, output: usize, value: f32x16<S>) {
        value.store_array(&mut self.0[output].0);
    }
}

/// Multiplies each output by a lane (an activation's slope) and stores it.
pub(crate) struct Scaled<'a> {
    /// Where the products go.
    pub out: &'a mut [Lane],
    /// The factors.
    pub slope: &'a [Lane],
}

impl<S: Simd> Finish<S> for Scaled<'_> {
    #[inline(always)]
    fn store(&mut self, output: usize, value: f32x16<S>) {
        let slope = f32x16::load_array_ref(value.simd, &self.slope[output].0);
        (value * slope).store_array(&mut self.out[output].0);
    }
}

/// Adds each output to what is there.
pub(crate) struct Added<'a>(pub &'a mut [Lane]);

impl<S: Simd> Finish<S> for Added<'_> {
    #[inline(always)]
    fn store(&mut self, output: usize, value: f32x16<S>) {
        let before = f32x16::load_array_ref(value.simd, &self.0[output].0);
        (before + value).store_array(&mut self.0[output].0);
    }
}

/// Lanes a row of `inputs` weight gradients takes in [`outer`]'s accumulator.
pub(crate) fn padded_lanes(inputs: usize) -> usize {
    inputs.div_ceil(LANES)
}

/// The tile with rows and units exchanged: block b, lane r holds units 16b .. 16b + 16 of row r.
pub(crate) fn transpose(units: &[Lane], blocks: &mut [Lane]) {
    for (block, units) in blocks.chunks_exact_mut(LANES).zip(units.chunks(LANES)) {
        for (column, unit) in units.iter().enumerate() {
            for row in 0..LANES {
                block[row].0[column] = unit.0[row];
            }
        }
        for row in block.iter_mut() {
            row.0[units.len()..].fill(0.0);
        }
    }
}

/// gradient[o][i] += Σ_rows delta[o][row] · input[i][row], the input given by [`transpose`];
/// the gradient of output o starts at lane o · [`padded_lanes`].
#[inline(always)]
pub(crate) fn outer<S: Simd>(simd: S, delta: &[Lane], transposed: &[Lane], gradient: &mut [Lane]) {
    let blocks = transposed.len() / LANES;
    if blocks == 0 {
        return;
    }
    let mut deltas = delta.chunks_exact(PANEL);
    let mut gradients = gradient.chunks_exact_mut(PANEL * blocks);
    for (delta, gradient) in (&mut deltas).zip(&mut gradients) {
        let delta: &[Lane; PANEL] = delta.try_into().expect("chunk of PANEL lanes");
        outer_panel(simd, delta, transposed, gradient);
    }
    let rest = gradients.into_remainder();
    match *deltas.remainder() {
        [a] => outer_panel(simd, &[a], transposed, rest),
        [a, b] => outer_panel(simd, &[a, b], transposed, rest),
        [a, b, c] => outer_panel(simd, &[a, b, c], transposed, rest),
        [a, b, c, d] => outer_panel(simd, &[a, b, c, d], transposed, rest),
        [a, b, c, d, e] => outer_panel(simd, &[a, b, c, d, e], transposed, rest),
        _ => {}
    }
}

#[inline(always)]
fn outer_panel<S: Simd, const R: usize>(
    simd: S,
    delta: &[Lane; R],
    transposed: &[Lane],
    gradient: &mut [Lane],
) {
    let blocks = transposed.len() / LANES;
    for (b, block) in transposed.as_chunks::<LANES>().0.iter().enumerate() {
        let mut sums: [f32x16<S>; R] =
            std::array::from_fn(|j| f32x16::load_array_ref(simd, &gradient[j * blocks + b].0));
        for (row, lane) in block.iter().enumerate() {
            let lane = f32x16::load_array_ref(simd, &lane.0);
            for j in 0..R {
                sums[j] = lane.mul_add(f32x16::splat(simd, delta[j].0[row]), sums[j]);
            }
        }
        for (j, sum) in sums.into_iter().enumerate() {
            sum.store_array(&mut gradient[j * blocks + b].0);
        }
    }
}
