//! Files of numbers to named columns, and back: npz, npy, csv and (with the feature `parquet`) parquet.
//!
//! [`Dataset::open`] looks at a file; [`Dataset::group`] reads the columns that play one part, `x`, `y` or `weight`, into a
//! [`Table`] of finite `f32`, row by row. [`write()`] writes arrays in the format of the file's extension; every file appears
//! complete or not at all ([`write_atomically`]).
//!
//! ```
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("pairs.npz");
//! use neb_data::{Array, Dataset, Selection};
//!
//! let (x, y) = ([0.5f32, -0.25], [1.0f32, 2.0, 3.0, 4.0]);
//! let arrays = [Array::new("x", &[2, 1], &x[..]), Array::new("y", &[2, 2], &y[..])];
//! neb_data::write(&path, false, &arrays)?;
//!
//! let data = Dataset::open(&path)?;
//! let [x, y] = data.groups([&Selection::new("x"), &Selection::new("y")])?;
//! assert_eq!(y.names(), ["y1", "y2"]);
//! assert_eq!((x.rows(), y.rows()), (2, 2));
//! assert_eq!(y.into_values(), [1.0, 2.0, 3.0, 4.0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What a file says about itself is checked before it is believed: a shape must account for every byte, memory is taken
//! only for data that can be there, and checksums are compared. Values that are not finite, or too large for `f32`, are
//! errors with their place; nothing is dropped or repaired. `f64` and integers are rounded to the nearest `f32` (integers
//! are exact up to 2^24).

#![forbid(unsafe_code)]

mod atomic;
mod csv;
mod dataset;
mod error;
mod expansion;
mod flaws;
mod format;
mod hepdata;
mod names;
mod npy;
mod npz;
mod omnifold;
#[cfg(feature = "parquet")]
mod parquet;
mod select;
mod spectrum;
mod table;
mod write;

pub use atomic::{Output, check_target, write_atomically};
pub use dataset::Dataset;
pub use error::{Error, Result};
pub use flaws::flaw_of;
pub use format::Format;
pub use hepdata::{Submission, write_hepdata};
pub use names::nearest;
pub use npy::NdArray;
pub use omnifold::{Degenerate, Jets, OBSERVABLES, omnifold_files, read_omnifold};
pub use select::Selection;
pub use spectrum::{Series, Spectrum, SpectrumAxis, correlation, read_spectrum, write_spectrum};
pub use table::Table;
pub use write::{Array, Values, write, write_to};
