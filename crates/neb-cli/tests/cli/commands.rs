//! What the commands do when all is well.

use crate::folder::{Folder, read};
use neb::Likelihood;
use neb::simulator::{self, Proposal};
use neb::surrogate::Surrogate;

#[test]
fn help_names_every_command_and_every_option_all_share() {
    let help = Folder::new().succeed("--help");
    let known = [
        "demo",
        "fit",
        "source",
        "compare",
        "report",
        "posterior",
        "calibrate",
        "simulate",
        "surrogate",
        "log-prob",
        "sample",
        "unfold",
        "config",
        "completions",
        "--seed",
        "--threads",
        "--quiet",
        "--json",
        "--force",
        "Exit codes",
    ];
    for word in known {
        assert!(help.contains(word), "no `{word}` in {help}");
    }
    for line in ["demo --help", "surrogate --help", "completions bash"] {
        assert!(Folder::new().succeed(line).contains("neb"));
    }
    assert_eq!(Folder::new().neb("").code, Some(2), "no command");
}

#[test]
fn simulate_writes_the_library_s_draws() {
    let folder = Folder::new();
    let problem = simulator::by_name("slcp").unwrap();
    let cases = [
        ("prior", problem.observations(200, 5)),
        ("proposal", problem.pairs(Proposal::Covering, 200, 5)),
        (
            "standard-normal",
            problem.pairs(Proposal::StandardNormal, 200, 5),
        ),
    ];
    for (law, (x, y)) in cases {
        for extension in ["npz", "csv", "parquet"] {
            let file = format!("{law}.{extension}");
            folder.succeed(&format!(
                "simulate slcp -n 200 --from {law} --seed 5 -o {file}"
            ));
            assert_eq!(read(&folder.path(&file), "x"), x, "{file}");
            assert_eq!(read(&folder.path(&file), "y"), y, "{file}");
        }
    }
}

#[test]
fn simulate_takes_x_from_a_file() {
    let folder = Folder::new();
    folder.succeed("simulate ik -n 50 -o a.npz");
    folder.succeed("simulate ik --from a.npz -o b.npz");
    folder.succeed("simulate ik --from a.npz -n 20 -o c.npz");
    let (a, b, c) = (
        folder.path("a.npz"),
        folder.path("b.npz"),
        folder.path("c.npz"),
    );
    assert_eq!(read(&a, "x"), read(&b, "x"));
    assert_ne!(read(&a, "y"), read(&b, "y"), "the same noise twice");
    assert_eq!(read(&c, "y").values(), &read(&b, "y").values()[..40]);
}

#[test]
fn neither_threads_nor_repetition_change_a_bit() {
    let folder = Folder::with_surrogate();
    for threads in ["1", "2", "3"] {
        let more = format!("--force --threads {threads}");
        folder.surrogate("pairs.npz", "again.safetensors", &more);
        let same = folder.bytes("again.safetensors") == folder.bytes("surrogate.safetensors");
        assert!(same, "{threads} threads");
    }
    folder.surrogate("pairs.npz", "other.safetensors", "--seed 2");
    assert!(folder.bytes("other.safetensors") != folder.bytes("surrogate.safetensors"));
}

#[test]
fn log_prob_is_the_library_s_value_row_by_row() {
    let folder = Folder::with_surrogate();
    let line = "log-prob surrogate.safetensors --pairs pairs.npz -o out.npz --json";
    let summary: serde_json::Value = serde_json::from_str(&folder.succeed(line)).unwrap();
    let surrogate = Surrogate::load(&folder.path("surrogate.safetensors")).unwrap();
    let pairs = folder.path("pairs.npz");
    let mut expected = vec![0.0; 500];
    surrogate.log_prob(
        read(&pairs, "y").view(),
        read(&pairs, "x").view(),
        &mut expected,
    );
    let written = read(&folder.path("out.npz"), "log_prob");
    assert_eq!(written.values(), expected);
    let mean = expected.iter().map(|&value| f64::from(value)).sum::<f64>() / 500.0;
    assert!((summary["mean"].as_f64().unwrap() - mean).abs() < 1e-9);
    expected.sort_by(f32::total_cmp);
    let median = (f64::from(expected[249]) + f64::from(expected[250])) / 2.0;
    assert!((summary["median"].as_f64().unwrap() - median).abs() < 1e-9);
}

#[test]
fn sample_pushes_each_x_through_the_surrogate() {
    let folder = Folder::with_surrogate();
    folder.succeed("sample surrogate.safetensors --push --points pairs.npz -o a.csv --seed 3");
    let (x, y) = (
        read(&folder.path("a.csv"), "x"),
        read(&folder.path("a.csv"), "y"),
    );
    assert_eq!(x, read(&folder.path("pairs.npz"), "x"));
    let surrogate = Surrogate::load(&folder.path("surrogate.safetensors")).unwrap();
    let noise = neb::Noise::new(3, neb::Purpose::DrawY, 0);
    assert_eq!(y, surrogate.sample(x.view(), noise));
}

#[test]
fn columns_are_selected_by_name_and_remembered() {
    let folder = Folder::new();
    let mut text = "mass,pt,seen\n".to_owned();
    for row in 0..200 {
        let t = row as f32 * 0.37;
        text.push_str(&format!("{},{},{}\n", t.sin(), t.cos(), (2.0 * t).sin()));
    }
    std::fs::write(folder.path("events.csv"), text).unwrap();
    folder.surrogate("events.csv", "s.safetensors", "--x pt,mass --y seen");
    let surrogate = Surrogate::load(&folder.path("s.safetensors")).unwrap();
    assert_eq!(surrogate.x_names(), ["pt", "mass"]);
    assert_eq!(surrogate.y_names(), ["seen"]);
    folder.succeed("log-prob s.safetensors --pairs events.csv --x pt,mass --y seen");
    folder.refused(
        "log-prob s.safetensors --pairs events.csv --x mass,pt --y seen",
        &["`mass`, `pt`", "trained with 2 (`pt`, `mass`)", "--x"],
    );
}

#[test]
fn results_go_to_stdout_and_quiet_is_quiet() {
    let folder = Folder::with_surrogate();
    let line = "surrogate --pairs pairs.npz -o q.safetensors --kind mixture --epochs 1 --hidden 8";
    let ended = folder.neb(&format!("{line} --json --quiet"));
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    let result: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(result["kept"], "mixture-8");
    assert_eq!(result["report"]["tried"][0]["history"][0]["epoch"], 1);
}

#[test]
fn a_printed_configuration_trains_the_same_surrogate() {
    let folder = Folder::with_surrogate();
    let flags = crate::folder::SMALL.join(" ");
    let toml = folder.succeed(&format!("config {flags} --seed 1"));
    assert!(
        toml.contains("epochs = 2") && toml.contains("# --epochs"),
        "{toml}"
    );
    std::fs::write(folder.path("run.toml"), toml).unwrap();
    folder.succeed("surrogate --pairs pairs.npz -o again.safetensors --config run.toml");
    assert!(folder.bytes("again.safetensors") == folder.bytes("surrogate.safetensors"));
}

#[test]
fn a_folder_of_a_run_stands_for_its_surrogate() {
    let folder = Folder::with_surrogate();
    std::fs::create_dir(folder.path("run")).unwrap();
    folder.refused(
        "log-prob run --pairs pairs.npz",
        &["run: this folder is no run"],
    );
    let file = folder.path("run").join("surrogate.safetensors");
    std::fs::copy(folder.path("surrogate.safetensors"), file).unwrap();
    let by_folder = folder.succeed("log-prob run --pairs pairs.npz");
    let by_file = folder.succeed("log-prob surrogate.safetensors --pairs pairs.npz");
    assert_eq!(by_folder, by_file);
}

#[test]
fn a_training_that_diverges_exits_with_1_and_writes_nothing() {
    let folder = Folder::with_surrogate();
    let before = folder.contents();
    let ended = folder.neb(
        "surrogate --pairs pairs.npz -o d.safetensors --kind mixture --hidden 8 --batch 64 --rate 1e30 --clip-norm 0",
    );
    assert_eq!(ended.code, Some(1), "{ended:?}");
    for word in ["error: ", "at step", "hint: lower the learning rate"] {
        assert!(ended.stderr.contains(word), "{ended:?}");
    }
    assert!(before == folder.contents());
}
