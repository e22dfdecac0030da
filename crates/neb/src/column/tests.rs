//! Transforms: the way back, Jacobians by differences, densities that integrate to 1, and what is found in data.

use proptest::prelude::*;

use super::*;
use crate::Purpose;

fn noise(step: u64) -> Noise {
    Noise::new(3, Purpose::Dequantise, step)
}

const WHOLE: Transform = Transform::Dequantise { counts: false };

fn floor_at(at: f32) -> Transform {
    Transform::Atom(Atom::beside(
        at,
        [at + 0.25, at + 9.0],
        [at + 1.0, at + 8.0],
    ))
}

fn standard_normal(u: f64) -> f64 {
    (-0.5 * u * u).exp() / std::f64::consts::TAU.sqrt()
}

proptest! {
    #[test]
    fn whole_numbers_come_back_exactly(x in -1_000_000i32..1_000_000, uniform in 0f32..1.0) {
        let u = WHOLE.forward(x as f32, uniform).unwrap();
        prop_assert!((u - x as f32).abs() < 0.5);
        prop_assert_eq!(WHOLE.inverse(u), x as f32);
    }

    #[test]
    fn atoms_and_what_is_beside_them_come_back_exactly(
        at in -20f32..20.0, place in 0.25f32..9.0, uniform in 0f32..1.0
    ) {
        let transform = floor_at(at);
        let u = transform.forward(at, uniform).unwrap();
        prop_assert!(u <= at, "{u} is no empty place");
        prop_assert_eq!(transform.inverse(u), at);
        let x = (at + place).max(at + 0.25);
        prop_assert_eq!(transform.inverse(transform.forward(x, uniform).unwrap()), x);
    }

    #[test]
    fn logarithms_come_back_to_rounding(exponent in -30f32..30.0, share in 0.001f32..0.999) {
        let x = exponent.exp();
        let back = Transform::Log.inverse(Transform::Log.forward(x, 0.0).unwrap());
        // ln x is rounded to 2⁻²⁴ of 30 at worst.
        prop_assert!((back / x - 1.0).abs() < 4e-6, "{back} {x}");
        let logit = Transform::Logit { low: -2.0, high: 5.0 };
        let x = -2.0 + 7.0 * share;
        let back = logit.inverse(logit.forward(x, 0.0).unwrap());
        prop_assert!((back - x).abs() < 4e-6, "{back} {x}");
    }

    /// log |du/dx| against a symmetric difference of u in double precision.
    #[test]
    fn jacobians_are_slopes(share in 0.02f64..0.98) {
        let (low, high) = (-2.0, 5.0);
        let x = low + (high - low) * share;
        let step = 1e-4;
        let logit = |x: f64| ((x - low) / (high - x)).ln();
        let slope = (logit(x + step) - logit(x - step)) / (2.0 * step);
        let transform = Transform::Logit { low: -2.0, high: 5.0 };
        prop_assert!((transform.log_jacobian(x as f32) - slope.ln()).abs() < 1e-5);
        let x = 10.0 * share;
        let slope = ((x + step).ln() - (x - step).ln()) / (2.0 * step);
        prop_assert!((Transform::Log.log_jacobian(x as f32) - slope.ln()).abs() < 1e-5);
    }
}

/// With u standard normal, the law of x has total mass 1: continuous parts by the midpoint rule, whole numbers and atoms by
/// their probabilities.
#[test]
fn densities_integrate_to_one() {
    let density = |transform: &Transform, x: f64| {
        let u = f64::from(transform.forward(x as f32, 0.5).unwrap());
        standard_normal(u) * transform.log_jacobian(x as f32).exp()
    };
    let integral = |transform: &Transform, low: f64, high: f64| -> f64 {
        let n = 400_000;
        let width = (high - low) / f64::from(n);
        let at = |i: i32| low + (f64::from(i) + 0.5) * width;
        (0..n).map(|i| density(transform, at(i)) * width).sum()
    };
    assert!((integral(&Transform::Log, 0.0, 200.0) - 1.0).abs() < 1e-4);
    let logit = Transform::Logit {
        low: -1.0,
        high: 3.0,
    };
    assert!((integral(&logit, -1.0, 3.0) - 1.0).abs() < 1e-4);

    let probability = |transform: &Transform, x: f32| -> f64 {
        let n = 1000;
        let of = |draw: i32| {
            let u = transform
                .forward(x, (draw as f32 + 0.5) / n as f32)
                .unwrap();
            standard_normal(f64::from(u)) * transform.log_jacobian(x).exp() / f64::from(n)
        };
        (0..n).map(of).sum()
    };
    let whole: f64 = (-9..=9).map(|x| probability(&WHOLE, x as f32)).sum();
    assert!((whole - 1.0).abs() < 1e-5, "{whole}");

    // The atom's interval and the continuous part hold the mass but for that of the gap and beyond the interval.
    let transform = Transform::Atom(Atom {
        at: -1.0,
        interval: [-8.0, -1.0],
        continuous: [-0.999, 8.0],
    });
    let both = probability(&transform, -1.0) + integral(&transform, -0.999, 8.0);
    assert!((both - 1.0).abs() < 1e-3, "{both}");
}

/// The probabilities of a law on whole numbers, from the density of u alone.
#[test]
fn averages_over_draws_are_probabilities() {
    let transforms = Transforms::new(vec![WHOLE]);
    let names = ["n".to_owned()];
    let x = Matrix::from_vec(vec![-1.0, 0.0, 2.0], 1);
    // u ~ uniform on (-1.5, 2.5): each of -1, 0, 1, 2 has probability 1/4, exactly in every draw.
    let density = |u: f32| {
        if (-1.5..2.5).contains(&u) {
            0.25f32.ln()
        } else {
            f32::NEG_INFINITY
        }
    };
    let values = average_log_prob(transforms.is_random(), |draw| {
        let u = transforms.forward(x.clone(), &names, noise(draw))?;
        Ok(u.values().iter().map(|&u| density(u)).collect())
    });
    for value in values.unwrap() {
        assert!((value - 0.25f32.ln()).abs() < 1e-6);
    }
    // A density that differs within the bin: the mean of e^u over (-½, ½) is 2 sinh ½. 32 draws have a standard error of
    // 0.05 (false-alarm rate below 1e-4 at 4; the seed is fixed).
    let value = average_log_prob(true, |draw| {
        let u = transforms.forward(Matrix::zeros(1, 1), &names, noise(draw))?;
        Ok(u.into_values())
    });
    assert!((f64::from(value.unwrap()[0]).exp() - 2.0 * 0.5f64.sinh()).abs() < 0.2);
}

#[test]
fn rows_are_addressed_by_seed_and_number() {
    let names = ["n".to_owned(), "z".to_owned()];
    let transforms = Transforms::new(vec![WHOLE, floor_at(0.0)]);
    let rows = Matrix::from_fn(200, 2, |row, column| match column {
        0 => (row % 5) as f32,
        _ => 0.0,
    });
    let all = transforms.forward(rows.clone(), &names, noise(0)).unwrap();
    let few = rows.view().slice(0..70).to_matrix();
    let few = transforms.forward(few, &names, noise(0)).unwrap();
    assert_eq!(few.values(), &all.values()[..140]);
    let other = transforms.forward(rows.clone(), &names, noise(1)).unwrap();
    assert_ne!(other, all);
    assert_eq!(transforms.inverse(other), rows);
    let plain = Transforms::new(vec![Transform::None; 2]);
    assert!(plain.is_plain());
    assert_eq!(plain.forward(rows.clone(), &names, noise(0)).unwrap(), rows);
}

#[test]
fn whole_numbers_and_atoms_are_found_and_nothing_else() {
    let n = 2000;
    let normal = noise(5).normal(n, 4);
    let rows = Matrix::from_fn(n, 4, |row, column| {
        let z = normal.row(row)[column];
        match column {
            0 => (10.0 + 3.0 * z).round(),
            // A floor at -1, which 16 % of the rows have.
            1 => z.max(-1.0),
            // Rounded to two places: no atoms, though values repeat.
            2 => (100.0 * z).round() / 100.0,
            _ => z,
        }
    });
    let names = ["a", "b", "c", "d"].map(str::to_owned);
    let (transforms, found) = Transforms::choose(&names, &[], &[rows.view()]).unwrap();
    let columns: Vec<usize> = found.iter().map(|found| found.column).collect();
    assert_eq!(columns, [0, 1]);
    assert_eq!(*transforms.of(0), Transform::Dequantise { counts: true });
    let Transform::Atom(atom) = transforms.of(1) else {
        panic!("{:?}", transforms.of(1));
    };
    assert_eq!(atom.at, -1.0);
    assert!(atom.interval[1] < -1.0);
    let u = transforms.forward(rows.clone(), &names, noise(0)).unwrap();
    assert_eq!(transforms.inverse(u), rows);

    // Simulated counts beside observations that are not whole: not dequantised.
    let other = [rows.view(), normal.view()];
    let (_, found) = Transforms::choose(&names, &[], &other).unwrap();
    assert!(found.iter().all(|found| found.column != 0));
    // Told to leave them alone.
    let declared = [Some(Declared::None), Some(Declared::None)];
    let (transforms, found) = Transforms::choose(&names, &declared, &[rows.view()]).unwrap();
    assert!(transforms.is_plain() && found.is_empty());
}

/// The built-in problems are continuous: nothing is to be found in them.
#[test]
fn the_built_in_problems_stay_as_they_are() {
    for problem in ["two-moons", "slcp", "ik"] {
        let problem = crate::simulator::by_name(problem).unwrap();
        for (x, y) in [
            problem.pairs(Default::default(), 5000, 1),
            problem.observations(5000, 2),
        ] {
            for table in [x, y] {
                let names = vec!["c".to_owned(); table.cols()];
                let (transforms, _) = Transforms::choose(&names, &[], &[table.view()]).unwrap();
                assert!(transforms.is_plain());
            }
        }
    }
}

#[test]
fn atoms_inside_the_continuous_part_are_moved_beside_it() {
    let rows = Matrix::from_fn(1000, 1, |row, _| match row % 10 {
        0 => 3.0,
        _ => row as f32 / 100.0 + 0.001,
    });
    let names = ["z".to_owned()];
    let (transforms, found) = Transforms::choose(&names, &[], &[rows.view()]).unwrap();
    assert_eq!(found.len(), 1);
    let u = transforms.forward(rows.clone(), &names, noise(0)).unwrap();
    assert!(u.row(0)[0] < 0.0, "{}", u.row(0)[0]);
    assert_eq!(transforms.inverse(u), rows);
    assert_eq!(transforms.user_ranges(&[[-1.0, 9.0]]), [[0.011, 9.991]]);

    // Observations below the interval move it; others leave it where the simulation alone puts it.
    let observed = Matrix::from_vec(vec![-40.0, 2.5, 3.0], 1);
    let near = observed.view().slice(1..3);
    let (same, _) = Transforms::choose(&names, &[], &[rows.view(), near]).unwrap();
    assert_eq!(same, transforms);
    let tables = [rows.view(), observed.view()];
    let (moved, _) = Transforms::choose(&names, &[], &tables).unwrap();
    let u = moved.forward(observed.clone(), &names, noise(0)).unwrap();
    assert_eq!(moved.inverse(u), observed);
}

#[test]
fn draws_in_the_gap_go_to_the_nearer_side() {
    let transform = floor_at(0.0);
    let Transform::Atom(atom) = &transform else {
        unreachable!()
    };
    let (end, start) = (atom.interval[1], atom.continuous[0]);
    let middle = (end + start) / 2.0;
    assert_eq!(transform.inverse(middle - 1e-3), 0.0);
    assert_eq!(transform.inverse(-50.0), 0.0);
    let near = transform.inverse(start - 0.01);
    assert!((near - (start + 0.01)).abs() < 1e-6, "{near}");
    assert!(transform.inverse(f32::NAN).is_nan());
    // Counts: below 0 is mirrored at −½.
    let counts = Transform::Dequantise { counts: true };
    assert_eq!(
        [-0.4, -0.7, -2.2, 3.4].map(|u| counts.inverse(u)),
        [0.0, 0.0, 1.0, 3.0]
    );
    assert_eq!(WHOLE.inverse(-2.2), -2.0);
}

#[test]
fn what_does_not_fit_is_refused_by_row_and_column() {
    let names = ["w".to_owned()];
    let rows = Matrix::from_vec(vec![0.5, 2.0, 0.0], 1);
    for (declared, words) in [
        ("log", "row 2, column `w`: 0 has no logarithm"),
        ("logit", "row 1, column `w`: 2 is not between 0 and 1"),
        ("dequantise", "row 0, column `w`: 0.5 is no whole number"),
    ] {
        let declared = [Some(Declared::parse(declared).unwrap())];
        let message = Transforms::choose(&names, &declared, &[rows.view()]).unwrap_err();
        assert!(message.to_string().contains(words), "{message}");
    }
    let transforms = Transforms::new(vec![floor_at(0.0)]);
    let below = Matrix::from_vec(vec![1.0, -3.0], 1);
    let message = transforms.forward(below, &names, noise(0)).unwrap_err();
    assert!(
        message
            .to_string()
            .contains("row 1, column `w`: -3 is in the way"),
        "{message}"
    );
    for text in [
        "",
        "ln",
        "logit:1",
        "logit:1:0",
        "atom:nan",
        "atom:1:2",
        "log:2",
    ] {
        assert!(Declared::parse(text).is_err(), "{text}");
    }
}

#[test]
fn words_and_files_hold_every_transform() {
    let atom = floor_at(-14.0);
    let all = [
        Transform::None,
        Transform::Log,
        Transform::Logit {
            low: 0.0,
            high: 0.5,
        },
        WHOLE,
        atom,
    ];
    for transform in &all {
        assert!(Declared::parse(&transform.words()).is_ok(), "{transform:?}");
    }
    let transforms = Transforms::new(all.to_vec());
    let text = serde_json::to_string(&transforms).unwrap();
    assert_eq!(
        serde_json::from_str::<Transforms>(&text).unwrap(),
        transforms
    );
}

#[test]
fn bounds_follow_the_transform() {
    let inf = f32::INFINITY;
    assert_eq!(Transform::Log.bounds(0.0, inf), [-inf, inf]);
    assert_eq!(Transform::Log.bounds(1.0, inf), [0.0, inf]);
    assert_eq!(WHOLE.bounds(1.0, inf), [0.5, inf]);
    assert_eq!(Transform::None.bounds(-1.0, 2.0), [-1.0, 2.0]);
    let [low, high] = floor_at(0.0).bounds(0.0, 10.0);
    assert!(low < -0.5 && high == 10.0);
}
