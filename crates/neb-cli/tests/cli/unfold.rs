//! `neb unfold` from the outside: a Gaussian behind an efficiency, with fakes and background; the truth is only for scoring.

use neb::{Noise, Purpose};
use neb_data::Array;

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
}

#[test]
fn bad_input_is_refused_and_nothing_is_lost() {
    let folder = Folder::new();
    files(&folder);
    let refused = |more: &str, words: &[&str]| {
        folder.refused(&format!("{UNFOLD} {SMALL} {more} -o run"), words);
    };
    refused("--bins z=3:0:1", &["`z` is no column of x"]);
    refused("--bins x1=3:50:60", &["lies outside"]);
    refused(
        "--reconstructed weight",
        &["mask `weight`", "row 0 is -0.5"],
    );
    let heavy = vec![50.0; 200];
    let y = read(&folder.path("background.npz"), "y");
    write(
        &folder,
        "background.npz",
        &[("y", y.values()), ("weight", &heavy)],
    );
    refused("", &["background weighs 10000"]);
    let narrow: Vec<f32> = (0..1000).map(|row| 2.9 + 1e-5 * row as f32).collect();
    write(
        &folder,
        "background.npz",
        &[("y", &narrow), ("weight", &[0.2; 1000])],
    );
    refused("", &["column `y1`", "background and fakes weigh"]);
    write(
        &folder,
        "background.npz",
        &[("y", y.values()), ("weight", &[0.0; 200])],
    );
    refused("", &["add up to 0"]);
}
