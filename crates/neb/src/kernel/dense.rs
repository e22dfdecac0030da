//! The one micro-kernel behind every network pass: out = W·in on a tile, weights broadcast over lanes.
//!
//! Weights are packed in *panels* of [`PANEL`] outputs, so that one pass over the inputs feeds
//! that many accumulators from registers. A layer packs W for the forward pass and Wᵀ for the backward
//! pass; [`weight_gradient`] accumulates the weight gradient.

use fearless_simd::prelude::*;
use fearless_simd::{Simd, f32x16};

use super::{LANES, Lane};

/// Outputs in a panel: 6 × 16 lanes fill 12 of AVX2's 16 registers. Where a lane is one register (AVX-512) two panels are
/// computed together: it takes at least 8 sums in flight to keep both multipliers busy.
const PANEL: usize = 6;

/// Whether the instruction set holds a lane in one register and has 32 of them.
#[inline(always)]
fn has_wide_registers<S: Simd>() -> bool {
    S::f32s::LEN == LANES
}

/// Weights below this size are packed as zero: denormals slow the kernel several times over.
const NEGLIGIBLE: f32 = 1e-20;

#[inline(always)]
fn without_denormals(w: f32) -> f32 {
    if w.abs() < NEGLIGIBLE { 0.0 } else { w }
}

/// A block of consecutive columns of a row-major matrix.
pub(crate) struct Block<'a> {
    /// The whole matrix.
    pub values: &'a [f32],
    /// Columns of the whole matrix.
    pub stride: usize,
    /// Its first column.
    pub first: usize,
    /// Its columns.
    pub columns: usize,
    /// Its rows.
    pub rows: usize,
}

impl Block<'_> {
    fn row(&self, row: usize) -> &[f32] {
        &self.values[row * self.stride + self.first..][..self.columns]
    }
}

/// A weight matrix (outputs × inputs) in panels.
#[derive(Clone, Debug, Default)]
pub(crate) struct Panels {
    weights: Vec<f32>,
    inputs: usize,
    outputs: usize,
}

impl Panels {
    /// Packs the matrix W (outputs × inputs) given row by row, `stride` apart, from column `first` on; `transposed`
    /// packs Wᵀ instead. Memory is re-used.
    pub(crate) fn pack(&mut self, matrix: &Block, transposed: bool) {
        let (outputs, inputs) = if transposed {
            (matrix.columns, matrix.rows)
        } else {
            (matrix.rows, matrix.columns)
        };
        self.inputs = inputs;
        self.outputs = outputs;
        self.weights.resize(inputs * outputs, 0.0);
        let mut panels = &mut self.weights[..];
        for first in (0..outputs).step_by(PANEL) {
            let width = PANEL.min(outputs - first);
            let (panel, rest) = std::mem::take(&mut panels).split_at_mut(width * inputs);
            panels = rest;
            if transposed {
                for (input, out) in panel.chunks_exact_mut(width).enumerate() {
                    let row = &matrix.row(input)[first..first + width];
                    for (out, &w) in out.iter_mut().zip(row) {
                        *out = without_denormals(w);
                    }
                }
            } else {
                for j in 0..width {
                    let row = matrix.row(first + j);
                    for (out, &w) in panel.chunks_exact_mut(width).zip(row) {
                        out[j] = without_denormals(w);
                    }
                }
            }
        }
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

impl Start<'_> {
    /// For the outputs from `first` on.
    #[inline(always)]
    fn sums<S: Simd, const R: usize>(self, simd: S, first: usize) -> [f32x16<S>; R] {
        match self {
            Start::Zero => [f32x16::splat(simd, 0.0); R],
            Start::Bias(bias) => {
                let bias = &bias[first..first + R];
                std::array::from_fn(|j| f32x16::splat(simd, bias[j]))
            }
            Start::Lanes(lanes) => {
                let lanes = &lanes[first..first + R];
                std::array::from_fn(|j| f32x16::load_array_ref(simd, &lanes[j].0))
            }
        }
    }
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
    while has_wide_registers::<S>() && first + 2 * PANEL <= panels.outputs {
        let (pair, rest) = weights.split_at(2 * PANEL * panels.inputs);
        two_panels(simd, pair, start, first, input, finish);
        weights = rest;
        first += 2 * PANEL;
    }
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
    let mut sums: [f32x16<S>; R] = start.sums(simd, first);
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

/// [`one_panel`] for two full panels at a time; the same sums in the same order.
#[inline(always)]
fn two_panels<S: Simd>(
    simd: S,
    weights: &[f32],
    start: Start,
    first: usize,
    input: &[Lane],
    finish: &mut impl Finish<S>,
) {
    let mut left: [f32x16<S>; PANEL] = start.sums(simd, first);
    let mut right: [f32x16<S>; PANEL] = start.sums(simd, first + PANEL);
    let (rows, _) = weights.as_chunks::<PANEL>();
    let (left_rows, right_rows) = rows.split_at(input.len());
    for ((left_row, right_row), lane) in left_rows.iter().zip(right_rows).zip(input) {
        let lane = f32x16::load_array_ref(simd, &lane.0);
        for j in 0..PANEL {
            left[j] = lane.mul_add(f32x16::splat(simd, left_row[j]), left[j]);
        }
        for j in 0..PANEL {
            right[j] = lane.mul_add(f32x16::splat(simd, right_row[j]), right[j]);
        }
    }
    for (j, sum) in left.into_iter().chain(right).enumerate() {
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

/// into\[u\] += from\[u\] for every unit.
#[inline(always)]
pub(crate) fn add_lanes<S: Simd>(simd: S, into: &mut [Lane], from: &[Lane]) {
    for (into, from) in into.iter_mut().zip(from) {
        let before = f32x16::load_array_ref(simd, &into.0);
        (before + f32x16::load_array_ref(simd, &from.0)).store_array(&mut into.0);
    }
}

/// Up to so many inputs, weight gradients are summed lane by lane, one lane per weight, without [`transpose`].
pub(crate) const FEW_INPUTS: usize = 4;

/// Lanes the weight gradients of one output with so many inputs take in an accumulator.
pub(crate) fn gradient_lanes(inputs: usize) -> usize {
    if inputs <= FEW_INPUTS {
        inputs
    } else {
        inputs.div_ceil(LANES)
    }
}

/// Lanes [`transpose`] writes for so many units.
pub(crate) fn transposed_lanes(units: usize) -> usize {
    units.div_ceil(LANES) * LANES
}

/// gradient\[o\]\[i\] += Σ_rows delta\[o\]\[row\] · input\[i\]\[row\], in the accumulator's form.
#[inline(always)]
pub(crate) fn weight_gradient<S: Simd>(
    simd: S,
    delta: &[Lane],
    input: &[Lane],
    transposed: &mut [Lane],
    gradient: &mut [Lane],
) {
    if input.is_empty() {
    } else if input.len() <= FEW_INPUTS {
        for (delta, sums) in delta.iter().zip(gradient.chunks_exact_mut(input.len())) {
            let delta = f32x16::load_array_ref(simd, &delta.0);
            for (sum, input) in sums.iter_mut().zip(input) {
                let input = f32x16::load_array_ref(simd, &input.0);
                let before = f32x16::load_array_ref(simd, &sum.0);
                input.mul_add(delta, before).store_array(&mut sum.0);
            }
        }
    } else {
        let transposed = &mut transposed[..transposed_lanes(input.len())];
        transpose(simd, input, transposed);
        outer(simd, delta, transposed, gradient);
    }
}

/// Adds an accumulator's sums to the columns `first ..` of a row-major gradient.
pub(crate) fn add_gradient(
    gradient: &[Lane],
    inputs: usize,
    flat: &mut [f32],
    stride: usize,
    first: usize,
) {
    if inputs == 0 {
        return;
    }
    let rows = gradient.chunks_exact(gradient_lanes(inputs));
    for (lanes, row) in rows.zip(flat.chunks_exact_mut(stride)) {
        let row = &mut row[first..first + inputs];
        if inputs <= FEW_INPUTS {
            for (into, lane) in row.iter_mut().zip(lanes) {
                *into += lane.0.iter().sum::<f32>();
            }
        } else {
            for (into, lane) in row.chunks_mut(LANES).zip(lanes) {
                for (into, value) in into.iter_mut().zip(&lane.0) {
                    *into += value;
                }
            }
        }
    }
}

/// The tile with rows and units exchanged: block b, lane r holds units 16b .. 16b + 16 of row r.
#[inline(always)]
fn transpose<S: Simd>(simd: S, units: &[Lane], blocks: &mut [Lane]) {
    let (full, rest) = units.as_chunks::<LANES>();
    let (blocks, _) = blocks.as_chunks_mut::<LANES>();
    for (block, units) in blocks.iter_mut().zip(full) {
        transpose_block(simd, units, block);
    }
    if let Some(block) = blocks.get_mut(full.len()) {
        let mut padded = [Lane::ZERO; LANES];
        padded[..rest.len()].copy_from_slice(rest);
        transpose_block(simd, &padded, block);
    }
}

/// Interleaving lane i with lane i + 8 rotates the eight bits of an entry's place (lane, row) by one; four times exchanges
/// lanes and rows. Plain loops of fixed length: whatever is not inlined here loses the instruction set.
#[inline(always)]
fn transpose_block<S: Simd>(simd: S, units: &[Lane; LANES], block: &mut [Lane; LANES]) {
    let mut lanes = [f32x16::splat(simd, 0.0); LANES];
    for (lane, unit) in lanes.iter_mut().zip(units) {
        *lane = f32x16::load_array_ref(simd, &unit.0);
    }
    for _ in 0..LANES.ilog2() {
        let before = lanes;
        for i in 0..LANES / 2 {
            lanes[2 * i] = before[i].zip_low(before[i + LANES / 2]);
            lanes[2 * i + 1] = before[i].zip_high(before[i + LANES / 2]);
        }
    }
    for (row, lane) in block.iter_mut().zip(lanes) {
        lane.store_array(&mut row.0);
    }
}

/// [`weight_gradient`] of many inputs, given by [`transpose`]: 16 inputs in the lanes.
#[inline(always)]
fn outer<S: Simd>(simd: S, delta: &[Lane], transposed: &[Lane], gradient: &mut [Lane]) {
    let (mut delta, mut gradient) = (delta, gradient);
    if has_wide_registers::<S>() {
        (delta, gradient) = outer_panels::<S, { 2 * PANEL }>(simd, delta, transposed, gradient);
    }
    let (rest_of_delta, rest) = outer_panels::<S, PANEL>(simd, delta, transposed, gradient);
    match *rest_of_delta {
        [a] => outer_panel(simd, &[a], transposed, rest),
        [a, b] => outer_panel(simd, &[a, b], transposed, rest),
        [a, b, c] => outer_panel(simd, &[a, b, c], transposed, rest),
        [a, b, c, d] => outer_panel(simd, &[a, b, c, d], transposed, rest),
        [a, b, c, d, e] => outer_panel(simd, &[a, b, c, d, e], transposed, rest),
        _ => {}
    }
}

/// As many full panels of R outputs as there are; what is left of both.
#[inline(always)]
fn outer_panels<'a, S: Simd, const R: usize>(
    simd: S,
    delta: &'a [Lane],
    transposed: &[Lane],
    gradient: &'a mut [Lane],
) -> (&'a [Lane], &'a mut [Lane]) {
    let blocks = transposed.len() / LANES;
    let (panels, rest_of_delta) = delta.as_chunks::<R>();
    let (gradients, rest) = gradient.split_at_mut(panels.len() * R * blocks);
    for (delta, gradient) in panels.iter().zip(gradients.chunks_exact_mut(R * blocks)) {
        outer_panel(simd, delta, transposed, gradient);
    }
    (rest_of_delta, rest)
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
