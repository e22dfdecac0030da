//! The walk over a table in tiles of 16 rows, and the sum of the weight gradients met on the way.
//!
//! Rows go to threads in chunks of a fixed size and gradients are added chunk by chunk, in order: the same bits on any number
//! of threads. No more than a round of chunks has a gradient of its own at a time, so memory does not grow with the rows.

use rayon::prelude::*;

use crate::density::ConditionalDensity;
use crate::flow::stack::{Flow, FlowTape};
use crate::kernel::LANES;

/// Rows a thread takes at a time.
const ROWS_PER_CHUNK: usize = 64;
/// Chunks whose gradients are held at the same time.
const CHUNKS_PER_ROUND: usize = 32;

/// A model that works on tiles.
pub(super) trait Tiled: Sync {
    /// Scratch memory of one thread, and its sums of weight gradients.
    type Workspace;

    /// Scratch memory for one thread.
    fn workspace(&self) -> Self::Workspace;

    /// Adds the weight gradients kept in the workspace to a flat gradient and clears them.
    fn collect_gradient(&self, workspace: &mut Self::Workspace, flat: &mut [f32]);
}

impl Tiled for Flow {
    type Workspace = FlowTape;

    fn workspace(&self) -> FlowTape {
        ConditionalDensity::workspace(self)
    }

    fn collect_gradient(&self, workspace: &mut FlowTape, flat: &mut [f32]) {
        ConditionalDensity::collect_gradient(self, workspace, flat);
    }
}

/// Runs `work(workspace, first row, the tile's part of values)` over all tiles of a table with `cols` columns; adds to
/// `gradient`, if given, what the work leaves in the workspaces.
pub(super) fn walk<M: Tiled>(
    model: &M,
    values: &mut [f32],
    cols: usize,
    gradient: Option<&mut [f32]>,
    work: impl Fn(&mut M::Workspace, usize, &mut [f32]) + Sync,
) {
    let chunk_len = ROWS_PER_CHUNK * cols;
    let run = |chunk: usize, values: &mut [f32]| {
        let mut workspace = model.workspace();
        for (t, values) in values.chunks_mut(LANES * cols).enumerate() {
            work(&mut workspace, chunk * ROWS_PER_CHUNK + t * LANES, values);
        }
        workspace
    };
    let Some(gradient) = gradient else {
        values
            .par_chunks_mut(chunk_len)
            .enumerate()
            .for_each(|(chunk, values)| {
                run(chunk, values);
            });
        return;
    };
    for (round, values) in values.chunks_mut(CHUNKS_PER_ROUND * chunk_len).enumerate() {
        let partial: Vec<Vec<f32>> = values
            .par_chunks_mut(chunk_len)
            .enumerate()
            .map(|(chunk, values)| {
                let mut workspace = run(round * CHUNKS_PER_ROUND + chunk, values);
                let mut flat = vec![0.0; gradient.len()];
                model.collect_gradient(&mut workspace, &mut flat);
                flat
            })
            .collect();
        for flat in partial {
            for (sum, value) in gradient.iter_mut().zip(flat) {
                *sum += value;
            }
        }
    }
}
