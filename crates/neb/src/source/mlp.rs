//! The implicit source: x = mean + deviation · net(z), z ~ N(0, I) of x's dimension. Quick to draw from, without a density.

use super::tiles::{Tiled, walk};
use super::{Density, Source};
use crate::kernel::{Lane, tile};
use crate::nn::activation::Activation;
use crate::nn::mlp::{Mlp, MlpGradient, MlpTape, Shape};
use crate::nn::parameters::Layout;
use crate::scaling::Scaling;
use crate::{Matrix, Noise, Purpose, Rows};

/// Draws by which the last layer is set to give mean 0 and deviation 1 at the start.
const PROBES: usize = 1024;

/// A network from noise to source values.
#[derive(Clone, Debug)]
pub struct MlpSource {
    net: Mlp,
    layout: Layout,
    parameters: Vec<f32>,
    scaling: Scaling,
}

/// Memory for one tile's passes.
pub(super) struct MlpWorkspace {
    tape: MlpTape,
    gradient: MlpGradient,
    share: Vec<Lane>,
    d_share: Vec<Lane>,
}

impl MlpSource {
    /// A network with these hidden units (the paper's has 3×100), whose draws start with these means and deviations.
    pub fn new(hidden: &[usize], mean: &[f32], deviation: &[f32], seed: u64) -> Self {
        let scaling = Scaling::new(mean.to_vec(), deviation.to_vec());
        let mut source = Self::unfitted(hidden, scaling);
        let mut stream = Noise::new(seed, Purpose::Initialise, 1).stream(0);
        source
            .net
            .initialise(1.0, &mut stream, &mut source.parameters);
        source.net.pack(&source.parameters);
        source.standardise_start(seed);
        source
    }

    /// A network whose parameters are yet to come.
    pub(super) fn unfitted(hidden: &[usize], scaling: Scaling) -> Self {
        let dim = scaling.mean.len();
        let shape = Shape {
            free: dim,
            context: 0,
            hidden: hidden.to_vec(),
            outputs: dim,
            activation: Activation::Relu,
        };
        let mut layout = Layout::default();
        let net = Mlp::new(shape, &mut layout, |l| format!("layers.{l}"));
        Self {
            net,
            parameters: vec![0.0; layout.len()],
            layout,
            scaling,
        }
    }

    /// Hidden units.
    pub fn hidden(&self) -> &[usize] {
        &self.net.shape().hidden
    }

    pub(super) fn scaling(&self) -> &Scaling {
        &self.scaling
    }

    pub(super) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Changes the last layer, in which the output is linear, so that probes of it have mean 0 and deviation 1.
    fn standardise_start(&mut self, seed: u64) {
        let z = Noise::new(seed, Purpose::Initialise, 2).normal(PROBES, self.dim());
        let x = self.push(z.view());
        let tensors = self.layout.tensors();
        let [.., weight, bias] = tensors else {
            unreachable!("a network has layers");
        };
        let (weight, bias, inputs) = (weight.range(), bias.range(), weight.shape[1]);
        for d in 0..self.dim() {
            let (centre, unit) = (self.scaling.mean[d], self.scaling.inverse[d]);
            let out = |row: usize| f64::from((x.row(row)[d] - centre) * unit);
            let n = PROBES as f64;
            let mean = (0..PROBES).map(out).sum::<f64>() / n;
            let square = (0..PROBES)
                .map(|row| (out(row) - mean).powi(2))
                .sum::<f64>();
            let deviation = (square / n).sqrt() as f32;
            let first = weight.start + d * inputs;
            for value in &mut self.parameters[first..first + inputs] {
                *value /= deviation;
            }
            let value = &mut self.parameters[bias.start + d];
            *value = (*value - mean as f32) / deviation;
        }
        self.net.pack(&self.parameters);
    }
}

impl Tiled for MlpSource {
    type Workspace = MlpWorkspace;

    fn workspace(&self) -> MlpWorkspace {
        let lanes = vec![Lane::ZERO; self.net.share_len()];
        let mut share = lanes.clone();
        self.net.share(&[], &mut share);
        MlpWorkspace {
            tape: self.net.new_tape(),
            gradient: self.net.new_gradient(),
            share,
            d_share: lanes,
        }
    }

    fn collect_gradient(&self, workspace: &mut MlpWorkspace, flat: &mut [f32]) {
        self.net.unpack_gradient(&workspace.gradient, flat);
        workspace.gradient.clear();
    }
}

impl Source for MlpSource {
    fn dim(&self) -> usize {
        self.scaling.mean.len()
    }

    fn parameters(&self) -> &[f32] {
        &self.parameters
    }

    fn update(&mut self, change: &mut dyn FnMut(&mut [f32])) {
        change(&mut self.parameters);
        self.net.pack(&self.parameters);
    }

    fn base(&self, rows: usize, noise: Noise) -> Matrix {
        noise.normal(rows, self.dim())
    }

    fn push(&self, z: Rows) -> Matrix {
        let dim = self.dim();
        let mut x = Matrix::zeros(z.rows(), dim);
        walk(self, x.values_mut(), dim, None, |workspace, first, out| {
            let mut v = vec![Lane::ZERO; dim];
            tile::load(z, first, &mut v);
            let mut x = vec![Lane::ZERO; dim];
            let MlpWorkspace { tape, share, .. } = workspace;
            self.net.forward(&v, share, &mut x, tape, false);
            self.scaling.store(&x, out);
        });
        x
    }

    fn backward(&self, z: Rows, _x: Rows, dx: Rows, gradient: &mut [f32]) {
        let dim = self.dim();
        let mut dx = dx.to_matrix();
        let gradient = Some(gradient);
        walk(
            self,
            dx.values_mut(),
            dim,
            gradient,
            |workspace, first, dx| {
                let mut v = vec![Lane::ZERO; dim];
                tile::load(z, first, &mut v);
                let mut out = vec![Lane::ZERO; dim];
                let MlpWorkspace {
                    tape,
                    gradient,
                    share,
                    d_share,
                } = workspace;
                self.net.forward(&v, share, &mut out, tape, true);
                out.fill(Lane::ZERO);
                for (lane, row) in dx.chunks_exact(dim).enumerate() {
                    for (d, &g) in row.iter().enumerate() {
                        out[d].0[lane] = g * self.scaling.deviation[d];
                    }
                }
                let mut d_z = vec![Lane::ZERO; dim];
                self.net
                    .backward(&v, &out, tape, &mut d_z, d_share, Some(gradient));
            },
        );
    }

    fn density(&self) -> Option<&dyn Density> {
        None
    }
}
