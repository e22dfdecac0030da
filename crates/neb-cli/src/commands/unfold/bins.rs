//! The observables of the spectra: every column of x, and pairs that were asked for, with their bins.

use anyhow::Result;
use neb::unfold::{Binning, Histogram};

use super::input::{Input, column};
use crate::failure::Failure;

/// Bins where none were asked for: of one column, and of each of a pair.
const DEFAULT_BINS: [usize; 2] = [20, 8];
/// Share of the simulation left out at either end by them.
const DEFAULT_TAIL: f64 = 0.005;

/// One or two columns of x and their bins.
pub(super) struct Observable {
    /// Numbers of the columns.
    pub(super) places: Vec<usize>,
    /// The bins of each.
    pub(super) axes: Vec<Binning>,
    /// The columns of y that are the same quantities as the detector sees them, where there are such.
    pub(super) seen: Option<Vec<usize>>,
}

impl Observable {
    fn new(places: Vec<usize>, axes: Vec<Binning>, input: &Input) -> Self {
        // By name, or by position where no name is shared.
        let shared = input
            .x_names
            .iter()
            .any(|name| input.y_names.contains(name));
        let by_place = !shared && input.x_names.len() == input.y_names.len();
        let seen = places.iter().map(|&place| {
            let name = &input.x_names[place];
            let seen = input.y_names.iter().position(|own| own == name);
            seen.or(by_place.then_some(place))
        });
        Self {
            seen: seen.collect(),
            places,
            axes,
        }
    }

    /// Names of the columns.
    pub(super) fn columns(&self, input: &Input) -> Vec<String> {
        let names = self.places.iter().map(|&place| &input.x_names[place]);
        names.cloned().collect()
    }
}

/// Every column of x, in the bins of `--bins` or between quantiles, and every pair of `--joint`.
pub(super) fn observables(
    bins: &[String],
    joint: &[String],
    input: &Input,
) -> Result<Vec<Observable>> {
    let columns = input.x_names.len();
    let mut chosen: Vec<Option<Binning>> = vec![None; columns];
    for words in bins {
        let asked = Asked {
            flag: "--bins",
            words,
            input,
        };
        let (place, bins) = asked.column(words)?;
        let bins = bins.ok_or_else(|| asked.refuse("there is no `=`"))?;
        chosen[place] = Some(bins);
    }
    let mut all = Vec::new();
    for (place, bins) in chosen.into_iter().enumerate() {
        let bins = match bins {
            Some(bins) => bins,
            None => default_bins(input, place, DEFAULT_BINS[0])?,
        };
        all.push(Observable::new(vec![place], vec![bins], input));
    }
    for words in joint {
        let asked = Asked {
            flag: "--joint",
            words,
            input,
        };
        let mut pair = Vec::new();
        for words in words.split(',') {
            let (place, bins) = asked.column(words)?;
            let bins = match bins {
                Some(bins) => bins,
                None => default_bins(input, place, DEFAULT_BINS[1])?,
            };
            pair.push((place, bins));
        }
        let [(first, _), (second, _)] = pair[..] else {
            return Err(asked.refuse("two columns are needed, with a comma"));
        };
        if first == second {
            return Err(asked.refuse("these are not two columns"));
        }
        let (places, axes) = pair.into_iter().unzip();
        all.push(Observable::new(places, axes, input));
    }
    Ok(all)
}

/// Bins as they were typed.
struct Asked<'a> {
    flag: &'a str,
    words: &'a str,
    input: &'a Input,
}

impl Asked<'_> {
    fn refuse(&self, why: &str) -> anyhow::Error {
        let names = self.input.x_names.join(", ");
        let form = "NAME=COUNT:LOW:HIGH or NAME=EDGE/EDGE/EDGE";
        let form = match self.flag {
            "--joint" => format!("two of {form} with a comma, or two names alone,"),
            _ => form.to_owned(),
        };
        Failure::input(
            format!("{} `{}`: {why}", self.flag, self.words),
            format!("write {form} with columns of x: {names}"),
        )
    }

    /// A column and its bins, if they were typed: `NAME`, `NAME=COUNT:LOW:HIGH` or `NAME=EDGE/EDGE/...`.
    fn column(&self, words: &str) -> Result<(usize, Option<Binning>)> {
        let (name, rest) = match words.split_once('=') {
            Some((name, rest)) => (name.trim(), Some(rest)),
            None => (words.trim(), None),
        };
        let place = self.input.x_names.iter().position(|own| own == name);
        let place = place.ok_or_else(|| self.refuse(&format!("`{name}` is no column of x")))?;
        let Some(rest) = rest else {
            return Ok((place, None));
        };
        let bins = self.binning(rest)?;
        let input = self.input;
        let axes = std::slice::from_ref(&bins);
        let inside = Histogram::of(input.x.view(), &[place], None, axes)?;
        let values = column(input.x.view(), place);
        if inside.inside().iter().all(|&sum| sum == 0.0) {
            let [low, high] = extent(&values);
            return Err(self.refuse(&format!(
                "no simulated event lies in these bins; `{name}` of the simulation goes from {low} to {high}"
            )));
        }
        if let Some(seen) = input.y_names.iter().position(|own| own == name) {
            let inside = Histogram::of(input.data.view(), &[seen], None, axes)?;
            if inside.inside().iter().all(|&sum| sum == 0.0) {
                let [low, high] = extent(&column(input.data.view(), seen));
                return Err(self.refuse(&format!(
                    "no event of data lies in these bins; `{name}` of the data goes from {low} to {high}"
                )));
            }
        }
        Ok((place, Some(bins)))
    }

    fn binning(&self, words: &str) -> Result<Binning> {
        let numbers = |separator: char| -> Option<Vec<f64>> {
            let parts = words.split(separator);
            parts.map(|part| part.trim().parse().ok()).collect()
        };
        let because = |error: neb::Error| self.refuse(&error.to_string());
        if words.contains('/') {
            let edges = numbers('/').ok_or_else(|| self.refuse("an edge is no number"))?;
            return Binning::new(edges).map_err(because);
        }
        let numbers = numbers(':').unwrap_or_default();
        let [count, low, high] = numbers[..] else {
            return Err(self.refuse("three numbers are needed"));
        };
        if !(1.0..=1e6).contains(&count) || count.fract() != 0.0 {
            return Err(self.refuse(&format!("{count} is no number of bins")));
        }
        Binning::uniform(low, high, count as usize).map_err(because)
    }
}

fn extent(values: &[f32]) -> [f32; 2] {
    let low = values.iter().copied().fold(f32::INFINITY, f32::min);
    let high = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    [low, high]
}

/// Bins of one width between two quantiles of the simulation. Whole numbers have equally many of them in every bin, and edges between them: else
/// neighbours hold more and fewer of them in turn.
fn default_bins(input: &Input, place: usize, count: usize) -> Result<Binning> {
    let mut sorted = column(input.x.view(), place);
    sorted.sort_unstable_by(f32::total_cmp);
    let at = |share: f64| f64::from(sorted[((sorted.len() - 1) as f64 * share) as usize]);
    let (low, high) = (at(DEFAULT_TAIL), at(1.0 - DEFAULT_TAIL));
    if sorted.iter().all(|value| value.fract() == 0.0) {
        let numbers = high - low + 1.0;
        let width = (numbers / count as f64).ceil();
        let bins = (numbers / width).ceil();
        return Ok(Binning::uniform(
            low - 0.5,
            low - 0.5 + bins * width,
            bins as usize,
        )?);
    }
    let high = if high > low { high } else { low + 1.0 };
    Ok(Binning::uniform(low, high, count)?)
}
