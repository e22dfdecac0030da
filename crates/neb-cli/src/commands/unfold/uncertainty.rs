//! Errors of a spectrum by where they come from, from replicas of the weights.

use anyhow::Result;
use neb::unfold::Covariance;

/// Replicas of the weights, by what was repeated.
#[derive(Default)]
pub(super) struct Replicas {
    pub(super) data: Vec<Vec<f32>>,
    pub(super) simulation: Vec<Vec<f32>>,
    pub(super) training: Vec<Vec<f32>>,
}

/// Covariances of a spectrum by where they come from; the simulation's with that of the training.
pub(super) struct Uncertainty {
    pub(super) parts: Vec<(&'static str, Covariance)>,
}

impl Uncertainty {
    /// Those of a histogram of weights.
    pub(super) fn of(
        replicas: &Replicas,
        histogram: impl Fn(&[f32]) -> Result<Vec<f64>>,
    ) -> Result<Self> {
        let covariance = |weights: &[Vec<f32>]| -> Result<Option<Covariance>> {
            if weights.len() < 2 {
                return Ok(None);
            }
            let spectra: Result<Vec<Vec<f64>>> = weights.iter().map(|w| histogram(w)).collect();
            Ok(Some(Covariance::of_replicas(&spectra?)?))
        };
        let data = covariance(&replicas.data)?.map(|c| ("data", c));
        let simulation = covariance(&replicas.simulation)?.map(|c| ("simulation-and-training", c));
        let training = covariance(&replicas.training)?.map(|c| ("training", c));
        Ok(Self {
            parts: data.into_iter().chain(simulation).chain(training).collect(),
        })
    }

    /// The same after a change of the spectrum.
    pub(super) fn map(&self, change: impl Fn(&Covariance) -> Covariance) -> Self {
        let parts = self.parts.iter();
        Self {
            parts: parts.map(|(name, own)| (*name, change(own))).collect(),
        }
    }

    /// The covariances with their names.
    pub(super) fn covariances(&self) -> Vec<(String, Vec<f64>)> {
        let parts = self.parts.iter();
        parts
            .map(|(name, own)| ((*name).to_owned(), own.values().to_vec()))
            .collect()
    }

    /// Errors of each bin by source: where simulation and training were both repeated, the simulation's are those of its
    /// replicas less the training's, in quadrature; others as they are.
    pub(super) fn errors(&self) -> Vec<(String, Vec<f64>)> {
        let repeated = ["data", "simulation-and-training", "training"];
        let others = self
            .parts
            .iter()
            .filter(|(name, _)| !repeated.contains(name));
        let of = |name: &str| {
            let part = self.parts.iter().find(|(own, _)| *own == name);
            part.map(|(_, covariance)| covariance.errors())
        };
        let (simulation, training) = (of("simulation-and-training"), of("training"));
        let mut errors = Vec::new();
        errors.extend(of("data").map(|e| ("data".to_owned(), e)));
        match (simulation, training) {
            (Some(both), Some(training)) => {
                let pairs = both.iter().zip(&training);
                let rest = pairs.map(|(both, own)| (both * both - own * own).max(0.0).sqrt());
                errors.push(("simulation".to_owned(), rest.collect()));
                errors.push(("training".to_owned(), training));
            }
            (Some(both), None) => errors.push(("simulation-and-training".to_owned(), both)),
            (None, Some(training)) => errors.push(("training".to_owned(), training)),
            (None, None) => {}
        }
        errors.extend(others.map(|(name, own)| ((*name).to_owned(), own.errors())));
        errors
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The simulation's errors are those of its replicas less the training's, in quadrature; what was not repeated has its own.
    #[test]
    fn errors_by_where_they_come_from() {
        let parts = [
            ("simulation-and-training", 25.0),
            ("training", 9.0),
            ("draws", 4.0),
        ];
        let parts = parts.map(|(name, square)| (name, Covariance::diagonal(&[square])));
        let errors = Uncertainty {
            parts: parts.into(),
        }
        .errors();
        let expected = [("simulation", 4.0), ("training", 3.0), ("draws", 2.0)];
        let expected = expected.map(|(name, error)| (name.to_owned(), vec![error]));
        assert_eq!(errors, expected);
    }
}
