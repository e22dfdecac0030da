//! Rows into tiles and back.

use super::{LANES, Lane};
use crate::Rows;

/// Copies rows `first ..` of a table into a tile, one lane per column, mapped by (value − shift) · scale.
/// Lanes past the last row repeat it, so that no lane ever holds a value that is not data.
pub(crate) fn load_scaled(
    rows: Rows,
    first: usize,
    shift: &[f32],
    scale: &[f32],
    tile: &mut [Lane],
) {
    let last = rows.rows() - 1;
    for lane in 0..LANES {
        let row = rows.row((first + lane).min(last));
        for (column, &value) in row.iter().enumerate() {
            tile[column].0[lane] = (value - shift[column]) * scale[column];
        }
    }
}

/// Copies rows `first ..` of a table into a tile; lanes past the last row repeat it.
pub(crate) fn load(rows: Rows, first: usize, tile: &mut [Lane]) {
    let last = rows.rows() - 1;
    for lane in 0..LANES {
        let row = rows.row((first + lane).min(last));
        for (column, &value) in row.iter().enumerate() {
            tile[column].0[lane] = value;
        }
    }
}

/// Copies the rows with these numbers into a tile; lanes past the last one repeat it.
pub(crate) fn gather(rows: Rows, numbers: &[u32], tile: &mut [Lane]) {
    let last = numbers.len() - 1;
    for lane in 0..LANES {
        let row = rows.row(numbers[lane.min(last)] as usize);
        for (column, &value) in row.iter().enumerate() {
            tile[column].0[lane] = value;
        }
    }
}
