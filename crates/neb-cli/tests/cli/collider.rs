//! Collider data: the OmniFold files, and what is found in a sample of jets.

use neb::column::{Transform, Transforms};
use neb::unfold::{Binning, Histogram, Ibu, Response, SimulatedEvent, triangular};
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

/// A table of the slice of the collider sample in `tests/collider`.
fn slice(name: &str, level: &str) -> (neb::Matrix, Vec<String>) {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/collider");
    let data = Dataset::open(format!("{root}/{name}.npz")).unwrap();
    let table = data.group(&Selection::named("x", level)).unwrap();
    let names = table.names().to_vec();
    (
        neb::Matrix::from_vec(table.into_values(), names.len()),
        names,
    )
}

/// Observable, range of its 20 bins, and Δ × 10³ against nature's truth of: no unfolding, the simulation, three iterations. The
/// numbers are those of an independent program (numpy, matrices of 22 × 22 cells with under- and overflow).
const TRIANGULAR: [(&str, f64, f64, f64, f64, f64); 6] = [
    ("m", 0.0, 75.0, 3.243787418, 8.892914316, 6.302178227),
    ("M", 0.0, 80.0, 84.620888271, 37.835582635, 6.781789987),
    ("w", 0.0, 0.6, 19.391095969, 18.000930657, 11.154841345),
    (
        "lnrho",
        -14.0,
        -2.0,
        16.439765808,
        15.553053768,
        4.105261673,
    ),
    ("zg", 0.0, 0.5, 6.572152379, 5.396638114, 6.117370020),
    ("tau21", 0.0, 1.2, 30.894070777, 4.252493183, 5.228674301),
];

#[test]
fn iterative_bayesian_unfolding_of_jets() {
    let [gen_s, sim_s] = ["gen", "sim"].map(|level| slice("simulation", level).0);
    let [gen_n, sim_n] = ["gen", "sim"].map(|level| slice("nature", level).0);
    for (column, (name, low, high, none, prior, unfolded)) in TRIANGULAR.into_iter().enumerate() {
        assert_eq!(name, OBSERVABLES[column]);
        let bins = [Binning::uniform(low, high, 20).unwrap()];
        let histogram =
            |rows: &neb::Matrix| Histogram::of(rows.view(), &[column], None, &bins).unwrap();
        let cells = |rows: &neb::Matrix| histogram(rows).cells_of(rows.view(), &[column]).unwrap();
        let events = cells(&gen_s)
            .into_iter()
            .zip(cells(&sim_s))
            .map(|(truth, seen)| SimulatedEvent {
                truth: Some(truth),
                seen: Some(seen),
                weight: 1.0,
            });
        let response = Response::of_events(22, 22, events).unwrap();
        let (data, truth) = (histogram(&sim_n), histogram(&gen_n));
        let ibu = Ibu::default()
            .unfold(&response, data.sums(), data.squares())
            .unwrap();
        let variances = ibu
            .covariance
            .unwrap()
            .errors()
            .iter()
            .map(|e| e * e)
            .collect();
        let result = data.with_contents(ibu.spectrum, variances);
        for (found, expected) in [
            (&data, none),
            (&histogram(&gen_s), prior),
            (&result, unfolded),
        ] {
            let delta = triangular(found, &truth).unwrap().value;
            assert!(
                (delta / expected - 1.0).abs() < 1e-6,
                "{name}: {delta} {expected}"
            );
        }
    }
}

/// The slice of the collider sample in `tests/collider`: counts, and the atoms of the groomed observables, are found; nothing else.
#[test]
fn the_atoms_of_a_jet_sample_are_found() {
    for name in ["simulation", "nature"] {
        for level in ["gen", "sim"] {
            let (rows, names) = slice(name, level);
            assert_eq!(
                (rows.rows(), &names[..]),
                (2000, &OBSERVABLES.map(str::to_owned)[..])
            );
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
