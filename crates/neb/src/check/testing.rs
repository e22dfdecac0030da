//! Labelled rows that classifiers are tested on.

use crate::{Matrix, Noise, Purpose};

/// Rows of two standard normal columns, every second one of the second class, whose first column is shifted.
pub(super) fn two_normals(rows: usize, shift: f32) -> (Matrix, Vec<bool>) {
    let mut x = Noise::new(11, Purpose::Test, 0).normal(rows, 2);
    let second: Vec<bool> = (0..rows).map(|row| row % 2 == 1).collect();
    for row in (1..rows).step_by(2) {
        x.row_mut(row)[0] += shift;
    }
    (x, second)
}
