//! Sources as files.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::affine::{Affine, Base};
use super::flow::{FlowFit, FlowSource};
use super::{Source, ladder::Fitted};
use crate::Result;
use crate::density::ConditionalDensity;
use crate::scaling::Scaling;
use crate::store::{Store, TensorData};

const KIND: &str = "source";

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
enum Form {
    Affine { base: Base, symmetric: Vec<bool> },
    Flow { shape: FlowFit },
}

#[derive(Serialize, Deserialize)]
struct Header {
    form: Form,
    x_names: Vec<String>,
}

/// Writes a source to a file, atomically, with the names of its columns.
///
/// # Errors
/// Whatever the operating system refuses.
pub fn save_source(source: &Fitted, x_names: &[String], path: &Path) -> Result<()> {
    let form = match source {
        Fitted::Affine(affine) => Form::Affine {
            base: affine.base_law(),
            symmetric: affine.symmetric().to_vec(),
        },
        Fitted::Flow(flow) => Form::Flow {
            shape: flow.shape.clone(),
        },
    };
    let header = Header {
        form,
        x_names: x_names.to_vec(),
    };
    let mut store = Store::new(KIND, &header)?;
    match source {
        Fitted::Affine(affine) => {
            let (scale, shift) = affine.parameters().split_at(affine.dim());
            store.push(TensorData::flat("log_scale", scale));
            store.push(TensorData::flat("shift", shift));
        }
        Fitted::Flow(flow) => {
            store.push(TensorData::flat("scaling.x.mean", &flow.scaling.mean));
            let deviation = &flow.scaling.deviation;
            store.push(TensorData::flat("scaling.x.deviation", deviation));
            for tensor in flow.flow.layout().tensors() {
                let values = &flow.flow.parameters()[tensor.range()];
                store.push(TensorData::new(&tensor.name, &tensor.shape, values));
            }
        }
    }
    store.save(path)
}

/// Reads a source and the names of its columns.
///
/// # Errors
/// A file that cannot be read, is not a source, is damaged, or was written in another format version.
pub fn load_source(path: &Path) -> Result<(Fitted, Vec<String>)> {
    let mut store = Store::load(path, KIND)?;
    let header: Header = store.config()?;
    let dim = header.x_names.len();
    let source = match header.form {
        Form::Affine { base, symmetric } => {
            let scale = store.take("log_scale", &[dim])?;
            let shift = store.take("shift", &[dim])?;
            let mut affine = Affine::new(base, &shift, &vec![1.0; dim], &symmetric);
            affine.update(&mut |parameters| parameters[..dim].copy_from_slice(&scale));
            Fitted::Affine(affine)
        }
        Form::Flow { shape } => {
            let mean = store.take("scaling.x.mean", &[dim])?;
            let deviation = store.take("scaling.x.deviation", &[dim])?;
            let mut flow = FlowSource::unfitted(&shape, Scaling::new(mean, deviation));
            for tensor in flow.flow.layout().tensors().to_vec() {
                let values = store.take(&tensor.name, &tensor.shape)?;
                flow.flow.parameters_mut()[tensor.range()].copy_from_slice(&values);
            }
            flow.flow.refresh();
            Fitted::Flow(Box::new(flow))
        }
    };
    Ok((source, header.x_names))
}
