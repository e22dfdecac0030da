//! `summary.json` of an unfolding, and the same in words.

use std::path::Path;

use neb::unfold::{Recovered, TrustChecks, Unfolding, effective_events};
use serde::{Deserialize, Serialize};

use super::bottom_line::BottomLine;
use super::input::Input;
use crate::args;
use crate::commands::summary::DataFiles;

/// What `command` is in the summary of an unfolding.
pub(crate) const COMMAND: &str = "unfold";

/// What the trust checks found.
#[derive(Serialize, Deserialize)]
pub(crate) struct Found {
    pub(crate) bottom_line: BottomLine,
    pub(crate) trust: TrustChecks,
    /// Share of the data outside the range of the simulation, by the columns of y.
    pub(crate) outside_shares: Vec<(String, f64)>,
}

/// A spectrum of the folder.
#[derive(Serialize, Deserialize)]
pub(crate) struct Written {
    /// What its files are called.
    pub(crate) name: String,
    /// One or two columns of x.
    pub(crate) columns: Vec<String>,
}

/// What was unfolded, and how far to trust it.
#[derive(Serialize, Deserialize)]
pub(crate) struct Summary {
    /// The command this run comes from.
    pub(crate) command: String,
    /// The neb it was made with.
    pub(crate) version: String,
    /// Where the events came from.
    pub(crate) files: DataFiles,
    pub(crate) x_names: Vec<String>,
    pub(crate) spectra: Vec<Written>,
    pub(crate) simulated: usize,
    pub(crate) reconstructed: usize,
    pub(crate) data: usize,
    /// Effective numbers of events (Σ w)² / Σ w²: of the data, of the simulation, and of the weighted simulation.
    pub(crate) effective_data: f64,
    pub(crate) effective_simulation: f64,
    pub(crate) effective_weighted: f64,
    /// Number of events produced, corrected for efficiency and background.
    pub(crate) produced: f64,
    /// Share of the data that is signal.
    pub(crate) signal: f64,
    /// Mean efficiency of the unfolded spectrum.
    pub(crate) efficiency: f64,
    /// Negative weights of the simulation.
    pub(crate) negative_weights: usize,
    /// Held-out log q(y|x) of the surrogate.
    pub(crate) surrogate_held_out: f64,
    pub(crate) iterations: usize,
    /// Log-likelihood of fitted and held-out data, iteration by iteration.
    pub(crate) history: Vec<(f64, Option<f64>)>,
    /// Whether refining the smooth source helped, by how much each held-out event gained, and the error of that.
    pub(crate) refined: bool,
    pub(crate) refinement: [Option<f64>; 2],
    /// Data outside the range of the simulation, in words.
    pub(crate) outside: Option<String>,
    #[serde(flatten)]
    pub(crate) found: Found,
    /// Replicas of data, simulation and training.
    pub(crate) replicas: [u64; 3],
    pub(crate) nominal_seconds: f64,
    pub(crate) seed: u64,
}

impl Summary {
    pub(super) fn new(
        args: &args::Unfold,
        input: &Input,
        unfolding: &Unfolding,
        (spectra, found): (Vec<Written>, Found),
        (nominal_seconds, seed): (f64, u64),
    ) -> Self {
        let events = &input.events;
        let efficiencies = unfolding.folding.efficiencies(events.produced.view());
        let shares = unfolding.particles.weights.iter().zip(&efficiencies);
        let finite = |value: f64| value.is_finite().then_some(value);
        Self {
            command: COMMAND.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            files: DataFiles::new(&args.pairs, &args.observations, &args.columns),
            x_names: input.x_names.clone(),
            spectra,
            simulated: events.produced.rows(),
            reconstructed: events.matched.rows(),
            data: events.data.rows(),
            effective_data: effective_events(&events.data_weights),
            effective_simulation: effective_events(&events.produced_weights),
            effective_weighted: unfolding.effective_events(),
            produced: unfolding.produced,
            signal: unfolding.particles.signal,
            efficiency: shares.map(|(share, &e)| share * f64::from(e)).sum(),
            negative_weights: events.produced_weights.iter().filter(|w| **w < 0.0).count(),
            surrogate_held_out: unfolding.folding.report.best().held_out,
            iterations: unfolding.particles.iteration,
            history: unfolding
                .history()
                .iter()
                .map(|step| (step.train, step.held_out))
                .collect(),
            refined: unfolding.smooth.refined,
            refinement: [
                finite(unfolding.smooth.gain.0),
                finite(unfolding.smooth.gain.1),
            ],
            outside: input.outside.clone(),
            found,
            replicas: [
                args.replicas,
                args.simulation_replicas,
                args.training_replicas,
            ],
            nominal_seconds,
            seed,
        }
    }

    pub(super) fn text(&self, output: &Path) -> String {
        let bottom = &self.found.bottom_line;
        let mut text = format!(
            "{}: {:.1} events produced, from {} of data ({:.1} % signal, mean efficiency {:.3})\n\
             {} iterations; {:.0} effective events of {} simulated, {:.0} of data\n\
             bottom line: folded result against data, AUC {:.4} ± {:.4} (before unfolding {:.4})\n",
            output.display(),
            self.produced,
            self.data,
            100.0 * self.signal,
            self.efficiency,
            self.iterations,
            self.effective_weighted,
            self.simulated,
            self.effective_data,
            bottom.auc.value,
            bottom.auc.standard_error,
            bottom.auc_before.value,
        );
        for column in &bottom.columns {
            let (name, square, bins) = (&column.name, column.chi_square, column.bins);
            text.push_str(&format!("  {name:<12} chi2/ndf {square:.1}/{bins}\n"));
        }
        let checks = [
            ("closure", &self.found.trust.closure),
            ("stress", &self.found.trust.stress),
        ];
        for (name, columns) in checks {
            let square: f64 = columns.iter().map(|column| column.chi_square).sum();
            let bins: usize = columns.iter().map(|column| column.bins).sum();
            let most = |of: fn(&Recovered) -> f64| columns.iter().map(of).fold(0.0, f64::max);
            text.push_str(&format!(
                "{name}: chi2/ndf {square:.1}/{bins}, at most {:.1} % off, {:.1} % before\n",
                100.0 * most(|column| column.rest),
                100.0 * most(|column| column.shift)
            ));
        }
        text.push_str(&format!(
            "smooth source: refinement {}; nominal fit {:.0} s\n",
            if self.refined { "kept" } else { "not kept" },
            self.nominal_seconds
        ));
        text
    }
}
