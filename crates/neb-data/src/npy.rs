//! The npy format: a short header in Python's notation, then the numbers.
//!
//! Format: <https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>.

mod decode;
mod header;
mod write;

pub use decode::NdArray;
pub(crate) use decode::{read_array, read_text};
pub(crate) use header::{Header, MAGIC};
pub(crate) use write::{write_names, write_npy};

/// `100×3`, as messages show a shape; `()` for a single number.
pub(crate) fn shape_text(shape: &[usize]) -> String {
    if shape.is_empty() {
        return "()".into();
    }
    let sizes: Vec<String> = shape.iter().map(usize::to_string).collect();
    sizes.join("×")
}
