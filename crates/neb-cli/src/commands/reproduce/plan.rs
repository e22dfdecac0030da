//! Which fits a table needs.
//!
//! A *row* is a way of fitting the source; a *cell* is a row on one problem, once. Tables share cells: L_1024 with the UMNN
//! is in three of them and is fitted once.

use serde::{Deserialize, Serialize};

use crate::args::Preset;

/// The paper's tables and figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Table {
    /// L_K and its de-biased forms for small and large K: y-space
    BiasedVsUnbiased,
    /// ELBO, IW_128 and L_1024: x- and y-space
    Estimators,
    /// The same with a source that is even by construction: x-space
    Symmetric,
    /// A plain network as generator, K = 1024 and 4096: x- and y-space
    MlpSource,
    /// Greatest KS distance over 1000 posteriors, with the paper's sampler for each estimator
    Calibration,
    /// The set of x that may have produced one or two observations
    FewObservations,
    /// The estimators on a collider sample (--collider FOLDER)
    Collider,
}

impl Table {
    /// All of them, in the order they are run.
    pub(super) const ALL: [Self; 7] = [
        Self::Estimators,
        Self::Symmetric,
        Self::Calibration,
        Self::MlpSource,
        Self::BiasedVsUnbiased,
        Self::FewObservations,
        Self::Collider,
    ];
    /// Those of the three problems that have numbers in the paper.
    #[cfg(test)]
    pub(super) const PRINTED: [Self; 5] = [
        Self::Estimators,
        Self::Symmetric,
        Self::Calibration,
        Self::MlpSource,
        Self::BiasedVsUnbiased,
    ];

    /// The heading.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::BiasedVsUnbiased => "Biased against de-biased",
            Self::Estimators => "Estimators",
            Self::Symmetric => "Symmetric source",
            Self::MlpSource => "A plain network as source",
            Self::Calibration => "Calibration of posteriors",
            Self::FewObservations => "One and two observations",
            Self::Collider => "Collider sample",
        }
    }

    /// What is measured.
    pub(super) fn metrics(self) -> &'static [Metric] {
        match self {
            Self::BiasedVsUnbiased => &[Metric::Y],
            Self::Symmetric => &[Metric::X],
            Self::Calibration => &[Metric::Ks],
            Self::FewObservations => &[],
            Self::Estimators | Self::MlpSource | Self::Collider => &[Metric::X, Metric::Y],
        }
    }

    /// Ways of fitting the source; ours come last.
    pub(super) fn rows(self) -> Vec<Row> {
        use Estimator::{Auto, Elbo, Iw, Mc, Mlp, Roulette, RouletteSingle, Unfold};
        let estimators = match self {
            Self::BiasedVsUnbiased => [Mc, RouletteSingle, Roulette]
                .into_iter()
                .flat_map(|kind| [10, 128, 256, 1024].map(kind))
                .chain([Auto])
                .collect(),
            Self::MlpSource => vec![Mlp(1024), Mlp(4096), Auto],
            Self::FewObservations => Vec::new(),
            Self::Collider => vec![Elbo, Iw(128), Mc(1024), Auto, Unfold],
            _ => vec![Elbo, Iw(128), Mc(1024), Auto],
        };
        let symmetric = self == Self::Symmetric;
        let row = |estimator| Row {
            estimator,
            symmetric,
        };
        estimators.into_iter().map(row).collect()
    }
}

/// What a cell measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Metric {
    /// AUC of the source's draws against the true source.
    X,
    /// AUC of their simulated observations against fresh ones.
    Y,
    /// Greatest KS distance of the posteriors' ranks.
    Ks,
}

impl Metric {
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::X => "x-space AUC",
            Self::Y => "y-space AUC",
            Self::Ks => "KS",
        }
    }
}

/// How the source is fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Estimator {
    Mc(usize),
    /// The paper's roulette, which adds one sample at a time.
    RouletteSingle(usize),
    /// Ours, which doubles.
    Roulette(usize),
    Elbo,
    Iw(usize),
    /// L_K with a plain network as generator.
    Mlp(usize),
    /// The program's defaults.
    Auto,
    /// The defaults of `neb unfold`, the command for collider data: weights on the simulated events.
    Unfold,
}

/// A way of fitting the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Row {
    pub(super) estimator: Estimator,
    pub(super) symmetric: bool,
}

impl Row {
    /// As it stands in a table.
    pub(super) fn title(self) -> String {
        match self.estimator {
            Estimator::Mc(k) => format!("L_{k}"),
            Estimator::RouletteSingle(k) => format!("roulette_{k}"),
            Estimator::Roulette(k) => format!("roulette_{k}, doubling"),
            Estimator::Elbo => "ELBO".to_owned(),
            Estimator::Iw(k) => format!("IW_{k}"),
            Estimator::Mlp(k) => format!("MLP, L_{k}"),
            Estimator::Auto => "neb (defaults)".to_owned(),
            Estimator::Unfold => "neb unfold (defaults)".to_owned(),
        }
    }

    /// As it stands in the name of a folder.
    pub(super) fn slug(self) -> String {
        let name = match self.estimator {
            Estimator::Mc(k) => format!("mc-{k}"),
            Estimator::RouletteSingle(k) => format!("roulette-single-{k}"),
            Estimator::Roulette(k) => format!("roulette-doubling-{k}"),
            Estimator::Elbo => "elbo".to_owned(),
            Estimator::Iw(k) => format!("iw-{k}"),
            Estimator::Mlp(k) => format!("mlp-{k}"),
            Estimator::Auto => "auto".to_owned(),
            Estimator::Unfold => "unfold".to_owned(),
        };
        match self.symmetric {
            true => format!("{name}-symmetric"),
            false => name,
        }
    }

    /// The keys of `[source]` in a configuration file; `flow` is the kind of flow.
    pub(super) fn source_keys(self, flow: &str) -> String {
        let flow = format!("source = \"{flow}\"\n");
        let mut keys = match self.estimator {
            Estimator::Mc(k) => format!("{flow}estimator = \"mc\"\nk = {k}\n"),
            Estimator::RouletteSingle(k) => {
                format!("{flow}estimator = \"roulette\"\nlevels = \"single\"\nk = {k}\n")
            }
            Estimator::Roulette(k) => {
                format!("{flow}estimator = \"roulette\"\nlevels = \"doubling\"\nk = {k}\n")
            }
            Estimator::Elbo => format!("{flow}estimator = \"elbo\"\n"),
            Estimator::Iw(k) => format!("{flow}estimator = \"iw\"\nk = {k}\n"),
            Estimator::Mlp(k) => format!("source = \"mlp\"\nestimator = \"mc\"\nk = {k}\n"),
            Estimator::Auto | Estimator::Unfold => String::new(),
        };
        if self.symmetric {
            keys.push_str("symmetric = \"all\"\n");
        }
        keys
    }

    /// Whether it is ours: default settings, whatever the preset.
    pub(super) fn is_ours(self) -> bool {
        matches!(self.estimator, Estimator::Auto | Estimator::Unfold)
    }

    /// Whether its source is fitted with the surrogate that the rows of a repeat share.
    pub(super) fn shares_surrogate(self) -> bool {
        self.estimator != Estimator::Unfold
    }
}

/// Our own row in a quick look: a poor surrogate would ask for many samples.
const FEW_SAMPLES: &str = "affine-k = 64\nrefine-k = 64\njudge-k = 256\n";

/// A row on one problem, once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Cell {
    pub(super) problem: String,
    pub(super) row: Row,
    /// From 1.
    pub(super) repeat: u64,
    pub(super) seed: u64,
    /// Whether its posteriors are to be checked.
    pub(super) calibrated: bool,
}

/// Sizes and settings common to all cells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Setup {
    pub(super) preset: Preset,
    pub(super) pairs: usize,
    pub(super) observations: usize,
    /// Most epochs of a source, where they were limited.
    pub(super) epochs: Option<usize>,
}

impl Setup {
    /// The flow behind the estimators.
    fn flow(&self, problem: &str) -> &'static str {
        match (self.preset, problem) {
            (Preset::Paper, super::COLLIDER) => "coupling",
            (Preset::Paper, _) => "umnn",
            (Preset::Fast, _) => "spline",
        }
    }

    pub(super) fn preset_of(&self, row: Row) -> &'static str {
        match (self.preset, row.is_ours()) {
            (Preset::Paper, false) => "paper",
            _ => "fast",
        }
    }

    /// Stage 1 of a cell, as a configuration file.
    pub(super) fn surrogate_settings(&self, cell: &Cell) -> String {
        let preset = self.preset_of(cell.row);
        let kind = match preset {
            "paper" => "paper",
            _ => "noisy-mixture",
        };
        let epochs = self.epochs.map(|epochs| format!("epochs = {epochs}\n"));
        format!(
            "seed = {}\npreset = \"{preset}\"\n[surrogate]\nkind = \"{kind}\"\n{}",
            cell.seed,
            epochs.unwrap_or_default()
        )
    }

    /// Stage 2 of a cell, likewise.
    pub(super) fn source_settings(&self, cell: &Cell) -> String {
        let keys = cell.row.source_keys(self.flow(&cell.problem));
        let epochs = match (cell.row.is_ours(), self.epochs) {
            (_, None) => String::new(),
            (true, Some(epochs)) => {
                format!("refine-epochs = {epochs}\nflow-epochs = {epochs}\n{FEW_SAMPLES}")
            }
            (false, Some(epochs)) => format!("epochs = {epochs}\nleast-steps = 1\n"),
        };
        let preset = self.preset_of(cell.row);
        format!(
            "seed = {}\npreset = \"{preset}\"\n[source]\n{keys}{epochs}",
            cell.seed
        )
    }

    /// The words of `neb unfold` that are not its defaults: the spectra's errors are not judged here.
    pub(super) fn unfold_options(&self) -> Vec<String> {
        let mut options = vec!["--replicas".to_owned(), "0".to_owned()];
        if let Some(epochs) = self.epochs {
            for flag in ["--epochs", "--smooth-epochs"] {
                options.extend([flag.to_owned(), epochs.to_string()]);
            }
        }
        options
    }

    /// What a cell is run with; it is run again with nothing else.
    pub(super) fn settings(&self, cell: &Cell) -> [String; 2] {
        match cell.row.shares_surrogate() {
            true => [self.surrogate_settings(cell), self.source_settings(cell)],
            false => [
                format!("seed = {}\n", cell.seed),
                self.unfold_options().join(" "),
            ],
        }
    }

    /// What a cell costs beside the others: seconds on one core of an AVX-512 machine, roughly.
    pub(super) fn cost(&self, cell: &Cell) -> f64 {
        let judging = 30.0;
        if cell.row.is_ours() || self.preset == Preset::Fast {
            return 150.0 + judging;
        }
        let batch = 128.0;
        // Work of a step in passes of a draw, and the epochs there usually are; by the seconds of cells that were run.
        let (passes, epochs): (f64, f64) = match cell.row.estimator {
            Estimator::Mc(k) => (15.0 * k as f64, 50.0),
            Estimator::Roulette(k) | Estimator::RouletteSingle(k) => (30.0 * k as f64, 100.0),
            Estimator::Elbo => (24.0 * batch, 130.0),
            Estimator::Iw(k) => (1.5 * batch * k as f64, 130.0),
            Estimator::Mlp(k) => (3.0 * k as f64, 100.0),
            Estimator::Auto | Estimator::Unfold => (0.0, 0.0),
        };
        let dim = match &*cell.problem {
            "two-moons" => 2.0,
            "ik" => 4.0,
            _ => 5.0,
        };
        let epochs = self.epochs.map_or(epochs, |most| epochs.min(most as f64));
        let steps = epochs * self.observations as f64 / batch;
        judging + steps * passes * dim * 4e-6
    }

    /// The preset, as it is typed.
    pub(super) fn preset_name(&self) -> &'static str {
        match self.preset {
            Preset::Fast => "fast",
            Preset::Paper => "paper",
        }
    }
}

/// The cells of tables, each once.
pub(super) fn cells(tables: &[Table], problems: &[&str], seed: u64, repeats: u64) -> Vec<Cell> {
    let mut cells: Vec<Cell> = Vec::new();
    for repeat in 1..=repeats {
        for &table in tables {
            let problems = match table {
                Table::Collider => &[super::COLLIDER][..],
                _ => problems,
            };
            for row in table.rows() {
                for problem in problems {
                    let cell = Cell {
                        problem: (*problem).to_owned(),
                        row,
                        repeat,
                        seed: seed + repeat - 1,
                        calibrated: table == Table::Calibration,
                    };
                    let same = |known: &&mut Cell| {
                        (known.row, &known.problem, known.repeat) == (row, &cell.problem, repeat)
                    };
                    match cells.iter_mut().find(same) {
                        Some(known) => known.calibrated |= cell.calibrated,
                        None => cells.push(cell),
                    }
                }
            }
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The command for collider data is in the collider's table alone, and stands with our own rows.
    #[test]
    fn collider_has_a_row_of_unfold() {
        let all = cells(&Table::ALL, &["ik"], 1, 1);
        let unfold: Vec<&Cell> = all.iter().filter(|c| !c.row.shares_surrogate()).collect();
        assert_eq!(unfold.len(), 1);
        assert_eq!(unfold[0].problem, super::super::COLLIDER);
        assert!(unfold[0].row.is_ours());
    }

    #[test]
    fn tables_share_their_cells() {
        let problems = ["slcp", "two-moons", "ik"];
        let tables = [Table::Estimators, Table::Calibration];
        let both = cells(&tables, &problems, 1, 2);
        assert_eq!(both.len(), 4 * 3 * 2);
        assert!(both.iter().all(|cell| cell.calibrated));
        assert_eq!(both[12].seed, 2);
        let more = cells(
            &[Table::Estimators, Table::BiasedVsUnbiased],
            &problems,
            1,
            1,
        );
        assert_eq!(more.len(), (4 + 13 - 2) * 3);
    }
}
