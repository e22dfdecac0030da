//! Direct draws from a recognition network q_ψ(x|y): no sampler, and no check but the calibration of the result.

use super::clock::Clock;
use super::{Draws, Method, PosteriorOptions, Stopped};
use crate::source::Recognition;
use crate::{Error, Matrix, Noise, Purpose, Result, Rows};

/// Rows drawn at once.
const ROWS_AT_ONCE: usize = 1 << 18;

/// Draws x for given observations, with their log-densities: a recognition network q_ψ(x|y).
pub trait Recognise: Send + Sync {
    /// Dimension of x.
    fn dim(&self) -> usize;

    /// k draws for each row of y, and log q_ψ of each: rows i·k .. (i + 1)·k belong to observation i.
    fn draw(&self, y: Rows, k: usize, noise: Noise) -> (Matrix, Vec<f32>);
}

impl Recognise for Recognition {
    fn dim(&self) -> usize {
        self.dims().dx
    }

    fn draw(&self, y: Rows, k: usize, noise: Noise) -> (Matrix, Vec<f32>) {
        Self::draw(self, y, k, noise)
    }
}

/// Draws from the recognition network, taken for the posterior as they are.
///
/// # Errors
/// No draws asked for.
pub fn direct(recognition: &dyn Recognise, y: Rows, options: &PosteriorOptions) -> Result<Draws> {
    let wanted = options.draws;
    if wanted == 0 || y.rows() == 0 {
        return Err(Error::input(
            format!("{wanted} draws for each of {} observations", y.rows()),
            "ask for at least 1 draw of at least 1 observation",
        ));
    }
    let clock = Clock::start(&options.budget, None);
    let mut draws = Draws::empty(Method::Direct, y.rows(), recognition.dim(), wanted);
    let block = (ROWS_AT_ONCE / wanted).max(1);
    for first in (0..y.rows()).step_by(block) {
        if clock.is_over() {
            draws.stopped = Some(Stopped::Seconds);
            break;
        }
        let rows = first..y.rows().min(first + block);
        // Beside the steps of rejection and importance.
        let noise = Noise::new(options.seed, Purpose::Posterior, (2 << 40) + first as u64);
        let (x, _) = recognition.draw(y.slice(rows.clone()), wanted, noise);
        for (at, row) in rows.enumerate() {
            let own = x.view().slice(at * wanted..(at + 1) * wanted);
            draws.put(row, own.values());
            draws.ess[row] = wanted as f64;
        }
    }
    Ok(draws)
}
