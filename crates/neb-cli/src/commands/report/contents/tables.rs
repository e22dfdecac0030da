//! Numbers of a run: what was tried, what it scored, versions, seeds, timings.

use neb::check::Estimate;
use neb_report::{Table, grouped};

use super::super::material::{Found, Material};
use super::{COMPARED, DRAWS};

/// The tables of the page.
pub(super) fn tables(
    material: &Material,
    y_auc: Option<Estimate>,
    x_auc: Option<Estimate>,
) -> Vec<Table> {
    let mut tables = vec![facts(material), comparisons(y_auc, x_auc)];
    tables.push(surrogates(material));
    tables.push(rungs(material));
    tables.retain(|table| !table.rows.is_empty());
    tables
}

fn facts(material: &Material) -> Table {
    let summary = &material.summary;
    let mut rows = vec![
        row("neb", &summary.versions.neb),
        row("neb of this report", env!("CARGO_PKG_VERSION")),
        row("seed of the fit", summary.seed),
        row("seed of this report", material.seed),
        row("simulated pairs", grouped(summary.rows.pairs)),
        row("observations", grouped(summary.rows.observations)),
        row("draws behind the figures", grouped(DRAWS)),
        row("seconds of the fit", format!("{:.1}", summary.seconds)),
    ];
    if let Some(data) = &summary.data {
        rows.push(row("file of the pairs", data.pairs.display()));
        rows.push(row("file of the observations", data.observations.display()));
    }
    if let Some(from) = &summary.surrogate.from {
        rows.push(row("surrogate read from", from.display()));
    }
    for warning in &summary.warnings {
        rows.push(row("warning of the fit", warning));
    }
    for found in [
        absent(&material.observations).map(|why| row("observations", why)),
        absent(&material.pairs).map(|why| row("pairs", why)),
    ] {
        rows.extend(found);
    }
    Table {
        heading: "Data, versions, seeds and timings".to_owned(),
        note: String::new(),
        columns: Vec::new(),
        rows,
    }
}

fn absent<T>(found: &Found<T>) -> Option<&str> {
    match found {
        Found::Here(_) => None,
        Found::Absent(why) => Some(why),
    }
}

/// A name and a value.
pub(in super::super) fn row(name: &str, value: impl std::fmt::Display) -> Vec<String> {
    vec![name.to_owned(), value.to_string()]
}

fn comparisons(y_auc: Option<Estimate>, x_auc: Option<Estimate>) -> Table {
    let each = [
        ("y pushed forward against the observations", y_auc),
        ("x of the source against the truth", x_auc),
    ];
    Table {
        heading: "Classifier tests".to_owned(),
        note: format!(
            "A network and boosted trees, of which the sharper counts, scored on rows they have not seen; as many draws as rows, at most {}.",
            grouped(COMPARED)
        ),
        columns: ["samples", "AUC", "error", "if nothing differs"]
            .map(str::to_owned)
            .to_vec(),
        rows: each
            .into_iter()
            .filter_map(|(name, auc)| {
                let auc = auc?;
                Some(vec![
                    name.to_owned(),
                    format!("{:.4}", auc.value),
                    format!("{:.4}", auc.standard_error),
                    format!("{:.4} to {:.4}", auc.null.low, auc.null.high),
                ])
            })
            .collect(),
    }
}

fn surrogates(material: &Material) -> Table {
    let summary = &material.summary.surrogate;
    let columns = [
        "",
        "surrogate",
        "parameters",
        "held-out log q(y|x)",
        "best epoch",
        "seconds",
    ];
    Table {
        heading: "Stage 1: the surrogates that were tried".to_owned(),
        note: String::new(),
        columns: columns.map(str::to_owned).to_vec(),
        rows: summary
            .tried
            .iter()
            .map(|tried| {
                vec![
                    chosen(tried.name == summary.winner),
                    tried.name.clone(),
                    tried.parameters.to_string(),
                    format!("{:.4}", tried.held_out),
                    tried.best_epoch.to_string(),
                    format!("{:.1}", tried.seconds),
                ]
            })
            .collect(),
    }
}

fn rungs(material: &Material) -> Table {
    let summary = &material.summary.source;
    let columns = [
        "",
        "source",
        "held-out log p(y)",
        "gain ± error",
        "kept",
        "effective",
        "seconds",
    ];
    let number = |value: Option<f64>, digits: usize| {
        value.map_or("–".to_owned(), |value| format!("{value:.digits$}"))
    };
    Table {
        heading: "Stage 2: the sources that were tried".to_owned(),
        note: summary.reason.clone(),
        columns: columns.map(str::to_owned).to_vec(),
        rows: summary
            .rungs
            .iter()
            .map(|rung| {
                vec![
                    chosen(rung.name == summary.winner),
                    rung.name.clone(),
                    number(rung.held_out, 4),
                    match (rung.gain, rung.standard_error) {
                        (Some(gain), Some(error)) => format!("{gain:+.4} ± {error:.4}"),
                        _ => "–".to_owned(),
                    },
                    if rung.kept { "yes" } else { "no" }.to_owned(),
                    number(rung.effective_samples, 0),
                    format!("{:.1}", rung.seconds),
                ]
            })
            .collect(),
    }
}

fn chosen(yes: bool) -> String {
    if yes { "✓" } else { "" }.to_owned()
}
