//! The laws every source keeps, run over every kind × domain × symmetry.

use super::super::*;
use super::models::{Case, cases};
use super::noise;
use crate::column::{Transform, Transforms};
use crate::nn::parameters::Tensor;

/// Rows a derivative is averaged over: kinks of rectifiers and splines average out.
const ROWS: usize = 1500;
/// Step of the differences, along a direction of length 1. Central differences of both h and 2h, extrapolated: what is left
/// are the few rows with a kink within 2h, and rounding.
const H: f64 = 1e-3;
/// Largest deviation, as a share of the gradient's norm.
const TOLERANCE: f64 = 4e-3;
/// The same by rounding: values of order 1 are good to some 3e-7 each, their sum to √ROWS times that, divided by h; and three
/// times that.
const ROUNDING: f64 = 1e-6 * 38.7 / H;
/// The same where networks have rectifiers, whose slopes jump: one row of 1500 within 2h of a kink, its slope of order 1.
const KINK: f64 = 0.3;

fn derivative(mut value: impl FnMut(f32) -> f64) -> f64 {
    let mut central = |h: f64| (value(h as f32) - value(-h as f32)) / (2.0 * h);
    (4.0 * central(H) - central(2.0 * H)) / 3.0
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    let products = a.iter().zip(b);
    products.map(|(&a, &b)| f64::from(a) * f64::from(b)).sum()
}

fn norm(v: &[f32]) -> f64 {
    dot(v, v).sqrt()
}

fn weighted_log_prob(model: &Model, x: &Matrix, weight: &[f32]) -> f64 {
    let mut log = vec![0.0; x.rows()];
    model.density().unwrap().log_prob(x.view(), &mut log);
    dot(&log, weight)
}

/// The gradient of `value` with respect to each tensor of the parameters, along one direction each.
fn check_parameters(what: &str, model: &Model, gradient: &[f32], value: impl Fn(&Model) -> f64) {
    let whole = norm(gradient);
    assert!(whole > 0.0, "{what}: nothing to compare");
    let rectified = what.starts_with("Umnn") || what.starts_with("Mlp");
    let slack = ROUNDING + if rectified { KINK } else { 0.0 };
    for (n, tensor) in model.core().1.into_iter().enumerate() {
        let Tensor { name, .. } = &tensor;
        let range = tensor.range();
        let own = &gradient[range.clone()];
        // Parameters that are held, that nothing depends on, or too little to be told from rounding and kinks.
        let tiny = norm(own) < 1e-3 * whole || norm(own) < 10.0 * slack;
        // The flows' laws check UMNN's tensors one by one.
        if tiny || (what.starts_with("Umnn") && n % 3 != 0) {
            continue;
        }
        let random = noise(60 + n as u64).normal(1, own.len());
        let sizes = (norm(own) as f32, norm(random.values()) as f32);
        // Along the gradient and, somewhat less, in a random direction; what is held stays.
        let half = |(&g, r): (&f32, &f32)| match g {
            0.0 => 0.0,
            g => g / sizes.0 + 0.7 * r / sizes.1,
        };
        let direction: Vec<f32> = own.iter().zip(random.values()).map(half).collect();
        let length = norm(&direction);
        let mut moved = model.clone();
        let numeric = derivative(|h| {
            let start = model.parameters();
            moved.update(&mut |parameters| {
                parameters.copy_from_slice(start);
                for (p, d) in parameters[range.clone()].iter_mut().zip(&direction) {
                    *p += h * (f64::from(*d) / length) as f32;
                }
            });
            value(&moved)
        });
        let analytic = dot(own, &direction) / length;
        assert!(
            (numeric - analytic).abs() < TOLERANCE * norm(own) + slack,
            "{what}, {name}: {analytic} or {numeric}, norm {}",
            norm(own)
        );
    }
}

/// Inside by some margin, so that no difference steps over an edge: for uniform laws, and domains.
fn inner_draws(case: &Case) -> (Matrix, Matrix) {
    let mut z = case.model.base(ROWS, noise(1));
    for row in 0..ROWS {
        for value in &mut z.row_mut(row)[..case.symmetric.len()] {
            *value *= 0.9;
        }
    }
    let x = case.model.push(z.view());
    (z, x)
}

/// d/dθ of Σ c·G_θ(z), for every tensor of θ.
#[test]
fn gradients_of_draws() {
    for case in cases(2) {
        let (z, x) = inner_draws(&case);
        let model = &case.model;
        let c = noise(2).normal(ROWS, 2);
        let c = Matrix::from_fn(ROWS, 2, |i, d| c.row(i)[d] + x.row(i)[d]);
        let mut gradient = vec![0.0; model.parameters().len()];
        model.backward(z.view(), x.view(), c.view(), &mut gradient);
        let value = |model: &Model| dot(model.push(z.view()).values(), c.values());
        check_parameters(&case.name, model, &gradient, value);
    }
}

/// d/dθ and d/dx of Σ w·log q(x).
#[test]
fn gradients_of_densities() {
    for case in cases(2) {
        let model = &case.model;
        let Some(density) = model.density() else {
            continue;
        };
        let (_, x) = inner_draws(&case);
        let weight: Vec<f32> = noise(3).uniform(ROWS, 1).into_values();
        let mut gradient = vec![0.0; model.parameters().len()];
        let mut dx = Matrix::zeros(ROWS, 2);
        density.backward_log_prob(x.view(), &weight, dx.view_mut(), Some(&mut gradient));
        let mut alone = Matrix::zeros(ROWS, 2);
        density.backward_log_prob(x.view(), &weight, alone.view_mut(), None);
        assert_eq!(dx, alone, "{}", case.name);
        let value = |model: &Model| weighted_log_prob(model, &x, &weight);
        check_parameters(&case.name, model, &gradient, value);

        let random = noise(4).normal(ROWS, 2);
        for direction in [&dx, &random] {
            // Unit steps in every row, shorter near an edge; signs such that all rows add up.
            let step = Matrix::from_fn(ROWS, 2, |i, d| {
                let at = x.row(i)[d];
                let room = case.domain.as_ref().map_or(1.0, |domain| {
                    (at - domain.lower()[d]).min(domain.upper()[d] - at)
                });
                let sign = if dot(direction.row(i), dx.row(i)) < 0.0 {
                    -1.0
                } else {
                    1.0
                };
                let length = norm(direction.row(i)).max(1e-9) as f32;
                sign * direction.row(i)[d] / length * (0.3 * room).min(1.0)
            });
            let numeric = derivative(|h| {
                let moved = Matrix::from_fn(ROWS, 2, |i, d| x.row(i)[d] + h * step.row(i)[d]);
                weighted_log_prob(model, &moved, &weight)
            });
            let analytic = dot(step.values(), dx.values());
            assert!(
                (numeric - analytic).abs() <= TOLERANCE * analytic.abs() + ROUNDING,
                "{}: d log q/dx {analytic} or {numeric}",
                case.name
            );
        }
    }
}

/// Points and weights of a midpoint rule on one dimension, finer towards the edges.
fn rule(domain: Option<&Domain>, d: usize, points: usize) -> Vec<(f32, f64)> {
    let (low, high) = domain.map_or((f32::NEG_INFINITY, f32::INFINITY), |domain| {
        (domain.lower()[d], domain.upper()[d])
    });
    let (low, high) = (f64::from(low), f64::from(high));
    let cell = 1.0 / points as f64;
    (0..points)
        .map(|i| {
            let t = (i as f64 + 0.5) * cell;
            let (x, slope) = match (low.is_finite(), high.is_finite()) {
                (true, true) => {
                    let width = high - low;
                    (
                        low + width * t * t * (3.0 - 2.0 * t),
                        6.0 * width * t * (1.0 - t),
                    )
                }
                (true, false) => (low + t / (1.0 - t), (1.0 - t).powi(-2)),
                _ => (-9.0 + 18.0 * t, 18.0),
            };
            (x as f32, slope * cell)
        })
        .collect()
}

/// ∫ q and −∫ q log q by quadrature.
fn integrals(case: &Case) -> (f64, f64) {
    let dim = case.symmetric.len();
    let points = match dim {
        1 => 2000,
        _ if case.base == Base::Uniform => 160,
        _ => 100,
    };
    let first = rule(case.domain.as_ref(), 0, points);
    let second = match dim {
        1 => vec![(0.0, 1.0)],
        _ => rule(case.domain.as_ref(), 1, points),
    };
    let mut values = Vec::new();
    let mut cells = Vec::new();
    for (x0, w0) in &first {
        for (x1, w1) in &second {
            values.extend_from_slice(&[*x0, *x1][..dim]);
            cells.push(w0 * w1);
        }
    }
    let x = Matrix::from_vec(values, dim);
    let mut log = vec![0.0; x.rows()];
    case.model.density().unwrap().log_prob(x.view(), &mut log);
    let (mut total, mut entropy) = (0.0, 0.0);
    for (log, cell) in log.into_iter().map(f64::from).zip(cells) {
        if log > f64::NEG_INFINITY {
            total += log.exp() * cell;
            entropy -= log.exp() * log * cell;
        }
    }
    (total, entropy)
}

/// Densities integrate to one, and draws follow them: the mean of −log q over 20 000 draws is the entropy by quadrature
/// within 5 standard errors and the quadrature's own error (60 comparisons at a false-alarm rate of 6e-7 each, seed fixed).
#[test]
fn densities_integrate_to_one_and_draws_follow_them() {
    for dim in [1, 2] {
        for case in cases(dim) {
            let Some(density) = case.model.density() else {
                continue;
            };
            let (total, entropy) = integrals(&case);
            // A box has edges, which a midpoint rule sees to within a cell.
            let bound = match (case.base, dim) {
                (Base::Uniform, 2) => 0.04,
                (Base::Uniform, _) => 0.004,
                _ => 0.002,
            };
            let name = &case.name;
            assert!((total - 1.0).abs() < bound, "{name}: ∫ q = {total}");
            let rows = 20_000;
            let x = case.model.sample(rows, noise(7));
            let mut log = vec![0.0; rows];
            density.log_prob(x.view(), &mut log);
            let n = rows as f64;
            let mean = log.iter().map(|&l| f64::from(l)).sum::<f64>() / n;
            let variance = log
                .iter()
                .map(|&l| (f64::from(l) - mean).powi(2))
                .sum::<f64>()
                / n;
            let error = 5.0 * (variance / n).sqrt() + 3.0 * bound;
            assert!(
                (-mean - entropy).abs() < error,
                "{name}: entropy {entropy}, of draws {}",
                -mean
            );
        }
    }
}

/// Sign flips of symmetric dimensions change no bit of log q, and nothing but the sign of its gradient.
#[test]
fn even_densities_are_even_bit_for_bit() {
    for case in cases(2).iter().filter(|case| case.symmetric[0]) {
        let Some(density) = case.model.density() else {
            continue;
        };
        let x = case.model.sample(300, noise(8));
        let evaluate = |x: &Matrix| {
            let mut log = vec![0.0; x.rows()];
            density.log_prob(x.view(), &mut log);
            let mut dx = Matrix::zeros(x.rows(), 2);
            density.backward_log_prob(x.view(), &[1.0; 300], dx.view_mut(), None);
            (log, dx)
        };
        let (log, dx) = evaluate(&x);
        for flipped in (0..2).filter(|&d| case.symmetric[d]) {
            let mirror = |x: &Matrix| {
                Matrix::from_fn(300, 2, |i, d| {
                    x.row(i)[d] * if d == flipped { -1.0 } else { 1.0 }
                })
            };
            let (mirrored_log, mirrored_dx) = evaluate(&mirror(&x));
            assert_eq!(log, mirrored_log, "{}", case.name);
            assert_eq!(mirror(&dx), mirrored_dx, "{}", case.name);
        }
        let positive = (0..300).filter(|&i| x.row(i)[0] > 0.0).count();
        // Binomial with deviation 8.7; beyond ±45 with probability 2e-7.
        assert!((105..=195).contains(&positive), "{}: {positive}", case.name);
    }
}

#[test]
fn nothing_is_ever_outside_a_domain() {
    for case in cases(2) {
        let Some(domain) = &case.domain else { continue };
        let x = case.model.sample(5_000, noise(9));
        for row in 0..x.rows() {
            for (d, &x) in x.row(row).iter().enumerate() {
                assert!(
                    x > domain.lower()[d] && x < domain.upper()[d],
                    "{}: {x}",
                    case.name
                );
            }
        }
        if let Some(density) = case.model.density() {
            let outside = [2.5, 0.0, -2.1, 0.0, 0.0, -1.6, f32::MAX, 1.0];
            let outside = Rows::new(&outside, 2);
            let mut log = [0.0; 4];
            density.log_prob(outside, &mut log);
            assert_eq!(log, [f32::NEG_INFINITY; 4], "{}", case.name);
            let mut dx = Matrix::zeros(4, 2);
            density.backward_log_prob(outside, &[1.0; 4], dx.view_mut(), None);
            assert!(dx.values().iter().all(|d| d.is_finite()), "{}", case.name);
        }
    }
}

/// 10⁶ rows of a law so wide that most of them are rounded onto an edge unless something prevents it.
#[test]
fn not_one_of_a_million_draws_is_outside() {
    let lower = [-1.0, 1000.0, f32::NEG_INFINITY, f32::NEG_INFINITY];
    let upper = [3.0, f32::INFINITY, 1e-3, f32::INFINITY];
    let domain = Domain::new(&lower, &upper).unwrap();
    let wide = Affine::new(Base::Normal, &[0.0; 4], &[60.0; 4], &[false; 4]);
    let (low, high) = (f32::NEG_INFINITY, f32::INFINITY);
    let open = Domain::new(&[-1.0, low], &[3.0, high]).unwrap();
    let boxed = Affine::new(Base::Uniform, &[1.0, 0.0], &[9.0, 1.0], &[false; 2]).within(open);
    let check = |source: &dyn Source, lower: &[f32], upper: &[f32]| {
        for step in 0..10 {
            let x = source.sample(100_000, noise(100 + step));
            let inside =
                |row: &[f32]| (0..row.len()).all(|d| row[d] > lower[d] && row[d] < upper[d]);
            assert!((0..x.rows()).all(|row| inside(x.row(row))));
        }
    };
    check(&Bounded::new(wide, domain), &lower, &upper);
    check(&boxed, &[-1.0, low], &[3.0, high]);
}

/// The uniform law on the domain itself is reached exactly; a box that is partly outside loses that part, one that is wholly
/// outside is moved to the edge.
#[test]
fn a_box_is_cut_back_to_its_domain() {
    let infinity = f32::INFINITY;
    let domain = Domain::new(&[-1.0, 0.0, 0.0], &[3.0, infinity, infinity]).unwrap();
    let unit = 1.0 / 3f32.sqrt();
    let mut source =
        Affine::new(Base::Uniform, &[0.5, 4.0, 4.0], &[unit; 3], &[false; 3]).within(domain);
    // Boxes of half-width 1: the first as wide as e⁹, the second moved to 0.5 ± 1, the third to −10 ± 1.
    source.update(&mut |p| {
        p[0] = 9.0;
        (p[4], p[5]) = (-3.5 / unit, -14.0 / unit);
    });
    let edges = |d: usize| {
        let half = source.deviation(d) / unit;
        (source.mean(d) - half, source.mean(d) + half)
    };
    for (d, (low, high)) in [(-1.0, 3.0), (0.0, 1.5), (0.0, 2.0)]
        .into_iter()
        .enumerate()
    {
        let found = edges(d);
        assert!(
            (found.0 - low).abs() < 2e-6 && (found.1 - high).abs() < 2e-6,
            "{d}: {found:?}"
        );
    }
    let kept = source.parameters().to_vec();
    source.update(&mut |_| {});
    assert_eq!(kept, source.parameters(), "cut twice");
    let mut log = [0.0; 2];
    source.log_prob(Rows::new(&[-1.0, 1.5, 0.0, 3.0, 0.0, 2.0], 3), &mut log);
    let exact = -(4f32 * 1.5 * 2.0).ln();
    assert!(log.iter().all(|l| (l - exact).abs() < 1e-5), "{log:?}");
}

#[test]
fn files_come_back_bit_by_bit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("source.safetensors");
    let names = ["a".to_owned(), "b".to_owned()];
    for case in cases(2) {
        let transforms = Transforms::new(vec![Transform::Log; names.len()]);
        save_source(&case.model, &names, &transforms, &path).unwrap();
        let (back, back_names, back_transforms) = load_source(&path).unwrap();
        assert_eq!(back_transforms, transforms);
        assert_eq!(back_names, names);
        let x = case.model.sample(100, noise(3));
        assert_eq!(x, back.sample(100, noise(3)), "{}", case.name);
        let log = |model: &Model| {
            let mut log = vec![0.0; 100];
            model.density().map(|density| {
                density.log_prob(x.view(), &mut log);
                log
            })
        };
        assert_eq!(log(&case.model), log(&back), "{}", case.name);
    }
}
