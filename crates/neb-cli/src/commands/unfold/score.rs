//! How an unfolding compares with a truth that only scoring may see.

use std::path::{Path, PathBuf};

use anyhow::Result;
use neb::check::{Estimate, Sample};
use neb::unfold::{Histogram, Triangular, positive_weights, triangular};
use serde::{Deserialize, Serialize};

use super::bins::Observable;
use super::bottom_line::{Densities, Weights, separation};
use super::spectra::{Binned, Material, density_of};
use crate::args;
use crate::failure::Failure;
use crate::files;

/// Distances from the truth.
#[derive(Serialize, Deserialize)]
pub(crate) struct Score {
    /// The file of the truth, and which of its arrays or columns.
    pub(crate) truth: PathBuf,
    pub(crate) x: Option<String>,
    /// AUC of a classifier between the weighted simulation and the truth, of the smooth source, and of the simulation.
    pub(crate) weighted: Estimate,
    pub(crate) smooth: Estimate,
    pub(crate) simulation: Estimate,
    /// Every spectrum, in the order of the summary's.
    pub(crate) columns: Vec<ColumnScore>,
}

/// Triangular discriminators of one spectrum, and the truth itself as a density.
#[derive(Serialize, Deserialize)]
pub(crate) struct ColumnScore {
    pub(crate) name: String,
    pub(crate) weighted: Triangular,
    pub(crate) smooth: Triangular,
    pub(crate) simulation: Triangular,
    /// None where nothing of it lies in the bins, or the detector does not see the column.
    pub(crate) ibu: Option<Triangular>,
    pub(crate) data: Option<Triangular>,
    pub(crate) truth: Densities,
}

/// Reads the truth and compares.
pub(super) fn score(
    args: &args::Unfold,
    path: &Path,
    material: &Material,
    positive: &Weights,
    spectra: &[(Observable, Binned)],
    seed: u64,
) -> Result<Score> {
    let input = material.input;
    let named = args.truth_x.as_deref().or(args.columns.x.as_deref());
    let (truth, weights) = files::read_weighted(path, named, None)?;
    files::check_names("x", path, &truth, &input.x_names, "the pairs have")?;
    let rows = truth.values.view();
    let own = weights.as_deref();
    let known = own
        .map(|own| positive_weights(rows, own, seed))
        .transpose()?;
    let truth_sample = Sample {
        rows,
        weights: known.as_deref(),
    };
    let against = |sample: Sample| separation(sample, truth_sample, seed);
    let x = input.x.view();
    let columns = spectra.iter().map(|(observable, binned)| {
        let (places, axes) = (&observable.places, &observable.axes);
        let name = observable.columns(input).join(" × ");
        let truth = Histogram::of(rows, places, weights.as_deref(), axes)?;
        if truth.positive_inside().is_err() {
            return Err(Failure::input(
                format!(
                    "{}: no event of the truth lies in the bins of {name}; it was not scored",
                    path.display()
                ),
                "the unfolding is complete and kept; check units and the order of the columns",
            ));
        }
        let delta = |histogram: &Histogram| triangular(histogram, &truth);
        let baseline = binned.baseline.as_ref();
        let density = density_of(&truth);
        Ok(ColumnScore {
            name,
            weighted: delta(&binned.unfolded)?,
            smooth: delta(&binned.smooth)?,
            simulation: delta(&binned.simulation)?,
            ibu: baseline.and_then(|b| delta(&b.unfolded).ok()),
            data: baseline.and_then(|b| delta(&b.data).ok()),
            truth: Densities {
                values: density.values,
                errors: density.errors.into_iter().flat_map(|(_, e)| e).collect(),
            },
        })
    });
    Ok(Score {
        truth: std::path::absolute(path)?,
        x: named.map(str::to_owned),
        columns: columns.collect::<Result<_>>()?,
        weighted: against(Sample::weighted(x, positive.after))?,
        smooth: against(material.draws.view().into())?,
        simulation: against(Sample::weighted(x, positive.before))?,
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
