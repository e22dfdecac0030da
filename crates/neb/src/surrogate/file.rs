//! Surrogates as files: parameters, form, scaling and column names.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::config::ModelConfig;
use super::learned::{Body, Surrogate};
use crate::column::Transforms;
use crate::density::ConditionalDensity;
use crate::scaling::Scaling;
use crate::store::{Store, TensorData};
use crate::{Dims, Error, Result};

const KIND: &str = "surrogate";

#[derive(Serialize, Deserialize)]
struct Header {
    model: ModelConfig,
    x_names: Vec<String>,
    y_names: Vec<String>,
    #[serde(default, skip_serializing_if = "Transforms::is_plain")]
    x_transforms: Transforms,
    #[serde(default, skip_serializing_if = "Transforms::is_plain")]
    y_transforms: Transforms,
}

impl Surrogate {
    /// Writes the surrogate to a file, atomically.
    ///
    /// # Errors
    /// Whatever the operating system refuses.
    pub fn save(&self, path: &Path) -> Result<()> {
        let header = Header {
            model: self.model.clone(),
            x_names: self.x_names.clone(),
            y_names: self.y_names.clone(),
            x_transforms: self.x_transforms().clone(),
            y_transforms: self.y_transforms().clone(),
        };
        let mut store = Store::new(KIND, &header)?;
        let ranges: Vec<f32> = self.y_range.iter().flatten().copied().collect();
        store.push(TensorData::new(
            "scaling.y.range",
            &[ranges.len() / 2, 2],
            &ranges,
        ));
        match &self.body {
            Body::Flow(neural) => push_all(&mut store, &neural.model, &neural.x, &neural.y),
            Body::Mixture(neural) => push_all(&mut store, &neural.model, &neural.x, &neural.y),
        }
        store.save(path)
    }

    /// Reads a surrogate; shapes and version are checked.
    ///
    /// # Errors
    /// A file that cannot be read, is not a surrogate, is damaged, or was written in another format version.
    pub fn load(path: &Path) -> Result<Self> {
        let mut store = Store::load(path, KIND)?;
        let header: Header = store.config()?;
        header
            .model
            .check()
            .map_err(|e| Error::file(path, e.to_string(), "the file was edited; fit again"))?;
        let (dx, dy) = (header.x_names.len(), header.y_names.len());
        let x = take_scaling(&mut store, "x", dx)?;
        let y = take_scaling(&mut store, "y", dy)?;
        let ranges = store.take("scaling.y.range", &[dy, 2])?;
        let mut body = Body::new(&header.model, Dims { dx, dy }, x, y);
        match &mut body {
            Body::Flow(neural) => take_all(&mut store, &mut neural.model)?,
            Body::Mixture(neural) => take_all(&mut store, &mut neural.model)?,
        }
        Ok(Self {
            body,
            model: header.model,
            x_names: header.x_names,
            y_names: header.y_names,
            y_range: ranges.as_chunks::<2>().0.to_vec(),
            transforms: [header.x_transforms, header.y_transforms],
        })
    }
}

fn push_all(store: &mut Store, model: &impl ConditionalDensity, x: &Scaling, y: &Scaling) {
    for (column, scaling) in [("x", x), ("y", y)] {
        store.push(TensorData::flat(
            &format!("scaling.{column}.mean"),
            &scaling.mean,
        ));
        store.push(TensorData::flat(
            &format!("scaling.{column}.deviation"),
            &scaling.deviation,
        ));
    }
    for tensor in model.layout().tensors() {
        let values = &model.parameters()[tensor.range()];
        store.push(TensorData::new(&tensor.name, &tensor.shape, values));
    }
}

fn take_scaling(store: &mut Store, column: &str, dim: usize) -> Result<Scaling> {
    Ok(Scaling::new(
        store.take(&format!("scaling.{column}.mean"), &[dim])?,
        store.take(&format!("scaling.{column}.deviation"), &[dim])?,
    ))
}

fn take_all(store: &mut Store, model: &mut impl ConditionalDensity) -> Result<()> {
    for tensor in model.layout().tensors().to_vec() {
        let values = store.take(&tensor.name, &tensor.shape)?;
        model.parameters_mut()[tensor.range()].copy_from_slice(&values);
    }
    model.refresh();
    Ok(())
}
