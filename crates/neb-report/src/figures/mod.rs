//! One file per figure: plain data in, a [`crate::Figure`] out.

mod calibration;
mod corner;
mod correlations;
mod curves;
mod maps;
mod push_forward;
mod ranks;
mod spectra;

pub use calibration::calibration;
pub use corner::{Corner, CornerSample, MOST_COLUMNS, corner};
pub use correlations::{CorrelationPanel, Correlations, correlations};
pub use curves::{Curve, CurvePanel, Curves, curves};
pub use maps::{Map, Maps, Scale, maps};
pub use push_forward::{Overlay, PushForward, push_forward};
pub use ranks::rank_histograms;
pub use spectra::{Look, Spectra, SpectraPanel, SpectraSeries, spectra};

use crate::svg::Frame;

/// Panels of equal size side by side, in as many rows as it takes.
struct Tiles {
    columns: usize,
    size: [f64; 2],
    /// Space left, above, right of and below each panel.
    margins: [f64; 4],
    top: f64,
}

impl Tiles {
    fn frame(&self, number: usize) -> Frame {
        let [left, above, right, below] = self.margins;
        let (column, row) = (number % self.columns, number / self.columns);
        Frame {
            x: left + column as f64 * (self.size[0] + left + right),
            y: self.top + above + row as f64 * (self.size[1] + above + below),
            width: self.size[0],
            height: self.size[1],
        }
    }

    /// Width and height of so many panels and what is above them.
    fn extent(&self, count: usize) -> [f64; 2] {
        let [left, above, right, below] = self.margins;
        let columns = self.columns.min(count) as f64;
        let rows = count.div_ceil(self.columns) as f64;
        [
            columns * (self.size[0] + left + right),
            self.top + rows * (self.size[1] + above + below),
        ]
    }
}
