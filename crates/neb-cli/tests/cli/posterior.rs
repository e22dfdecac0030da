//! Posteriors and their calibration, from the outside.

use crate::folder::{Folder, read};
use neb_data::Dataset;

fn array(folder: &Folder, file: &str, name: &str) -> (Vec<usize>, Vec<f32>) {
    let array = Dataset::open(folder.path(file))
        .unwrap()
        .array(name)
        .unwrap();
    (array.shape, array.values)
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn one_file_holds_the_posteriors_of_all_observations() {
    let folder = Folder::with_run();
    for method in ["rejection", "importance", "annealed"] {
        let line = format!(
            "posterior run --observations seen.npz --method {method} -n 30 --map -o {method}.npz --json"
        );
        let said = json(&folder.succeed(&line));
        assert_eq!(said["method"], method);
        assert_eq!(said["complete"], 400);
        let file = format!("{method}.npz");
        let (shape, x) = array(&folder, &file, "x");
        assert_eq!(shape, [400, 30, 2]);
        assert!(x.iter().all(|x| x.is_finite()));
        assert_eq!(
            array(&folder, &file, "weight"),
            (vec![400, 30], vec![1.0; 12_000])
        );
        assert_eq!(array(&folder, &file, "found").1, [30.0; 400]);
        assert_eq!(array(&folder, &file, "ess").0, [400]);
        assert_eq!(array(&folder, &file, "map").0, [400, 2]);
        let known = if method == "importance" {
            "pareto_k"
        } else {
            "acceptance"
        };
        assert_eq!(array(&folder, &file, known).0, [400]);
    }
    // No draw lies where the source has no density.
    let (source, _, _) = neb::source::load_source(&folder.path("run/source.safetensors")).unwrap();
    let (_, x) = array(&folder, "rejection.npz", "x");
    let mut log_prob = vec![0.0; x.len() / 2];
    source
        .density()
        .unwrap()
        .log_prob(neb::Rows::new(&x, 2), &mut log_prob);
    assert!(log_prob.iter().all(|log| log.is_finite()));
}

#[test]
fn neither_threads_nor_repetition_change_a_posterior() {
    let folder = Folder::with_run();
    let line = "posterior run --observations seen.npz -n 20";
    folder.succeed(&format!("{line} -o a.npz --threads 1"));
    folder.succeed(&format!("{line} -o b.npz --threads 3"));
    folder.succeed(&format!("{line} -o c.npz --seed 2"));
    assert_eq!(folder.bytes("a.npz"), folder.bytes("b.npz"));
    assert_ne!(folder.bytes("a.npz"), folder.bytes("c.npz"));
}

#[test]
fn a_budget_gives_what_was_found_and_exit_code_1() {
    let folder = Folder::with_run();
    let line = "posterior run --observations seen.npz --method rejection -n 500";
    let ended = folder.neb(&format!("{line} --max-samples 600 -o few.npz"));
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(
        ended.stderr.contains("all 600 samples were drawn"),
        "{ended:?}"
    );
    assert!(
        ended.stderr.contains("hint: raise --max-samples"),
        "{ended:?}"
    );
    assert!(ended.stdout.contains("few.npz: 500 draws"), "{ended:?}");
    let (_, x) = array(&folder, "few.npz", "x");
    let (_, weight) = array(&folder, "few.npz", "weight");
    let found: f32 = array(&folder, "few.npz", "found").1.iter().sum();
    assert!(found > 0.0 && found < 400.0 * 500.0);
    assert_eq!(weight.iter().sum::<f32>(), found);
    for (weight, x) in weight.iter().zip(x.chunks(2)) {
        assert_eq!(*weight == 1.0, x[0].is_finite());
    }
    let ended = folder.neb(&format!("{line} --max-seconds 1e-9 -o none.npz"));
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("the time was over"), "{ended:?}");
}

/// Pairs drawn from the fitted model itself are calibrated by construction (false-alarm rate 5 %, seed fixed); the same pairs
/// with x moved by half of the source's width are not.
#[test]
fn calibration_passes_the_model_s_own_pairs_and_fails_shifted_ones() {
    let folder = Folder::with_run();
    folder.succeed("sample run -n 400 --push --seed 5 -o own.npz");
    let said = folder.succeed("calibrate run --pairs own.npz -n 50");
    assert!(said.contains("passed"), "{said}");
    let record = json(&String::from_utf8(folder.bytes("run/calibration.json")).unwrap());
    assert_eq!(record["x_names"], serde_json::json!(["x1", "x2"]));
    assert_eq!(record["passed"], true);
    assert_eq!(record["events"], 400);
    assert_eq!(record["levels"].as_array().unwrap().len(), 51);
    let read_by_a_report: neb::check::Calibration = serde_json::from_value(record.clone()).unwrap();
    assert!(read_by_a_report.calibrated);
    let marginal = &record["marginals"][1];
    assert_eq!(marginal["ranks"].as_array().unwrap().len(), 400);
    assert_eq!(marginal["curve"]["below"].as_array().unwrap().len(), 51);

    let (x, y) = (
        read(&folder.path("own.npz"), "x"),
        read(&folder.path("own.npz"), "y"),
    );
    let shifted: Vec<f32> = x.values().iter().map(|x| x + 0.7).collect();
    folder.write_pairs("shifted.npz", &shifted, y.values());
    let ended = folder.neb("calibrate run --pairs shifted.npz -n 50 -o shifted.json");
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stdout.contains("too low"), "{ended:?}");
    assert!(ended.stderr.contains("not calibrated"), "{ended:?}");
    folder.succeed("calibrate run --pairs shifted.npz -n 50 --max-ks 0.99 -o again.json");
}

/// Chains cost more: two observations, and what they say about themselves.
#[test]
fn chains_report_their_agreement() {
    let folder = Folder::with_run();
    folder.succeed("simulate two-moons -n 2 --seed 9 -o two.npz");
    let line = "posterior run --observations two.npz --method nuts -n 100 -o nuts.npz --json";
    let said = json(&folder.succeed(line));
    assert_eq!(said["complete"], 2);
    assert!(said["divergences"].is_u64(), "{said}");
    let (_, r_hat) = array(&folder, "nuts.npz", "r_hat");
    assert!(r_hat.iter().all(|r| *r >= 1.0), "{r_hat:?}");
    assert_eq!(array(&folder, "nuts.npz", "divergences").0, [2]);
}

#[test]
fn what_cannot_be_done_is_refused_before_the_work() {
    let folder = Folder::with_run();
    let line = "posterior run --observations seen.npz";
    folder.refused(
        &format!("{line} -o draws.csv"),
        &["three dimensions", "draws.npz"],
    );
    folder.refused(&format!("{line} -o seen.npz"), &["exists already"]);
    folder.refused(
        "calibrate run --pairs seen.npz -o seen.npz",
        &["exists already"],
    );
    folder.refused(
        &format!("{line} --method direct -o draws.npz"),
        &["no recognition network"],
    );
    folder.refused(
        "posterior run --observations seen.npz --y x1 -o draws.npz",
        &["x1"],
    );
    folder.refused(
        "calibrate surrogate.safetensors --pairs seen.npz",
        &["is not the folder of a run"],
    );
}
