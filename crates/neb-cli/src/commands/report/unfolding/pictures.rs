//! The figures of an unfolding, each with a caption that says what is drawn, from what, and what to look for.

use neb::check::Sample;
use neb_data::{Series, Spectrum};
use neb_report::figures::{
    Corner, CornerSample, CorrelationPanel, Correlations, Look, MOST_COLUMNS, Map, Maps, Scale,
    Spectra, SpectraPanel, SpectraSeries, calibration, corner, correlations, maps, rank_histograms,
    spectra,
};
use neb_report::{Block, Role, Section, grouped};

use super::super::contents::{calibration_caption, ranks_caption};
use super::{JOINT, Material, tables};
use crate::commands::unfold::{Densities, FoldedColumn};

/// The sections of the page.
pub(super) fn sections(material: &Material) -> Vec<Section> {
    let section = |heading: &str, blocks| Section {
        heading: heading.to_owned(),
        blocks,
    };
    let mut unfolded = vec![one_by_one(material)];
    unfolded.extend(joint(material));
    unfolded.extend(tables::discriminators(material).map(Block::Table));
    unfolded.push(correlation(material));
    let mut trust = vec![Block::Table(tables::trust(material))];
    trust.extend([folded(material), recovered(material)]);
    vec![
        section("The unfolded spectra", unfolded),
        section("Can it be trusted?", trust),
        section("The smooth source", vec![source(material)]),
        section("Posteriors", posteriors(material)),
    ]
}

fn find<'a>(spectrum: &'a Spectrum, name: &str) -> Option<&'a Series> {
    spectrum.series.iter().find(|series| series.name == name)
}

/// Errors of all sources together, in quadrature.
fn total_errors(series: &Series) -> Vec<f64> {
    let squares = |bin: usize| series.errors.iter().map(move |(_, e)| e[bin] * e[bin]);
    let bins = 0..series.values.len();
    bins.map(|bin| squares(bin).sum::<f64>().sqrt()).collect()
}

fn of_series(
    spectrum: &Spectrum,
    name: &str,
    label: &str,
    role: Role,
    look: Look,
) -> Option<SpectraSeries> {
    let series = find(spectrum, name)?;
    Some(SpectraSeries {
        label: label.to_owned(),
        role,
        look,
        values: series.values.clone(),
        errors: total_errors(series),
        in_ratio: name != "data",
    })
}

fn of_densities(densities: &Densities, label: &str, role: Role, look: Look) -> SpectraSeries {
    SpectraSeries {
        label: label.to_owned(),
        role,
        look,
        values: densities.values.clone(),
        errors: densities.errors.clone(),
        in_ratio: true,
    }
}

/// The truth of a spectrum, where it is known.
fn truth(material: &Material, number: usize) -> Option<&Densities> {
    let score = material.score.as_ref()?;
    Some(&score.columns[number].truth)
}

/// How far result and baseline are from the truth, where it is known.
fn distance(material: &Material, number: usize) -> String {
    let Some(score) = &material.score else {
        return String::new();
    };
    let column = &score.columns[number];
    let (own, floor) = (column.weighted.value, column.weighted.noise_floor);
    let binned = column.ibu.map(|ibu| format!(", IBU {:.1}", ibu.value));
    let binned = binned.unwrap_or_default();
    format!("1000 Δ: unfolded {own:.1}{binned}, chance {floor:.1}")
}

fn one_by_one(material: &Material) -> Block {
    let panels = material.spectra.iter().enumerate();
    let panels = panels.filter(|(_, spectrum)| spectrum.axes.len() == 1);
    let panel = |(number, spectrum): (usize, &Spectrum)| {
        let unfolded = of_series(spectrum, "unfolded", "unfolded", Role::Learned, Look::Band);
        let truth = truth(material, number)
            .map(|truth| of_densities(truth, "truth", Role::Truth, Look::Band));
        let mut series: Vec<SpectraSeries> = truth.into_iter().chain(unfolded).collect();
        series.extend(
            [
                ("simulation", "simulation", Role::Simulated, Look::Line),
                ("ibu", "binned (IBU)", Role::Baseline, Look::Points),
                ("data", "data, not unfolded", Role::Observed, Look::Line),
            ]
            .into_iter()
            .filter_map(|(name, label, role, look)| of_series(spectrum, name, label, role, look)),
        );
        SpectraPanel {
            name: spectrum.axes[0].name.clone(),
            note: distance(material, number),
            edges: spectrum.axes[0].edges.clone(),
            series,
        }
    };
    let known = material.score.is_some();
    let figure = spectra(&Spectra {
        name: "spectra",
        title: "Unfolded spectra beside truth, simulation, binned unfolding and data",
        y_name: "density",
        ratio_name: if known { "over truth" } else { "over unfolded" },
        panels: panels.map(panel).collect(),
    });
    let summary = &material.summary;
    let [data, simulation, training] = summary.replicas;
    let errors = match summary.replicas.iter().all(|&count| count < 2) {
        true => "no errors, since there are no replicas".to_owned(),
        false => format!(
            "the band is one standard error from {data} replicas of the data, {simulation} of the simulation and {training} of the training"
        ),
    };
    let below = match known {
        true => {
            "Below, each over the truth, whose band is its own statistical error: where the blue band leaves one by more than its \
             width over several bins in a row, the result is biased. Δ is the triangular discriminator against the truth."
        }
        false => {
            "Below, each over the unfolded result, whose band is its error: how far the dotted line is from one is what the data \
             changed in the simulation."
        }
    };
    Block::Figure(
        figure,
        format!(
            "Every column of x, each spectrum as a density that integrates to one over the bins shown. Solid blue: {} simulated events weighted so that, seen \
             through the detector, they describe the data; {errors}. Green dots: iterative Bayesian unfolding of this column alone, 3 iterations, with statistical errors. Dotted: \
             the simulation before. Plain line: the {} events of data as they are, at detector level. {below} Numbers of events, errors by source and covariances are in `spectra`.",
            grouped(summary.simulated),
            grouped(summary.data)
        ),
    )
}

/// Maps of every pair that was asked for.
fn joint(material: &Material) -> Vec<Block> {
    let spectra = material.spectra.iter().enumerate();
    let pairs = spectra.filter(|(_, spectrum)| spectrum.axes.len() == 2);
    pairs
        .filter_map(|(number, spectrum)| pair(material, number, spectrum))
        .collect()
}

fn pair(material: &Material, number: usize, spectrum: &Spectrum) -> Option<Block> {
    let unfolded = find(spectrum, "unfolded")?;
    let errors = total_errors(unfolded);
    let percent = |part: f64, whole: f64| match whole > 0.0 {
        true => 100.0 * part / whole,
        false => f64::NAN,
    };
    let against = |other: &[f64]| -> Vec<f64> {
        let both = unfolded.values.iter().zip(other);
        both.map(|(own, other)| percent(own - other, *other))
            .collect()
    };
    let mut shown = vec![Map {
        title: "unfolded density".to_owned(),
        scale: Scale::Positive,
        values: unfolded.values.clone(),
    }];
    if errors.iter().any(|error| *error > 0.0) {
        let both = errors.iter().zip(&unfolded.values);
        shown.push(Map {
            title: "its error (%)".to_owned(),
            scale: Scale::Positive,
            values: both
                .map(|(error, value)| match percent(*error, *value) {
                    error if error > 100.0 => 100.0,
                    error => error,
                })
                .collect(),
        });
    }
    if let Some(simulation) = find(spectrum, "simulation") {
        shown.push(Map {
            title: "unfolded against simulation (%)".to_owned(),
            scale: Scale::AroundZero(50.0),
            values: against(&simulation.values),
        });
    }
    let truth = truth(material, number);
    match (truth, find(spectrum, "ibu")) {
        (Some(truth), _) => {
            let pull = |bin: usize| {
                let error = errors[bin].hypot(truth.errors[bin]);
                (unfolded.values[bin] - truth.values[bin]) / error
            };
            shown.push(Map {
                title: "unfolded less truth, in errors".to_owned(),
                scale: Scale::AroundZero(4.0),
                values: (0..errors.len()).map(pull).collect(),
            });
        }
        (None, Some(ibu)) => shown.push(Map {
            title: "unfolded against binned, IBU (%)".to_owned(),
            scale: Scale::AroundZero(50.0),
            values: against(&ibu.values),
        }),
        (None, None) => {}
    }
    let names = [0, 1].map(|axis| spectrum.axes[axis].name.clone());
    let title = format!("{} and {} together", names[0], names[1]);
    let caption = format!(
        "{title}: the unfolded density, its error, and how far it is from the simulation{}. Colours end at ± 50 %, those of errors at 100 %; grey cells are \
         empty. The whole covariance, and binned unfolding of the pair, are in `spectra`.",
        match truth {
            Some(_) => " and, in combined errors of both (colours end at 4), from the truth",
            None => " and from binned unfolding of the pair",
        }
    );
    let figure = maps(&Maps {
        name: &format!("{JOINT}{}", number + 1),
        title: &title,
        edges: [0, 1].map(|axis| spectrum.axes[axis].edges.clone()),
        columns: names,
        maps: shown,
    });
    Some(Block::Figure(figure, caption))
}

/// The covariance of all sources together: the simulation's holds the training's.
fn total_covariance(series: &Series) -> Option<Vec<f64>> {
    let of = |name: &str| series.covariances.iter().find(|(own, _)| own == name);
    let parts = [
        of("data"),
        of("simulation-and-training").or_else(|| of("training")),
    ];
    let mut parts = parts.into_iter().flatten().map(|(_, values)| values);
    let mut sum = parts.next()?.clone();
    for part in parts {
        for (sum, value) in sum.iter_mut().zip(part) {
            *sum += value;
        }
    }
    Some(sum)
}

fn correlation(material: &Material) -> Block {
    let single = material.spectra.iter().filter(|s| s.axes.len() == 1);
    let panels: Option<Vec<CorrelationPanel>> = single
        .map(|spectrum| {
            let covariance = total_covariance(find(spectrum, "unfolded")?)?;
            let bins = spectrum.bins();
            let mut values = neb_data::correlation(&covariance, bins);
            for (place, value) in values.iter_mut().enumerate() {
                let varies = |bin: usize| covariance[bin * bins + bin] > 0.0;
                if !varies(place / bins) || !varies(place % bins) {
                    *value = f64::NAN;
                }
            }
            Some(CorrelationPanel {
                name: spectrum.axes[0].name.clone(),
                edges: spectrum.axes[0].edges.clone(),
                values,
            })
        })
        .collect();
    let Some(panels) = panels else {
        return Block::Words(
            "There are no correlations of the bins, since there are no replicas: `--replicas 100` costs little more than none."
                .to_owned(),
        );
    };
    let figure = correlations(&Correlations {
        name: "correlations",
        title: "Correlations of the bins of each unfolded spectrum",
        panels,
    });
    let used = material
        .summary
        .replicas
        .into_iter()
        .filter(|&count| count >= 2);
    let replicas = used.min().unwrap_or(2);
    let chance = 1.0 / ((replicas - 1) as f64).sqrt();
    Block::Figure(
        figure,
        format!(
            "Correlations of the bins of each unfolded density, all sources of error together. Neighbours that cannot be told apart by the \
             detector go together (vermilion) or share a sum (blue); since a density integrates to one, its bins are on the whole \
             anticorrelated; grey bins are empty. From {replicas} replicas, ± {chance:.2} is what chance gives two bins that have nothing to do with each other."
        ),
    )
}

fn folded(material: &Material) -> Block {
    let columns = &material.summary.found.bottom_line.columns;
    let panel = |column: &FoldedColumn| SpectraPanel {
        name: column.name.clone(),
        note: format!("χ²/bins = {:.0}/{}", column.chi_square, column.bins),
        edges: column.edges.clone(),
        series: vec![
            of_densities(&column.folded, "folded result", Role::Learned, Look::Band),
            of_densities(&column.before, "simulation", Role::Simulated, Look::Line),
            of_densities(&column.data, "data", Role::Observed, Look::Points),
        ],
    };
    let figure = spectra(&Spectra {
        name: "folded",
        title: "The folded result against the data",
        y_name: "density",
        ratio_name: "over folded",
        panels: columns.iter().map(panel).collect(),
    });
    Block::Figure(
        figure,
        format!(
            "The bottom line: y of the weighted simulation as the detector saw it, with fakes and background where there are any (blue; the band is the error of \
             the simulation's number of events), against the {} events of data (dots). Dotted: the simulation before unfolding. The dots should lie \
             within their bars in two of three bins, without leaving one over several bins in a row. A good description of the data is needed, and proves nothing where \
             the detector sees little.",
            grouped(material.summary.data)
        ),
    )
}

fn recovered(material: &Material) -> Block {
    let trust = &material.summary.found.trust;
    let both = trust.closure.iter().zip(&trust.stress);
    let panels = both.map(|(closure, stress)| {
        let edges = |bins: usize| (0..=bins).map(|edge| edge as f64 / bins as f64).collect();
        let series = |label: &str, role, look, values: &[f64], errors: &[f64]| SpectraSeries {
            label: label.to_owned(),
            role,
            look,
            values: values.to_vec(),
            errors: errors.to_vec(),
            in_ratio: false,
        };
        let (lines, dots) = (Look::Line, Look::Points);
        let (ratios, errors) = (&closure.ratios, &closure.errors);
        SpectraPanel {
            name: format!("quantile of {}", closure.name),
            note: String::new(),
            edges: edges(closure.bins),
            series: vec![
                series(
                    "stress, before",
                    Role::Simulated,
                    lines,
                    &stress.before,
                    &[],
                ),
                series("closure", Role::Baseline, dots, ratios, errors),
                series(
                    "stress",
                    Role::Learned,
                    dots,
                    &stress.ratios,
                    &stress.errors,
                ),
            ],
        }
    });
    let figure = spectra(&Spectra {
        name: "trust",
        title: "Closure and stress tests",
        y_name: "found over expected",
        ratio_name: "",
        panels: panels.collect(),
    });
    let first = &material.summary.x_names[0];
    Block::Figure(
        figure,
        format!(
            "Tests whose answer is known, in ten bins of equal content for every column: half of the simulation plays the data, the other half is weighted. Closure (green): the \
             pseudo-data are the simulation itself, and every dot should be at one. Stress (blue): the pseudo-data are reweighted by 1 + ½ tanh of the standardised {first}, \
             which moves the spectra by what the dotted line shows, and the dots should be back at one. Bars are one standard error: of the pseudo-data, from 25 replicas, and of the events that are weighted. What is left \
             of the dotted line in the dots is what this detector and this simulation cannot tell."
        ),
    )
}

fn source(material: &Material) -> Block {
    let draws = &material.draws.values;
    let mut samples = vec![CornerSample {
        label: "smooth source",
        role: Role::Learned,
        sample: draws.view().into(),
        contours: true,
    }];
    let mut others = String::new();
    if let Some((truth, weights)) = &material.truth {
        samples.push(CornerSample {
            label: "truth",
            role: Role::Truth,
            sample: Sample {
                rows: truth.values.view(),
                weights: weights.as_deref(),
            },
            contours: true,
        });
        let count = grouped(truth.values.rows());
        others.push_str(&format!(" Dashed: {count} events of the truth."));
    }
    let positive = material.simulated.as_ref().map(|(_, weights)| {
        let weights = weights.as_ref()?.iter();
        Some(weights.map(|w| w.max(0.0)).collect::<Vec<f32>>())
    });
    if let Some((simulated, _)) = &material.simulated {
        samples.push(CornerSample {
            label: "simulation",
            role: Role::Simulated,
            sample: Sample {
                rows: simulated.values.view(),
                weights: positive.as_ref().and_then(|weights| weights.as_deref()),
            },
            contours: false,
        });
        others.push_str(" Dotted, on the diagonal: the simulation before unfolding.");
    }
    let figure = corner(&Corner {
        name: "source",
        title: "Corner plot of the smooth unfolded source",
        columns: &material.summary.x_names,
        samples,
        mark: None,
    });
    let left_out = match material.summary.x_names.len() {
        all if all > MOST_COLUMNS => {
            format!(" Only the first {MOST_COLUMNS} of {all} columns are drawn.")
        }
        _ => String::new(),
    };
    let refined = match material.summary.refined {
        true => "and refined on the data",
        false => "(refining it on the data did not help)",
    };
    Block::Figure(
        figure,
        format!(
            "{} draws of the smooth source, a spline flow fitted to the weighted simulation {refined}: density of each column on the diagonal, \
             highest-density regions of 68, 95 and 99.7 % of every pair below.{others} All samples of a panel are smoothed with the same Gaussian kernel, so that \
             steps, atoms and whole numbers are drawn out; the spectra above have them as they are.{left_out}",
            grouped(draws.rows())
        ),
    )
}

fn posteriors(material: &Material) -> Vec<Block> {
    let Some(found) = &material.calibration else {
        return vec![Block::Words(
            "Posteriors of single events were not checked: `neb calibrate RUN --pairs FILE` does it, with reconstructed events whose x is known and \
             distributed as the unfolded source; then write this report again."
                .to_owned(),
        )];
    };
    let names = &material.summary.x_names;
    vec![
        Block::Figure(
            calibration("calibration", names, found),
            calibration_caption(found),
        ),
        Block::Figure(rank_histograms("ranks", names, found), ranks_caption(found)),
    ]
}
