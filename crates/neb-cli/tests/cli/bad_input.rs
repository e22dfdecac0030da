//! What is refused: exit code 2, a message with the place and a hint, and nothing written or lost.

use crate::folder::{Folder, SMALL};
use neb_data::Array;

/// `n` rows of two columns that are not constant.
fn column_pairs(n: usize, shift: f32) -> Vec<f32> {
    (0..2 * n).map(|i| (i as f32 * 0.7 + shift).sin()).collect()
}

#[test]
fn files_that_are_missing_or_no_data() {
    let folder = Folder::with_surrogate();
    folder.pairs_refused(
        "absent.npz",
        &["absent.npz", "no such file", "check the name"],
    );
    std::fs::write(folder.path("pairs.h5"), b"\x89HDF").unwrap();
    folder.pairs_refused(
        "pairs.h5",
        &["pairs.h5", ".h5", "expected .npz, .npy, .csv or .parquet"],
    );
    folder.refused(
        "log-prob absent.safetensors --pairs pairs.npz",
        &["absent.safetensors"],
    );
    folder.refused(
        "log-prob pairs.npz --pairs pairs.npz",
        &["pairs.npz: not a surrogate file"],
    );
    folder.refused(
        "simulate two-moons --from absent.csv -o o.npz",
        &["absent.csv", "no such file"],
    );
}

#[test]
fn truncated_and_corrupt_archives() {
    let folder = Folder::with_surrogate();
    let whole = folder.bytes("pairs.npz");
    for kept in [whole.len() / 2, whole.len() - 1, 10] {
        std::fs::write(folder.path("cut.npz"), &whole[..kept]).unwrap();
        folder.pairs_refused("cut.npz", &["cut.npz"]);
    }
    let mut flipped = whole.clone();
    let middle = flipped.len() / 3;
    flipped[middle] ^= 0x40;
    std::fs::write(folder.path("flipped.npz"), flipped).unwrap();
    folder.pairs_refused("flipped.npz", &["flipped.npz"]);
    let model = folder.bytes("surrogate.safetensors");
    std::fs::write(folder.path("cut.safetensors"), &model[..model.len() - 4]).unwrap();
    folder.refused(
        "log-prob cut.safetensors --pairs pairs.npz",
        &["cut.safetensors", "damaged"],
    );
}

#[test]
fn arrays_and_columns_that_are_absent() {
    let folder = Folder::new();
    let values = column_pairs(100, 0.0);
    let arrays = [
        Array::new("truth", &[100, 2], &values[..]),
        Array::new("y", &[100, 2], &values[..]),
    ];
    neb_data::write(folder.path("named.npz"), false, &arrays).unwrap();
    folder.pairs_refused("named.npz", &["`x`", "`truth`", "`y`", "--x"]);
    folder.pairs_refused("named.npz --x trut", &["`trut`", "did you mean `truth`"]);
    neb_data::write(folder.path("named.csv"), false, &arrays).unwrap();
    folder.pairs_refused("named.csv", &["`x1`", "`truth1`", "`y2`"]);
}

#[test]
fn rows_that_do_not_match() {
    let folder = Folder::new();
    folder.write_pairs("rows.npz", &column_pairs(100, 0.0), &column_pairs(99, 0.0));
    folder.pairs_refused("rows.npz", &["rows.npz", "`x`", "100 rows", "`y`", "99"]);
}

#[test]
fn values_that_are_not_finite() {
    let folder = Folder::new();
    for (name, value) in [("nan", f32::NAN), ("inf", f32::INFINITY)] {
        let mut y = column_pairs(200, 1.0);
        for row in [137, 150, 199] {
            y[2 * row + 1] = value;
        }
        let file = format!("{name}.npz");
        folder.write_pairs(&file, &column_pairs(200, 0.0), &y);
        let shown = value.to_string();
        folder.pairs_refused(
            &file,
            &[
                &file,
                "array `y`",
                "3 values",
                &shown,
                "row 137, column 1 (`y2`)",
            ],
        );
    }
}

#[test]
fn too_few_rows_and_constant_columns() {
    let folder = Folder::new();
    folder.write_pairs("few.npz", &column_pairs(40, 0.0), &column_pairs(40, 1.0));
    folder.pairs_refused(
        "few.npz",
        &["few.npz: 36 rows", "fewer than one batch of 64"],
    );
    let mut x = column_pairs(200, 0.0);
    x.iter_mut()
        .skip(1)
        .step_by(2)
        .for_each(|value| *value = 4.5);
    folder.write_pairs("constant.npz", &x, &column_pairs(200, 1.0));
    folder.pairs_refused(
        "constant.npz",
        &["constant.npz: column `x2` (every row holds about 4.5) is constant"],
    );
}

#[test]
fn dimensions_that_do_not_fit_the_model() {
    let folder = Folder::with_surrogate();
    folder.succeed("simulate ik -n 30 -o ik.npz");
    for line in [
        "log-prob surrogate.safetensors --pairs ik.npz -o out.npz",
        "sample surrogate.safetensors --push --points ik.npz -o out.npz",
        "simulate two-moons --from ik.npz -o out.npz",
    ] {
        folder.refused(line, &["ik.npz: x has 4 columns", "2", "--x"]);
    }
}

#[test]
fn a_model_file_of_another_version_or_kind() {
    let folder = Folder::with_surrogate();
    let mut bytes = folder.bytes("surrogate.safetensors");
    let mark = br#"\"format\":"#;
    let at = bytes
        .windows(mark.len())
        .position(|window| window == mark)
        .unwrap();
    bytes[at + mark.len()] = b'9';
    std::fs::write(folder.path("future.safetensors"), bytes).unwrap();
    folder.refused(
        "log-prob future.safetensors --pairs pairs.npz",
        &["future.safetensors", "format version 9", "reads version 3"],
    );
}

#[test]
fn outputs_that_exist_or_cannot_be_written() {
    let folder = Folder::with_surrogate();
    let exists = &["exists already and was not touched", "--force"];
    folder.refused("simulate ik -n 5 -o pairs.npz", exists);
    folder.refused(
        "log-prob surrogate.safetensors --pairs pairs.npz -o pairs.npz",
        exists,
    );
    folder.refused(
        "sample surrogate.safetensors --push --points pairs.npz -o pairs.npz",
        exists,
    );
    let train = |output: &str| {
        format!(
            "surrogate --pairs pairs.npz -o {output} {}",
            SMALL.join(" ")
        )
    };
    folder.refused(&train("surrogate.safetensors"), exists);
    folder.refused(&train("model.bin"), &["model.bin", ".safetensors"]);
    folder.refused(
        &train("no/such.safetensors"),
        &["the folder no does not exist"],
    );
    folder.refused(&train("."), &[]);
    folder.refused(
        "simulate ik -n 5 -o no/such.npz",
        &["the folder no does not exist"],
    );
    folder.refused("simulate ik -n 5 -o out.dat", &["out.dat", ".dat"]);
}

/// Where even the superuser cannot write: the check must come before the training, which here would take hours.
#[cfg(target_os = "linux")]
#[test]
fn a_folder_that_cannot_be_written_is_found_before_training() {
    let folder = Folder::with_surrogate();
    let started = std::time::Instant::now();
    folder.refused(
        "surrogate --pairs pairs.npz -o /proc/s.safetensors --epochs 10000000 --batch 8",
        &["/proc/s.safetensors", "cannot be written"],
    );
    assert!(started.elapsed().as_secs() < 10);
}

#[test]
fn settings_that_make_no_sense() {
    let folder = Folder::with_surrogate();
    let train = |more: &str| format!("surrogate --pairs pairs.npz -o new.safetensors {more}");
    folder.refused(&train("--batch 0"), &["batch = 0"]);
    folder.refused(&train("--rate nan"), &["learning rate is NaN"]);
    folder.refused(&train("--held-out 1"), &["held-out"]);
    folder.refused(&train("--kind spline --bins 99"), &["2 to 16 bins"]);
    folder.refused(
        &train("--kind coupling --components 3"),
        &["`components`", "\"coupling\""],
    );
    folder.refused(
        &train("--checkpoint-seconds=-1"),
        &["--checkpoint-seconds -1"],
    );
    let toml = "seed = 3\n\n[surrogate]\nkind = \"spline\"\nepoch = 5\n";
    std::fs::write(folder.path("slip.toml"), toml).unwrap();
    folder.refused(
        &train("--config slip.toml"),
        &[
            "slip.toml: line 5: there is no key `epoch` in [surrogate]",
            "did you mean `epochs`",
        ],
    );
    std::fs::write(folder.path("top.toml"), "surogate = 1\n").unwrap();
    folder.refused(
        &train("--config top.toml"),
        &["line 1", "`surogate`", "`surrogate`"],
    );
    std::fs::write(folder.path("place.toml"), "epochs = 1\n").unwrap();
    folder.refused(
        &train("--config place.toml"),
        &["`epochs` at the top", "belongs under [surrogate]"],
    );
    std::fs::write(folder.path("type.toml"), "[surrogate]\nepochs = \"many\"\n").unwrap();
    folder.refused(&train("--config type.toml"), &["type.toml: line 2", "many"]);
    folder.refused(
        &train("--config absent.toml"),
        &["absent.toml", "cannot be read"],
    );
}

#[test]
fn problems_laws_and_numbers_of_rows() {
    let folder = Folder::new();
    for line in ["simulate three-moons -n 5 -o o.npz", "demo three-moons"] {
        folder.refused(line, &["`three-moons`", "two-moons, slcp, ik"]);
    }
    folder.refused(
        "simulate ik -n 5 --from posterior -o o.npz",
        &["`posterior`", "prior, proposal"],
    );
    folder.refused("simulate ik -o o.npz", &["how many rows", "-n"]);
    let ended = folder.neb("simulate ik -n 0 -o o.npz");
    assert_eq!(ended.code, Some(2));
    assert!(
        ended.stderr.contains("'0'") && ended.stderr.contains("1 or more"),
        "{ended:?}"
    );
    folder.succeed("simulate ik -n 5 -o five.npz");
    folder.refused(
        "simulate ik -n 6 --from five.npz -o o.npz",
        &["five.npz: holds 5 rows; 6"],
    );
}

#[test]
fn weights_that_do_not_fit() {
    let folder = Folder::with_surrogate();
    let (x, y) = (column_pairs(10, 0.0), column_pairs(10, 1.0));
    let weight = [-1.0f32; 10];
    let arrays = [
        Array::new("x", &[10, 2], &x[..]),
        Array::new("y", &[10, 2], &y[..]),
        Array::new("weight", &[10], &weight[..]),
    ];
    neb_data::write(folder.path("weighted.npz"), false, &arrays).unwrap();
    let line = "log-prob surrogate.safetensors --pairs weighted.npz";
    folder.refused(line, &["weighted.npz: the weights add up to -10"]);
    folder.refused(&format!("{line} --weight x"), &["20 weights for 10 rows"]);
}
