//! `neb reproduce` in small: tables, files, and cells that are not run again.

use neb_data::Array;

use crate::folder::{Folder, read};

const SMALL: &str = "reproduce mlp-source --only two-moons --preset fast --repeats 1 --pairs 400 --observations 200 --epochs 1 -o out";

#[test]
fn cells_are_measured_once_and_stand_beside_the_paper() {
    let folder = Folder::new();
    let text = folder.succeed(SMALL);
    assert!(
        text.contains("| MLP, L_4096") && text.contains("0.62±0.05"),
        "{text}"
    );
    let cell = "out/fast/two-moons-1/mlp-1024.json";
    let first = folder.bytes(cell);
    let page = String::from_utf8(folder.bytes("out/results.md")).unwrap();
    let figure = "figures/two-moons-fast-auto-seen.png";
    assert!(page.contains(figure), "{page}");
    assert!(folder.path("out").join(figure).exists());
    assert!(page.contains("limited to 1 epochs"), "{page}");

    std::fs::remove_file(folder.path("out/fast/two-moons-1/auto.json")).unwrap();
    folder.succeed(SMALL);
    assert_eq!(folder.bytes(cell), first, "a finished cell was run again");
    assert!(folder.path("out/fast/two-moons-1/auto.json").exists());

    folder.refused(
        &SMALL.replace("--epochs 1", "--epochs 2"),
        &["was measured with other settings", "choose another folder"],
    );
    let others = folder.succeed(&SMALL.replace("mlp-source", "calibration --rows auto"));
    assert!(
        others.contains("| L_1024         | -"),
        "only one row was asked for: {others}"
    );
    let curves = "out/figures/two-moons-fast-auto-calibration.png";
    assert!(folder.path(curves).exists());
    folder.refused(
        &SMALL.replace("mlp-source", "estimators --rows mlp-1024"),
        &[
            "the table has no row `mlp-1024`",
            "auto, elbo, iw-128, mc-1024",
        ],
    );
    // Results alone, as they may come from another machine, make a page.
    std::fs::remove_dir_all(folder.path("out/fast/two-moons-1/auto")).unwrap();
    std::fs::remove_dir_all(folder.path("out/figures")).unwrap();
    let again = folder.succeed(SMALL);
    assert!(again.contains("| neb (defaults)"), "{again}");
    assert!(!folder.path("out").join(figure).exists());
    folder.refused("reproduce collider -o out", &["needs a sample"]);
    folder.refused(
        "reproduce estimators --only moons -o out",
        &["there is no built-in problem `moons`"],
    );
    folder.refused(
        "reproduce estimators --only collider -o out",
        &["is a table", "neb reproduce collider --collider FOLDER"],
    );
}

/// The row of `neb unfold` in small: the simulated events of the sample in `tests/collider` are judged with the weights it gave
/// them, which sum to the observed half of nature, and a finished cell is not run again.
#[test]
fn collider_events_are_judged_with_their_weights() {
    let folder = Folder::new();
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/collider");
    std::fs::create_dir(folder.path("sample")).unwrap();
    for (name, copy) in [("simulation", "proposal"), ("nature", "nature")] {
        let copy = folder.path(&format!("sample/{copy}.npz"));
        std::fs::copy(format!("{root}/{name}.npz"), copy).unwrap();
    }
    let line = "reproduce collider --collider sample --rows unfold --repeats 1 --epochs 1 -o out";
    let text = folder.succeed(line);
    assert!(text.contains("| neb unfold (defaults) | 0."), "{text}");
    assert!(text.contains("| neb (defaults)        | -"), "{text}");
    let weights = read(
        &folder.path("out/fast/collider-1/unfold/weights.npz"),
        "weight",
    );
    let total: f32 = weights.values().iter().sum();
    assert_eq!(weights.rows(), 2000);
    assert!((total - 1000.0).abs() < 0.1, "{total}");
    assert!(
        !folder
            .path("out/fast/collider-1/surrogate.safetensors")
            .exists()
    );
    let cell = "out/fast/collider-1/unfold.json";
    let first = folder.bytes(cell);
    folder.succeed(line);
    assert_eq!(folder.bytes(cell), first, "a finished cell was run again");

    let cut: Vec<f32> = vec![0.5; 2000];
    let arrays = ["gen", "sim"].map(|name| Array::new(name, &[1000, 2], &cut[..]));
    neb_data::write(folder.path("sample/nature.npz"), true, &arrays).unwrap();
    folder.refused(
        &line.replace("-o out", "-o other"),
        &["nature.npz", "the simulation has"],
    );
}
