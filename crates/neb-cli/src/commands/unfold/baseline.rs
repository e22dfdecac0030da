//! What a binned analysis would do: iterative Bayesian unfolding, and no unfolding at all.

use anyhow::Result;
use neb::Matrix;
use neb::unfold::{Covariance, Histogram, Ibu, Response, SimulatedEvent, subtract_background};

use super::bins::Observable;
use super::input::Input;

/// Iterations of the binned baseline.
const ITERATIONS: usize = 3;

/// The data in the bins of x, as they are and unfolded.
pub(super) struct Baseline {
    pub(super) unfolded: Histogram,
    /// Covariance of its bins from the statistics of the data.
    pub(super) covariance: Covariance,
    pub(super) data: Histogram,
}

/// Iterative Bayesian unfolding of columns of x seen as columns of y, in the same bins; and the data themselves.
pub(super) fn baseline(input: &Input, observable: &Observable, seen: &[usize]) -> Result<Baseline> {
    let (events, axes) = (&input.events, &observable.axes[..]);
    let of_y = |rows: &Matrix, weights: &[f32]| -> Result<Histogram> {
        match rows.rows() {
            0 => Ok(Histogram::new(axes)?),
            _ => Ok(Histogram::of(rows.view(), seen, Some(weights), axes)?),
        }
    };
    let data = of_y(&input.data, &events.data_weights)?;
    let background = of_y(&input.background, &events.background_weights)?;
    let cleaned = subtract_background(&data, &background)?;
    let truth_cells = data.cells_of(input.x.view(), &observable.places)?;
    let seen_cells = data.cells_of(input.matched.view(), seen)?;
    let mut next = seen_cells.into_iter();
    let produced = truth_cells
        .iter()
        .enumerate()
        .map(|(row, &truth)| SimulatedEvent {
            truth: Some(truth),
            seen: match events.reconstructed[row] {
                true => next.next(),
                false => None,
            },
            weight: f64::from(events.produced_weights[row]),
        });
    let mut simulated: Vec<SimulatedEvent> = produced.collect();
    if input.fakes.rows() > 0 {
        let cells = data.cells_of(input.fakes.view(), seen)?;
        let fakes = cells.into_iter().zip(&events.fake_weights);
        simulated.extend(fakes.map(|(cell, &weight)| SimulatedEvent {
            truth: None,
            seen: Some(cell),
            weight: f64::from(weight),
        }));
    }
    let cells = data.sums().len();
    let response = Response::of_events(cells, cells, simulated)?;
    let ibu = Ibu {
        iterations: ITERATIONS,
        ..Ibu::default()
    };
    let unfolded = ibu.unfold(&response, cleaned.sums(), cleaned.squares())?;
    let covariance = unfolded
        .covariance
        .unwrap_or_else(|| Covariance::zeros(cells));
    let inner = data.inner_cells();
    let squares = covariance.errors().iter().map(|e| e * e).collect();
    Ok(Baseline {
        unfolded: data.with_contents(unfolded.spectrum, squares),
        covariance: covariance.restricted(&inner),
        data,
    })
}
