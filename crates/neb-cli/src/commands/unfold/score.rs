//! How an unfolding compares with a truth that only scoring may see.

use std::path::Path;

use anyhow::Result;
use neb::check::{Estimate, Sample};
use neb::unfold::{Binning, Histogram, Triangular, triangular};
use serde::Serialize;

use super::bottom_line::separation;
use super::spectra::{Binned, Material};
use crate::args;
use crate::files;

/// Distances from the truth.
#[derive(Serialize)]
pub(crate) struct Score {
    /// AUC of a classifier between the weighted simulation and the truth, of the smooth source, and of the simulation.
    weighted: Estimate,
    smooth: Estimate,
    simulation: Estimate,
    /// Triangular discriminators, column by column.
    columns: Vec<ColumnScore>,
}

#[derive(Serialize)]
struct ColumnScore {
    name: String,
    weighted: Triangular,
    smooth: Triangular,
    simulation: Triangular,
    ibu: Option<Triangular>,
    data: Option<Triangular>,
}

/// Reads the truth and compares.
pub(super) fn score(
    args: &args::Unfold,
    path: &Path,
    material: &Material,
    binned: &[Binned],
    bins: &[Binning],
    seed: u64,
) -> Result<Score> {
    let input = material.input;
    let named = args.truth_x.as_deref().or(args.columns.x.as_deref());
    let (truth, weights) = files::read_weighted(path, named, None)?;
    files::check_names("x", path, &truth, &input.x_names, "the pairs have")?;
    let rows = truth.values.view();
    let truth_sample = Sample {
        rows,
        weights: weights.as_deref(),
    };
    let against = |sample: Sample| separation(sample, truth_sample, seed);
    let positive = |weights: &[f32]| -> Vec<f32> { weights.iter().map(|w| w.max(0.0)).collect() };
    let x = input.x.view();
    let columns = binned.iter().zip(bins).enumerate();
    let columns = columns.map(|(place, (binned, bins))| {
        let axes = std::slice::from_ref(bins);
        let truth = Histogram::of(rows, &[place], weights.as_deref(), axes)?;
        let delta = |histogram: &Histogram| triangular(histogram, &truth);
        Ok(ColumnScore {
            name: input.x_names[place].clone(),
            weighted: delta(&binned.unfolded)?,
            smooth: delta(&binned.smooth)?,
            simulation: delta(&binned.simulation)?,
            ibu: binned.ibu.as_ref().map(delta).transpose()?,
            data: binned.data.as_ref().map(delta).transpose()?,
        })
    });
    Ok(Score {
        columns: columns.collect::<Result<_>>()?,
        weighted: against(Sample::weighted(x, &positive(material.weights)))?,
        smooth: against(material.draws.view().into())?,
        simulation: against(Sample::weighted(
            x,
            &positive(&input.events.produced_weights),
        ))?,
    })
}

impl Score {
    pub(super) fn text(&self) -> String {
        let auc = |e: &Estimate| format!("{:.4} ± {:.4}", e.value, e.standard_error);
        let mut text = format!(
            "against the truth, AUC: weighted simulation {}, smooth source {}, simulation {}\n\
             {:<12} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}   (triangular discriminator x 1000)\n",
            auc(&self.weighted),
            auc(&self.smooth),
            auc(&self.simulation),
            "",
            "weighted",
            "smooth",
            "IBU",
            "none",
            "prior",
            "floor"
        );
        for column in &self.columns {
            let maybe = |value: &Option<Triangular>| match value {
                Some(value) => format!("{:.2}", value.value),
                None => "-".to_owned(),
            };
            text.push_str(&format!(
                "{:<12} {:>9.2} {:>9.2} {:>9} {:>9} {:>9.2} {:>9.2}\n",
                column.name,
                column.weighted.value,
                column.smooth.value,
                maybe(&column.ibu),
                maybe(&column.data),
                column.simulation.value,
                column.weighted.noise_floor,
            ));
        }
        text
    }
}
