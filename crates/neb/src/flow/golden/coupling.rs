//! The affine coupling flow, and the gradient of a marginal likelihood through it, against the authors'.

use super::{Golden, TOLERANCE, by_tiles};
use crate::density::ConditionalDensity;
use crate::flow::coupling::Mover;
use crate::flow::stack::{Flow, FlowShape};
use crate::kernel::{LANES, Lane};
use crate::nn::activation::Activation;
use crate::scaling::Scaling;
use crate::surrogate::neural::Neural;
use crate::{Likelihood, Matrix, MatrixMut, PairWeights};

fn flow(dim: usize, context: usize, layers: usize, units: usize) -> Flow {
    Flow::new(&FlowShape {
        dim,
        context,
        head: None,
        layers,
        hidden: vec![units; 2],
        activation: Activation::Relu,
        mover: Mover::Affine,
    })
}

fn identity(columns: usize) -> Scaling {
    Scaling::new(vec![0.0; columns], vec![1.0; columns])
}

/// The surrogate row by row: values, gradients, inverse.
fn check_surrogate(golden: &mut Golden, flow: &Flow) {
    let (y, x) = (golden.matrix("y"), golden.matrix("x"));
    let mut tape = flow.workspace();
    let mut log_jacobian = Vec::new();
    let z = by_tiles(&y, Some(&x), |y, x, _| {
        log_jacobian.extend(flow.to_base(y, x, &mut tape).0);
    });
    golden.compare("z", z.values());
    golden.compare("logjac", &log_jacobian);

    let mut value = Vec::new();
    let mut grad_x = Matrix::zeros(x.rows(), x.cols());
    let mut d_x = vec![Lane::ZERO; x.cols()];
    let ones = Lane([1.0; LANES]);
    let grad_y = by_tiles(&y, Some(&x), |y, x, first| {
        let v = y.to_vec();
        let found = flow.log_prob_backward(&v, x, &ones, &mut tape, y, &mut d_x, true);
        value.extend(found.0);
        for lane in 0..LANES {
            for (into, d) in grad_x.row_mut(first + lane).iter_mut().zip(&d_x) {
                *into = d.0[lane];
            }
        }
    });
    golden.compare("ll", &value);
    golden.compare("grady", grad_y.values());
    golden.compare("gradx", grad_x.values());
    let mut gradient = vec![0.0; flow.parameters().len()];
    flow.collect_gradient(&mut tape, &mut gradient);
    let mean = -1.0 / y.rows() as f32;
    golden.compare_gradient("g_meanNLL", flow, &gradient, mean);

    let noise = golden.matrix("noise");
    let inverted = by_tiles(&noise, Some(&x), |noise, x, _| {
        flow.sample(noise, &Lane::ZERO, x, &mut tape);
    });
    golden.compare("invert", inverted.values());
}

/// Shares w_ik = softmax over k of log q(y_i|x_k), of every pair, x by x.
fn softmax_shares(log_q: &Matrix) -> PairWeights {
    let totals: Vec<f64> = (0..log_q.rows())
        .map(|i| log_sum_exp(log_q.row(i)))
        .collect();
    let mut weights = PairWeights {
        starts: vec![0],
        ..PairWeights::default()
    };
    for k in 0..log_q.cols() {
        for (i, total) in totals.iter().enumerate() {
            weights.y_row.push(i as u32);
            let share = (f64::from(log_q.row(i)[k]) - total).exp();
            weights.weight.push(share as f32);
        }
        weights.starts.push(weights.y_row.len());
    }
    weights
}

fn log_sum_exp(values: &[f32]) -> f64 {
    let largest = values.iter().copied().fold(f32::MIN, f32::max);
    let largest = f64::from(largest);
    let sum: f64 = values.iter().map(|&v| (f64::from(v) - largest).exp()).sum();
    largest + sum.ln()
}

/// −Σ_i logsumexp_k log q(y_i|x_k) with x_k = G(z_k), back to the samples and to the source's weights.
fn check_marginal(golden: &mut Golden, surrogate: Flow, source: &Flow) {
    let (dy, dx) = (surrogate.dim(), surrogate.context());
    let z = golden.matrix("mc_z");
    let mut tape = source.workspace();
    let samples = by_tiles(&z, None, |z, _, _| {
        source.to_base(z, &[], &mut tape);
    });
    golden.compare("mc_xs", samples.values());

    let all = golden.matrix("y");
    let y = Matrix::from_fn(16, dy, |i, d| all.row(i)[d]);
    let likelihood = Neural {
        model: surrogate,
        x: identity(dx),
        y: identity(dy),
        extra: Vec::new(),
    };
    let mut log_q = Matrix::zeros(y.rows(), samples.rows());
    likelihood.log_prob_pairs(y.view(), samples.view(), log_q.view_mut());
    golden.compare("mc_pairll", log_q.values());
    let loss: f64 = -(0..y.rows())
        .map(|i| log_sum_exp(log_q.row(i)))
        .sum::<f64>();
    golden.compare("mc_loss", &[loss as f32]);

    let mut d_x = Matrix::zeros(samples.rows(), dx);
    let shares = softmax_shares(&log_q);
    let d_view: MatrixMut = d_x.view_mut();
    likelihood.grad_x_pairs(y.view(), samples.view(), &shares, d_view);
    for d in d_x.values_mut() {
        *d = -*d;
    }
    golden.compare("mc_gradxs", d_x.values());

    by_tiles(&z, None, |z, _, first| {
        source.push(z, &[], &mut tape);
        for (d, lane) in z.iter_mut().enumerate() {
            lane.0 = std::array::from_fn(|row| d_x.row(first + row)[d]);
        }
        source.push_backward(z, &Lane::ZERO, &[], &mut tape, &mut [], true);
    });
    let mut gradient = vec![0.0; source.parameters().len()];
    source.collect_gradient(&mut tape, &mut gradient);
    golden.compare_gradient("mc_gsrc", source, &gradient, 1.0);
}

fn check(name: &str) {
    let mut golden = Golden::open(name);
    let (dy, dx) = (golden.matrix("y").cols(), golden.matrix("x").cols());
    let mut surrogate = flow(dy, dx, 4, 50);
    golden.load(&mut surrogate, "w");
    check_surrogate(&mut golden, &surrogate);
    let mut source = flow(dx, 0, 6, 32);
    golden.load(&mut source, "src");
    check_marginal(&mut golden, surrogate, &source);
    golden.settle(|_| TOLERANCE);
}

#[test]
fn two_moons() {
    check("coupling_two_moons");
}

#[test]
fn slcp() {
    check("coupling_slcp");
}

#[test]
fn inverse_kinematics() {
    check("coupling_ik");
}
