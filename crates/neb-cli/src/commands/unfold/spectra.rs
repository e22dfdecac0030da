//! Binned spectra: of the weighted simulation with its covariance, of the smooth source, and of what they are compared with; in
//! numbers of events, and as densities 1/N dN/dx that integrate to 1 over the bins.

use anyhow::Result;
use neb::Matrix;
use neb::unfold::{Covariance, Histogram};
use neb_data::{Series, Spectrum, SpectrumAxis};

use super::baseline::{Baseline, baseline};
use super::bins::Observable;
use super::input::Input;
use super::uncertainty::{Replicas, Uncertainty};

/// What the spectra are made of.
pub(super) struct Material<'a> {
    pub(super) input: &'a Input,
    pub(super) weights: &'a [f32],
    pub(super) replicas: &'a Replicas,
    pub(super) draws: &'a Matrix,
    pub(super) produced: f64,
}

/// The histograms of one observable, or of a pair.
pub(super) struct Binned {
    pub(super) unfolded: Histogram,
    pub(super) smooth: Histogram,
    pub(super) simulation: Histogram,
    /// IBU and no unfolding at all, where x and y have these columns in common.
    pub(super) baseline: Option<Baseline>,
    /// In numbers of events.
    pub(super) spectrum: Spectrum,
    /// As densities.
    pub(super) density: Spectrum,
}

/// A series before it is named: numbers of events with their errors by source.
struct Counted<'a> {
    name: &'static str,
    values: Vec<f64>,
    uncertainty: Uncertainty,
    qualifiers: Vec<(String, String)>,
    volumes: &'a [f64],
}

impl Counted<'_> {
    fn series(&self, values: Vec<f64>, uncertainty: &Uncertainty, units: &str) -> Series {
        Series {
            name: self.name.to_owned(),
            units: units.to_owned(),
            values,
            errors: uncertainty.errors(),
            covariances: match self.name {
                "unfolded" | "ibu" => uncertainty.covariances(),
                _ => Vec::new(),
            },
            qualifiers: self.qualifiers.clone(),
        }
    }

    fn events(&self) -> Series {
        self.series(self.values.clone(), &self.uncertainty, "")
    }

    /// 1/N dN/dx within the bins; nothing at all where nothing is in them.
    fn density(&self) -> Series {
        let total: f64 = self.values.iter().sum();
        if total <= 0.0 {
            let nothing = vec![0.0; self.values.len()];
            return self.series(nothing, &Uncertainty { parts: Vec::new() }, "");
        }
        let inverse: Vec<f64> = self.volumes.iter().map(|volume| 1.0 / volume).collect();
        let uncertainty = self
            .uncertainty
            .map(|own| own.normalised(&self.values).scaled(&inverse));
        let values = self.values.iter().zip(&inverse);
        let values = values.map(|(value, inverse)| value / total * inverse);
        self.series(values.collect(), &uncertainty, "")
    }
}

/// Density and its errors of a histogram whose bins are independent.
pub(super) fn density_of(histogram: &Histogram) -> Series {
    let uncertainty = Uncertainty {
        parts: vec![("data", Covariance::diagonal(&histogram.inside_squares()))],
    };
    Counted {
        name: "truth",
        values: histogram.inside(),
        uncertainty,
        qualifiers: Vec::new(),
        volumes: &histogram.volumes(),
    }
    .density()
}

impl Material<'_> {
    /// The histograms of an observable.
    pub(super) fn binned(&self, observable: &Observable) -> Result<Binned> {
        let input = self.input;
        let (places, axes) = (&observable.places[..], &observable.axes[..]);
        let of_x = |weights: &[f32]| Histogram::of(input.x.view(), places, Some(weights), axes);
        let unfolded = of_x(self.weights)?;
        let smooth = Histogram::of(self.draws.view(), places, None, axes)?;
        let simulation = of_x(&input.events.produced_weights)?;
        let baseline = match &observable.seen {
            Some(seen) => Some(baseline(input, observable, seen)?),
            None => None,
        };
        let volumes = unfolded.volumes();
        let outside = |histogram: &Histogram, factor: f64| {
            let outside = factor * histogram.outside();
            vec![("outside the bins".to_owned(), format!("{outside}"))]
        };
        // Samples of another size, on the scale of the events produced.
        let sample = |name, label, histogram: &Histogram, factor: f64| {
            let scale = |values: Vec<f64>, factor: f64| -> Vec<f64> {
                values.into_iter().map(|value| factor * value).collect()
            };
            let squares = scale(histogram.inside_squares(), factor * factor);
            Counted {
                name,
                values: scale(histogram.inside(), factor),
                uncertainty: Uncertainty {
                    parts: vec![(label, Covariance::diagonal(&squares))],
                },
                qualifiers: outside(histogram, factor),
                volumes: &volumes,
            }
        };
        let to_produced = |histogram: &Histogram| self.produced / histogram.total();
        let inside = |weights: &[f32]| Ok(of_x(weights)?.inside());
        let mut all = vec![
            Counted {
                name: "unfolded",
                values: unfolded.inside(),
                uncertainty: Uncertainty::of(self.replicas, inside)?,
                qualifiers: outside(&unfolded, 1.0),
                volumes: &volumes,
            },
            sample("smooth", "draws", &smooth, to_produced(&smooth)),
            sample(
                "simulation",
                "simulation",
                &simulation,
                to_produced(&simulation),
            ),
        ];
        if let Some(baseline) = &baseline {
            all.push(Counted {
                name: "ibu",
                values: baseline.unfolded.inside(),
                uncertainty: Uncertainty {
                    parts: vec![("data", baseline.covariance.clone())],
                },
                qualifiers: outside(&baseline.unfolded, 1.0),
                volumes: &volumes,
            });
            all.push(sample("data", "data", &baseline.data, 1.0));
        }
        let columns = observable.columns(input);
        let spectrum = |suffix: &str, what: &str, series: Vec<Series>| Spectrum {
            name: format!("{}{suffix}", file_name(&columns, places)),
            description: format!("Unfolded spectrum of {}, {what}.", columns.join(" and ")),
            axes: columns.iter().zip(axes).map(axis).collect(),
            series,
        };
        Ok(Binned {
            spectrum: spectrum("", "in events", all.iter().map(Counted::events).collect()),
            density: spectrum(
                DENSITY,
                "as a density that integrates to 1 over the bins",
                all.iter().map(Counted::density).collect(),
            ),
            unfolded,
            smooth,
            simulation,
            baseline,
        })
    }
}

/// What the names of densities end in.
pub(crate) const DENSITY: &str = "-density";

fn axis((name, bins): (&String, &neb::unfold::Binning)) -> SpectrumAxis {
    SpectrumAxis {
        name: name.clone(),
        units: String::new(),
        edges: bins.edges().to_vec(),
    }
}

/// Names of columns as one that files can have; a name that cannot stay as it is has the column's number too, after two dashes, which
/// no other name has, lest two of them become the same.
fn file_name(columns: &[String], places: &[usize]) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let each = columns.iter().zip(places).map(|(name, place)| {
        let own: String = name.chars().map(plain).collect();
        match own == *name {
            true => own,
            false => format!("{own}--{}", place + 1),
        }
    });
    each.collect::<Vec<String>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_stay_apart() {
        let columns = ["a.b", "a_b_1", "p T"].map(String::from);
        let name = |places: &[usize]| {
            let own: Vec<String> = places.iter().map(|&place| columns[place].clone()).collect();
            file_name(&own, places)
        };
        assert_eq!(name(&[0]), "a_b--1");
        assert_eq!(name(&[1]), "a_b_1");
        assert_eq!(name(&[1, 2]), "a_b_1-p_T--3");
    }
}
