//! Binned spectra: of the weighted simulation with its covariance, of the smooth source, and of what they are compared with.

use anyhow::Result;
use neb::Matrix;
use neb::unfold::{
    Binning, Covariance, Events, Histogram, Ibu, Response, SimulatedEvent, subtract_background,
};
use neb_data::{Series, Spectrum, SpectrumAxis};

use super::input::{Input, column};
use crate::failure::Failure;

/// Bins where none were asked for.
const DEFAULT_BINS: usize = 20;
/// Share of the simulation left out at either end by them.
const DEFAULT_TAIL: f64 = 0.005;
/// Iterations of the binned baseline.
const IBU_ITERATIONS: usize = 3;

/// The bins of every column of x.
pub(super) fn binnings(asked: &[String], input: &Input) -> Result<Vec<Binning>> {
    let mut chosen: Vec<Option<Binning>> = vec![None; input.x_names.len()];
    for words in asked {
        let refuse = |why: String| {
            Failure::input(
                format!("--bins `{words}`: {why}"),
                format!(
                    "write NAME=COUNT:LOW:HIGH with a column of x: {}",
                    input.x_names.join(", ")
                ),
            )
        };
        let (name, rest) = words
            .split_once('=')
            .ok_or_else(|| refuse("there is no `=`".to_owned()))?;
        let place = input.x_names.iter().position(|own| own == name.trim());
        let place = place.ok_or_else(|| refuse(format!("`{name}` is no column of x")))?;
        let numbers: Option<Vec<f64>> = rest
            .split(':')
            .map(|part| part.trim().parse().ok())
            .collect();
        let numbers = numbers.unwrap_or_default();
        let [count, low, high] = numbers[..] else {
            return Err(refuse("three numbers are needed".to_owned()));
        };
        if count < 1.0 || count.fract() != 0.0 {
            return Err(refuse(format!("{count} is no number of bins")));
        }
        let bins = Binning::uniform(low, high, count as usize)?;
        let rows = input.x.view();
        let inside = Histogram::of(rows, &[place], None, std::slice::from_ref(&bins))?;
        inside.positive_inside()?;
        chosen[place] = Some(bins);
    }
    let each = chosen.into_iter().enumerate();
    each.map(|(place, bins)| match bins {
        Some(bins) => Ok(bins),
        None => default_bins(&column(input.x.view(), place)),
    })
    .collect()
}

/// Bins of one width between two quantiles.
fn default_bins(values: &[f32]) -> Result<Binning> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f32::total_cmp);
    let at = |share: f64| f64::from(sorted[((sorted.len() - 1) as f64 * share) as usize]);
    let (low, high) = (at(DEFAULT_TAIL), at(1.0 - DEFAULT_TAIL));
    let high = if high > low { high } else { low + 1.0 };
    Ok(Binning::uniform(low, high, DEFAULT_BINS)?)
}

/// Replicas of the weights, by what was repeated.
#[derive(Default)]
pub(super) struct Replicas {
    pub(super) data: Vec<Vec<f32>>,
    pub(super) simulation: Vec<Vec<f32>>,
    pub(super) training: Vec<Vec<f32>>,
}

/// Covariances of a spectrum by where they come from; the simulation's without that of the training.
pub(super) struct Uncertainty {
    pub(super) parts: Vec<(&'static str, Covariance)>,
}

impl Uncertainty {
    fn of(replicas: &Replicas, histogram: impl Fn(&[f32]) -> Result<Vec<f64>>) -> Result<Self> {
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

    /// Errors of each bin by source: where simulation and training were both repeated, the simulation's are those of its
    /// replicas less the training's, in quadrature.
    fn errors(&self) -> Vec<(String, Vec<f64>)> {
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
        errors
    }
}

/// What the spectra of one column of x are made of.
pub(super) struct Material<'a> {
    pub(super) input: &'a Input,
    pub(super) weights: &'a [f32],
    pub(super) replicas: &'a Replicas,
    pub(super) draws: &'a Matrix,
    pub(super) produced: f64,
}

/// The histograms of one column.
pub(super) struct Binned {
    pub(super) unfolded: Histogram,
    pub(super) smooth: Histogram,
    pub(super) simulation: Histogram,
    /// IBU and no unfolding at all, where x and y have this column in common.
    pub(super) ibu: Option<Histogram>,
    pub(super) data: Option<Histogram>,
    pub(super) spectrum: Spectrum,
}

impl Material<'_> {
    /// The histograms of a column of x in these bins.
    pub(super) fn binned(&self, place: usize, bins: &Binning) -> Result<Binned> {
        let input = self.input;
        let axes = std::slice::from_ref(bins);
        let of_x = |weights: &[f32]| Histogram::of(input.x.view(), &[place], Some(weights), axes);
        let unfolded = of_x(self.weights)?;
        let smooth = Histogram::of(self.draws.view(), &[place], None, axes)?;
        let simulation = of_x(&input.events.produced_weights)?;
        let uncertainty = Uncertainty::of(self.replicas, |weights| Ok(of_x(weights)?.inside()))?;
        let name = &input.x_names[place];
        let seen = input.y_names.iter().position(|own| own == name);
        let seen = seen.or((input.x_names.len() == input.y_names.len()).then_some(place));
        let binned = match seen {
            Some(seen) => Some(baselines(input, place, seen, axes)?),
            None => None,
        };
        let scale = |histogram: &Histogram| {
            let total = histogram.total();
            let values = histogram.inside().into_iter();
            values
                .map(|v| v * self.produced / total)
                .collect::<Vec<f64>>()
        };
        let series = |name: &str, values: Vec<f64>| Series {
            name: name.to_owned(),
            values,
            ..Series::default()
        };
        let covariances = uncertainty.parts.iter();
        let mut all = vec![
            Series {
                errors: uncertainty.errors(),
                covariances: covariances
                    .map(|(name, c)| ((*name).to_owned(), c.values().to_vec()))
                    .collect(),
                qualifiers: vec![("outside".to_owned(), format!("{}", unfolded.outside()))],
                ..series("unfolded", unfolded.inside())
            },
            series("smooth", scale(&smooth)),
            series("simulation", scale(&simulation)),
        ];
        let (mut ibu, mut data) = (None, None);
        if let Some((unfolded, covariance, observed)) = binned {
            all.push(Series {
                errors: vec![("data".to_owned(), covariance.errors())],
                covariances: vec![("data".to_owned(), covariance.values().to_vec())],
                ..series("ibu", unfolded.inside())
            });
            all.push(series("data", observed.inside()));
            (ibu, data) = (Some(unfolded), Some(observed));
        }
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        Ok(Binned {
            unfolded,
            smooth,
            simulation,
            ibu,
            data,
            spectrum: Spectrum {
                name: name.chars().map(plain).collect(),
                description: format!("Unfolded spectrum of {name}, in events."),
                axes: vec![SpectrumAxis {
                    name: name.clone(),
                    units: String::new(),
                    edges: bins.edges().to_vec(),
                }],
                series: all,
            },
        })
    }
}

/// Iterative Bayesian unfolding of a column of x seen as a column of y, in the same bins; and the data themselves.
fn baselines(
    input: &Input,
    place: usize,
    seen: usize,
    axes: &[Binning],
) -> Result<(Histogram, Covariance, Histogram)> {
    let events: &Events = &input.events;
    let of_y = |rows: &Matrix, weights: &[f32]| -> Result<Histogram> {
        match rows.rows() {
            0 => Ok(Histogram::new(axes)?),
            _ => Ok(Histogram::of(rows.view(), &[seen], Some(weights), axes)?),
        }
    };
    let data = of_y(&input.data, &events.data_weights)?;
    let background = of_y(&input.background, &events.background_weights)?;
    let cleaned = subtract_background(&data, &background)?;
    let truth_cells = data.cells_of(input.x.view(), &[place])?;
    let seen_cells = data.cells_of(input.matched.view(), &[seen])?;
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
        let cells = data.cells_of(input.fakes.view(), &[seen])?;
        let fakes = cells.into_iter().zip(&events.fake_weights);
        simulated.extend(fakes.map(|(cell, &weight)| SimulatedEvent {
            truth: None,
            seen: Some(cell),
            weight: f64::from(weight),
        }));
    }
    let cells = axes[0].cells();
    let response = Response::of_events(cells, cells, simulated)?;
    let ibu = Ibu {
        iterations: IBU_ITERATIONS,
        ..Ibu::default()
    };
    let unfolded = ibu.unfold(&response, cleaned.sums(), cleaned.squares())?;
    let covariance = unfolded
        .covariance
        .unwrap_or_else(|| Covariance::zeros(cells));
    let inner = data.inner_cells();
    let squares = covariance.errors().iter().map(|e| e * e).collect();
    let histogram = data.with_contents(unfolded.spectrum, squares);
    Ok((histogram, covariance.restricted(&inner), data))
}
