//! `neb unfold` from the outside: a Gaussian behind an efficiency, with fakes and background; the truth is only for scoring.

use std::path::PathBuf;
use std::process::Stdio;

use neb::{Noise, Purpose};
use neb_data::{Array, Dataset};

use crate::folder::{Folder, read};

/// Settings that unfold in a second or two; the bins reach down to where the poisoned truth is.
const SMALL: &str =
    "--epochs 4 --components 1 --smooth-epochs 2 --replicas 3 --draws 500 --bins x1=8:-1000:3";

/// Writes columns of numbers.
fn write(folder: &Folder, name: &str, columns: &[(&str, &[f32])]) {
    let arrays: Vec<Array> = columns
        .iter()
        .map(|(name, values)| Array::new(name, &[values.len(), 1], *values))
        .collect();
    neb_data::write(folder.path(name), true, &arrays).unwrap();
}

/// x ~ N(mean, 1) seen as x + N(0, ½²) with probability ½ below zero and 1 above.
struct Drawn {
    x: Vec<f32>,
    y: Vec<f32>,
    seen: Vec<f32>,
}

fn draw(rows: usize, mean: f32, step: u64) -> Drawn {
    let noise = Noise::new(1, Purpose::Test, step);
    let (normal, uniform) = (noise.normal(rows, 2), noise.uniform(rows, 1));
    let x: Vec<f32> = (0..rows).map(|row| mean + normal.row(row)[0]).collect();
    Drawn {
        y: (0..rows)
            .map(|row| x[row] + 0.5 * normal.row(row)[1])
            .collect(),
        seen: (0..rows)
            .map(|row| f32::from(x[row] > 0.0 || uniform.row(row)[0] < 0.5))
            .collect(),
        x,
    }
}

/// Simulation with a mask, data with background, and the truth of the data.
fn files(folder: &Folder) {
    let simulated = draw(1500, 0.0, 1);
    let weights: Vec<f32> = (0..1500)
        .map(|row| if row % 9 == 0 { -0.5 } else { 1.0 })
        .collect();
    write(
        folder,
        "pairs.npz",
        &[
            ("x", &simulated.x),
            ("y", &simulated.y),
            ("weight", &weights),
            ("reconstructed", &simulated.seen),
        ],
    );
    let nature = draw(1000, 0.3, 2);
    let flat = |rows: usize, step| -> Vec<f32> {
        let uniform = Noise::new(1, Purpose::Test, step).uniform(rows, 1);
        uniform.values().iter().map(|u| 6.0 * u - 3.0).collect()
    };
    let kept = (0..1000).filter(|&row| nature.seen[row] == 1.0);
    let mut y: Vec<f32> = kept.map(|row| nature.y[row]).collect();
    y.extend(flat(80, 3));
    write(folder, "data.npz", &[("y", &y)]);
    let background = flat(200, 4);
    write(
        folder,
        "background.npz",
        &[("y", &background), ("weight", &[0.4; 200])],
    );
    write(folder, "fakes.npz", &[("y", &flat(60, 5))]);
    write(folder, "truth.npz", &[("x", &nature.x)]);
}

const UNFOLD: &str = "unfold --pairs pairs.npz --observations data.npz --background background.npz --fakes fakes.npz --quiet";

/// The whole path; and a truth of nothing but −999 leaves every file of the fit as it was, bit by bit.
#[test]
fn the_truth_cannot_reach_the_fit() {
    let folder = Folder::new();
    files(&folder);
    let text = folder.succeed(&format!("{UNFOLD} {SMALL} --truth truth.npz -o run"));
    for word in [
        "events produced",
        "bottom line",
        "closure",
        "stress",
        "against the truth",
    ] {
        assert!(text.contains(word), "no `{word}` in {text}");
    }
    let weights = read(&folder.path("run/weights.npz"), "weight");
    assert_eq!((weights.rows(), weights.cols()), (1500, 1));
    assert!(
        weights.values()[0] < 0.0,
        "a negative weight stays negative"
    );
    assert_eq!(read(&folder.path("run/samples.npz"), "x").rows(), 500);

    write(&folder, "poison.npz", &[("x", &[-999.0; 1000])]);
    folder.succeed(&format!("{UNFOLD} {SMALL} --truth poison.npz -o poisoned"));
    for name in [
        "weights.npz",
        "samples.npz",
        "source.safetensors",
        "surrogate.safetensors",
        "replicas/data-002.npz",
        "spectra/x1.npz",
    ] {
        let nominal = folder.bytes(&format!("run/{name}"));
        assert!(
            nominal == folder.bytes(&format!("poisoned/{name}")),
            "{name}"
        );
    }
    assert!(folder.bytes("run/score.json") != folder.bytes("poisoned/score.json"));

    // The report is there, and can be written again to the same bytes.
    let page = folder.bytes("run/report.html");
    let text = String::from_utf8(page.clone()).unwrap();
    for figure in ["spectra", "correlations", "folded", "trust", "source"] {
        assert!(
            text.contains(&format!("<figure id=\"{figure}\"")),
            "{figure}"
        );
        for kind in ["svg", "png"] {
            let file = folder.path(&format!("run/figures/{figure}.{kind}"));
            assert!(file.exists(), "{figure}.{kind}");
        }
    }
    for words in [
        "Bottom line",
        "Closure",
        "Stress",
        "noise floor",
        "effective",
    ] {
        assert!(text.contains(words), "no `{words}` on the page");
    }
    folder.succeed("report run --threads 1");
    assert!(page == folder.bytes("run/report.html"));
    folder.refused(
        "report run --truth truth.npz",
        &["pass --truth to `neb unfold`"],
    );
    // Without the files it came from it still has everything of its own.
    std::fs::remove_file(folder.path("truth.npz")).unwrap();
    std::fs::remove_file(folder.path("pairs.npz")).unwrap();
    folder.succeed("report run -o alone.html");
    posteriors_count_the_efficiency(&folder);
}

/// Nature is seen with probability ½ below zero: at y = 0, where x is about as likely on either side, the odds of x < 0 are half of what they
/// are without the efficiency, smoothed by the width of what was learned. The ratio is 0.5 for a step; a posterior that
/// forgot the efficiency has 1. Of 20 000 draws the ratio has an error below 0.02.
fn posteriors_count_the_efficiency(folder: &Folder) {
    write(folder, "zero.npz", &[("y", &[0.0])]);
    let odds = |name: &str| {
        folder.succeed(&format!(
            "posterior run --observations zero.npz -n 20000 --method importance -o {name}"
        ));
        let x = Dataset::open(folder.path(name))
            .unwrap()
            .array("x")
            .unwrap();
        let below = x.values.iter().filter(|&&x| x < 0.0).count() as f64;
        below / (20_000.0 - below)
    };
    let with = odds("with.npz");
    let file = folder.path("run/efficiency.safetensors");
    std::fs::rename(&file, folder.path("efficiency")).unwrap();
    let ratio = with / odds("without.npz");
    std::fs::rename(folder.path("efficiency"), &file).unwrap();
    assert!((0.4..0.75).contains(&ratio), "{ratio}");

    // Calibrated on reconstructed events of nature; 0.2 is far from what a wrong law of x has (0.5) and what 200 events allow (0.1).
    let nature = draw(400, 0.3, 6);
    let kept = |values: &[f32]| -> Vec<f32> {
        let rows = values.iter().zip(&nature.seen);
        rows.filter(|(_, seen)| **seen == 1.0)
            .map(|(v, _)| *v)
            .collect()
    };
    write(
        folder,
        "nature.npz",
        &[("x", &kept(&nature.x)), ("y", &kept(&nature.y))],
    );
    folder.succeed("calibrate run --pairs nature.npz -n 100 --max-ks 0.2");
    folder.succeed("report run");
    let text = String::from_utf8(folder.bytes("run/report.html")).unwrap();
    assert!(text.contains("<figure id=\"calibration\""));
}

/// Killed while it learns, between replicas of the simulation, and between those of the training: each time it goes on, to the
/// same bytes as a run that was never stopped.
#[cfg(unix)]
#[test]
fn a_killed_unfolding_resumes_to_the_same_bytes() {
    let folder = Folder::new();
    files(&folder);
    let line = format!(
        "{UNFOLD} --epochs 4 --components 1 --smooth-epochs 2 --draws 300 --replicas 2 --simulation-replicas 3 --training-replicas 3"
    );
    let start = |more: &str| {
        let mut command = folder.command(&format!("{line} -o run {more}"));
        command
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let mut child = start("");
    for file in [
        "started.json",
        "replicas/simulation-000.npz",
        "replicas/training-001.npz",
    ] {
        folder.wait_for(&format!("run.partial/{file}"));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!folder.path("run").exists(), "it was not stopped");
        let again = format!("{line} -o run");
        folder.refused(
            &again,
            &["run.partial: an earlier run was not finished", "--resume"],
        );
        let other = format!("{line} -o run --iterations 2 --resume");
        folder.refused(&other, &["begun by another command"]);
        child = start("--resume");
    }
    assert!(child.wait().unwrap().success());
    folder.succeed(&format!("{line} -o whole"));
    let names: Vec<PathBuf> = folder
        .contents()
        .into_iter()
        .map(|(path, _)| path)
        .collect();
    let whole: Vec<&PathBuf> = names
        .iter()
        .filter(|name| name.starts_with(folder.path("whole")))
        .collect();
    // summary.json holds seconds, and the report shows them.
    let timed = ["summary.json", "report.html"];
    let mut compared = 0;
    for path in whole.into_iter().filter(|path| path.is_file()) {
        let name = path
            .strip_prefix(folder.path("whole"))
            .unwrap()
            .to_string_lossy()
            .into_owned();
        if !timed.contains(&name.as_str()) {
            let resumed = folder.bytes(&format!("run/{name}"));
            assert!(resumed == std::fs::read(path).unwrap(), "{name}");
            compared += 1;
        }
    }
    assert!(compared > 25, "{compared}");
    let replica = |name: &str| read(&folder.path(&format!("run/replicas/{name}.npz")), "weight");
    assert!(replica("simulation-000") != replica("simulation-001"));
    assert!(replica("training-000") != replica("training-002"));
    let spectrum = Dataset::open(folder.path("run/spectra/x1.npz")).unwrap();
    for source in ["data", "simulation", "training"] {
        let errors = spectrum.array(&format!("unfolded_error_{source}")).unwrap();
        assert!(errors.values.iter().any(|&error| error > 0.0), "{source}");
    }
}

/// Six observables of a slice of the collider sample, whole numbers and atoms among them, and two of them together.
#[test]
fn a_slice_of_the_collider_sample() {
    let folder = Folder::new();
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/collider");
    let text = folder.succeed(&format!(
        "unfold --pairs {root}/simulation.npz --x gen --y sim --observations {root}/nature.npz --observed-y sim --truth {root}/nature.npz \
         --truth-x gen --bins m=20:0:75,M=16:0:80,zg=0/0.1/0.2/0.35/0.5 --joint m=5:0:75,zg=0/0.1/0.3/0.5 --joint M,w \
         --epochs 30 --components 2 --iterations 3 --smooth-epochs 3 --replicas 5 --draws 4000 --quiet -o run"
    ));
    assert!(text.contains("m × zg"), "{text}");
    let score: serde_json::Value = serde_json::from_slice(&folder.bytes("run/score.json")).unwrap();
    let auc = |name: &str| score[name]["value"].as_f64().unwrap();
    // 2000 events a side: an AUC has a standard error of 0.01. The simulation is near 0.64, and unfolded better.
    assert!(auc("simulation") > 0.6, "{text}");
    assert!(auc("weighted") < auc("simulation") - 0.03, "{text}");

    // Whole numbers stay whole, atoms stay atoms.
    let draws = read(&folder.path("run/samples.npz"), "x");
    let column = |number: usize| (0..draws.rows()).map(move |row| draws.row(row)[number]);
    assert!(column.clone()(1).all(|m| m.fract() == 0.0));
    let atom = column(4).filter(|&zg| zg == 0.0).count() as f64 / 4000.0;
    assert!((0.003..0.05).contains(&atom), "{atom}");

    let array = |file: &str, name: &str| {
        let data = Dataset::open(folder.path(&format!("run/spectra/{file}.npz"))).unwrap();
        data.array(name).unwrap()
    };
    // The pair's bins, summed over z_g, and what lies outside z_g's (nothing does), are the mass's in bins of the same width.
    let joint = array("m-zg", "unfolded");
    assert_eq!(joint.shape, [5, 3]);
    assert_eq!(array("m-zg", "ibu_covariance_data").shape, [15, 15]);
    // Whole numbers have equally many of them in each bin.
    let edges = array("M-w", "edges1").values;
    assert_eq!(array("M-w", "unfolded").shape, [edges.len() - 1, 8]);
    assert!(
        edges.iter().all(|edge| edge.abs().fract() == 0.5),
        "{edges:?}"
    );
    let mass = array("m", "unfolded").values;
    for (wide, narrow) in joint.values.chunks(3).zip(mass.chunks(4)) {
        let (wide, narrow): (f32, f32) = (wide.iter().sum(), narrow.iter().sum());
        assert!((wide - narrow).abs() < 1e-3 * narrow, "{wide} {narrow}");
    }
    // A density integrates to one.
    let volumes = [0.1, 0.2, 0.2].map(|width| 15.0 * width);
    for name in ["unfolded", "smooth", "simulation", "ibu", "data"] {
        let density = array("m-zg-density", name).values;
        let cells = density.iter().zip(volumes.iter().cycle());
        let integral: f32 = cells.map(|(density, volume)| density * volume).sum();
        assert!((integral - 1.0).abs() < 1e-5, "{name}: {integral}");
    }
    for file in [
        "m-zg.yaml",
        "m-zg-unfolded-covariance-data.yaml",
        "m-density.yaml",
    ] {
        assert!(
            folder.path(&format!("run/hepdata/{file}")).exists(),
            "{file}"
        );
    }
    let page = String::from_utf8(folder.bytes("run/report.html")).unwrap();
    assert!(page.contains("<figure id=\"joint-7\"") && page.contains("<figure id=\"joint-8\""));
}

/// `pt` is not seen and `met` is no column of x: only `m` has a binned unfolding. The truth has negative weights, and the
/// smooth source has errors of its own.
#[test]
fn columns_are_paired_by_their_names() {
    let folder = Folder::new();
    let noise = Noise::new(1, Purpose::Test, 9);
    let names = |first: &str, second: &str| [first.to_owned(), second.to_owned()];
    let (x_names, y_names) = (names("pt", "m"), names("m", "met"));
    let x = noise.normal(1200, 2);
    let smeared = Noise::new(2, Purpose::Test, 9).normal(1200, 2);
    let y: Vec<f32> = (0..1200)
        .flat_map(|row| {
            let (pt, m) = (x.row(row)[0], x.row(row)[1]);
            let noise = smeared.row(row);
            [m + 0.3 * noise[0], pt + 0.3 * noise[1]]
        })
        .collect();
    let weights: Vec<f32> = (0..1200)
        .map(|row| if row % 10 == 0 { -1.0 } else { 1.0 })
        .collect();
    let seen = Array::new("y", &[1200, 2], &y[..]).with_names(&y_names);
    let hidden = Array::new("x", &[1200, 2], x.values()).with_names(&x_names);
    let weight = Array::new("weight", &[1200], &weights[..]);
    for (name, arrays) in [
        ("pairs.npz", vec![hidden.clone(), seen.clone()]),
        ("data.npz", vec![seen]),
        ("truth.npz", vec![hidden, weight]),
    ] {
        neb_data::write(folder.path(name), true, &arrays).unwrap();
    }
    let text = folder.succeed(
        "unfold --pairs pairs.npz --observations data.npz --truth truth.npz --quiet --epochs 2 --components 1 \
         --smooth-epochs 1 --replicas 2 --draws 500 -o run",
    );
    assert!(text.contains("against the truth"), "{text}");
    let spectrum = |name: &str| {
        let bytes = folder.bytes(&format!("run/spectra/{name}.csv"));
        String::from_utf8(bytes).unwrap()
    };
    let (pt, m) = (spectrum("pt"), spectrum("m"));
    assert!(m.contains("ibu") && !pt.contains("ibu"), "{pt}");
    assert!(pt.contains("draws"), "{pt}");
}

/// A truth that cannot be scored costs the score, never the run.
#[test]
fn an_unusable_truth_leaves_the_run() {
    let folder = Folder::new();
    files(&folder);
    let line =
        format!("{UNFOLD} --epochs 1 --components 1 --smooth-epochs 1 --replicas 0 --draws 200");
    folder.refused(
        &format!("{line} --truth gone.npz -o run"),
        &["gone.npz: there is no such file"],
    );
    write(&folder, "far.npz", &[("x", &[1e6; 50])]);
    let ended = folder.neb(&format!("{line} --truth far.npz -o run"));
    assert_eq!(ended.code, Some(2), "{ended:?}");
    for words in [
        "far.npz: no event of the truth lies in the bins of x1",
        "complete and kept",
    ] {
        assert!(ended.stderr.contains(words), "{ended:?}");
    }
    folder.succeed("report run");
    folder.refused(
        &format!("{line} -o run"),
        &["exists already and was not touched"],
    );
}

#[test]
fn bad_input_is_refused_and_nothing_is_lost() {
    let folder = Folder::new();
    files(&folder);
    let refused = |more: &str, words: &[&str]| {
        folder.refused(&format!("{UNFOLD} {SMALL} {more} -o run"), words);
    };
    refused(
        "--bins z=3:0:1",
        &["--bins `z=3:0:1`", "`z` is no column of x", "x1"],
    );
    refused(
        "--bins x1=3:50:60",
        &[
            "--bins `x1=3:50:60`: no simulated event lies in these bins",
            "goes from -",
        ],
    );
    refused(
        "--bins x1=0/2/1",
        &["`x1=0/2/1`", "these edges make no bins"],
    );
    refused("--bins x1=0:1", &["three numbers are needed"]);
    refused("--bins x1=1.5:0:1", &["1.5 is no number of bins"]);
    refused("--joint x1", &["--joint `x1`: two columns are needed"]);
    refused("--joint x1,x1", &["these are not two columns"]);
    refused(
        "--reconstructed weight",
        &["pairs.npz", "mask `weight`", "row 0 is -0.5"],
    );

    let rewrite = |name: &str, column: &str, values: &[f32]| {
        let old: Vec<(String, Vec<f32>)> = Dataset::open(folder.path(name))
            .unwrap()
            .names()
            .into_iter()
            .map(|name_| {
                (
                    name_.to_owned(),
                    read(&folder.path(name), name_).into_values(),
                )
            })
            .collect();
        let new: Vec<(&str, &[f32])> = old
            .iter()
            .map(|(own, old)| (own.as_str(), if own == column { values } else { &old[..] }))
            .collect();
        write(&folder, name, &new);
    };
    let pairs = folder.bytes("pairs.npz");
    let restore = || std::fs::write(folder.path("pairs.npz"), &pairs).unwrap();
    rewrite("pairs.npz", "reconstructed", &[1.0; 700]);
    refused(
        "",
        &[
            "pairs.npz",
            "mask `reconstructed`",
            "700 entries for 1500 rows",
        ],
    );
    restore();
    let mut weights = vec![1.0; 1500];
    weights[137] = f32::NAN;
    rewrite("pairs.npz", "weight", &weights);
    refused("", &["pairs.npz", "`weight`", "NaN", "row 137"]);
    restore();
    rewrite("pairs.npz", "weight", &[0.0; 1500]);
    refused("", &["pairs.npz", "the weights add up to 0"]);
    restore();
    rewrite("pairs.npz", "weight", &[1.0; 20]);
    refused("", &["pairs.npz", "20 weights for 1500 rows"]);
    restore();
    rewrite("pairs.npz", "reconstructed", &[0.0; 1500]);
    refused("", &["pairs.npz", "no event is marked as reconstructed"]);
    restore();

    let y = read(&folder.path("background.npz"), "y").into_values();
    let background = |y: &[f32], weights: &[f32]| {
        write(&folder, "background.npz", &[("y", y), ("weight", weights)]);
    };
    background(&y, &[50.0; 200]);
    refused("", &["background weighs 10000"]);
    let narrow: Vec<f32> = (0..1000).map(|row| 2.9 + 1e-5 * row as f32).collect();
    background(&narrow, &[0.2; 1000]);
    refused("", &["column `y1`", "background and fakes weigh"]);
    background(&y, &[0.0; 200]);
    refused("", &["background.npz", "add up to 0"]);
    background(&y, &[f32::INFINITY; 200]);
    refused("", &["background.npz", "`weight`", "row 0"]);
    background(&y, &[0.4; 200]);

    // Data the simulation knows nothing of: most of them refused, a few named and counted in the report.
    write(&folder, "data.npz", &[("y", &[90.0; 300])]);
    refused(
        "",
        &["observations outside the range of the pairs: `y1` 300 of 300"],
    );
    write(
        &folder,
        "data.npz",
        &[("y", &[0.5; 300]), ("weight", &[-1.0; 300])],
    );
    refused("", &["data.npz", "the weights add up to -300"]);
}
