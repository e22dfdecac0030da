//! Collider data: the OmniFold files, and what is found in a sample of jets.

use neb::column::{Transform, Transforms};
use neb_data::{Array, Dataset, OBSERVABLES, Selection};

use crate::folder::{Folder, read};

/// Writes an OmniFold file of `rows` jets; the first has no width after the detector.
fn omnifold(folder: &Folder, name: &str, rows: usize, without: &str) {
    let mut named: Vec<(String, Vec<usize>, Vec<f32>)> = Vec::new();
    for level in ["gen", "sim"] {
        let jets: Vec<f32> = (0..rows)
            .flat_map(|row| [200.0, 0.0, 0.0, 10.0 + row as f32])
            .collect();
        named.push((format!("{level}_jets"), vec![rows, 4], jets));
        named.push((
            format!("{level}_particles"),
            vec![rows, 1, 4],
            vec![0.0; 4 * rows],
        ));
        for (scalar, value) in [
            ("mults", 12.0),
            ("lhas", 0.3),
            ("widths", 0.2),
            ("ang2s", 0.1),
            ("tau2s", 0.1),
            ("sdms", 20.0),
            ("zgs", 0.25),
        ] {
            let dead = |row: usize| level == "sim" && scalar == "widths" && row == 0;
            let values = (0..rows).map(|row| if dead(row) { 0.0 } else { value });
            named.push((format!("{level}_{scalar}"), vec![rows], values.collect()));
        }
    }
    named.push(("gen_Zs".to_owned(), vec![rows, 3], vec![0.0; 3 * rows]));
    named.retain(|(name, ..)| name != without);
    let arrays: Vec<Array> = named
        .iter()
        .map(|(name, shape, values)| Array::new(name, shape, &values[..]))
        .collect();
    let path = folder.path(&format!("{name}_Zjet_pTZ-200GeV_0.npz"));
    neb_data::write(path, true, &arrays).unwrap();
}

#[test]
fn omnifold_files_become_pairs() {
    let folder = Folder::new();
    folder.refused(
        "omnifold . -o pairs.npz",
        &["there are no files GENERATOR_Zjet_pTZ-200GeV_NUMBER.npz"],
    );
    omnifold(&folder, "Herwig", 5, "");
    omnifold(&folder, "Pythia26", 3, "");
    folder.refused(
        "omnifold . -o pairs.npz",
        &["`Herwig`, `Pythia26`", "name one: ./Herwig"],
    );
    let text = folder.succeed("omnifold ./Herwig -o pairs.npz");
    assert!(
        text.contains("4 rows of x (gen) and y (sim) from 1 files; left out: 1 without a width"),
        "{text}"
    );
    let data = Dataset::open(folder.path("pairs.npz")).unwrap();
    let x = data.group(&Selection::new("x")).unwrap();
    assert_eq!(x.names(), OBSERVABLES);
    let row = &x.values()[..6];
    assert_eq!(
        (row[0], row[1], row[2], row[4], row[5]),
        (11.0, 12.0, 0.2, 0.25, 0.5)
    );
    assert!((row[3] - 0.01f32.ln()).abs() < 1e-6);
    folder.succeed("omnifold Herwig Pythia26 --fill --floor -15 -o all.npz");
    let y = read(&folder.path("all.npz"), "y");
    assert_eq!((y.rows(), y.row(0)[5]), (8, 0.0));

    omnifold(&folder, "Pythia21", 3, "sim_sdms");
    let words = ["Pythia21_Zjet_pTZ-200GeV_0.npz", "no array `sim_sdms`"];
    folder.refused("omnifold Pythia21 -o new.npz", &words);
}

/// The slice of the collider sample in `tests/collider`: counts, and the atoms of the groomed observables, are found; nothing else.
#[test]
fn the_atoms_of_a_jet_sample_are_found() {
    let file = |name: &str| {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/collider");
        Dataset::open(format!("{root}/{name}.npz")).unwrap()
    };
    for name in ["simulation", "nature"] {
        for level in ["gen", "sim"] {
            let table = file(name).group(&Selection::named("x", level)).unwrap();
            assert_eq!(
                (table.rows(), table.names()),
                (2000, &OBSERVABLES.map(str::to_owned)[..])
            );
            let names = table.names().to_vec();
            let rows = neb::Matrix::from_vec(table.into_values(), names.len());
            let (transforms, found) = Transforms::choose(&names, &[], &[rows.view()]).unwrap();
            let columns: Vec<&str> = found.iter().map(|found| &*names[found.column]).collect();
            assert_eq!(columns, ["M", "lnrho", "zg"], "{name} {level}");
            for (column, at, end) in [(3, -14.0, -14.0), (4, 0.0, 0.0)] {
                let Transform::Atom(atom) = transforms.of(column) else {
                    panic!("{column}")
                };
                assert_eq!(atom.at, at);
                assert!(atom.interval[1] <= end && atom.interval[0] < atom.interval[1]);
            }
        }
    }
}
