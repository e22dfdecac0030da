//! `neb report`: the page of a run and its figures.

use std::fs;

use neb_data::{Array, Dataset};

use crate::folder::Folder;

const FIGURES: [&str; 4] = [
    "push-forward",
    "source",
    "training-surrogate",
    "training-source",
];

/// The page, as text.
fn page(folder: &Folder, name: &str) -> String {
    String::from_utf8(folder.bytes(name)).unwrap()
}

/// Whether the page has a figure of this name.
fn shows(page: &str, figure: &str) -> bool {
    page.contains(&format!("<figure id=\"{figure}\""))
}

#[test]
fn a_report_has_a_verdict_figures_and_numbers() {
    let folder = Folder::with_run();
    let said = folder.succeed("report run");
    assert!(said.contains("run/report.html"), "{said}");
    let text = page(&folder, "run/report.html");
    for figure in FIGURES {
        assert!(shows(&text, figure), "{figure}");
        let svg = page(&folder, &format!("run/figures/{figure}.svg"));
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        let png = folder.bytes(&format!("run/figures/{figure}.png"));
        assert_eq!(&png[1..4], b"PNG");
    }
    for words in [
        "AUC",
        "neb calibrate",
        "affine of normal",
        "seed of the fit",
        "affine-k = 128",
        "400 observations",
    ] {
        assert!(text.contains(words), "no `{words}` on the page");
    }
    assert!(!shows(&text, "posterior") && !shows(&text, "calibration"));
}

/// Same run, same bytes; and a report may be written again without --force, into the run only.
#[test]
fn a_report_can_be_repeated() {
    let folder = Folder::with_run();
    folder.succeed("report run");
    let first = folder.contents();
    folder.succeed("report run --threads 1");
    assert!(first == folder.contents());
    fs::write(folder.path("mine.html"), "mine").unwrap();
    folder.refused("report run -o mine.html", &["mine.html", "--force"]);
    folder.succeed("report run -o mine.html --force");
    assert!(shows(&page(&folder, "mine.html"), "source"));
    // Figures beside a page elsewhere may be anybody's.
    fs::create_dir_all(folder.path("other/figures")).unwrap();
    fs::write(folder.path("other/figures/source.png"), "mine").unwrap();
    folder.refused(
        "report run -o other/page.html",
        &["other/figures/source.png", "--force"],
    );
    assert_eq!(folder.bytes("other/figures/source.png"), b"mine");
}

/// Rows of weight zero, far from everything, change neither the AUC nor the histograms.
#[test]
fn event_weights_of_the_observations_count() {
    let folder = Folder::with_run();
    let y = Dataset::open(folder.path("seen.npz")).unwrap().array("y");
    let mut y = y.unwrap().values;
    let mut weights = vec![1f32; y.len() / 2];
    y.extend([50.0; 800]);
    weights.extend([0.0; 400]);
    let arrays = [
        Array::new("y", &[weights.len(), 2], &y[..]),
        Array::new("weight", &[weights.len()], &weights[..]),
    ];
    neb_data::write(folder.path("weighted.npz"), true, &arrays).unwrap();
    let auc = |line: &str| -> f64 {
        let said: serde_json::Value = serde_json::from_str(&folder.succeed(line)).unwrap();
        said["y_auc"]["value"].as_f64().unwrap()
    };
    let plain = auc("report run --json");
    let weighted = auc("report run --observations weighted.npz --json");
    assert!((plain - weighted).abs() < 0.1, "{plain} {weighted}");
    let text = page(&folder, "run/report.html");
    assert!(
        text.contains("bars √Σw²") && !text.contains("outside the range of the simulated pairs")
    );
}

#[test]
fn the_truth_adds_its_auc_and_a_posterior() {
    let folder = Folder::with_run();
    let said = folder.succeed("report run --truth seen.npz --json");
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert!(said["x_auc"]["value"].as_f64().unwrap() > 0.4, "{said}");
    let text = page(&folder, "run/report.html");
    assert!(text.contains("400 rows of the truth"));
    assert!(shows(&text, "posterior"));
    assert!(folder.path("run/figures/posterior.svg").exists());
    folder.succeed("report run");
    assert!(!folder.path("run/figures/posterior.svg").exists());
    folder.write_pairs("uneven.npz", &[0.1; 10], &[0.1; 20]);
    folder.refused(
        "report run --truth uneven.npz",
        &["uneven.npz", "x has 5 rows, y has 10"],
    );
}

/// Data that are gone are said to be gone, and what needs them is left out.
#[test]
fn a_report_does_without_the_data() {
    let folder = Folder::with_run();
    fs::rename(folder.path("seen.npz"), folder.path("moved.npz")).unwrap();
    fs::remove_file(folder.path("pairs.npz")).unwrap();
    folder.succeed("report run");
    let text = page(&folder, "run/report.html");
    assert!(!shows(&text, "push-forward") && shows(&text, "source"));
    assert!(text.contains("seen.npz is no longer there"));
    assert!(text.contains("Not judged"));
    folder.succeed("report run --observations moved.npz");
    assert!(shows(&page(&folder, "run/report.html"), "push-forward"));
}

/// Calibration is part of the page where it was checked.
#[test]
fn a_calibration_is_shown() {
    use neb::check::{CalibrationOptions, Posteriors, calibrate};
    use neb::{Noise, Purpose};
    let folder = Folder::with_run();
    let truth = Noise::new(1, Purpose::Test, 0).normal(100, 2);
    let draws = Noise::new(2, Purpose::Test, 0).normal(100 * 50, 2);
    let posteriors = Posteriors {
        draws: draws.view(),
        weights: None,
        truth: truth.view(),
    };
    let found = calibrate(posteriors, &CalibrationOptions::default()).unwrap();
    let json = serde_json::to_string(&found).unwrap();
    fs::write(folder.path("run/calibration.json"), json).unwrap();
    folder.succeed("report run");
    let text = page(&folder, "run/report.html");
    assert!(shows(&text, "calibration") && shows(&text, "ranks"));
    assert!(text.contains("100 events"));

    fs::write(folder.path("run/calibration.json"), "{}").unwrap();
    folder.refused("report run", &["calibration.json"]);
}

/// Effective sample sizes are drawn where the history has them.
#[test]
fn effective_samples_are_shown_where_they_were_recorded() {
    let folder = Folder::with_run();
    let history = String::from_utf8(folder.bytes("run/history.csv")).unwrap();
    let with: Vec<String> = history
        .lines()
        .enumerate()
        .map(|(row, line)| match row {
            0 => format!("{line},effective_samples"),
            row => format!("{line},{row}"),
        })
        .collect();
    if !history.contains("effective_samples") {
        fs::write(folder.path("run/history.csv"), with.join("\n")).unwrap();
    }
    folder.succeed("report run");
    assert!(shows(
        &page(&folder, "run/report.html"),
        "effective-samples"
    ));
}

#[test]
fn what_is_no_run_has_no_report() {
    let folder = Folder::with_observations();
    fs::create_dir(folder.path("empty")).unwrap();
    folder.refused("report empty", &["empty", "no run"]);
    folder.refused("report nowhere", &["nowhere"]);
    folder.refused(
        "report pairs.npz",
        &["pairs.npz: is a file; a run is a folder"],
    );
}

#[test]
fn a_truth_of_other_columns_is_refused() {
    let folder = Folder::with_run();
    folder.succeed("simulate slcp -n 30 -o other.npz");
    folder.refused("report run --truth other.npz", &["other.npz", "5 columns"]);
}
