//! Columns that models see otherwise: found or asked for, undone on output, everywhere.

use neb::Matrix;
use neb::{Noise, Purpose};
use neb_data::{Array, Dataset, Selection};

use crate::folder::{FIT, Folder, read};

/// Both stages in a second.
const QUICK: &str = "\
[surrogate]
components = 2
hidden = [16]
epochs = 60
batch = 64

[source]
source = \"particles\"
judge-k = 256
particles = 300
flow-layers = 2
flow-hidden = [16]
flow-epochs = 60
flow-batch = 64
";

const NAMES: [&str; 3] = ["n", "z", "w"];

/// A count, a share with an atom at 0 (a quarter of the rows) and a gap up to 0.1, and a positive width.
fn rows(rows: usize, seed: u64) -> Matrix {
    let noise = Noise::new(seed, Purpose::Test, 0).normal(rows, 3);
    let uniform = Noise::new(seed, Purpose::Test, 1).uniform(rows, 2);
    Matrix::from_fn(rows, 3, |row, column| {
        let z = noise.row(row);
        match column {
            0 => (12.0 + 3.0 * z[0]).round().max(0.0),
            1 if uniform.row(row)[0] < 0.25 => 0.0,
            1 => 0.1 + 0.4 * uniform.row(row)[1],
            _ => (0.3 * z[2] + 0.05 * z[0]).exp(),
        }
    })
}

/// The same columns, seen through a detector that keeps their kind.
fn smeared(x: &Matrix, seed: u64) -> Matrix {
    let noise = Noise::new(seed, Purpose::Test, 2).normal(x.rows(), 3);
    Matrix::from_fn(x.rows(), 3, |row, column| {
        let (x, z) = (x.row(row), noise.row(row));
        match column {
            0 => (x[0] + z[0]).round().max(0.0),
            1 if x[1] == 0.0 => 0.0,
            1 => (x[1] + 0.02 * z[1]).max(0.1 + 1e-4 * z[0].abs()),
            _ => x[2] * (0.1 * z[2]).exp(),
        }
    })
}

/// A folder with pairs, observations, `truth.npz` and settings that ask for the logarithm of `w`.
fn folder() -> Folder {
    let folder = Folder::new();
    let names = NAMES.map(str::to_owned);
    let save = |name: &str, arrays: &[(&str, &Matrix)]| {
        let arrays: Vec<Array> = arrays
            .iter()
            .map(|(name, m)| Array::new(name, &[m.rows(), 3], m.values()).with_names(&names))
            .collect();
        neb_data::write(folder.path(name), true, &arrays).unwrap();
    };
    let (x, hidden) = (rows(600, 1), rows(400, 2));
    save("pairs.npz", &[("x", &x), ("y", &smeared(&x, 3))]);
    save("seen.npz", &[("y", &smeared(&hidden, 4))]);
    let few = smeared(&hidden, 4).view().slice(0..20).to_matrix();
    save("few.npz", &[("y", &few)]);
    save("truth.npz", &[("x", &hidden), ("y", &smeared(&hidden, 4))]);
    let toml = format!("{QUICK}\n[column.w]\ntransform = \"log\"\n");
    std::fs::write(folder.path("small.toml"), toml).unwrap();
    folder
}

/// Whole numbers in the first column, the atom or the continuous part in the second, positive numbers in the third.
fn check_kinds(rows: &Matrix) {
    let mut atoms = 0;
    for row in 0..rows.rows() {
        let [n, z, w] = rows.row(row) else {
            unreachable!()
        };
        assert_eq!(n.fract(), 0.0);
        assert!(*z == 0.0 || *z > 0.1, "{z}");
        assert!(*w > 0.0);
        atoms += usize::from(*z == 0.0);
    }
    assert!(atoms > 0 && atoms < rows.rows());
}

#[test]
fn a_run_takes_and_gives_the_user_s_columns() {
    let folder = folder();
    let ended = folder.neb(&format!("{FIT} -o run"));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for words in [
        "column `n` of x holds whole numbers alone",
        "column `z` of y holds 0 exactly in",
    ] {
        assert!(ended.stderr.contains(words), "no `{words}` in {ended:?}");
    }
    assert!(!ended.stderr.contains("column `w`"), "{ended:?}");
    let config = String::from_utf8(folder.bytes("run/config.toml")).unwrap();
    for lines in [
        "[column.n]\ntransform = \"dequantise\"         # found: ",
        "[column.z]\ntransform = \"atom:0\"             # found: ",
        "[column.w]\ntransform = \"log\"                # small.toml",
    ] {
        assert!(config.contains(lines), "no `{lines}` in {config}");
    }

    // The settings of the run, once more, give the same run.
    folder
        .succeed("fit --pairs pairs.npz --observations seen.npz --config run/config.toml -o again");
    assert_eq!(
        folder.bytes("run/source.safetensors"),
        folder.bytes("again/source.safetensors")
    );
    // As do the two stages one by one.
    folder.succeed(
        "surrogate --pairs pairs.npz --config small.toml --kind noisy-mixture -o s.safetensors",
    );
    folder.succeed(
        "source s.safetensors --pairs pairs.npz --observations seen.npz --config small.toml -o two",
    );
    assert_eq!(
        folder.bytes("run/source.safetensors"),
        folder.bytes("two/source.safetensors")
    );

    folder.succeed("sample run -n 500 --push -o drawn.npz");
    for role in ["x", "y"] {
        check_kinds(&read(&folder.path("drawn.npz"), role));
    }
    folder.succeed("sample run --points truth.npz --push -o pushed.npz");
    check_kinds(&read(&folder.path("pushed.npz"), "y"));
    assert_eq!(
        read(&folder.path("pushed.npz"), "x"),
        read(&folder.path("truth.npz"), "x")
    );

    // The particles are the pairs' own x.
    folder.succeed("sample run --weights -o particles.npz");
    let (particles, pairs) = (
        read(&folder.path("particles.npz"), "x"),
        read(&folder.path("pairs.npz"), "x"),
    );
    for row in 0..particles.rows() {
        let (particle, x) = (particles.row(row), pairs.row(row));
        assert_eq!(particle[..2], x[..2]);
        assert!((particle[2] / x[2] - 1.0).abs() < 1e-6);
    }

    folder.succeed(
        "posterior run --observations few.npz -n 20 --method importance --map -o posterior.npz",
    );
    let posterior = Dataset::open(folder.path("posterior.npz")).unwrap();
    for value in posterior.array("x").unwrap().values.chunks_exact(3) {
        assert!(value[0].fract() == 0.0 && (value[1] == 0.0 || value[1] > 0.1) && value[2] > 0.0);
    }
    folder.neb("calibrate run --pairs truth.npz -n 20 --method importance");
    assert!(folder.path("run/calibration.json").exists());
    folder.succeed("report run --truth truth.npz");
    folder.succeed("log-prob run --pairs truth.npz -o values.csv");
    let values = Dataset::open(folder.path("values.csv")).unwrap();
    let values = values
        .group(&Selection::named("log_prob", "log_prob"))
        .unwrap();
    assert!(values.values().iter().all(|value| value.is_finite()));
}

/// The probabilities of all whole numbers add up to 1, as do those of an atom and the density beside it (in steps of 0.01).
#[test]
fn log_prob_gives_probabilities() {
    let folder = folder();
    let one = |column: usize, name: &str| {
        let take = |file: &str, role: &str| {
            let rows = read(&folder.path(file), role);
            let values: Vec<f32> = (0..rows.rows()).map(|row| rows.row(row)[column]).collect();
            values
        };
        let (x, y) = (take("pairs.npz", "x"), take("pairs.npz", "y"));
        let seen = take("seen.npz", "y");
        let arrays = [
            Array::new("x", &[x.len(), 1], &x[..]),
            Array::new("y", &[y.len(), 1], &y[..]),
        ];
        neb_data::write(folder.path(&format!("{name}.npz")), true, &arrays).unwrap();
        let arrays = [Array::new("y", &[seen.len(), 1], &seen[..])];
        neb_data::write(folder.path(&format!("{name}_seen.npz")), true, &arrays).unwrap();
        std::fs::write(folder.path("one.toml"), QUICK).unwrap();
        folder.succeed(&format!(
            "fit --pairs {name}.npz --observations {name}_seen.npz --config one.toml -o {name}"
        ));
    };
    let probabilities = |run: &str, points: &[f32]| -> Vec<f64> {
        let array = Array::new("x", &[points.len(), 1], points);
        neb_data::write(folder.path("points.npz"), true, &[array]).unwrap();
        folder.succeed(&format!(
            "log-prob {run} --points points.npz -o values.npz --force"
        ));
        let values = Dataset::open(folder.path("values.npz")).unwrap();
        let values = values.array("log_prob").unwrap().values;
        values.iter().map(|&value| f64::from(value).exp()).collect()
    };
    one(0, "counts");
    let points: Vec<f32> = (-30..=60).map(|n| n as f32).collect();
    let sum: f64 = probabilities("counts", &points).iter().sum();
    // 32 draws of u per point: the sum has a standard error below 0.01.
    assert!((sum - 1.0).abs() < 0.04, "{sum}");

    one(1, "shares");
    // What the small flow of this test puts into the gap and beyond the interval is left out of the sum: a few per cent.
    let mut points = vec![0.0];
    points.extend((0..200).map(|n| 0.1 + 0.005 + 0.01 * n as f32));
    let values = probabilities("shares", &points);
    let sum = values[0] + values[1..].iter().sum::<f64>() * 0.01;
    assert!(sum > 0.85 && sum < 1.04, "{sum}");
    assert!(values[0] > 0.1 && values[0] < 0.35, "{}", values[0]);
}

#[test]
fn transforms_that_cannot_be_are_refused() {
    let folder = folder();
    for (flag, words) in [
        ("z=log", "column `z`: 0 has no logarithm"),
        ("n=ln", "`ln` is no transform of a column"),
        (
            "nn=log",
            "a transform of `nn`, which is no column of x or y",
        ),
        ("w", "`w` is not of the form NAME=KIND"),
    ] {
        folder.refused(&format!("{FIT} --transform {flag} -o run"), &[words]);
    }
    std::fs::write(folder.path("bad.toml"), "[column.w]\ntransfrom = \"log\"\n").unwrap();
    let line = "fit --pairs pairs.npz --observations seen.npz --config bad.toml -o run";
    folder.refused(
        line,
        &[
            "line 2: there is no key `transfrom`",
            "did you mean `transform`?",
        ],
    );

    folder.surrogate("pairs.npz", "s.safetensors", "--transform all=none");
    let source = "source s.safetensors --pairs pairs.npz --observations seen.npz -o run";
    folder.refused(&format!("{source} --transform w=log"), &["which stay"]);
    let surrogate = neb::surrogate::Surrogate::load(&folder.path("s.safetensors")).unwrap();
    assert!(surrogate.x_transforms().is_plain() && surrogate.y_transforms().is_plain());
}
