//! The numerical core: tiles of 16 rows in structure-of-arrays form.
//!
//! A *tile* holds one number per row and unit: unit u of 16 rows is one `Lane`. Networks broadcast
//! their weights over lanes, so every row of a tile goes through the same instructions and all of a
//! tile's activations stay in the first-level cache. The code is written once against
//! `fearless_simd`'s `f32x16` and compiled for AVX-512, AVX2 + FMA, SSE and the portable baseline
//! (NEON on aarch64); the level is chosen at run time.

pub(crate) mod dense;
pub(crate) mod math;
pub(crate) mod tile;

use std::sync::LazyLock;

use fearless_simd::Level;

/// Rows in a tile.
pub(crate) const LANES: usize = 16;

/// One unit's values in the 16 rows of a tile.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(align(64))]
pub(crate) struct Lane(pub [f32; LANES]);

impl Lane {
    /// All rows zero.
    pub(crate) const ZERO: Lane = Lane([0.0; LANES]);
}

static LEVEL: LazyLock<Level> = LazyLock::new(Level::new);

/// The instruction set of this machine.
#[inline]
pub(crate) fn level() -> Level {
    *LEVEL
}

/// The name of the instruction set the kernels run on here.
pub fn instruction_set() -> &'static str {
    let name = format!("{:?}", level());
    ["Avx512", "Avx2", "Sse4_2", "Sse2", "Neon"]
        .into_iter()
        .find(|known| name.starts_with(known))
        .unwrap_or("portable")
}
