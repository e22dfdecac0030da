//! The laws every conditional density keeps, run over all of them × dimension × context.
//!
//! Finite differences are central, h = 2e-3, on f32 values summed in f64: rounding (some 1e-7/h) and kinks (a spline's
//! log-slope has one at every knot) leave them good to 1e-2 of the gradient's norm, which no wrong term survives.

use crate::density::ConditionalDensity;
use crate::flow::coupling::Mover;
use crate::flow::spline::Spline;
use crate::flow::stack::{Flow, FlowShape};
use crate::flow::umnn::UmnnShape;
use crate::kernel::{LANES, Lane};
use crate::nn::activation::Activation;
use crate::nn::made::Reaches;
use crate::surrogate::mixture::Mixture;
use crate::{Matrix, Noise, Purpose};

const TOLERANCE: f64 = 1e-2;
const H: f32 = 2e-3;

/// Every form × dimension × context dimension, with its name.
fn for_all_flows(mut law: impl FnMut(&str, Flow)) {
    let spline = Mover::Spline(Spline {
        bins: 5,
        bound: 3.0,
    });
    for (mover, label) in [(Mover::Affine, "affine"), (spline, "spline")] {
        for dim in [1, 2, 3, 5] {
            for context in [0, 1, 4] {
                for head in [None, Some(vec![9])] {
                    let name = format!("{label} dim {dim} context {context} head {head:?}");
                    let mut flow = Flow::new(&FlowShape {
                        dim,
                        context,
                        head,
                        layers: 3,
                        hidden: vec![11, 7],
                        activation: Activation::Silu,
                        mover,
                    });
                    flow.initialise(1.0, &mut Noise::new(3, Purpose::Test, dim as u64).stream(0));
                    law(&name, flow);
                }
            }
        }
    }
    for (symmetric, label) in [(false, "umnn"), (true, "symmetric umnn")] {
        for dim in [1, 2, 3] {
            for context in [0, 4] {
                let mut flow = Flow::umnn(&UmnnShape {
                    layers: 2,
                    embedding_hidden: vec![11, 7],
                    embedding: 3,
                    integrand_hidden: vec![9, 8],
                    // So fine that f is the derivative of the sum (at 20 they differ by some 1e-2 here).
                    steps: 80,
                    reaches: Reaches::Useful,
                    symmetric,
                    ..UmnnShape::paper(dim, context)
                });
                flow.initialise(1.0, &mut Noise::new(3, Purpose::Test, dim as u64).stream(0));
                law(&format!("{label} dim {dim} context {context}"), flow);
            }
        }
    }
}

/// A tile of moderate random numbers.
fn tile(columns: usize, step: u64) -> Vec<Lane> {
    let rows: Matrix = Noise::new(11, Purpose::Test, step).normal(LANES, columns.max(1));
    (0..columns)
        .map(|c| Lane(std::array::from_fn(|lane| rows.row(lane)[c])))
        .collect()
}

fn weighted_sum(value: &Lane, weight: &Lane) -> f64 {
    let products = value.0.iter().zip(weight.0);
    products.map(|(&v, w)| f64::from(v) * f64::from(w)).sum()
}

/// Central difference of `at`, and half the jump between the two one-sided ones.
fn difference(mut at: impl FnMut(f32) -> f64) -> (f64, f64) {
    let (down, middle, up) = (at(-H), at(0.0), at(H));
    let h = f64::from(H);
    (
        (up - down) / (2.0 * h),
        (up - 2.0 * middle + down).abs() / (2.0 * h),
    )
}

/// Compares all entries but those whose difference straddles a kink; these must be few.
fn assert_close(what: &str, analytic: &[f64], numeric: &[(f64, f64)]) {
    let size = numeric.iter().map(|n| n.0 * n.0).sum::<f64>().sqrt();
    let typical = size / (numeric.len() as f64).sqrt();
    let smooth: Vec<(f64, f64)> = analytic
        .iter()
        .zip(numeric)
        .filter(|(_, (_, jump))| *jump < 0.03 * typical)
        .map(|(a, (n, _))| (*a, *n))
        .collect();
    assert!(10 * smooth.len() >= 8 * numeric.len(), "{what}: all kinks");
    let (analytic, numeric): (Vec<f64>, Vec<f64>) = smooth.into_iter().unzip();
    let norm = |v: &mut dyn Iterator<Item = f64>| v.map(|x| x * x).sum::<f64>().sqrt();
    let error = norm(&mut analytic.iter().zip(&numeric).map(|(a, n)| a - n));
    let size = norm(&mut numeric.iter().copied());
    assert!(size > 0.0, "{what}: nothing to compare");
    assert!(
        error < TOLERANCE * size,
        "{what}: off by {:.1e} of the norm",
        error / size
    );
}

/// Gradients with respect to v, context and parameters against central differences.
fn check_gradients<M: ConditionalDensity>(name: &str, mut model: M) {
    let mut v = tile(model.dim(), 1);
    let mut context = tile(model.context(), 2);
    let weight = tile(1, 3)[0];
    let mut workspace = model.workspace();
    let mut d_v = v.clone();
    let mut d_context = context.clone();
    let value = model.log_prob_backward(
        &v,
        &context,
        &weight,
        &mut workspace,
        &mut d_v,
        &mut d_context,
        true,
    );
    let again = model.log_prob(&v, &context, &mut workspace);
    for (taped, plain) in value.0.iter().zip(again.0) {
        assert!((taped - plain).abs() < 1e-4, "{name}: {taped} or {plain}");
    }
    let mut gradient = vec![0.0; model.parameters().len()];
    model.collect_gradient(&mut workspace, &mut gradient);

    let flat =
        |lanes: &[Lane]| -> Vec<f64> { lanes.iter().flat_map(|l| l.0.map(f64::from)).collect() };
    let mut numeric = Vec::new();
    for d in 0..v.len() {
        for lane in 0..LANES {
            numeric.push(difference(|shift| {
                let kept = v[d].0[lane];
                v[d].0[lane] = kept + shift;
                let value = model.log_prob(&v, &context, &mut workspace).0[lane];
                v[d].0[lane] = kept;
                f64::from(value) * f64::from(weight.0[lane])
            }));
        }
    }
    assert_close(&format!("{name}: d/dv"), &flat(&d_v), &numeric);
    if !context.is_empty() {
        let mut numeric = Vec::new();
        for d in 0..context.len() {
            for lane in 0..LANES {
                numeric.push(difference(|shift| {
                    let kept = context[d].0[lane];
                    context[d].0[lane] = kept + shift;
                    let value = model.log_prob(&v, &context, &mut workspace).0[lane];
                    context[d].0[lane] = kept;
                    f64::from(value) * f64::from(weight.0[lane])
                }));
            }
        }
        assert_close(&format!("{name}: d/dcontext"), &flat(&d_context), &numeric);
    }
    let chosen: Vec<usize> = (0..gradient.len()).step_by(7).collect();
    let mut numeric = Vec::new();
    for &p in &chosen {
        numeric.push(difference(|shift| {
            let kept = model.parameters()[p];
            model.parameters_mut()[p] = kept + shift;
            model.refresh();
            let value = model.log_prob(&v, &context, &mut workspace);
            model.parameters_mut()[p] = kept;
            weighted_sum(&value, &weight)
        }));
    }
    let analytic: Vec<f64> = chosen.iter().map(|&p| f64::from(gradient[p])).collect();
    assert_close(&format!("{name}: d/dparameters"), &analytic, &numeric);
}

#[test]
fn gradients_of_flows() {
    for_all_flows(|name, mut flow| {
        if name.contains("umnn") {
            // As drawn, the context moves it too little for finite differences in f32.
            for parameter in flow.parameters_mut() {
                *parameter *= 1.5;
            }
            flow.refresh();
        }
        check_gradients(name, flow);
    });
}

#[test]
fn gradients_of_mixtures() {
    for (dim, context, components) in [(1, 1, 3), (2, 2, 1), (3, 4, 5)] {
        let mut mixture = Mixture::new(dim, context, components, &[9, 8]);
        mixture.initialise(&mut Noise::new(4, Purpose::Test, 0).stream(0));
        check_gradients(&format!("mixture {dim} {context} {components}"), mixture);
    }
}

/// sample(log-density's own base value) = v: the inverse undoes the forward pass.
#[test]
fn inverse_undoes_forward() {
    for_all_flows(|name, flow| {
        let v = tile(flow.dim(), 1);
        let context = tile(flow.context(), 2);
        let mut workspace = flow.workspace();
        let mut moved = v.clone();
        flow.to_base(&mut moved, &context, &mut workspace);
        assert_ne!(moved, v, "{name}: the map does nothing");
        flow.sample(&mut moved, &Lane::ZERO, &context, &mut workspace);
        for (back, v) in moved.iter().zip(&v) {
            for (back, v) in back.0.iter().zip(v.0) {
                assert!((back - v).abs() < 1e-4, "{name}: {v} came back as {back}");
            }
        }
    });
}

/// Σ c·T⁻¹(u): its gradient with respect to u and the parameters against differences.
#[test]
fn gradients_of_the_inverse() {
    for_all_flows(|name, mut flow| {
        let mut u = tile(flow.dim(), 1);
        let context = tile(flow.context(), 2);
        let direction = tile(flow.dim(), 3);
        let mut workspace = flow.workspace();
        let value = |flow: &Flow, u: &[Lane], workspace: &mut _| {
            let mut v = u.to_vec();
            flow.sample(&mut v, &Lane::ZERO, &context, workspace);
            let sum: f64 = v
                .iter()
                .zip(&direction)
                .map(|(v, c)| weighted_sum(v, c))
                .sum();
            (sum, v)
        };
        let (_, v) = value(&flow, &u, &mut workspace);
        let mut d_u = direction.clone();
        let mut d_context = context.clone();
        flow.backward_inverse(&v, &context, &mut workspace, &mut d_u, &mut d_context, true);
        let mut gradient = vec![0.0; flow.parameters().len()];
        flow.collect_gradient(&mut workspace, &mut gradient);
        let mut numeric = Vec::new();
        for d in 0..u.len() {
            for lane in 0..LANES {
                numeric.push(difference(|shift| {
                    let kept = u[d].0[lane];
                    u[d].0[lane] = kept + shift;
                    let sum = value(&flow, &u, &mut workspace).0;
                    u[d].0[lane] = kept;
                    sum
                }));
            }
        }
        let analytic: Vec<f64> = d_u.iter().flat_map(|l| l.0.map(f64::from)).collect();
        assert_close(&format!("{name}: d/du"), &analytic, &numeric);
        let chosen: Vec<usize> = (0..gradient.len()).step_by(7).collect();
        let mut numeric = Vec::new();
        for &p in &chosen {
            numeric.push(difference(|shift| {
                let kept = flow.parameters()[p];
                flow.parameters_mut()[p] = kept + shift;
                flow.refresh();
                let sum = value(&flow, &u, &mut workspace).0;
                flow.parameters_mut()[p] = kept;
                sum
            }));
        }
        let analytic: Vec<f64> = chosen.iter().map(|&p| f64::from(gradient[p])).collect();
        assert_close(&format!("{name}: d/dparameters"), &analytic, &numeric);
    });
}

/// ∫ q(v|c) dv = 1 by the midpoint rule, dimensions 1 and 2.
#[test]
fn densities_integrate_to_one() {
    let integral = |total: &mut f64, value: Lane, cell: f64| {
        *total += value.0.iter().map(|&l| f64::from(l).exp()).sum::<f64>() * cell;
    };
    for_all_flows(|name, flow| {
        let mut workspace = flow.workspace();
        let context: Vec<Lane> = tile(flow.context(), 2)
            .iter()
            .map(|lane| Lane([lane.0[0]; LANES]))
            .collect();
        let mut total = 0.0;
        if flow.dim() == 1 {
            let step = 0.01;
            for i in 0..400 {
                let at = |lane: usize| -32.0 + (i * LANES + lane) as f32 * step;
                let v = [Lane(std::array::from_fn(at))];
                let value = flow.log_prob(&v, &context, &mut workspace);
                integral(&mut total, value, f64::from(step));
            }
        } else if flow.dim() == 2 {
            let step = 0.08;
            for i in 0..480 {
                for j in 0..480 / LANES {
                    let at = |lane: usize| -19.2 + (j * LANES + lane) as f32 * step;
                    let v = [
                        Lane([-19.2 + i as f32 * step; LANES]),
                        Lane(std::array::from_fn(at)),
                    ];
                    let value = flow.log_prob(&v, &context, &mut workspace);
                    integral(&mut total, value, f64::from(step).powi(2));
                }
            }
        } else {
            return;
        }
        assert!((total - 1.0).abs() < 3e-3, "{name}: ∫ q = {total}");
    });
}
