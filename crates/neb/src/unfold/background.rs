//! Backgrounds, taken off cell by cell.

use super::Histogram;
use crate::{Error, Result};

/// A background above the data by more than this many standard errors is no fluctuation.
const MOST: f64 = 4.0;

/// Data without a background that was simulated or estimated elsewhere, scaled to the data; the squares add up.
///
/// Where the background is above the data by chance the difference is 0.
///
/// # Errors
/// Other bins, or a background above the data by more than four standard errors: names the cell.
pub fn subtract_background(data: &Histogram, background: &Histogram) -> Result<Histogram> {
    if data.axes() != background.axes() {
        return Err(Error::input(
            "data and background have different bins",
            "fill both in the same bins",
        ));
    }
    let mut sums = Vec::with_capacity(data.sums().len());
    let mut squares = Vec::with_capacity(data.sums().len());
    for cell in 0..data.sums().len() {
        let (seen, expected) = (data.sums()[cell], background.sums()[cell]);
        let (of_data, of_background) = (data.squares()[cell], background.squares()[cell]);
        let error = (of_data.max(expected) + of_background).sqrt();
        if expected - seen > MOST * error {
            return Err(Error::input(
                format!(
                    "the background is larger than the data {}: {expected} ± {:.3} against {seen}",
                    data.place(cell),
                    of_background.sqrt()
                ),
                "check the weights of the background: it must be scaled to the data",
            ));
        }
        sums.push((seen - expected).max(0.0));
        squares.push(of_data + of_background);
    }
    Ok(data.with_contents(sums, squares))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unfold::Binning;

    #[test]
    fn differences_fluctuations_and_mistakes() {
        let bins = [Binning::uniform(0.0, 3.0, 3).unwrap()];
        let empty = Histogram::new(&bins).unwrap();
        let of = |sums: [f64; 5], squares: [f64; 5]| {
            empty.with_contents(sums.to_vec(), squares.to_vec())
        };
        let data = of([0.0, 100.0, 3.0, 50.0, 1.0], [0.0, 100.0, 3.0, 50.0, 1.0]);
        let background = of([0.0, 20.0, 5.0, 0.0, 0.0], [0.0, 4.0, 1.0, 0.0, 0.0]);
        let left = subtract_background(&data, &background).unwrap();
        assert_eq!(left.sums(), [0.0, 80.0, 0.0, 50.0, 1.0]);
        assert_eq!(left.squares(), [0.0, 104.0, 4.0, 50.0, 1.0]);
        let twice = of([0.0, 200.0, 0.0, 0.0, 0.0], [0.0; 5]);
        let message = subtract_background(&data, &twice).unwrap_err().to_string();
        assert!(message.contains("between 0 and 1: 200"), "{message}");
    }
}
