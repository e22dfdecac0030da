//! Settings and domains: what is refused, and how a source starts.

use super::super::*;
use super::noise;

fn refused(config: &SourceConfig, dim: usize) -> String {
    let result = config.build(&vec![0.5; dim], &vec![1.0; dim], 1);
    result
        .err()
        .map_or("accepted".to_owned(), |e| e.to_string())
}

fn spline() -> SourceConfig {
    SourceConfig::new(SourceKind::Spline)
}

fn domain(lower: &[f32], upper: &[f32]) -> Option<Domain> {
    Some(Domain::new(lower, upper).unwrap())
}

#[test]
fn settings_that_make_no_sense_are_named() {
    let named = |config: SourceConfig, dim, words: &str| {
        let message = refused(&config, dim);
        assert!(message.contains(words), "{words}: {message}");
    };
    named(spline(), 2, "accepted");
    let of = SourceConfig::new;
    let umnn = || of(SourceKind::Umnn);
    named(
        SourceConfig {
            layers: 0,
            ..spline()
        },
        2,
        "layers is 0",
    );
    named(
        SourceConfig {
            hidden: vec![],
            ..of(SourceKind::Mlp)
        },
        2,
        "hidden is 0 or empty",
    );
    named(
        SourceConfig {
            bins: 1,
            ..spline()
        },
        2,
        "bins is 1",
    );
    named(
        SourceConfig {
            bound: f32::NAN,
            ..spline()
        },
        2,
        "bound is NaN",
    );
    named(SourceConfig { steps: 7, ..umnn() }, 2, "steps is 7");
    named(
        SourceConfig {
            integrand_hidden: vec![3, 0],
            ..umnn()
        },
        2,
        "integrand-hidden is 0",
    );
    named(
        SourceConfig {
            base: Base::Uniform,
            ..umnn()
        },
        2,
        "base = uniform with kind = umnn",
    );
    named(
        SourceConfig {
            symmetric: vec![true],
            ..spline()
        },
        2,
        "`symmetric` is given for 1 columns",
    );
    let half_line = domain(&[0.0, 0.0], &[f32::INFINITY; 2]);
    named(
        SourceConfig {
            domain: half_line.clone(),
            ..spline()
        },
        3,
        "`domain` is given for 2 columns",
    );
    let even = SourceConfig {
        symmetric: vec![false, true],
        domain: half_line.clone(),
        ..spline()
    };
    named(even, 2, "column 2 of x is to be symmetric");
    let far = domain(&[1.0, -1.0], &[2.0, 1.0]);
    named(
        SourceConfig {
            domain: far,
            ..spline()
        },
        2,
        "excludes the means",
    );
    let full = SourceConfig {
        base: Base::Uniform,
        ..of(SourceKind::AffineFull)
    };
    named(
        SourceConfig {
            domain: half_line,
            ..full
        },
        2,
        "affine-full of base = uniform",
    );
    let many = |kind| SourceConfig {
        symmetric: vec![true; 7],
        ..of(kind)
    };
    named(many(SourceKind::Spline), 7, "7 symmetric columns");
    for kind in [SourceKind::Affine, SourceKind::Umnn, SourceKind::Mlp] {
        named(many(kind), 7, "accepted");
    }
    assert!(spline().build(&[0.0], &[-1.0], 1).is_err());
}

#[test]
fn domains_that_make_no_sense_are_refused() {
    let infinity = f32::INFINITY;
    for (low, high) in [
        (1.0, 1.0),
        (2.0, 1.0),
        (f32::NAN, 1.0),
        (0.0, f32::NAN),
        (infinity, infinity),
        (-infinity, -infinity),
        (1.0, 1.0 + f32::EPSILON),
    ] {
        let error = Domain::new(&[0.0, low], &[1.0, high]).unwrap_err();
        assert!(
            error.to_string().contains("column 2"),
            "{low} {high}: {error}"
        );
    }
    assert!(Domain::new(&[0.0], &[1.0, 2.0]).is_err());
}

#[test]
fn a_domain_takes_the_points_inside_and_refuses_if_there_are_hardly_any() {
    let domain = Domain::new(&[0.0, f32::NEG_INFINITY], &[1.0, 5.0]).unwrap();
    let names = ["pt".to_owned(), "mass".to_owned()];
    let points = Matrix::from_fn(40, 2, |row, d| match d {
        0 => 0.5,
        _ => row as f32 / 3.0,
    });
    let inside = domain.rows_inside(points.view(), &names, "x").unwrap();
    assert_eq!(inside, (0..16).collect::<Vec<u32>>());
    let error = domain
        .rows_inside(points.view().slice(10..40), &names, "the pairs' x")
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("6 of 30 rows of the pairs' x; in column `mass`"),
        "{error}"
    );
    assert!(error.contains("24 lie outside"), "{error}");
}

/// As text and back, whatever the format makes of infinite edges.
#[test]
fn settings_come_back_from_their_text() {
    let config = SourceConfig {
        domain: domain(&[-1.5, f32::NEG_INFINITY, 0.1], &[f32::INFINITY, 2.0, 0.3]),
        symmetric: vec![false, true, false],
        ..SourceConfig::new(SourceKind::AffineFull)
    };
    let text = serde_json::to_string(&config).unwrap();
    assert!(text.contains(r#""kind":"affine-full""#), "{text}");
    assert!(text.contains(r#"[-1.5,"inf"]"#), "{text}");
    assert_eq!(serde_json::from_str::<SourceConfig>(&text).unwrap(), config);
    let upside_down = text.replace(r#"[0.1,0.3]"#, "[0.3,0.1]");
    assert!(serde_json::from_str::<SourceConfig>(&upside_down).is_err());
}

/// The free coordinates and x are each other's inverse, where f32 can tell: compared in units of the slope.
#[test]
fn free_coordinates_come_back() {
    let infinity = f32::INFINITY;
    let domain = Domain::new(
        &[-2.0, 0.0, -infinity, -infinity],
        &[3.0, infinity, 1.0, infinity],
    )
    .unwrap();
    let free = noise(40).normal(1000, 4);
    let x = domain.from_free(free.view());
    let back = domain.to_free(x.view());
    for (free, back) in free.values().iter().zip(back.values()) {
        assert!(
            (free - back).abs() < 2e-5 * free.abs().exp(),
            "{free} {back}"
        );
    }
}

/// Means and deviations measured in the free coordinates: draws of a bounded affine source have the points' own.
#[test]
fn a_bounded_source_starts_where_the_points_are() {
    let infinity = f32::INFINITY;
    let domain = Domain::new(&[0.0, -1.0], &[infinity, 1.0]).unwrap();
    let z = noise(41).normal(20_000, 2);
    let points = Matrix::from_fn(20_000, 2, |i, d| {
        let z = z.row(i)[d];
        [(0.5 * z + 3.0).exp(), (0.3 * z).tanh()][d]
    });
    let names = ["a".to_owned(), "b".to_owned()];
    let config = SourceConfig {
        domain: Some(domain.clone()),
        ..SourceConfig::new(SourceKind::Affine)
    };
    let model = config.build_from_points(points.view(), &names, 1).unwrap();
    let Model::Bounded(bounded) = &model else {
        panic!("not bounded");
    };
    let Model::Affine(affine) = bounded.inner() else {
        panic!("not affine");
    };
    // log x ~ N(3, 0.5²); log((1 + x)/(1 − x)) = 2 atanh x ~ N(0, 0.6²). Four standard errors of 20 000 points, rate 6e-5.
    let found = [
        affine.mean(0),
        affine.deviation(0),
        affine.mean(1),
        affine.deviation(1),
    ];
    for (found, (exact, error)) in
        found
            .into_iter()
            .zip([(3.0, 0.0142), (0.5, 0.01), (0.0, 0.017), (0.6, 0.012)])
    {
        assert!((found - exact as f32).abs() < error, "{found} for {exact}");
    }
    let outside = Matrix::from_fn(10, 2, |i, d| [1.0, i as f32][d] * 0.3);
    let error = config
        .build_from_points(outside.view(), &names, 1)
        .unwrap_err();
    assert!(error.to_string().contains("column"), "{error}");
    // From mean and deviation of x alone, by the slope at the mean: 20.1, relative deviation 0.53.
    let model = config.build(&[22.8, 0.0], &[12.1, 0.28], 1).unwrap();
    let x = model.sample(20_000, noise(42));
    let mean = (0..20_000).map(|i| f64::from(x.row(i)[0])).sum::<f64>() / 2e4;
    assert!((20.0..30.0).contains(&mean), "{mean}");
}

/// An mlp starts with the mean and deviation it is told: its last layer is set by 1024 probes, so within a tenth.
#[test]
fn an_mlp_starts_with_its_mean_and_deviation() {
    let model = SourceConfig::new(SourceKind::Mlp)
        .build(&[5.0, -3.0], &[2.0, 0.1], 1)
        .unwrap();
    let x = model.sample(20_000, noise(43));
    for (d, (mean, deviation)) in [(5.0, 2.0), (-3.0, 0.1)].into_iter().enumerate() {
        let column = || (0..20_000).map(|i| f64::from(x.row(i)[d]));
        let found = column().sum::<f64>() / 2e4;
        let square = column().map(|v| (v - found).powi(2)).sum::<f64>() / 2e4;
        assert!((found - mean).abs() < 0.1 * deviation, "{found}");
        assert!((square.sqrt() / deviation - 1.0).abs() < 0.1, "{square}");
    }
}

/// A rule for training reaches the flow inside a domain and behind signs, and changes nothing where there are no integrals.
#[test]
fn integrals_are_reached_through_every_wrapper() {
    let inside = |kind| SourceConfig {
        hidden: vec![6],
        integrand_hidden: vec![6],
        symmetric: vec![true, false],
        domain: Some(Domain::new(&[-2.0, -2.0], &[2.0, 2.0]).unwrap()),
        ..SourceConfig::new(kind)
    };
    let coarse = Quadrature {
        panels: 1,
        chance: 0.3,
    };
    let draws = |model: &Model| model.sample(50, noise(46)).values().to_vec();
    for kind in [SourceKind::Umnn, SourceKind::Spline] {
        let mut model = inside(kind).build(&[0.0; 2], &[1.0; 2], 3).unwrap();
        let own = draws(&model);
        model.set_quadrature(Some(coarse));
        assert_eq!(draws(&model) != own, kind == SourceKind::Umnn);
        model.set_quadrature(None);
        assert_eq!(draws(&model), own);
    }
}

/// T⁻¹(T(v)) and T(T⁻¹(v)) of the paper's UMNN within 1e-5, plain and symmetric, away from its start.
#[test]
fn umnn_inverts_both_ways() {
    use crate::density::ConditionalDensity;
    use crate::kernel::{LANES, Lane};
    for symmetric in [false, true] {
        let config = FlowConfig::paper_umnn(Direction::FromNoise, symmetric);
        let mut source = FlowSource::new(&config, &[0.0; 3], &[1.0; 3], 5);
        let mut step = noise(44).stream(0);
        source.update(&mut |parameters| {
            for parameter in parameters {
                *parameter += 0.02 * step.normal() as f32;
            }
        });
        let z = noise(45).normal(LANES, 3);
        let start: Vec<Lane> = (0..3)
            .map(|d| Lane(std::array::from_fn(|lane| z.row(lane)[d])))
            .collect();
        let mut tape = source.flow.workspace();
        let mut moved = 0f32;
        for forward_first in [true, false] {
            let mut v = start.clone();
            for forward in [forward_first, !forward_first] {
                if forward {
                    source.flow.to_base(&mut v, &[], &mut tape);
                } else {
                    source.flow.sample(&mut v, &Lane::ZERO, &[], &mut tape);
                }
                for (v, start) in v
                    .iter()
                    .flat_map(|l| l.0)
                    .zip(start.iter().flat_map(|l| l.0))
                {
                    moved = moved.max((v - start).abs());
                    let back = forward != forward_first;
                    assert!(
                        !back || (v - start).abs() < 1e-5,
                        "{start} came back as {v}"
                    );
                }
            }
        }
        assert!(moved > 0.05, "the map does nothing: {moved}");
    }
}
