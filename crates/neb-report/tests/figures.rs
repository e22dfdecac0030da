//! Every figure, made of small samples: well-formed, styled, the same each time, and with text in its pixels.

use std::sync::OnceLock;

use neb::check::{Calibration, CalibrationOptions, Posteriors, Sample, calibrate};
use neb::{Matrix, Noise, Purpose};
use neb_report::figures::{
    Corner, CornerSample, CorrelationPanel, Correlations, Curve, CurvePanel, Curves, Look, Map,
    Maps, Overlay, PushForward, Scale, Spectra, SpectraPanel, SpectraSeries, calibration, corner,
    correlations, curves, maps, push_forward, rank_histograms, spectra,
};
use neb_report::{
    Block, Column, Facts, Figure, Report, Role, Section, Table, style_sheet, verdict,
};

fn names(letter: &str, count: usize) -> Vec<String> {
    (1..=count)
        .map(|number| format!("{letter}{number}"))
        .collect()
}

fn normal(rows: usize, columns: usize, seed: u64) -> Matrix {
    Noise::new(seed, Purpose::Test, 0).normal(rows, columns)
}

fn corner_of(name: &str, columns: usize, hostile: &str) -> Figure {
    let (learned, truth) = (normal(800, columns, 1), normal(500, columns, 2));
    let weights: Vec<f32> = (0..500).map(|row| 1.0 + (row % 3) as f32).collect();
    let mut names = names("x", columns);
    names[0] = format!("x1{hostile}");
    let mark = vec![0.3f32; columns];
    corner(&Corner {
        name,
        title: "Corner",
        columns: &names,
        samples: vec![
            CornerSample {
                label: "learned",
                role: Role::Learned,
                sample: learned.view().into(),
                contours: true,
            },
            CornerSample {
                label: "truth",
                role: Role::Truth,
                sample: Sample::weighted(truth.view(), &weights),
                contours: true,
            },
        ],
        mark: Some((&mark, "true x")),
    })
}

fn push_forward_of(columns: usize) -> Figure {
    let each = |seed| -> Vec<Column> {
        let sample = normal(700, columns, seed);
        (0..columns)
            .map(|number| Column::of(sample.view().into(), number))
            .collect()
    };
    push_forward(&PushForward {
        name: "push-forward",
        title: "Push-forward",
        columns: &names("y", columns),
        observed: each(3),
        model: each(4),
        model_label: "push-forward",
        overlay: Some(Overlay {
            label: "pairs",
            columns: each(5),
        }),
    })
}

fn curves_of(panels: usize) -> Figure {
    let falling = |epoch: usize| [epoch as f64, 1.0 / (1.0 + epoch as f64)];
    let panel = |number: usize| CurvePanel {
        title: format!("training {number}"),
        curves: vec![Curve {
            label: "held out".to_owned(),
            role: Role::Learned,
            points: (0..30).map(falling).collect(),
        }],
        kept: Some(29.0),
    };
    curves(&Curves {
        name: "curves",
        title: "Losses",
        x_name: "epoch",
        y_name: "loss",
        panels: (0..panels).map(panel).collect(),
        level: Some((0.1, "level")),
    })
}

fn calibrated(columns: usize) -> Calibration {
    let (truth, draws) = (normal(200, columns, 6), normal(200 * 50, columns, 7));
    let posteriors = Posteriors {
        draws: draws.view(),
        weights: None,
        truth: truth.view(),
    };
    calibrate(posteriors, &CalibrationOptions::default()).unwrap()
}

/// Edges of uneven bins, the first of a spectrum's bins empty: its ratio is not a number there.
const EDGES: [f64; 5] = [0.0, 1.0, 1.5, 3.0, 10.0];

fn spectra_of(panels: usize, ratio_name: &str) -> Figure {
    let series = |label: &str, role, look, values: [f64; 4]| SpectraSeries {
        label: label.to_owned(),
        role,
        look,
        values: values.to_vec(),
        errors: values.map(|value| 0.1 * value).to_vec(),
        in_ratio: true,
    };
    let panel = |number: usize| SpectraPanel {
        name: format!("m{number} <\u{1}>"),
        note: "χ² = 3".to_owned(),
        edges: EDGES.to_vec(),
        series: vec![
            series("truth", Role::Truth, Look::Band, [0.0, 0.5, 1.0, 0.2]),
            series("unfolded", Role::Learned, Look::Line, [0.1, 0.6, 1.0, 0.0]),
            series("ibu", Role::Baseline, Look::Points, [0.1, 0.4, 9.0, 0.0]),
        ],
    };
    spectra(&Spectra {
        name: &format!("spectra-{panels}{ratio_name}"),
        title: "Spectra",
        y_name: "density",
        ratio_name,
        panels: (0..panels).map(panel).collect(),
    })
}

fn correlations_of(panels: usize) -> Figure {
    let panel = |number: usize| CorrelationPanel {
        name: format!("m{number}"),
        edges: EDGES.to_vec(),
        values: (0..16)
            .map(|at| if at % 5 == 0 { 1.0 } else { -0.3 })
            .collect(),
    };
    correlations(&Correlations {
        name: &format!("correlations-{panels}"),
        title: "Correlations",
        panels: (0..panels).map(panel).collect(),
    })
}

fn maps_of() -> Figure {
    let map = |scale, first: f64| Map {
        title: "a map".to_owned(),
        scale,
        values: (0..8).map(|at| first + f64::from(at)).collect(),
    };
    maps(&Maps {
        name: "maps",
        title: "Maps",
        columns: ["m".to_owned(), "zg".to_owned()],
        edges: [vec![0.0, 1.0, 4.0], EDGES.to_vec()],
        maps: vec![
            map(Scale::Positive, 0.0),
            map(Scale::AroundZero(3.0), -4.0),
            map(Scale::Positive, f64::NAN),
        ],
    })
}

/// Every figure, made once for all tests.
fn all() -> &'static [Figure] {
    static ALL: OnceLock<Vec<Figure>> = OnceLock::new();
    ALL.get_or_init(make_all)
}

fn make_all() -> Vec<Figure> {
    let checked = calibrated(3);
    vec![
        corner_of("corner-1", 1, ""),
        corner_of("corner-2", 2, " <script>&\""),
        corner_of("corner-5", 5, ""),
        push_forward_of(1),
        push_forward_of(8),
        curves_of(1),
        curves_of(5),
        calibration("calibration", &names("x", 3), &checked),
        rank_histograms("ranks", &names("x", 3), &checked),
        spectra_of(1, ""),
        spectra_of(3, "ratio"),
        correlations_of(1),
        correlations_of(6),
        maps_of(),
    ]
}

#[test]
fn figures_are_well_formed_and_inside_their_frame() {
    for figure in all() {
        for text in [figure.to_svg(), figure.to_inline()] {
            let document = roxmltree::Document::parse(&text).unwrap_or_else(|error| {
                panic!("{}: {error}", figure.name);
            });
            assert!(
                !text.contains("NaN") && !text.contains("inf"),
                "{}",
                figure.name
            );
            for node in document
                .descendants()
                .filter(|node| node.has_tag_name("text"))
            {
                let place = |name| node.attribute(name).unwrap().parse::<f64>().unwrap();
                assert!(
                    (0.0..=figure.width).contains(&place("x")),
                    "{}",
                    figure.name
                );
                assert!(
                    (0.0..=figure.height).contains(&place("y")),
                    "{}",
                    figure.name
                );
            }
        }
    }
}

#[test]
fn every_class_has_a_style() {
    let style = style_sheet();
    for figure in all() {
        let text = figure.to_inline();
        let document = roxmltree::Document::parse(&text).unwrap();
        let classes = document
            .descendants()
            .filter_map(|node| node.attribute("class"));
        for class in classes.flat_map(str::split_whitespace) {
            assert!(
                style.contains(&format!(".{class}{{")),
                "{}: {class}",
                figure.name
            );
        }
    }
}

#[test]
fn the_same_data_give_the_same_bytes() {
    for (first, second) in all().iter().zip(make_all()) {
        assert_eq!(first.to_svg(), second.to_svg());
    }
    let figure = corner_of("corner-2", 2, "");
    assert_eq!(figure.to_png(1.0).unwrap(), figure.to_png(1.0).unwrap());
}

/// No font of the machine is ever loaded: what is there comes from the program. Longer names leave more ink.
#[test]
fn text_is_in_the_pixels_without_any_font_on_the_machine() {
    let dark = |name: &str| {
        let png = corner_of("corner-2", 2, name).to_png(2.0).unwrap();
        let image = resvg::tiny_skia::Pixmap::decode_png(&png).unwrap();
        let pixels = image.pixels().iter();
        pixels
            .filter(|pixel| pixel.red() < 100 && pixel.blue() < 100)
            .count()
    };
    let (without, with) = (dark(""), dark(" WWWW"));
    assert!(with > without + 100, "{without} and {with} dark pixels");
}

/// The page is whole: every figure, caption and word, escaped; nothing that would be fetched.
#[test]
fn the_page_holds_everything_and_fetches_nothing() {
    let report = Report {
        title: "A <run>".to_owned(),
        verdict: verdict(&Facts::default()),
        sections: vec![Section {
            heading: "Pictures".to_owned(),
            blocks: all()
                .iter()
                .map(|figure| Block::Figure(figure.clone(), "What is drawn & why".to_owned()))
                .chain([
                    Block::Words("Nothing else.".to_owned()),
                    Block::Table(Table {
                        heading: "Among pictures".to_owned(),
                        note: String::new(),
                        columns: Vec::new(),
                        rows: vec![vec!["AUC & more".to_owned()]],
                    }),
                ])
                .collect(),
        }],
        tables: vec![Table {
            heading: "Numbers".to_owned(),
            note: "By `neb`".to_owned(),
            columns: vec!["name".to_owned()],
            rows: vec![vec!["<b>".to_owned()]],
        }],
        config: "seed = 1".to_owned(),
    };
    let page = report.to_html();
    assert_eq!(page.matches("<svg").count(), report.figures().count());
    assert_eq!(
        page.matches("What is drawn &amp; why").count(),
        report.figures().count()
    );
    for expected in [
        "A &lt;run&gt;",
        "&lt;b&gt;",
        "seed = 1",
        "By <code>neb</code>",
        "Nothing else.",
        "Among pictures",
        "AUC &amp; more",
        "not at hand",
    ] {
        assert!(page.contains(expected), "{expected}");
    }
    assert!(!page.contains("<script"));
    let addresses = page.matches("http").count();
    assert_eq!(
        addresses,
        page.matches("http://www.w3.org/2000/svg").count()
    );
}
