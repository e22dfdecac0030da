//! Plots and the report page: the one place where `neb` draws.
//!
//! [`figures`] turns plain data into a [`Figure`], which becomes part of a page ([`Figure::to_inline`]), an SVG file
//! ([`Figure::to_svg`]) or a PNG image ([`Figure::to_png`]). Colours and dashes are decided in one style sheet
//! ([`style_sheet`]); axes, panels, legends, density estimates and histograms are parts that further figures can use.
//!
//! ```
//! use neb::{Noise, Purpose};
//! use neb_report::figures::{Corner, CornerSample, corner};
//! use neb_report::Role;
//!
//! let draws = Noise::new(1, Purpose::DrawX, 0).normal(2000, 2);
//! let figure = corner(&Corner {
//!     name: "source",
//!     title: "The learned source",
//!     columns: &["x1".to_owned(), "x2".to_owned()],
//!     samples: vec![CornerSample {
//!         label: "learned",
//!         role: Role::Learned,
//!         sample: draws.view().into(),
//!         contours: true,
//!     }],
//!     mark: None,
//! });
//! assert!(figure.to_svg().starts_with("<svg"));
//! ```

#![forbid(unsafe_code)]

mod axis;
mod column;
mod density;
mod field;
mod figure;
pub mod figures;
mod histogram;
mod legend;
mod page;
mod panel;
mod simplify;
mod style;
mod svg;
mod text;
mod verdict;

pub use axis::Axis;
pub use column::Column;
pub use density::{Density1, Density2, Grid, MASSES, common_range, levels};
pub use figure::{Figure, PngError};
pub use histogram::{Histogram, Ratio};
pub use page::{Block, Report, Section, Table};
pub use panel::{Labels, Panel};
pub use style::Role;
pub use svg::{Anchor, Frame, Svg};
pub use verdict::{
    Extrapolated, Facts, Finding, Level, UnfoldingFacts, Verdict, grouped, unfolding_verdict,
    verdict,
};

/// The style sheet of a page that holds figures ([`Figure::to_inline`]): light, and dark where the reader prefers it.
pub fn style_sheet() -> String {
    style::of_page()
}
