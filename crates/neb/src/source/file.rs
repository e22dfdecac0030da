//! Sources as files.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Source;
use super::affine::{Affine, Base};
use super::bounded::Bounded;
use super::domain::Domain;
use super::flow::{FlowConfig, FlowSource};
use super::mlp::MlpSource;
use super::model::Model;
use super::symmetric::Symmetric;
use crate::Result;
use crate::column::Transforms;
use crate::scaling::Scaling;
use crate::store::{Store, TensorData};

const KIND: &str = "source";

/// What a source is made of, without its numbers.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
enum Form {
    Affine {
        base: Base,
        full: bool,
        symmetric: Vec<bool>,
        domain: Option<Domain>,
    },
    Flow {
        flow: FlowConfig,
    },
    Mlp {
        hidden: Vec<usize>,
    },
    Bounded {
        domain: Domain,
        inner: Box<Form>,
    },
    Symmetric {
        symmetric: Vec<bool>,
        inner: Box<Form>,
    },
}

impl Form {
    fn of(model: &Model) -> Self {
        match model {
            Model::Affine(affine) => Self::Affine {
                base: affine.base_law(),
                full: affine.is_full(),
                symmetric: affine.symmetric().to_vec(),
                domain: affine.domain().cloned(),
            },
            Model::Flow(flow) => Self::Flow {
                flow: flow.config.clone(),
            },
            Model::Mlp(mlp) => Self::Mlp {
                hidden: mlp.hidden().to_vec(),
            },
            Model::Bounded(bounded) => Self::Bounded {
                domain: bounded.domain.clone(),
                inner: Box::new(Self::of(&bounded.inner)),
            },
            Model::Symmetric(even) => Self::Symmetric {
                symmetric: even.symmetric.clone(),
                inner: Box::new(Self::of(&even.inner)),
            },
        }
    }

    /// The source of this form, its parameters yet to come.
    fn lay_out(self, scaling: Scaling) -> Model {
        match self {
            Self::Affine {
                base,
                full,
                symmetric,
                domain,
            } => Model::Affine(Affine::unfitted(base, full, scaling, &symmetric, domain)),
            Self::Flow { flow } => Model::Flow(Box::new(FlowSource::unfitted(&flow, scaling))),
            Self::Mlp { hidden } => Model::Mlp(Box::new(MlpSource::unfitted(&hidden, scaling))),
            Self::Bounded { domain, inner } => {
                Model::Bounded(Box::new(Bounded::new(inner.lay_out(scaling), domain)))
            }
            Self::Symmetric { symmetric, inner } => {
                let inner = inner.lay_out(scaling);
                Model::Symmetric(Box::new(Symmetric::new(inner, &symmetric)))
            }
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Header {
    form: Form,
    x_names: Vec<String>,
    #[serde(default, skip_serializing_if = "Transforms::is_plain")]
    transforms: Transforms,
}

/// Writes a source to a file, atomically, with the names of its columns and how they were turned into what it models.
///
/// # Errors
/// Whatever the operating system refuses.
pub fn save_source(
    source: &Model,
    x_names: &[String],
    transforms: &Transforms,
    path: &Path,
) -> Result<()> {
    let header = Header {
        form: Form::of(source),
        x_names: x_names.to_vec(),
        transforms: transforms.clone(),
    };
    let mut store = Store::new(KIND, &header)?;
    let (scaling, tensors) = source.core();
    store.push(TensorData::flat("scaling.x.mean", &scaling.mean));
    store.push(TensorData::flat("scaling.x.deviation", &scaling.deviation));
    for tensor in tensors {
        let values = &source.parameters()[tensor.range()];
        store.push(TensorData::new(&tensor.name, &tensor.shape, values));
    }
    store.save(path)
}

/// Reads a source, the names of its columns, and how these are turned into what it models.
///
/// # Errors
/// A file that cannot be read, is not a source, is damaged, or was written in another format version.
pub fn load_source(path: &Path) -> Result<(Model, Vec<String>, Transforms)> {
    let mut store = Store::load(path, KIND)?;
    let header: Header = store.config()?;
    let dim = header.x_names.len();
    let mean = store.take("scaling.x.mean", &[dim])?;
    let deviation = store.take("scaling.x.deviation", &[dim])?;
    let mut source = header.form.lay_out(Scaling::new(mean, deviation));
    let mut parameters = source.parameters().to_vec();
    for tensor in source.core().1 {
        let values = store.take(&tensor.name, &tensor.shape)?;
        parameters[tensor.range()].copy_from_slice(&values);
    }
    source.update(&mut |own| own.copy_from_slice(&parameters));
    Ok((source, header.x_names, header.transforms))
}
