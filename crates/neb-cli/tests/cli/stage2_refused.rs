//! What stage 2 refuses: exit code 2 and nothing written, not even a folder.

use crate::folder::{FIT, Folder};
use neb_data::Array;

/// Writes 400 observations of so many columns.
fn write_observations(folder: &Folder, name: &str, columns: usize, values: impl Fn(usize) -> f32) {
    let y: Vec<f32> = (0..400 * columns).map(values).collect();
    let arrays = [Array::new("y", &[400, columns], &y[..])];
    neb_data::write(folder.path(name), true, &arrays).unwrap();
}

/// Both ways into stage 2 with these observations.
fn both(observations: &str) -> [String; 2] {
    let source = format!(
        "source run --pairs pairs.npz --observations {observations} --config small.toml -o new"
    );
    [
        format!("{} -o new", FIT.replace("seen.npz", observations)),
        source,
    ]
}

#[test]
fn observations_that_cannot_be_used() {
    let folder = Folder::with_run();
    let small = |i: usize| (i as f32).sin() * 0.1;
    write_observations(&folder, "three.npz", 3, small);
    write_observations(&folder, "nan.npz", 2, |i| {
        if i == 31 { f32::NAN } else { small(i) }
    });
    let empty = [Array::new("y", &[0, 2], &[] as &[f32])];
    neb_data::write(folder.path("empty.npz"), true, &empty).unwrap();
    std::fs::write(folder.path("empty.csv"), "y1,y2\n").unwrap();
    for [three, nan, empty, header, absent] in both("FILE").map(|line| {
        ["three.npz", "nan.npz", "empty.npz", "empty.csv", "no.npz"]
            .map(|f| line.replace("FILE", f))
    }) {
        folder.refused(&three, &["three.npz: y has 3 columns", "2 (`y1`, `y2`)"]);
        folder.refused(&nan, &["nan.npz", "NaN", "row 15, column 1 (`y2`)"]);
        folder.refused(&empty, &["empty.npz: array `y` is empty"]);
        folder.refused(&header, &["empty.csv"]);
        folder.refused(&absent, &["no.npz", "no such file"]);
    }
}

#[test]
fn too_few_observations_or_pairs() {
    let folder = Folder::with_run();
    folder.succeed("simulate two-moons -n 40 -o few.npz");
    for line in both("few.npz") {
        folder.refused(&line, &["of 40 observations 4 would be held out"]);
    }
    folder.refused(
        "source run --pairs few.npz --observations seen.npz --config small.toml -o new",
        &["40 points leave 36", "one batch of 64", "flow-batch"],
    );
}

#[test]
fn observations_outside_the_range_of_the_pairs() {
    let folder = Folder::with_run();
    let far = |share: usize| {
        move |i: usize| {
            if i % 2 == 1 && i / 2 < share {
                50.0
            } else {
                -0.3
            }
        }
    };
    write_observations(&folder, "most.npz", 2, far(201));
    for line in both("most.npz") {
        folder.refused(
            &line,
            &["most.npz: observations outside", "`y2` 201 of 400 (50.25 %"],
        );
    }
    let mut some: Vec<f32> = crate::folder::read(&folder.path("seen.npz"), "y")
        .values()
        .to_vec();
    some[1] = 50.0;
    neb_data::write(
        folder.path("some.npz"),
        true,
        &[Array::new("y", &[400, 2], &some[..])],
    )
    .unwrap();
    for line in both("some.npz") {
        let ended = folder.neb(&format!("{line} --force"));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(ended.stderr.contains("`y2` 1 of 400 (0.25 %"), "{ended:?}");
        assert!(!ended.stderr.contains("`y1`"), "{ended:?}");
    }
}

#[test]
fn outputs_and_runs_that_are_none() {
    let folder = Folder::with_run();
    let exists = &["run: exists already and was not touched", "--force"];
    folder.refused(&format!("{FIT} -o run"), exists);
    let source = both("seen.npz")[1].replace("-o new", "-o run");
    folder.refused(&source, exists);
    std::fs::create_dir(folder.path("mine")).unwrap();
    std::fs::write(folder.path("mine/thesis.tex"), "all of it").unwrap();
    folder.refused(&format!("{FIT} -o mine --force"), &["mine", "is no run"]);
    folder.refused(&format!("{FIT} -o pairs.npz --force"), &["is a file"]);
    folder.refused(
        &format!("{FIT} -o no/run"),
        &["the folder no does not exist"],
    );
    for line in [
        "sample mine -n 5 -o x.npz",
        "sample mine --weights -o x.npz",
        "log-prob mine --points seen.npz",
        "source mine --pairs pairs.npz --observations seen.npz -o new",
    ] {
        folder.refused(line, &["mine: this folder is no run"]);
    }
    folder.refused(
        "log-prob run/surrogate.safetensors --points seen.npz",
        &["surrogate.safetensors", "holds a surrogate, not a source"],
    );
    folder.refused("sample run -n 5 -o seen.npz", &["exists already"]);
}

#[test]
fn points_and_samples_of_other_columns() {
    let folder = Folder::with_run();
    folder.succeed("simulate ik -n 30 -o ik.npz");
    folder.refused(
        "log-prob run --points ik.npz -o lp.npz",
        &["ik.npz: x has 4 columns", "the source has 2"],
    );
    folder.refused(
        "compare seen.npz ik.npz",
        &["ik.npz: x has 4 columns", "seen.npz has 2"],
    );
    folder.refused(
        "compare seen.npz pairs.npz --columns x1,x7",
        &["seen.npz: there is no column `x7`"],
    );
    folder.refused("compare seen.npz absent.npz", &["absent.npz"]);
}

#[test]
fn settings_of_the_source_that_make_no_sense() {
    let folder = Folder::with_observations();
    let with = |line: &str| {
        let toml = format!("[source]\n{line}\n");
        std::fs::write(folder.path("bad.toml"), toml).unwrap();
        format!("{} -o run", FIT.replace("small.toml", "bad.toml"))
    };
    folder.refused(&with("judge-k = 0"), &["judge-k is 0"]);
    folder.refused(&with("held-out = 0.0"), &["held-out is 0"]);
    folder.refused(&with("flow-bins = 99"), &["flow-bins is 99"]);
    folder.refused(
        &with("judge-q = 5"),
        &[
            "line 2: there is no key `judge-q` in [source]",
            "did you mean `judge-k`",
        ],
    );
    folder.refused(&with("pull = \"much\""), &["bad.toml: line 2", "much"]);
    folder.refused(
        &with("flow-epochs = -3"),
        &["line 2, `flow-epochs = -3`", "a whole number, not below 0"],
    );
    folder.refused(
        &format!("{FIT} -o run --symmetric x1,x3"),
        &["--symmetric: x has no column `x3`"],
    );
}

#[test]
fn arguments_that_contradict_each_other() {
    let folder = Folder::with_run();
    for line in [
        "sample run -o x.npz",
        "sample run --push -o x.npz",
        "sample run --points seen.npz -o x.npz",
        "sample run -n 5 --weights -o x.npz",
        "log-prob run",
        "log-prob run --pairs seen.npz --points seen.npz",
    ] {
        assert_eq!(folder.neb(line).code, Some(2), "{line}");
    }
}
