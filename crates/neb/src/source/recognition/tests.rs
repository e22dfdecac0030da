//! Recognition networks: draws, densities, gradients, files.

use super::*;

fn noise(step: u64) -> Noise {
    Noise::new(31, Purpose::Test, step)
}

/// Both kinds, away from their starting points; the quadrature is fine enough for differences to see its integrand.
fn networks(dx: usize, dy: usize) -> Vec<(&'static str, Recognition)> {
    let spline = RecognitionConfig::Spline {
        layers: 2,
        hidden: vec![10],
        head: vec![8],
        bins: 5,
        bound: 4.0,
    };
    let umnn = RecognitionConfig::Umnn {
        layers: 2,
        hidden: vec![10, 10],
        embedding: 4,
        steps: 60,
    };
    let x = Spread {
        mean: &[0.3, -1.0, 2.0][..dx],
        deviation: &[0.7, 1.6, 0.4][..dx],
    };
    let y = Spread {
        mean: &[1.0, 0.0, -2.0][..dy],
        deviation: &[2.0, 0.5, 1.0][..dy],
    };
    let domain = Domain::new(
        &[-2.0, 0.5, f32::NEG_INFINITY][..dx],
        &[3.0, f32::INFINITY, 4.0][..dx],
    );
    let domain = domain.expect("edges in order");
    let kinds = [
        ("spline", spline.clone(), None),
        ("umnn", umnn, None),
        ("spline in a domain", spline, Some(domain)),
    ];
    kinds
        .into_iter()
        .map(|(name, config, domain)| {
            config.check().expect("sizes make sense");
            let mut network = Recognition::new(&config, x, y, 5);
            if let Some(domain) = domain {
                network = network.within(domain);
            }
            let mut step = noise(9).stream(0);
            network.update(&mut |parameters| {
                for p in parameters {
                    *p += 0.2 * step.normal() as f32;
                }
            });
            (name, network)
        })
        .collect()
}

fn observations(rows: usize, dy: usize) -> Matrix {
    noise(1).normal(rows, dy)
}

/// The density reported with a draw is the density at that place, found by the inverse.
#[test]
fn draws_carry_their_density() {
    for (dx, dy) in [(1, 1), (2, 3), (3, 2)] {
        for (name, network) in networks(dx, dy) {
            let y = observations(9, dy);
            let k = 7;
            let (x, log_q) = network.draw(y.view(), k, noise(2));
            assert_eq!((x.rows(), x.cols(), log_q.len()), (9 * k, dx, 9 * k));
            let repeated: Vec<u32> = (0..9 * k as u32).map(|r| r / k as u32).collect();
            let mut found = vec![0.0; 9 * k];
            network.log_prob(x.view(), y.view().gather(&repeated).view(), &mut found);
            for (found, log_q) in found.iter().zip(&log_q) {
                assert!((found - log_q).abs() < 2e-3, "{name}: {found} {log_q}");
            }
        }
    }
}

/// ∫ q(x|y) dx = 1 for several y, by the midpoint rule; 2e-3 covers the rule's and f32's error.
#[test]
fn the_density_integrates_to_one() {
    for (name, network) in networks(1, 2) {
        let y = observations(3, 2);
        for row in 0..3 {
            let n = 40_000;
            let (low, width) = (-15.0, 30.0);
            let x = Matrix::from_fn(n, 1, |i, _| low + width * (i as f32 + 0.5) / n as f32);
            let same = y.view().gather(&vec![row; n]);
            let mut log_q = vec![0.0; n];
            network.log_prob(x.view(), same.view(), &mut log_q);
            let mass: f64 = log_q.iter().map(|&l| f64::from(l).exp()).sum::<f64>();
            let mass = mass * f64::from(width) / n as f64;
            assert!((mass - 1.0).abs() < 2e-3, "{name}, row {row}: {mass}");
        }
    }
}

/// d/dψ of Σ c·x + Σ e·log q over the draws against central differences: within 3 % of the norm, which no wrong or missing
/// term survives.
#[test]
fn gradient_through_draws_and_densities() {
    for (name, mut network) in networks(2, 2) {
        let y = observations(5, 2);
        let k = 6;
        let z = noise(3).normal(5 * k, 2);
        let c = noise(4).normal(5 * k, 2);
        let e: Vec<f32> = noise(5).normal(5 * k, 1).into_values();
        let mut gradient = vec![0.0; network.parameters().len()];
        network.backward((z.view(), y.view(), k), c.view(), &e, &mut gradient);
        let value = |network: &Recognition| {
            let (x, log_q) = network.push(z.view(), y.view(), k);
            let dot = |a: &[f32], b: &[f32]| -> f64 {
                a.iter()
                    .zip(b)
                    .map(|(&a, &b)| f64::from(a) * f64::from(b))
                    .sum()
            };
            dot(x.values(), c.values()) + dot(&log_q, &e)
        };
        let (mut error, mut size) = (0.0, 0.0);
        for at in (0..gradient.len()).step_by(gradient.len() / 60 + 1) {
            let h = 2e-3;
            let mut moved = |by: f32| {
                network.update(&mut |p| p[at] += by);
                let value = value(&network);
                network.update(&mut |p| p[at] -= by);
                value
            };
            let slope = (moved(h) - moved(-h)) / (2.0 * f64::from(h));
            error += (slope - f64::from(gradient[at])).powi(2);
            size += slope.powi(2);
        }
        let error = (error / size).sqrt();
        assert!(error < 0.03, "{name}: {error}");
    }
}

#[test]
fn files_keep_every_bit_and_refuse_other_kinds() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("recognition.safetensors");
    let names = |letter: char, n: usize| -> Vec<String> {
        (1..=n).map(|d| format!("{letter}{d}")).collect()
    };
    for (_, network) in networks(2, 3) {
        network.save(&names('x', 2), &names('y', 3), &path).unwrap();
        let again = Recognition::load(&path).unwrap();
        let y = observations(4, 3);
        let (x, log_q) = network.draw(y.view(), 5, noise(2));
        assert_eq!(again.draw(y.view(), 5, noise(2)), (x, log_q));
        assert_eq!(again.config(), network.config());
    }
    let affine = crate::source::Affine::new(crate::source::Base::Normal, &[0.0], &[1.0], &[false]);
    let fitted = crate::source::Model::Affine(affine);
    crate::source::save_source(&fitted, &names('x', 1), &Default::default(), &path).unwrap();
    let error = Recognition::load(&path).unwrap_err().to_string();
    assert!(error.contains("recognition"), "{error}");
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let (_, network) = networks(2, 2).remove(1);
    let y = observations(40, 2);
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        pool.unwrap().install(|| {
            let z = noise(3).normal(400, 2);
            let (x, log_q) = network.push(z.view(), y.view(), 10);
            let mut gradient = vec![0.0; network.parameters().len()];
            network.backward((z.view(), y.view(), 10), x.view(), &log_q, &mut gradient);
            (x, log_q, gradient)
        })
    };
    assert_eq!(run(1), run(3));
}

#[test]
fn sizes_that_make_no_sense_are_refused() {
    let config = RecognitionConfig::Umnn {
        layers: 2,
        hidden: vec![10],
        embedding: 4,
        steps: 7,
    };
    assert!(config.check().unwrap_err().to_string().contains("7 steps"));
    let config = RecognitionConfig::Spline {
        layers: 0,
        hidden: vec![10],
        head: vec![],
        bins: 8,
        bound: 4.0,
    };
    assert!(config.check().unwrap_err().to_string().contains("0 layers"));
}
