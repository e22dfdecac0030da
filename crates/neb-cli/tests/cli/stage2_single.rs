//! One source by one estimator: what a run holds, what can be done with it, and what is refused.

use crate::folder::{FIT, Folder, read};
use neb_data::Array;

/// Settings that fit one source in a fraction of a second; the surrogate is that of `run`.
const SINGLE: &str =
    "[source]\nepochs = 2\nleast-steps = 1\nbatch = 64\njudge-k = 128\neffective-samples = 5";

fn folder_with_run() -> Folder {
    let folder = Folder::with_run();
    std::fs::write(folder.path("single.toml"), SINGLE).unwrap();
    folder
}

fn source(more: &str) -> String {
    format!("source run --pairs pairs.npz --observations seen.npz {more}")
}

fn names(folder: &Folder, run: &str) -> Vec<String> {
    let entries = std::fs::read_dir(folder.path(run)).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn every_source_and_estimator_makes_a_run_that_can_be_used() {
    let folder = folder_with_run();
    let cases = [
        (
            "affine --estimator mc --k 64 --base uniform",
            "affine by mc",
        ),
        (
            "affine-full --estimator roulette --k 32",
            "affine-full by roulette",
        ),
        ("coupling --k 16 --samples independent", "coupling by mc"),
        (
            "spline --estimator roulette --levels single --k 64",
            "spline by roulette",
        ),
        (
            "spline --estimator elbo --domain all=-9:9",
            "spline by elbo",
        ),
        ("affine --estimator iw --k 3 --symmetric x1", "affine by iw"),
        ("mlp --k 64", "mlp by mc"),
    ];
    for (flags, winner) in cases {
        let line = source(&format!(
            "--config single.toml --source {flags} -o new --force"
        ));
        let text = folder.succeed(&line);
        assert!(text.contains(winner), "{flags}: {text}");
        let variational = flags.contains("elbo") || flags.contains("iw");
        let mut expected = vec!["config.toml", "history.csv"];
        expected.extend(variational.then_some("recognition.safetensors"));
        expected.extend([
            "source.safetensors",
            "summary.json",
            "surrogate.safetensors",
        ]);
        assert_eq!(names(&folder, "new"), expected, "{flags}");
        folder.succeed("sample new -n 50 -o x.npz --force");
        assert_eq!(read(&folder.path("x.npz"), "x").rows(), 50);
        if flags.starts_with("mlp") {
            folder.refused("log-prob new --points seen.npz", &["density", "mlp"]);
        } else {
            folder.succeed("log-prob new --points x.npz");
        }
        let history = String::from_utf8(folder.bytes("new/history.csv")).unwrap();
        let header = "stage,rung,epoch,train,held_out,rate,gradient_norm,effective_samples,seconds";
        assert_eq!(history.lines().next(), Some(header));
        let last = history.lines().last().unwrap();
        assert_eq!(last.split(',').count(), 9, "{last}");
        assert_eq!(last.split(',').nth(7) == Some(""), flags.contains("elbo"));
        // The run's own settings give the same source again.
        let data = "--pairs pairs.npz --observations seen.npz";
        folder.succeed(&format!(
            "source run {data} --config new/config.toml -o again --force"
        ));
        let same =
            folder.bytes("again/source.safetensors") == folder.bytes("new/source.safetensors");
        assert!(same, "{flags}");
    }
    folder.refused("sample new --weights -o w.npz", &["no particles.npz"]);
}

/// A bound that tightens in rounds: each is a rung of its own, the last one the source's, and the report takes them.
#[test]
fn rounds_stand_apart() {
    let folder = folder_with_run();
    std::fs::write(folder.path("rounds.toml"), format!("{SINGLE}\nrounds = 2")).unwrap();
    let line = source("--config rounds.toml --source affine --estimator iw --k 8 -o new");
    let text = folder.succeed(&line);
    assert!(text.contains("  affine by iw, K = 2"), "{text}");
    assert!(text.contains("* affine by iw "), "{text}");
    let history = String::from_utf8(folder.bytes("new/history.csv")).unwrap();
    let count = |rung: &str| history.matches(&format!("source,\"{rung}\",")).count();
    assert_eq!(
        (count("affine by iw, K = 2"), count("affine by iw")),
        (2, 2),
        "{history}"
    );
    folder.succeed("report new");
}

#[test]
fn particles_alone() {
    let folder = Folder::with_run();
    std::fs::write(
        folder.path("particles.toml"),
        "[source]\nparticles = 200\njudge-k = 128\nflow-epochs = 2\nflow-batch = 64\nflow-layers = 2",
    )
    .unwrap();
    folder.succeed(&source("--config particles.toml --source particles -o new"));
    let weight = read(&folder.path("new/particles.npz"), "weight");
    assert_eq!(weight.values().len(), 200);
    folder.succeed("sample new -n 5 -o x.npz");
}

#[test]
fn one_observation() {
    let folder = folder_with_run();
    let first: Vec<f32> = read(&folder.path("seen.npz"), "y").values()[..2].to_vec();
    let arrays = [Array::new("y", &[1, 2], &first[..])];
    neb_data::write(folder.path("one.npz"), true, &arrays).unwrap();
    let line = source("-o new").replace("seen.npz", "one.npz");
    let ended = folder.neb(&line);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("spline on posteriors"), "{ended:?}");
    assert!(
        ended
            .stderr
            .contains("1 observation is too few to choose between sources"),
        "{ended:?}"
    );
    folder.succeed("sample new -n 5 --push -o x.npz");
}

/// Weights of one change no bit; weights that leave only the observations with y2 > 0 move the particles there, on which
/// y2 = (x2 − x1)/√2 up to 0.1 of noise: its mean over the source is 0, over its upper half about 0.4.
#[test]
fn event_weights_count() {
    let folder = folder_with_run();
    let y = read(&folder.path("seen.npz"), "y");
    let write = |name: &str, weight: &dyn Fn(&[f32]) -> f32| {
        let weights: Vec<f32> = (0..y.rows()).map(|i| weight(y.row(i))).collect();
        let arrays = [
            Array::new("y", &[y.rows(), 2], y.values()),
            Array::new("weight", &[y.rows()], &weights[..]),
        ];
        neb_data::write(folder.path(name), true, &arrays).unwrap();
    };
    write("ones.npz", &|_| 1.0);
    write("above.npz", &|y| f32::from(y[1] > 0.0));
    let bytes = |observations: &str| {
        let line = source("--config single.toml --source affine --k 64 -o new --force");
        folder.succeed(&line.replace("seen.npz", observations));
        folder.bytes("new/source.safetensors")
    };
    let plain = bytes("seen.npz");
    assert!(bytes("ones.npz") == plain);
    assert!(bytes("above.npz") != plain);
    folder.succeed(
        "surrogate --pairs pairs.npz -o good.safetensors --kind mixture --components 1 --hidden 32 --epochs 80 --batch 32",
    );
    let mean = |observations: &str| {
        let line = source("--source particles -o new --force").replace("run", "good.safetensors");
        folder.succeed(&line.replace("seen.npz", observations));
        let x = read(&folder.path("new/particles.npz"), "x");
        let weight = read(&folder.path("new/particles.npz"), "weight");
        (0..x.rows())
            .map(|j| weight.values()[j] * (x.row(j)[1] - x.row(j)[0]) * 0.5f32.sqrt())
            .sum::<f32>()
    };
    let (all, above) = (mean("ones.npz"), mean("above.npz"));
    assert!(all.abs() < 0.2 && above > all + 0.2, "{all} {above}");
}

#[test]
fn settings_that_make_no_sense_are_refused_before_anything_is_learned() {
    let folder = folder_with_run();
    let both = |flags: &str, words: &[&str]| {
        folder.refused(&source(&format!("{flags} -o new")), words);
        let fit = FIT.replace("--config small.toml", "");
        folder.refused(&format!("{fit} {flags} -o new"), words);
    };
    both("--source umnn --k 0", &["k is 0"]);
    both("--source mlp --estimator elbo", &["elbo", "no density"]);
    both("--source mlp --estimator iw", &["no density"]);
    both(
        "--source affine --base uniform --estimator iw",
        &["density is nowhere zero"],
    );
    both("--source spline --base uniform", &["base = uniform"]);
    both(
        "--source spline --domain x1=1:-1",
        &["x1=1:-1", "from 1 to -1"],
    );
    both("--source spline --domain x1=2:2", &["from 2 to 2"]);
    both("--source spline --domain x7=0:1", &["no column `x7`"]);
    both("--source spline --domain x1", &["NAME=LOW:HIGH"]);
    both(
        "--source spline --domain all=7:9",
        &["domain holds 0 of 600 rows", "pairs' x"],
    );
    both(
        "--source spline --domain x1=-9:8 --symmetric all",
        &["symmetric", "-9 to 8"],
    );
    both("--k 5", &["`k` is no setting of source = \"auto\""]);
    both("--estimator iw", &["`estimator` is no setting"]);
    both(
        "--source umnn --estimator elbo --samples independent",
        &["independent samples"],
    );
}
