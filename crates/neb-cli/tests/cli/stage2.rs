//! Both stages, and what can be done with a run.

use crate::folder::{FIT, Folder, read};
use neb::source::load_source;
use neb::surrogate::Surrogate;
use neb::{Likelihood, Noise, Purpose};

/// Address of the noise of draws from a source, as the program has it.
const STEP: u64 = 1 << 32;

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn fit_writes_a_whole_run() {
    let folder = Folder::with_observations();
    let text = folder.succeed(&format!("{FIT} -o run"));
    for word in [
        "held-out log p(y)",
        "affine of normal",
        "spline on particles, refined",
        "* ",
        "run: mixture-2+noise and ",
    ] {
        assert!(text.contains(word), "no `{word}` in {text}");
    }
    let mut names: Vec<String> = std::fs::read_dir(folder.path("run"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            "config.toml",
            "history.csv",
            "particles.npz",
            "source.safetensors",
            "summary.json",
            "surrogate.safetensors"
        ]
    );
    for (path, _) in folder.contents() {
        assert!(!path.to_string_lossy().contains("partial"), "{path:?}");
    }

    let summary = json(&String::from_utf8(folder.bytes("run/summary.json")).unwrap());
    assert_eq!(summary["rows"]["pairs"], 600);
    assert_eq!(summary["rows"]["observations"], 400);
    assert_eq!(summary["rows"]["particles"], 300);
    assert_eq!(summary["seed"], 1);
    assert_eq!(summary["surrogate"]["winner"], "mixture-2+noise");
    let rungs = summary["source"]["rungs"].as_array().unwrap();
    assert_eq!(rungs.len(), 8);
    let kept = rungs
        .iter()
        .rev()
        .find(|rung| rung["kept"] == true)
        .unwrap();
    assert_eq!(summary["source"]["winner"], kept["name"]);

    let history = String::from_utf8(folder.bytes("run/history.csv")).unwrap();
    let count = |start: &str| {
        history
            .lines()
            .filter(|line| line.starts_with(start))
            .count()
    };
    assert_eq!(
        count("stage,rung,epoch,train,held_out,rate,gradient_norm,effective_samples,seconds"),
        1
    );
    assert_eq!(count("surrogate,\"mixture-2+noise\","), 5);
    // 120 and 200 steps of 5 batches.
    assert_eq!(count("source,\"affine of normal\","), 24);
    assert_eq!(count("source,\"spline on particles, refined\","), 40);
    assert!(count("source,\"particles\",") > 1);
}

#[test]
fn particles_are_the_first_pairs_and_their_weights_add_up_to_one() {
    let folder = Folder::with_run();
    let (x, pairs) = (
        read(&folder.path("run/particles.npz"), "x"),
        read(&folder.path("pairs.npz"), "x"),
    );
    assert_eq!(x.values(), &pairs.values()[..600]);
    let weight = read(&folder.path("run/particles.npz"), "weight");
    let sum: f64 = weight.values().iter().map(|&w| f64::from(w)).sum();
    assert!((sum - 1.0).abs() < 1e-5, "{sum}");
    folder.succeed("sample run --weights -o w.csv");
    assert_eq!(read(&folder.path("w.csv"), "x"), x);
    assert_eq!(read(&folder.path("w.csv"), "weight"), weight);
}

#[test]
fn the_same_seed_gives_the_same_bytes_on_any_threads() {
    let folder = Folder::with_run();
    for threads in ["1", "2"] {
        folder.succeed(&format!("{FIT} -o again --force --threads {threads}"));
        for name in ["source.safetensors", "particles.npz"] {
            let same =
                folder.bytes(&format!("again/{name}")) == folder.bytes(&format!("run/{name}"));
            assert!(same, "{name}, {threads} threads");
        }
    }
    folder.succeed(&format!("{FIT} -o other --seed 2"));
    assert!(folder.bytes("other/source.safetensors") != folder.bytes("run/source.safetensors"));
}

#[test]
fn stage_2_alone_and_the_run_s_own_settings_end_in_the_same_source() {
    let folder = Folder::with_run();
    let source = folder.bytes("run/source.safetensors");
    let data = "--pairs pairs.npz --observations seen.npz";
    folder.succeed(&format!("source run {data} --config small.toml -o a"));
    assert!(folder.bytes("a/source.safetensors") == source);
    assert!(folder.bytes("a/surrogate.safetensors") == folder.bytes("run/surrogate.safetensors"));
    folder.succeed(&format!("fit {data} --config run/config.toml -o b"));
    assert!(folder.bytes("b/source.safetensors") == source);
    folder.succeed(&format!("source run {data} --config a/config.toml -o c"));
    assert!(folder.bytes("c/source.safetensors") == source);
}

#[test]
fn a_run_is_replaced_by_force_and_other_files_in_it_stay() {
    let folder = Folder::with_run();
    std::fs::write(folder.path("run/notes.txt"), "mine").unwrap();
    folder.succeed(&format!("{FIT} -o run --seed 2 --force"));
    assert_eq!(folder.bytes("run/notes.txt"), b"mine");
    folder.succeed(&format!("{FIT} -o other --seed 2"));
    assert!(folder.bytes("other/source.safetensors") == folder.bytes("run/source.safetensors"));
}

#[test]
fn json_is_the_summary() {
    let folder = Folder::with_observations();
    let ended = folder.neb(&format!("{FIT} -o run --json --quiet"));
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    let written = String::from_utf8(folder.bytes("run/summary.json")).unwrap();
    assert_eq!(json(&ended.stdout), json(&written));
}

#[test]
fn config_prints_the_settings_of_the_stages_it_is_asked_for() {
    let folder = Folder::with_observations();
    let print = |line: &str| folder.succeed(&format!("config {line} --config small.toml"));
    for (line, surrogate, source) in [
        ("", true, true),
        ("fit", true, true),
        ("surrogate", true, false),
        ("source", false, true),
    ] {
        let text = print(line);
        assert_eq!(text.contains("[surrogate]"), surrogate, "{text}");
        assert_eq!(text.contains("judge-k = 256"), source, "{text}");
        let settings = json(&print(&format!("{line} --json")));
        let has = |key: &str| settings.get(key).is_some();
        assert_eq!((has("surrogate"), has("source")), (surrogate, source));
    }
    let symmetric = json(&print("source --symmetric all --json"));
    assert_eq!(symmetric["source"]["symmetric"], "all");
    assert_eq!(symmetric["source"]["judge_k"], 256);
}

#[test]
fn samples_are_the_library_s_draws() {
    let folder = Folder::with_run();
    folder.succeed("sample run -n 300 --seed 5 -o x.npz");
    folder.succeed("sample run -n 300 --seed 5 --push -o xy.npz");
    let (source, names, _) = load_source(&folder.path("run/source.safetensors")).unwrap();
    assert_eq!(names, ["x1", "x2"]);
    let noise = Noise::new(5, Purpose::SourceSample, STEP);
    let x = source.source().sample(300, noise);
    assert_eq!(read(&folder.path("x.npz"), "x"), x);
    assert_eq!(read(&folder.path("xy.npz"), "x"), x);
    let surrogate = Surrogate::load(&folder.path("run/surrogate.safetensors")).unwrap();
    let y = surrogate.sample(x.view(), Noise::new(5, Purpose::DrawY, STEP));
    assert_eq!(read(&folder.path("xy.npz"), "y"), y);
}

#[test]
fn log_prob_of_points_is_the_library_s_density() {
    let folder = Folder::with_run();
    folder.succeed("log-prob run --points seen.npz -o lp.npz");
    let (source, _, _) = load_source(&folder.path("run/source.safetensors")).unwrap();
    let x = read(&folder.path("seen.npz"), "x");
    let mut values = vec![0.0; x.rows()];
    source.density().unwrap().log_prob(x.view(), &mut values);
    assert_eq!(read(&folder.path("lp.npz"), "log_prob").values(), values);
}

#[test]
fn rows_outside_the_support_are_written_and_counted() {
    let folder = Folder::with_run();
    let uniform = neb::source::Affine::new(
        neb::source::Base::Uniform,
        &[0.0, 0.0],
        &[1.0, 1.0],
        &[false, false],
    );
    let names = ["x1", "x2"].map(str::to_owned);
    let path = folder.path("run/source.safetensors");
    neb::source::save_source(
        &neb::source::Model::Affine(uniform),
        &names,
        &Default::default(),
        &path,
    )
    .unwrap();
    folder.write_pairs("p.npz", &[0.0, 0.0, 0.0, 9.0], &[0.0; 4]);
    let text = folder.succeed("log-prob run --points p.npz -o lp.npz");
    assert!(text.contains("1 outside the support"), "{text}");
    let written = neb_data::Dataset::open(folder.path("lp.npz"))
        .unwrap()
        .array("log_prob")
        .unwrap();
    // A uniform law of unit deviation is 2 √3 wide.
    let inside = -2.0 * (2.0 * 3f32.sqrt()).ln();
    assert!((written.values[0] - inside).abs() < 1e-5, "{written:?}");
    assert_eq!(written.values[1], f32::NEG_INFINITY);
}

#[test]
fn compare_finds_differences_only_where_there_are_any() {
    let folder = Folder::new();
    for (name, line) in [
        ("a", "--seed 1"),
        ("b", "--seed 2"),
        ("wide", "--seed 3 --from proposal"),
    ] {
        folder.succeed(&format!("simulate two-moons -n 500 {line} -o {name}.npz"));
    }
    let same = folder.succeed("compare a.npz b.npz");
    for word in [
        "AUC",
        "C2ST, network",
        "sliced Wasserstein",
        "MMD",
        "no difference",
    ] {
        assert!(same.contains(word), "no `{word}` in {same}");
    }
    let differ = folder.succeed("compare a.npz wide.npz");
    assert!(differ.contains("the samples differ"), "{differ}");
    let library = neb::check::compare(
        read(&folder.path("a.npz"), "y").view(),
        read(&folder.path("wide.npz"), "y").view(),
        &neb::check::CompareOptions {
            seed: 1,
            ..Default::default()
        },
    );
    let shown = json(&folder.succeed("compare a.npz wide.npz --x y --json"));
    assert_eq!(shown, serde_json::to_value(library.unwrap()).unwrap());
    let one = json(&folder.succeed("compare a.npz wide.npz --columns x2 --json"));
    assert_eq!(one["rows"], serde_json::json!([500, 500]));
    assert_ne!(one["auc"], shown["auc"]);
}

#[test]
fn weights_count_in_a_comparison() {
    let folder = Folder::with_run();
    let shown = json(&folder.succeed("compare run/particles.npz seen.npz --json"));
    let weight = read(&folder.path("run/particles.npz"), "weight");
    let squares: f64 = weight.values().iter().map(|&w| f64::from(w).powi(2)).sum();
    let effective = shown["effective_rows"][0].as_f64().unwrap();
    assert!((effective * squares - 1.0).abs() < 1e-3, "{effective}");
}

#[test]
fn few_effective_samples_are_a_warning() {
    let folder = Folder::with_observations();
    let toml = crate::folder::SMALL_TOML
        .replace("refine-k = 64", "refine-k = 8")
        .replace("affine-k = 128", "affine-k = 8");
    std::fs::write(folder.path("small.toml"), toml).unwrap();
    let ended = folder.neb(&format!("{FIT} -o run"));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for word in ["warning: affine of normal: ", "effective samples"] {
        assert!(ended.stderr.contains(word), "{ended:?}");
    }
    let summary = json(&String::from_utf8(folder.bytes("run/summary.json")).unwrap());
    assert!(!summary["warnings"].as_array().unwrap().is_empty());
}

#[test]
fn even_columns_are_those_that_were_named() {
    let folder = Folder::with_observations();
    let affine = |even: &str| {
        let text = folder.succeed(&format!("{FIT} -o run --force --json {even}"));
        json(&text)["source"]["rungs"][0]["held_out"]
            .as_f64()
            .unwrap()
    };
    let (none, second) = (affine(""), affine("--symmetric x2"));
    let toml = String::from_utf8(folder.bytes("run/config.toml")).unwrap();
    assert!(
        toml.contains("symmetric = \"x2\"") && toml.contains("# --symmetric"),
        "{toml}"
    );
    let all = affine("--symmetric all");
    assert!(none != second && second != all && none != all);
    assert_eq!(all, affine("--symmetric x2,x1"));
}
