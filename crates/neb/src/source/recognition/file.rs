//! Recognition networks as files.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Recognition, RecognitionConfig};
use crate::density::ConditionalDensity;
use crate::scaling::Scaling;
use crate::source::Domain;
use crate::store::{Store, TensorData};
use crate::{Error, Result};

const KIND: &str = "recognition";

#[derive(Serialize, Deserialize)]
struct Header {
    network: RecognitionConfig,
    domain: Option<Domain>,
    x_names: Vec<String>,
    y_names: Vec<String>,
}

impl Recognition {
    /// Writes the network to a file, atomically, with the names of the columns it is for.
    ///
    /// # Errors
    /// Whatever the operating system refuses.
    pub fn save(&self, x_names: &[String], y_names: &[String], path: &Path) -> Result<()> {
        let header = Header {
            network: self.config.clone(),
            domain: self.domain.clone(),
            x_names: x_names.to_vec(),
            y_names: y_names.to_vec(),
        };
        let mut store = Store::new(KIND, &header)?;
        for (column, scaling) in [("x", &self.x), ("y", &self.y)] {
            let parts = [("mean", &scaling.mean), ("deviation", &scaling.deviation)];
            for (part, values) in parts {
                store.push(TensorData::flat(
                    &format!("scaling.{column}.{part}"),
                    values,
                ));
            }
        }
        for tensor in self.flow.layout().tensors() {
            let values = &self.flow.parameters()[tensor.range()];
            store.push(TensorData::new(&tensor.name, &tensor.shape, values));
        }
        store.save(path)
    }

    /// Reads a network; shapes and version are checked.
    ///
    /// # Errors
    /// A file that cannot be read, is not a recognition network, is damaged, or was written in another format version.
    pub fn load(path: &Path) -> Result<Self> {
        let mut store = Store::load(path, KIND)?;
        let header: Header = store.config()?;
        header
            .network
            .check()
            .map_err(|e| Error::file(path, e.to_string(), "the file was edited; fit again"))?;
        let mut scaling = |column: &str, dim: usize| -> Result<Scaling> {
            Ok(Scaling::new(
                store.take(&format!("scaling.{column}.mean"), &[dim])?,
                store.take(&format!("scaling.{column}.deviation"), &[dim])?,
            ))
        };
        let x = scaling("x", header.x_names.len())?;
        let y = scaling("y", header.y_names.len())?;
        let mut network = Self::unfitted(&header.network, x, y);
        network.domain = header.domain;
        for tensor in network.flow.layout().tensors().to_vec() {
            let values = store.take(&tensor.name, &tensor.shape)?;
            network.flow.parameters_mut()[tensor.range()].copy_from_slice(&values);
        }
        network.flow.refresh();
        Ok(network)
    }
}
