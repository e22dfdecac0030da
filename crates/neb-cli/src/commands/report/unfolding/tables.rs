//! The numbers of an unfolding.

use neb::check::Estimate;
use neb::unfold::{Recovered, Triangular};
use neb_report::{Table, grouped};

use super::super::contents::row;
use super::Material;

fn names(columns: &[&str]) -> Vec<String> {
    columns.iter().map(|&name| name.to_owned()).collect()
}

fn auc(estimate: &Estimate) -> String {
    format!(
        "{:.4} ± {:.4} ({:.4} to {:.4} if nothing differed)",
        estimate.value, estimate.standard_error, estimate.null.low, estimate.null.high
    )
}

/// What every check measured.
pub(super) fn trust(material: &Material) -> Table {
    let (summary, found) = (&material.summary, &material.summary.found);
    let bottom = &found.bottom_line;
    let mut rows = vec![
        row(
            "bottom line, AUC of folded result against data",
            auc(&bottom.auc),
        ),
        row("the same before unfolding", auc(&bottom.auc_before)),
    ];
    let all = |squares: Vec<(f64, usize)>| {
        let square: f64 = squares.iter().map(|(square, _)| square).sum();
        let bins: usize = squares.iter().map(|(_, bins)| bins).sum();
        (square, bins)
    };
    let columns = bottom.columns.iter();
    let (square, bins) = all(columns.map(|c| (c.chi_square, c.bins)).collect());
    let each: Vec<String> = bottom
        .columns
        .iter()
        .map(|c| format!("{} {:.0}/{}", c.name, c.chi_square, c.bins))
        .collect();
    rows.push(row(
        "χ² over bins of y",
        format!("{square:.1}/{bins} ({})", each.join(", ")),
    ));
    for (name, columns) in [
        ("closure", &found.trust.closure),
        ("stress", &found.trust.stress),
    ] {
        let (square, bins) = all(columns.iter().map(|c| (c.chi_square, c.bins)).collect());
        let most = |of: fn(&Recovered) -> f64| columns.iter().map(of).fold(0.0, f64::max);
        rows.push(row(
            name,
            format!(
                "χ²/bins {square:.1}/{bins}; at most {:.1} % off, {:.1} % before",
                100.0 * most(|column| column.rest),
                100.0 * most(|column| column.shift)
            ),
        ));
    }
    let outside: Vec<String> = found
        .outside_shares
        .iter()
        .filter(|(_, share)| *share > 0.0)
        .map(|(name, share)| format!("{name} {:.3} %", 100.0 * share))
        .collect();
    rows.push(row(
        "data outside the simulated range",
        match outside.is_empty() {
            true => "none".to_owned(),
            false => outside.join(", "),
        },
    ));
    let count = |value: f64| grouped(value.round() as usize);
    rows.push(row(
        "effective events",
        format!(
            "{} of data, {} of the simulation, {} of the weighted simulation",
            count(summary.effective_data),
            count(summary.effective_simulation),
            count(summary.effective_weighted)
        ),
    ));
    if let Some(score) = &material.score {
        rows.push(row(
            "against the truth, AUC of the weighted simulation",
            auc(&score.weighted),
        ));
        rows.push(row("of the smooth source", auc(&score.smooth)));
        rows.push(row("of the simulation before", auc(&score.simulation)));
    }
    Table {
        heading: "Checks".to_owned(),
        note: "AUC: how well boosted trees tell two samples apart on events they have not seen; 0.5 is not at all. χ² of closure and stress leave correlations \
               of the bins out."
            .to_owned(),
        columns: Vec::new(),
        rows,
    }
}

/// Triangular discriminators, where the truth is known.
pub(super) fn discriminators(material: &Material) -> Option<Table> {
    let score = material.score.as_ref()?;
    let maybe = |value: &Option<Triangular>| match value {
        Some(value) => format!("{:.2}", value.value),
        None => "–".to_owned(),
    };
    let rows = score.columns.iter().map(|column| {
        vec![
            column.name.clone(),
            format!("{:.2}", column.weighted.value),
            format!("{:.2}", column.smooth.value),
            maybe(&column.ibu),
            maybe(&column.data),
            format!("{:.2}", column.simulation.value),
            format!("{:.2}", column.weighted.noise_floor),
        ]
    });
    Some(Table {
        heading: "Distance from the truth, spectrum by spectrum".to_owned(),
        note: "The triangular discriminator ½ Σ (p − q)² / (p + q) × 1000 of the bins; the last column is what two samples of these sizes have on average if \
               nothing differs."
            .to_owned(),
        columns: names(&[
            "",
            "unfolded",
            "smooth",
            "IBU",
            "data",
            "simulation",
            "noise floor",
        ]),
        rows: rows.collect(),
    })
}

/// How it was made.
pub(super) fn made(material: &Material) -> Vec<Table> {
    let summary = &material.summary;
    let [data, simulation, training] = summary.replicas;
    let mut rows = vec![
        row("neb", &summary.version),
        row("neb of this report", env!("CARGO_PKG_VERSION")),
        row("seed", summary.seed),
        row("simulated events", grouped(summary.simulated)),
        row("reconstructed of these", grouped(summary.reconstructed)),
        row("of negative weight", grouped(summary.negative_weights)),
        row("events of data", grouped(summary.data)),
        row("events produced", format!("{:.1}", summary.produced)),
        row(
            "signal in the data",
            format!("{:.2} %", 100.0 * summary.signal),
        ),
        row("mean efficiency", format!("{:.4}", summary.efficiency)),
        row("iterations of the weights", summary.iterations),
        row(
            "replicas of data, simulation and training",
            format!("{data}, {simulation}, {training}"),
        ),
        row(
            "held-out log q(y|x) of the surrogate",
            format!("{:.4}", summary.surrogate_held_out),
        ),
        row(
            "seconds of the nominal fit",
            format!("{:.1}", summary.nominal_seconds),
        ),
        row("file of the simulation", summary.files.pairs.display()),
        row("file of the data", summary.files.observations.display()),
    ];
    if let Some(score) = &material.score {
        rows.push(row("file of the truth", score.truth.display()));
    }
    vec![Table {
        heading: "Data, versions, seeds and timings".to_owned(),
        note: String::new(),
        columns: Vec::new(),
        rows,
    }]
}
