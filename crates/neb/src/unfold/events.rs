//! Events as an analysis has them: produced, reconstructed, fake, background, data, each with weights.

use super::weights::{check_weights, total};
use crate::{Error, Matrix, Result};

/// Everything an unfolding starts from, in the models' units. A sample that does not exist has no rows.
#[derive(Clone, Debug, Default)]
pub struct Events {
    /// x of every simulated event that was produced, reconstructed or not.
    pub produced: Matrix,
    /// Its weights; some may be negative.
    pub produced_weights: Vec<f32>,
    /// Which of the produced events were reconstructed.
    pub reconstructed: Vec<bool>,
    /// y of these, in the same order.
    pub matched: Matrix,
    /// y of simulated events that were reconstructed but never produced.
    pub fakes: Matrix,
    /// Its weights, on the scale of the produced events'.
    pub fake_weights: Vec<f32>,
    /// y of background events.
    pub background: Matrix,
    /// Its weights, on the scale of the data's: they add up to the events expected.
    pub background_weights: Vec<f32>,
    /// y of the data.
    pub data: Matrix,
    /// Its weights; none may be negative.
    pub data_weights: Vec<f32>,
}

impl Events {
    /// Refuses tables and weights that do not fit together.
    ///
    /// # Errors
    /// Names the sample, and the row where there is one.
    pub fn check(&self) -> Result<()> {
        let samples = [
            ("simulation", &self.produced, &self.produced_weights),
            ("fakes", &self.fakes, &self.fake_weights),
            ("background", &self.background, &self.background_weights),
            ("data", &self.data, &self.data_weights),
        ];
        for (name, rows, weights) in samples {
            if rows.rows() > 0 || !weights.is_empty() {
                check_weights(weights, rows.rows(), name)?;
            }
            crate::check::check_finite(rows.view(), name)?;
        }
        if let Some(row) = self.data_weights.iter().position(|&weight| weight < 0.0) {
            return Err(Error::input(
                format!(
                    "data: the weight of row {row} is {}",
                    self.data_weights[row]
                ),
                "data have weights that are not negative; what is to be subtracted is a background sample",
            ));
        }
        if self.reconstructed.len() != self.produced.rows() {
            return Err(Error::input(
                format!(
                    "the mask of reconstructed events has {} rows, the simulation {}",
                    self.reconstructed.len(),
                    self.produced.rows()
                ),
                "give one entry for each simulated event",
            ));
        }
        let seen = self.reconstructed.iter().filter(|&&seen| seen).count();
        if seen != self.matched.rows() || seen == 0 || self.data.rows() == 0 {
            return Err(Error::input(
                format!(
                    "{seen} events are marked as reconstructed, {} have a y; there are {} events of data",
                    self.matched.rows(),
                    self.data.rows()
                ),
                "give y of every reconstructed event, and at least one event of data",
            ));
        }
        let columns = self.matched.cols();
        for (name, rows) in [
            ("fakes", &self.fakes),
            ("background", &self.background),
            ("data", &self.data),
        ] {
            if rows.rows() > 0 && rows.cols() != columns {
                return Err(Error::input(
                    format!(
                        "{name}: {} columns of y, the simulation has {columns}",
                        rows.cols()
                    ),
                    "give every sample the columns of the simulation's y, in the same order",
                ));
            }
        }
        Ok(())
    }

    /// Rows of the produced events that were reconstructed.
    pub fn matched_rows(&self) -> Vec<u32> {
        (0..self.produced.rows() as u32)
            .filter(|&row| self.reconstructed[row as usize])
            .collect()
    }

    /// Whether some produced events were not reconstructed.
    pub fn has_missed(&self) -> bool {
        self.matched.rows() < self.produced.rows()
    }

    /// φ: the fakes' share of the simulation's reconstructed events.
    pub fn fake_share(&self) -> f64 {
        let fakes = total(&self.fake_weights);
        let matched = self.matched_rows().into_iter();
        let matched: f64 = matched
            .map(|row| f64::from(self.produced_weights[row as usize]))
            .sum();
        match fakes > 0.0 {
            true => fakes / (fakes + matched),
            false => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events() -> Events {
        Events {
            produced: Matrix::zeros(3, 2),
            produced_weights: vec![1.0, 2.0, -0.5],
            reconstructed: vec![true, false, true],
            matched: Matrix::zeros(2, 1),
            fakes: Matrix::zeros(1, 1),
            fake_weights: vec![0.5],
            data: Matrix::zeros(4, 1),
            data_weights: vec![1.0; 4],
            ..Events::default()
        }
    }

    #[test]
    fn samples_that_do_not_fit_are_refused() {
        events().check().unwrap();
        assert_eq!(events().matched_rows(), [0, 2]);
        // 0.5 of fakes beside 1 − 0.5 of matched events.
        assert_eq!(events().fake_share(), 0.5);
        type Mistake = fn(&mut Events);
        let broken: [(&str, Mistake); 5] = [
            ("mask", |e| e.reconstructed.truncate(2)),
            ("marked", |e| e.reconstructed[0] = false),
            ("data: the weight of row 2 is -1", |e| {
                e.data_weights[2] = -1.0
            }),
            ("background", |e| e.background_weights.push(1.0)),
            ("fakes: 2 columns", |e| e.fakes = Matrix::zeros(1, 2)),
        ];
        for (word, break_it) in broken {
            let mut events = events();
            break_it(&mut events);
            let message = events.check().unwrap_err().to_string();
            assert!(message.contains(word), "{word}: {message}");
        }
    }
}
