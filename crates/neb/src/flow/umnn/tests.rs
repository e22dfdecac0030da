//! What is special to UMNN layers; the laws all flows keep are in `flow::laws`.

use super::*;
use crate::density::ConditionalDensity;
use crate::flow::stack::Flow;
use crate::{Noise, Purpose};

fn flow(shape: &UmnnShape) -> Flow {
    let mut flow = Flow::umnn(shape);
    flow.initialise(1.0, &mut Noise::new(5, Purpose::Test, 0).stream(0));
    flow
}

fn small(dim: usize, context: usize) -> UmnnShape {
    UmnnShape {
        layers: 1,
        embedding_hidden: vec![70, 60],
        embedding: 4,
        integrand_hidden: vec![12, 10],
        ..UmnnShape::paper(dim, context)
    }
}

fn tile(columns: usize, step: u64) -> Vec<Lane> {
    let rows = Noise::new(12, Purpose::Test, step).normal(LANES, columns.max(1));
    (0..columns)
        .map(|c| Lane(std::array::from_fn(|lane| rows.row(lane)[c])))
        .collect()
}

/// Every sign pattern of z gives the same sizes and the same signs, bit for bit, with the same log-Jacobian; zero included.
#[test]
fn symmetric_flow_is_odd_bit_for_bit() {
    let dim = 4;
    let shape = UmnnShape {
        layers: 3,
        symmetric: true,
        ..small(dim, 2)
    };
    let flow = flow(&shape);
    let mut tape = flow.workspace();
    let context = tile(2, 1);
    let mut z = tile(dim, 0);
    z[1].0[3] = 0.0;
    let mut x = z.clone();
    let log_det = flow.push(&mut x, &context, &mut tape);
    // Three layers reverse the order twice: dimension i of z is dimension i of x.
    for pattern in 0..1u32 << dim {
        let flip = |tile: &[Lane]| -> Vec<Lane> {
            let sign = |i: usize| if pattern >> i & 1 == 1 { -1.0 } else { 1.0 };
            let flipped = tile.iter().enumerate();
            flipped
                .map(|(i, l)| Lane(l.0.map(|v| v * sign(i))))
                .collect()
        };
        let mut mirrored = flip(&z);
        let mirrored_log_det = flow.push(&mut mirrored, &context, &mut tape);
        assert_eq!(mirrored_log_det, log_det);
        for (found, wanted) in mirrored.iter().zip(flip(&x)) {
            assert_eq!(found.0.map(f32::to_bits), wanted.0.map(f32::to_bits));
        }
    }
}

/// u_i moves with v_0 .. v_i and with nothing behind; all of them with the context where its reach allows.
#[test]
fn each_dimension_sees_those_before_it() {
    for (reaches, context) in [
        (Reaches::Authors, 3),
        (Reaches::Useful, 3),
        (Reaches::Useful, 0),
    ] {
        let dim = 4;
        let flow = flow(&UmnnShape {
            reaches,
            ..small(dim, context)
        });
        let mut tape = flow.workspace();
        let (z, c) = (tile(dim, 0), tile(context, 1));
        let mut image = |z: &[Lane], c: &[Lane]| {
            let mut x = z.to_vec();
            flow.to_base(&mut x, c, &mut tape);
            x
        };
        let x = image(&z, &c);
        for moved in 0..dim {
            let mut z = z.clone();
            z[moved].0 = z[moved].0.map(|v| v + 0.5);
            let after = image(&z, &c);
            for i in 0..dim {
                let changed = after[i] != x[i];
                assert_eq!(changed, moved <= i, "{reaches:?}: {moved} moves {i}");
            }
        }
        for moved in 0..context {
            let mut c = c.clone();
            c[moved].0 = c[moved].0.map(|v| v + 0.5);
            let after = image(&z, &c);
            assert!((0..dim).all(|i| after[i] != x[i]), "{reaches:?}");
        }
    }
}

/// An affine integrand's integral has a closed form: with f(t) = 1 + a·t, u = v + a·v²/2 + β.
#[test]
fn integrates_a_linear_integrand_exactly() {
    let shape = UmnnShape {
        embedding_hidden: vec![1],
        integrand_hidden: vec![1],
        embedding: 1,
        ..small(1, 0)
    };
    let mut flow = Flow::umnn(&shape);
    let (slope, offset) = (0.5, 0.25);
    for tensor in flow.layout().tensors().to_vec() {
        // The hidden unit is 4·(t + 2) > 0; the output takes it back to a·t.
        let value = match tensor.name.as_str() {
            "layers.0.integrand.0.weight" => vec![4.0, 0.0],
            "layers.0.integrand.0.bias" => vec![8.0],
            "layers.0.integrand.2.weight" => vec![slope / 4.0],
            "layers.0.integrand.2.bias" => vec![-2.0 * slope],
            "layers.0.embedding.2.bias" => vec![offset],
            _ => continue,
        };
        flow.parameters_mut()[tensor.range()].copy_from_slice(&value);
    }
    flow.refresh();
    let v = [Lane(std::array::from_fn(|lane| lane as f32 * 0.2))];
    let mut u = v;
    let log_det = flow.to_base(&mut u, &[], &mut flow.workspace());
    for lane in 0..LANES {
        let v = v[0].0[lane];
        let wanted = v + 0.5 * slope * v * v + offset;
        assert!((u[0].0[lane] - wanted).abs() < 2e-6 * wanted, "{v}");
        assert!(
            (log_det.0[lane] - (1.0 + slope * v).ln()).abs() < 2e-6,
            "{v}"
        );
    }
}

/// The paper's network: there and back to 1e-5, also far from the origin.
#[test]
fn inverse_of_the_papers_network() {
    let flow = flow(&UmnnShape::paper(3, 2));
    let context = tile(2, 1);
    let mut tape = flow.workspace();
    let mut z = tile(3, 0);
    z[0].0[0] = 30.0;
    z[1].0[1] = -30.0;
    let mut there = z.clone();
    flow.to_base(&mut there, &context, &mut tape);
    flow.sample(&mut there, &Lane::ZERO, &context, &mut tape);
    for (back, z) in there.iter().zip(&z) {
        for (back, z) in back.0.iter().zip(z.0) {
            assert!(
                (back - z).abs() < 1e-5 * z.abs().max(1.0),
                "{z} came back as {back}"
            );
        }
    }
}

/// Three random nodes are close to the paper's twenty steps, the log-Jacobian too, and afterwards the own rule is back to the bit.
#[test]
fn few_nodes_come_close() {
    let mut flow = flow(&UmnnShape::paper(3, 2));
    let context = tile(2, 1);
    let z = tile(3, 0);
    let image = |flow: &Flow| {
        let mut x = z.clone();
        let log_det = flow.to_base(&mut x, &context, &mut flow.workspace());
        x.push(log_det);
        x
    };
    let own = image(&flow);
    let farthest = |from: &[Lane]| {
        let pairs = own.iter().zip(from);
        let gaps = pairs.flat_map(|(a, b)| (0..LANES).map(|lane| (a.0[lane] - b.0[lane]).abs()));
        gaps.fold(0.0, f32::max)
    };
    for chance in [0.1, 0.4, 0.7] {
        let rule = Quadrature { panels: 1, chance };
        flow.set_quadrature(Some(rule));
        let gap = farthest(&image(&flow));
        assert!(gap > 0.0 && gap < 1e-2, "{gap}");
    }
    flow.set_quadrature(None);
    assert_eq!(image(&flow), own);
}
