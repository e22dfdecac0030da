//! The figures of a report, each with a caption that says what is drawn, from how many rows, and what to look for.

use neb::Matrix;
use neb::check::{Calibration, Sample};
use neb_report::figures::{
    Corner, CornerSample, Curve, CurvePanel, Curves, MOST_COLUMNS, Overlay, PushForward,
    calibration, corner, curves, push_forward, rank_histograms,
};
use neb_report::{Block, Column, Role, Section, grouped};

use super::super::history::{Epoch, Training};
use super::super::material::{Found, Material, Truth};
use super::{DRAWS, Draws, posterior};

/// Effective samples below which a gradient is mostly noise.
const FEWEST_EFFECTIVE: f64 = 10.0;

/// The sections of the page.
pub(super) fn sections(material: &Material, draws: &Draws) -> Vec<Section> {
    let section = |heading: &str, blocks| Section {
        heading: heading.to_owned(),
        blocks,
    };
    vec![
        section(
            "Does the source reproduce the observations?",
            vec![observations(material, draws)],
        ),
        section("The learned source", vec![source(material, draws)]),
        section("Posteriors", posteriors(material)),
        section("Training", training(material)),
    ]
}

fn columns(rows: &Matrix) -> Vec<Column> {
    columns_of(rows.view().into())
}

fn columns_of(sample: Sample) -> Vec<Column> {
    (0..sample.rows.cols())
        .map(|number| Column::of(sample, number))
        .collect()
}

fn observations(material: &Material, draws: &Draws) -> Block {
    let seen = match &material.observations {
        Found::Here(seen) => seen,
        Found::Absent(why) => {
            return Block::Words(format!(
                "The push-forward is not set against the observations, which are not at hand. {why}"
            ));
        }
    };
    let (overlay, pairs) = match &material.pairs {
        Found::Here(pairs) => (
            Some(Overlay {
                label: "simulated pairs",
                columns: columns(&pairs.y.values),
            }),
            format!(
                "The dotted line is y of the {} simulated pairs: where it vanishes, the surrogate knows nothing. ",
                grouped(pairs.y.values.rows())
            ),
        ),
        Found::Absent(_) => (None, String::new()),
    };
    let figure = push_forward(&PushForward {
        name: "push-forward",
        title: "Push-forward of the learned source against the observations",
        columns: &seen.y.names,
        observed: columns_of(seen.sample()),
        model: columns(&draws.y),
        model_label: "push-forward of the source",
        overlay,
    });
    let bars = match seen.weights {
        Some(_) => "√Σw²",
        None => "√n",
    };
    let caption = format!(
        "Above, {} observations (dots, bars {bars}) and {} draws of the source pushed through the surrogate (line), for every \
         column of y, each normalised to one over the whole line; the central 99.8 % are shown. {pairs}Below, observations over \
         push-forward; bars are the errors of the observations, the band that of the draws, arrows point to values beyond the \
         panel. Look for ratios that leave one over several bins in a row: single bars miss it in one of three bins by \
         chance. χ² adds both errors over bins with five rows or more.",
        grouped(seen.y.values.rows()),
        grouped(DRAWS)
    );
    Block::Figure(figure, caption)
}

fn source(material: &Material, draws: &Draws) -> Block {
    let mut samples = vec![CornerSample {
        label: "learned source",
        role: Role::Learned,
        sample: draws.x.view().into(),
        contours: true,
    }];
    let mut rows = format!("{} draws of the learned source (filled)", grouped(DRAWS));
    if let Some(truth) = &material.truth {
        samples.push(CornerSample {
            label: "truth",
            role: Role::Truth,
            sample: weighted(truth),
            contours: true,
        });
        let count = grouped(truth.x.values.rows());
        rows.push_str(&format!(" and {count} rows of the truth (dashed)"));
    }
    let mut simulated = "";
    if let Some(particles) = &material.particles {
        samples.push(CornerSample {
            label: "simulated x",
            role: Role::Simulated,
            sample: particles.values.view().into(),
            contours: false,
        });
        simulated = " The dotted lines are x of the simulated pairs: a source that reaches their edge wants a wider proposal.";
    }
    let figure = corner(&Corner {
        name: "source",
        title: "Corner plot of the learned source",
        columns: &material.x_names,
        samples,
        mark: None,
    });
    let left_out = match material.x_names.len() {
        all if all > MOST_COLUMNS => {
            format!(" Only the first {MOST_COLUMNS} of {all} columns are drawn.")
        }
        _ => String::new(),
    };
    let agree = if material.truth.is_some() {
        " Solid and dashed lines should lie on each other."
    } else {
        ""
    };
    Block::Figure(
        figure,
        format!(
            "{rows}: density of each column on the diagonal, highest-density regions of 68, 95 and 99.7 % of every pair below.{agree} All \
             samples of a panel are smoothed with the same Gaussian kernel; where a density is flat, the 68 % line follows \
             its noise.{simulated}{left_out}"
        ),
    )
}

fn weighted(truth: &Truth) -> Sample<'_> {
    Sample {
        rows: truth.x.values.view(),
        weights: truth.weights.as_deref(),
    }
}

fn posteriors(material: &Material) -> Vec<Block> {
    let mut blocks = Vec::new();
    match &material.calibration {
        Some(found) => {
            blocks.push(Block::Figure(
                calibration("calibration", &material.x_names, found),
                calibration_caption(found),
            ));
            blocks.push(Block::Figure(
                rank_histograms("ranks", &material.x_names, found),
                ranks_caption(found),
            ));
        }
        None => blocks.push(Block::Words(
            "Calibration was not checked: `neb calibrate RUN --pairs FILE` does it, with pairs whose x is known; then write this \
             report again."
                .to_owned(),
        )),
    }
    if let Some((truth, y)) = material
        .truth
        .as_ref()
        .and_then(|truth| Some((truth, truth.y.as_ref()?)))
    {
        blocks.push(posterior::example(material, truth, y));
    }
    blocks
}

/// What the figure of calibration curves shows.
pub(in crate::commands) fn calibration_caption(found: &Calibration) -> String {
    format!(
        "Left, for each column, the fraction of {} events whose true x lies below each quantile of its posterior \
         ({} draws each); right, the same for the distance from random points (TARP) and along random \
         directions, which see the joint law. Exact posteriors give the diagonal; 95 % of their curves stay within the \
         band throughout. A curve that is flat in the middle belongs to posteriors that are too narrow, a steep one to \
         too wide ones, one above the diagonal to posteriors that are too high.",
        grouped(found.events),
        grouped(found.draws)
    )
}

/// What the figure of rank histograms shows.
pub(in super::super) fn ranks_caption(found: &Calibration) -> String {
    format!(
        "Ranks of the true x among the {} draws of its posterior, {} events (simulation-based calibration). Exact posteriors \
         give a flat histogram, with 95 % of the bins within the band. A valley means too narrow, a hill too wide, a \
         slope shifted posteriors.",
        grouped(found.draws),
        grouped(found.events)
    )
}

fn training(material: &Material) -> Vec<Block> {
    let of_stage = |stage: &'static str| {
        let trainings = material.trainings.iter();
        trainings.filter(move |training| training.stage == stage && training.epochs.len() > 1)
    };
    let losses = |training: &Training| {
        let curve = |label: &str, role, value: fn(&Epoch) -> f64| Curve {
            label: label.to_owned(),
            role,
            points: training.points(value),
        };
        CurvePanel {
            title: training.name.clone(),
            curves: vec![
                curve("training", Role::Simulated, |epoch| epoch.train),
                curve("held out", Role::Learned, |epoch| epoch.held_out),
            ],
            kept: training.best(),
        }
    };
    let mut blocks = Vec::new();
    let surrogates: Vec<CurvePanel> = of_stage("surrogate").map(losses).collect();
    if surrogates.is_empty() {
        blocks.push(Block::Words(
            "The surrogate was read from a file; how it was trained is not part of this run."
                .to_owned(),
        ));
    } else {
        let figure = curves(&Curves {
            name: "training-surrogate",
            title: "Losses of stage 1",
            x_name: "epoch",
            y_name: "−log q(y|x)",
            panels: surrogates,
            level: None,
        });
        let pairs = grouped(material.summary.rows.pairs);
        let caption = format!(
            "Stage 1: mean −log q(y|x) of each surrogate over the training and the held-out part of the {pairs} pairs, in standardised \
             units, with the noise added to y in training but not in the held-out loss; the dot is the state that was kept. A held-out loss that rises while the training loss falls means too many \
             epochs or too few pairs; one that still falls at the end, too few epochs. First epochs may lie above the panel."
        );
        blocks.push(Block::Figure(figure, caption));
    }
    let rungs: Vec<CurvePanel> = of_stage("source").map(losses).collect();
    if !rungs.is_empty() {
        let figure = curves(&Curves {
            name: "training-source",
            title: "Losses of stage 2",
            x_name: "epoch",
            y_name: "loss",
            panels: rungs,
            level: None,
        });
        let count = grouped(material.summary.rows.observations);
        let caption = format!(
            "Stage 2: the losses of each source over the training and held-out part of the {count} observations, in the units it was trained \
             in: −log p(y) by Monte Carlo for affine and refined sources, −log q(x) of the particles for splines that are fitted to \
             them, −log p(y) per iteration for the particles. The widening of the likelihood changes while affine sources are \
             trained, so only the shape of a curve means something; sources are compared in the table below."
        );
        blocks.push(Block::Figure(figure, caption));
    }
    blocks.push(effective_samples(material));
    blocks
}

fn effective_samples(material: &Material) -> Block {
    let panels: Vec<CurvePanel> = material
        .trainings
        .iter()
        .map(|training| CurvePanel {
            title: training.name.clone(),
            curves: vec![Curve {
                label: "effective samples".to_owned(),
                role: Role::Learned,
                points: training.points(|epoch| epoch.effective_samples),
            }],
            kept: None,
        })
        .filter(|panel| panel.curves[0].points.len() > 1)
        .collect();
    if panels.is_empty() {
        return Block::Words(
            "Effective sample sizes during training were not recorded by this run; those at its end are in the table below."
                .to_owned(),
        );
    }
    let figure = curves(&Curves {
        name: "effective-samples",
        title: "Effective sample size over training",
        x_name: "epoch",
        y_name: "effective samples",
        panels,
        level: Some((FEWEST_EFFECTIVE, "fewest for a useful gradient")),
    });
    let caption =
        "Effective number of source samples behind the gradient of one observation, (Σ w)² / Σ w² with w = q(y|x), over the training \
         of each source. Below ten the gradient is mostly noise: raise K or widen the likelihood."
            .to_owned();
    Block::Figure(figure, caption)
}
