//! Model and checkpoint files: safetensors, with the configuration as JSON in the metadata.
//!
//! The same content is the same bytes: all metadata are one entry, because safetensors writes several in random order.
//!
//! Written to a temporary file beside the target, flushed to disk, then renamed: a reader sees the old file or the
//! whole new one, never a part.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Write;
use std::path::Path;

use safetensors::tensor::{Dtype, SafeTensors, View};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{Error, Result};

/// Version of every file this crate writes; files of another version are refused.
const FORMAT_VERSION: u32 = 3;

/// The name of the metadata entry.
const ENTRY: &str = "neb";

/// Which version of the format a file has, read before anything else.
#[derive(Deserialize)]
struct Version {
    format: u32,
}

/// The metadata entry.
#[derive(Debug, Serialize, Deserialize)]
struct Header {
    format: u32,
    kind: String,
    config: Box<RawValue>,
}

/// A named tensor of `f32`.
#[derive(Clone, Debug)]
pub(crate) struct TensorData {
    name: String,
    shape: Vec<usize>,
    values: Vec<f32>,
}

impl TensorData {
    /// A tensor of any shape.
    pub(crate) fn new(name: &str, shape: &[usize], values: &[f32]) -> Self {
        Self {
            name: name.to_owned(),
            shape: shape.to_vec(),
            values: values.to_vec(),
        }
    }

    /// A vector.
    pub(crate) fn flat(name: &str, values: &[f32]) -> Self {
        Self::new(name, &[values.len()], values)
    }
}

impl View for &TensorData {
    fn dtype(&self) -> Dtype {
        Dtype::F32
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        self.values.iter().flat_map(|v| v.to_le_bytes()).collect()
    }

    fn data_len(&self) -> usize {
        4 * self.values.len()
    }
}

/// The contents of a file: what kind of thing it is, its configuration, its tensors.
#[derive(Debug)]
pub(crate) struct Store {
    header: Header,
    tensors: Vec<TensorData>,
    origin: std::path::PathBuf,
}

impl Store {
    /// An empty file of this kind with this configuration.
    pub(crate) fn new(kind: &str, config: &impl Serialize) -> Result<Self> {
        let config = serde_json::value::to_raw_value(config).map_err(|e| {
            Error::input(
                format!("the configuration cannot be written as JSON: {e}"),
                "replace values that are not finite",
            )
        })?;
        Ok(Self {
            header: Header {
                format: FORMAT_VERSION,
                kind: kind.to_owned(),
                config,
            },
            tensors: Vec::new(),
            origin: Default::default(),
        })
    }

    /// Adds a tensor.
    pub(crate) fn push(&mut self, tensor: TensorData) {
        self.tensors.push(tensor);
    }

    /// Writes the file atomically.
    pub(crate) fn save(&self, path: &Path) -> Result<()> {
        let defect = |what: String| Error::file(path, what, "report this: it is a defect of neb");
        let header = serde_json::to_string(&self.header).map_err(|e| defect(e.to_string()))?;
        let metadata = HashMap::from([(ENTRY.to_owned(), header)]);
        let views = self.tensors.iter().map(|t| (t.name.clone(), t));
        let bytes =
            safetensors::serialize(views, Some(metadata)).map_err(|e| defect(e.to_string()))?;
        let io = |e| Error::io(path, e);
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let mut file = temporary_in(folder).map_err(io)?;
        file.write_all(&bytes).map_err(io)?;
        file.as_file().sync_all().map_err(io)?;
        file.persist(path).map_err(|e| Error::io(path, e.error))?;
        // A rename is durable once its folder is; some file systems cannot sync a folder and need not.
        if let Ok(folder) = std::fs::File::open(folder) {
            folder.sync_all().ok();
        }
        Ok(())
    }

    /// Reads a file and checks its kind and version.
    pub(crate) fn load(path: &Path, kind: &str) -> Result<Self> {
        let bytes = std::fs::read(path).map_err(|e| Error::io(path, e))?;
        let damaged = |what: String| {
            Error::file(
                path,
                format!("not a {kind} file of neb, or damaged: {what}"),
                "check the path; if the file was copied, copy it again",
            )
        };
        let tensors = SafeTensors::deserialize(&bytes).map_err(|e| damaged(e.to_string()))?;
        let (_, header) = SafeTensors::read_metadata(&bytes).map_err(|e| damaged(e.to_string()))?;
        let metadata = header.metadata().as_ref();
        let entry = metadata
            .and_then(|metadata| metadata.get(ENTRY))
            .ok_or_else(|| damaged(format!("its metadata has no `{ENTRY}`")))?;
        let unreadable = |e: serde_json::Error| damaged(format!("its metadata: {e}"));
        let Version { format } = serde_json::from_str(entry).map_err(unreadable)?;
        if format != FORMAT_VERSION {
            return Err(Error::file(
                path,
                format!("format version {format}; this neb reads version {FORMAT_VERSION}"),
                "use the neb that wrote it, or fit again",
            ));
        }
        let header: Header = serde_json::from_str(entry).map_err(unreadable)?;
        if header.kind != kind {
            return Err(Error::file(
                path,
                format!("holds a {}, not a {kind}", header.kind),
                "name the right file",
            ));
        }
        let mut store = Self {
            header,
            tensors: Vec::new(),
            origin: path.to_owned(),
        };
        for (name, view) in tensors.tensors() {
            if view.dtype() != Dtype::F32 {
                return Err(damaged(format!("tensor `{name}` is not of type f32")));
            }
            let (chunks, _) = view.data().as_chunks::<4>();
            let values: Vec<f32> = chunks.iter().map(|b| f32::from_le_bytes(*b)).collect();
            if let Some(at) = values.iter().position(|v| !v.is_finite()) {
                return Err(damaged(format!(
                    "tensor `{name}` holds {} at position {at}",
                    values[at]
                )));
            }
            store.push(TensorData::new(&name, view.shape(), &values));
        }
        Ok(store)
    }

    /// The configuration.
    pub(crate) fn config<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_str(self.header.config.get()).map_err(|e| {
            Error::file(
                &self.origin,
                format!("its configuration cannot be read: {e}"),
                "use the neb that wrote it, or fit again",
            )
        })
    }

    /// The values of a tensor, which must have this shape.
    pub(crate) fn take(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
        let wrong = |message: String| {
            Error::file(
                &self.origin,
                message,
                "the file is damaged or was edited; fit again",
            )
        };
        let Some(at) = self.tensors.iter().position(|t| t.name == name) else {
            let known: Vec<_> = self.tensors.iter().map(|t| t.name.as_str()).collect();
            return Err(wrong(format!(
                "no tensor `{name}`; it has {}",
                known.join(", ")
            )));
        };
        if self.tensors[at].shape != shape {
            return Err(wrong(format!(
                "tensor `{name}` has shape {:?}, expected {shape:?}",
                self.tensors[at].shape
            )));
        }
        Ok(self.tensors.swap_remove(at).values)
    }
}

/// A temporary file that will have the permissions of any other new file (by default they are private to the user).
fn temporary_in(folder: &Path) -> std::io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".neb-").suffix(".part");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
        builder.tempfile_in(folder)
    }
    #[cfg(not(unix))]
    builder.tempfile_in(folder)
}
