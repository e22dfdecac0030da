//! Sources of every kind, small, away from where they start, with and without domain and symmetry.

use super::super::*;
use crate::Purpose;

/// Small settings of every kind, both directions and both base laws.
pub(super) fn kinds() -> Vec<(String, SourceConfig)> {
    let mut all = Vec::new();
    for kind in [SourceKind::Affine, SourceKind::AffineFull] {
        for base in [Base::Normal, Base::Uniform] {
            let config = SourceConfig {
                base,
                ..SourceConfig::new(kind)
            };
            all.push((format!("{kind:?} of {base:?}"), config));
        }
    }
    for kind in [SourceKind::Coupling, SourceKind::Spline, SourceKind::Umnn] {
        for direction in [Direction::ToNoise, Direction::FromNoise] {
            let config = SourceConfig {
                direction,
                layers: 2,
                hidden: vec![8],
                bins: 4,
                embedding: 3,
                integrand_hidden: vec![8],
                // So fine that the integrand is the derivative of the sum (at 20 they differ by some 1e-2 here).
                steps: 60,
                ..SourceConfig::new(kind)
            };
            all.push((format!("{kind:?} {direction:?}"), config));
        }
    }
    let mlp = SourceConfig {
        hidden: vec![12, 12],
        ..SourceConfig::new(SourceKind::Mlp)
    };
    all.push(("Mlp".to_owned(), mlp));
    all
}

/// The domain of two dimensions the tests use: an interval that is its own mirror image, and a half-line.
pub(super) fn domain(dim: usize) -> Domain {
    let (lower, upper) = ([-2.0, -1.5], [2.0, f32::INFINITY]);
    Domain::new(&lower[..dim], &upper[..dim]).unwrap()
}

/// A source, and what is known of it.
pub(super) struct Case {
    pub name: String,
    pub model: Model,
    pub symmetric: Vec<bool>,
    pub domain: Option<Domain>,
    pub base: Base,
}

/// Every kind × domain or none × first dimension even or not, and UMNN even in all; parameters off their start.
pub(super) fn cases(dim: usize) -> Vec<Case> {
    let mut cases = Vec::new();
    for (kind, config) in kinds() {
        for bounded in [false, true] {
            for even in 0..=dim {
                if even == 2 && config.kind != SourceKind::Umnn {
                    continue;
                }
                let full_box =
                    config.kind == SourceKind::AffineFull && config.base == Base::Uniform;
                if bounded && (full_box || even == 2) {
                    continue;
                }
                let symmetric: Vec<bool> = (0..dim).map(|d| d < even).collect();
                let config = SourceConfig {
                    symmetric: symmetric.clone(),
                    domain: bounded.then(|| domain(dim)),
                    ..config.clone()
                };
                // A box well inside the domain: where it is cut back it does not follow its parameters.
                let deviation = match (bounded, config.base) {
                    (true, Base::Uniform) => [0.5, 0.3],
                    _ => [0.7, 0.9],
                };
                let model = config
                    .build(&[0.3, -0.6][..dim], &deviation[..dim], 3)
                    .unwrap();
                cases.push(Case {
                    name: format!("{kind}, dim {dim}, bounded {bounded}, even {symmetric:?}"),
                    model: moved(model),
                    symmetric,
                    domain: config.domain,
                    base: config.base,
                });
            }
        }
    }
    cases
}

/// The model away from its start, parameters that are held excepted.
fn moved(mut model: Model) -> Model {
    let rows = 50;
    let z = model.base(rows, Noise::new(5, Purpose::Test, 1));
    let x = model.push(z.view());
    let dx = Noise::new(5, Purpose::Test, 2).normal(rows, model.dim());
    let mut gradient = vec![0.0; model.parameters().len()];
    model.backward(z.view(), x.view(), dx.view(), &mut gradient);
    let mut step = Noise::new(5, Purpose::Test, 3).stream(0);
    model.update(&mut |parameters| {
        for (parameter, gradient) in parameters.iter_mut().zip(&gradient) {
            if *gradient != 0.0 {
                *parameter += 0.15 * step.normal() as f32;
            }
        }
    });
    model
}
