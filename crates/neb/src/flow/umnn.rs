//! Unconstrained monotonic network (UMNN-MAF): every dimension moves by the integral of a positive network.
//!
//! u_i = ∫_0^{v_i} f(t, h_i) dt + β_i, h_i = h_i(v_<i, context) from a MADE, β_i its first value;
//! log |∂u/∂v| = Σ_i log f(v_i, h_i). The integral is a Clenshaw-Curtis sum; its gradient with respect to h and the
//! weights is that of the sum, with respect to v_i it is f(v_i, h_i) itself (Leibniz), as in the authors' code. While a model is
//! trained, a random sum of few nodes may stand in for it ([`Quadrature`]).
//! Between layers the order of the dimensions reverses.
//!
//! *Symmetric* layers take |v| in both networks and have β = 0: flipping the sign of v_i flips the sign of u_i, bit for bit,
//! and changes nothing else.
//!
//! Where the network's output falls without bound f decays like e^{−t}, its integral is finite and the map does not reach
//! all of ℝ: seen as a density it then misses the mass beyond, which a likelihood loses by.
//!
//! The map is fast from v to u only. Data at v, base law at u: fast density. Noise at v, data at u: fast samples.

mod integrand;
mod quadrature;
mod root;
#[cfg(test)]
mod tests;

use std::ops::Range;

use self::integrand::{Back, add_log_end, evaluate, mean_and_end};
pub(crate) use self::quadrature::NODES_OF_PANEL;
pub use self::quadrature::Quadrature;
use self::quadrature::Rule;
use super::{Bijection, LayerGradient, LayerTape};
use crate::kernel::{LANES, Lane};
use crate::nn::activation::Activation;
use crate::nn::made::{MadeShape, Reaches, made};
use crate::nn::mlp::{Mlp, MlpRecord, MlpTape, Shape};
use crate::nn::parameters::Layout;

/// Sizes of a stack of UMNN layers.
#[derive(Clone, Debug)]
pub(crate) struct UmnnShape {
    /// Dimension of v.
    pub dim: usize,
    /// Dimension of the context; 0 for none.
    pub context: usize,
    /// Number of layers.
    pub layers: usize,
    /// Hidden units of the MADE.
    pub embedding_hidden: Vec<usize>,
    /// Values h the MADE gives each dimension.
    pub embedding: usize,
    /// Hidden units of the integrand.
    pub integrand_hidden: Vec<usize>,
    /// Steps of the quadrature; even.
    pub steps: usize,
    /// Which hidden units of the MADE see what.
    pub reaches: Reaches,
    /// Whether sign flips of v are sign flips of u.
    pub symmetric: bool,
}

impl UmnnShape {
    /// The paper's: six layers, networks of 3 × 75 units, 10 embedding values, 20 steps, the authors' masks.
    pub(crate) fn paper(dim: usize, context: usize) -> Self {
        Self {
            dim,
            context,
            layers: 6,
            embedding_hidden: vec![75; 3],
            embedding: 10,
            integrand_hidden: vec![75; 3],
            steps: 20,
            reaches: Reaches::Authors,
            symmetric: false,
        }
    }
}

/// One layer.
#[derive(Clone, Debug)]
pub(crate) struct Umnn {
    dim: usize,
    embedding: usize,
    /// The rule in use.
    rule: Rule,
    /// Steps of its own rule.
    steps: usize,
    reversed: bool,
    symmetric: bool,
    /// The MADE, the integrand.
    nets: [Mlp; 2],
}

/// The tape's lanes by name.
struct Parts<'a> {
    /// The layer's input, in its own order.
    v: &'a mut [Lane],
    /// What the networks see of it: v, or |v| if symmetric.
    seen: &'a mut [Lane],
    /// The embedding, dimension by dimension.
    h: &'a mut [Lane],
    /// The integrand's raw outputs, dimension by dimension, node by node.
    raw: &'a mut [Lane],
    /// h's share of the integrand's first layer, for one dimension.
    share: &'a mut [Lane],
    /// Gradients.
    d_seen: &'a mut [Lane],
    d_h: &'a mut [Lane],
    d_share: &'a mut [Lane],
    /// A gradient nobody asks for.
    unused: &'a mut [Lane],
}

impl Umnn {
    /// Lays out layer number `l` under `name`, as `name.embedding.0.weight`.
    pub(crate) fn new(shape: &UmnnShape, l: usize, layout: &mut Layout, name: &str) -> Self {
        let embedding = MadeShape {
            dim: shape.dim,
            context: shape.context,
            hidden: shape.embedding_hidden.clone(),
            per_dim: shape.embedding,
            activation: Activation::Relu,
            reaches: shape.reaches,
        };
        let integrand = Shape {
            free: 1,
            context: shape.embedding,
            hidden: shape.integrand_hidden.clone(),
            outputs: 1,
            activation: Activation::LeakyRelu,
        };
        let nets = [
            made(&embedding, layout, |l| {
                format!("{name}.embedding.{}", 2 * l)
            }),
            Mlp::new(integrand, layout, |l| format!("{name}.integrand.{}", 2 * l)),
        ];
        Self {
            dim: shape.dim,
            embedding: shape.embedding,
            rule: Rule::clenshaw_curtis(shape.steps),
            steps: shape.steps,
            reversed: l > 0,
            symmetric: shape.symmetric,
            nets,
        }
    }

    fn made(&self) -> &Mlp {
        &self.nets[0]
    }

    fn integrand(&self) -> &Mlp {
        &self.nets[1]
    }

    fn nodes(&self) -> usize {
        self.rule.nodes.len()
    }

    /// Lengths of the tape's parts.
    fn lengths(&self) -> [usize; 9] {
        let (dim, h) = (self.dim, self.dim * self.embedding);
        let first = self.integrand().share_len();
        let raw = dim * self.nodes();
        let unused = self.made().share_len();
        [dim, dim, h, raw, first, dim, h, first, unused]
    }

    fn parts<'a>(&self, lanes: &'a mut [Lane]) -> Parts<'a> {
        let mut rest = lanes;
        let [v, seen, h, raw, share, d_seen, d_h, d_share, unused] = self.lengths().map(|length| {
            let (part, after) = std::mem::take(&mut rest).split_at_mut(length);
            rest = after;
            part
        });
        Parts {
            v,
            seen,
            h,
            raw,
            share,
            d_seen,
            d_h,
            d_share,
            unused,
        }
    }

    fn turn(&self, v: &mut [Lane]) {
        if self.reversed {
            v.reverse();
        }
    }

    /// What the networks see of v.
    fn look(&self, v: &Lane) -> Lane {
        if self.symmetric {
            Lane(v.0.map(f32::abs))
        } else {
            *v
        }
    }

    /// Adds to the gradient with respect to v the one with respect to what the networks see of it.
    fn look_back(&self, v: &Lane, d_seen: &Lane, d_v: &mut Lane) {
        for lane in 0..LANES {
            let d = d_seen.0[lane];
            d_v.0[lane] += if self.symmetric && v.0[lane] < 0.0 {
                -d
            } else {
                d
            };
        }
    }

    /// Places of dimension i's nodes among those of all dimensions.
    fn nodes_of(&self, i: usize) -> Range<usize> {
        i * self.nodes()..(i + 1) * self.nodes()
    }

    /// Back through the integral of dimension i: sets its part of `d_h` and of `d_seen` (the latter through the
    /// log-determinant alone), adds to the integrand's gradient, and returns the slope ∂u_i/∂v_i.
    fn back_through(
        &self,
        i: usize,
        d_u: &Lane,
        d_log_det: &Lane,
        parts: &mut Parts,
        (tape, records): (&mut MlpTape, &mut [MlpRecord]),
        gradient: Option<&mut LayerGradient>,
    ) -> Lane {
        let mut gradient = gradient.map(|nets| &mut nets[1]);
        let back = Back {
            net: self.integrand(),
            rule: &self.rule,
            limit: &parts.seen[i],
            raw: &parts.raw[self.nodes_of(i)],
        };
        let d_mean = multiply_add(d_u, &parts.v[i], &Lane::ZERO);
        parts.d_share.fill(Lane::ZERO);
        let d_share = &mut *parts.d_share;
        let own = gradient.as_deref_mut();
        parts.d_seen[i] = back.run(&d_mean, d_log_det, tape, records, d_share, own);
        let h = i * self.embedding..(i + 1) * self.embedding;
        let d_h = &mut parts.d_h[h.clone()];
        d_h.fill(Lane::ZERO);
        if !self.symmetric {
            d_h[0] = *d_u;
        }
        self.integrand()
            .backward_share(&parts.h[h], d_share, tape, d_h, gradient);
        mean_and_end(&self.rule, back.raw).1
    }

    /// Back through the MADE from `d_h`: adds to `d_seen`, `d_share` and the MADE's gradient.
    fn back_through_made(
        &self,
        parts: &mut Parts,
        tape: &mut MlpTape,
        d_share: &mut [Lane],
        gradient: Option<&mut LayerGradient>,
    ) {
        let gradient = gradient.map(|nets| &mut nets[0]);
        self.made()
            .backward(parts.seen, parts.d_h, tape, parts.d_seen, d_share, gradient);
    }

    /// β, the first embedding value; −0, which changes no sum, in a symmetric layer.
    fn offset(&self, h: &[Lane]) -> Lane {
        if self.symmetric {
            Lane([-0.0; LANES])
        } else {
            h[0]
        }
    }
}

impl Bijection for Umnn {
    fn nets(&self) -> &[Mlp] {
        &self.nets
    }

    fn nets_mut(&mut self) -> &mut [Mlp] {
        &mut self.nets
    }

    fn share_len(&self) -> usize {
        self.made().share_len()
    }

    fn tape_lanes(&self) -> usize {
        self.lengths().iter().sum()
    }

    fn share(&self, context: &[Lane], share: &mut [Lane], _tape: &mut LayerTape, _taped: bool) {
        self.made().share(context, share);
    }

    fn forward(
        &self,
        v: &mut [Lane],
        share: &[Lane],
        log_det: &mut Lane,
        tape: &mut LayerTape,
        taped: bool,
    ) {
        self.turn(v);
        let nodes = self.nodes();
        if taped && tape.records.is_empty() {
            let wanted = self.dim * nodes;
            tape.records
                .resize_with(wanted, || self.integrand().new_record());
        }
        let parts = self.parts(&mut tape.lanes);
        let [made_tape, tape_of_integrand] = &mut tape.nets[..] else {
            unreachable!("a layer has two networks");
        };
        parts.v.copy_from_slice(v);
        for (seen, v) in parts.seen.iter_mut().zip(&*v) {
            *seen = self.look(v);
        }
        self.made()
            .forward(parts.seen, share, parts.h, made_tape, taped);
        for (i, h) in parts.h.chunks_exact(self.embedding).enumerate() {
            self.integrand().share(h, parts.share);
            let range = self.nodes_of(i);
            let raw = &mut parts.raw[range.clone()];
            evaluate(
                self.integrand(),
                &self.rule,
                &parts.seen[i],
                parts.share,
                raw,
                tape_of_integrand,
                taped.then(|| &mut tape.records[range]),
            );
            let (mean, _) = mean_and_end(&self.rule, raw);
            v[i] = multiply_add(&v[i], &mean, &self.offset(h));
            add_log_end(&raw[0], log_det);
        }
    }

    fn inverse(&self, v: &mut [Lane], share: &[Lane], tape: &mut LayerTape) {
        let nodes = self.nodes();
        let parts = self.parts(&mut tape.lanes);
        let [made_tape, tape_of_integrand] = &mut tape.nets[..] else {
            unreachable!("a layer has two networks");
        };
        parts.seen.fill(Lane::ZERO);
        for (i, v) in v.iter_mut().enumerate() {
            self.made()
                .forward(parts.seen, share, parts.h, made_tape, false);
            let h = &parts.h[i * self.embedding..(i + 1) * self.embedding];
            self.integrand().share(h, parts.share);
            let offset = self.offset(h);
            let start = Lane(std::array::from_fn(|lane| v.0[lane] - offset.0[lane]));
            *v = root::solve(v, start, |at| {
                let raw = &mut parts.raw[..nodes];
                let tape = &mut *tape_of_integrand;
                let seen = self.look(at);
                evaluate(
                    self.integrand(),
                    &self.rule,
                    &seen,
                    parts.share,
                    raw,
                    tape,
                    None,
                );
                let (mean, end) = mean_and_end(&self.rule, raw);
                (multiply_add(at, &mean, &offset), end)
            });
            parts.seen[i] = self.look(v);
        }
        self.turn(v);
    }

    fn backward(
        &self,
        d_v: &mut [Lane],
        _share: &[Lane],
        d_log_det: &Lane,
        tape: &mut LayerTape,
        d_share: &mut [Lane],
        mut gradient: Option<&mut LayerGradient>,
    ) {
        let LayerTape {
            nets,
            records,
            lanes,
        } = tape;
        let mut parts = self.parts(lanes);
        for (i, d) in d_v.iter_mut().enumerate() {
            let tapes = (&mut nets[1], &mut records[self.nodes_of(i)]);
            let slope =
                self.back_through(i, d, d_log_det, &mut parts, tapes, gradient.as_deref_mut());
            *d = multiply_add(d, &slope, &Lane::ZERO);
        }
        self.back_through_made(&mut parts, &mut nets[0], d_share, gradient);
        for ((v, d_seen), d_v) in parts.v.iter().zip(&*parts.d_seen).zip(&mut *d_v) {
            self.look_back(v, d_seen, d_v);
        }
        self.turn(d_v);
    }

    /// Solves λᵀ ∂T/∂v = d_v from the last dimension to the first; every step sends −λ_i back through its integral, and
    /// what the MADE makes of it belongs to the dimensions before.
    fn backward_inverse(
        &self,
        d_v: &mut [Lane],
        tape: &mut LayerTape,
        d_share: &mut [Lane],
        mut gradient: Option<&mut LayerGradient>,
    ) {
        self.turn(d_v);
        let LayerTape {
            nets,
            records,
            lanes,
        } = tape;
        let mut parts = self.parts(lanes);
        parts.d_h.fill(Lane::ZERO);
        parts.d_seen.fill(Lane::ZERO);
        for i in (0..self.dim).rev() {
            let mut right = d_v[i];
            self.look_back(&parts.v[i], &parts.d_seen[i], &mut right);
            let (_, slope) = mean_and_end(&self.rule, &parts.raw[self.nodes_of(i)]);
            let solution = Lane(std::array::from_fn(|lane| right.0[lane] / slope.0[lane]));
            d_v[i] = solution;
            let negative = Lane(solution.0.map(|value| -value));
            let tapes = (&mut nets[1], &mut records[self.nodes_of(i)]);
            let gradient = gradient.as_deref_mut();
            self.back_through(i, &negative, &Lane::ZERO, &mut parts, tapes, gradient);
            if i > 0 {
                parts.d_seen.fill(Lane::ZERO);
                let unused = std::mem::take(&mut parts.unused);
                self.back_through_made(&mut parts, &mut nets[0], unused, None);
                parts.unused = unused;
            }
        }
        self.back_through_made(&mut parts, &mut nets[0], d_share, gradient);
    }

    fn backward_share(
        &self,
        context: &[Lane],
        d_share: &[Lane],
        tape: &mut LayerTape,
        d_context: &mut [Lane],
        gradient: Option<&mut LayerGradient>,
    ) {
        let gradient = gradient.map(|nets| &mut nets[0]);
        self.made()
            .backward_share(context, d_share, &mut tape.nets[0], d_context, gradient);
    }

    fn set_quadrature(&mut self, rule: Option<Quadrature>) {
        self.rule = match rule {
            Some(rule) => Rule::random(rule),
            None => Rule::clenshaw_curtis(self.steps),
        };
    }

    fn boxed_clone(&self) -> Box<dyn Bijection> {
        Box::new(self.clone())
    }
}

/// a·b + c.
fn multiply_add(a: &Lane, b: &Lane, c: &Lane) -> Lane {
    Lane(std::array::from_fn(|lane| {
        a.0[lane] * b.0[lane] + c.0[lane]
    }))
}
