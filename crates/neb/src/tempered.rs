//! A likelihood raised to a power β ≤ 1: widened, for stages of a fit in which no sample comes near a narrow one.

use crate::{Acceptance, Dims, Likelihood, Matrix, MatrixMut, Noise, PairWeights, Rows};

/// q(y|x)^β, up to a constant in x.
pub struct Tempered<'a> {
    /// The likelihood itself.
    pub inner: &'a dyn Likelihood,
    /// The power β in (0, 1].
    pub power: f32,
}

impl Likelihood for Tempered<'_> {
    fn dims(&self) -> Dims {
        self.inner.dims()
    }

    fn log_prob(&self, y: Rows, x: Rows, out: &mut [f32]) {
        self.inner.log_prob(y, x, out);
        self.scale(out);
    }

    fn log_prob_pairs(&self, y: Rows, x: Rows, out: MatrixMut) {
        let cols = out.cols();
        let out = out.into_values();
        self.inner.log_prob_pairs(y, x, MatrixMut::new(out, cols));
        self.scale(out);
    }

    fn grad_x_pairs(&self, y: Rows, x: Rows, weights: &PairWeights, dx: MatrixMut) {
        let cols = dx.cols();
        let dx = dx.into_values();
        self.inner
            .grad_x_pairs(y, x, weights, MatrixMut::new(dx, cols));
        self.scale(dx);
    }

    fn sample(&self, x: Rows, noise: Noise) -> Matrix {
        self.inner.sample(x, noise)
    }

    fn acceptance(&self) -> Option<&dyn Acceptance> {
        self.inner.acceptance()
    }
}

impl Tempered<'_> {
    fn scale(&self, values: &mut [f32]) {
        if self.power != 1.0 {
            for value in values {
                *value *= self.power;
            }
        }
    }
}
