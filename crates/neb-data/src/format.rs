//! Which format a file has: by its extension, confirmed by its first bytes.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::{Error, Result, npy};

/// A file format, told by the extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// `.npz`: a zip archive of named arrays.
    Npz,
    /// `.npy`: one array without a name.
    Npy,
    /// `.csv`, `.tsv` or `.txt`: columns of text, with or without a header line.
    Csv,
    /// `.parquet` or `.pq`: named columns (needs the feature `parquet`).
    Parquet,
}

impl Format {
    /// The format that the extension of `path` stands for.
    ///
    /// # Errors
    /// If the extension is none of the known ones.
    pub fn of(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let extension = path
            .extension()
            .map(|extension| extension.to_string_lossy().to_lowercase());
        match extension.as_deref() {
            Some("npz") => Ok(Self::Npz),
            Some("npy") => Ok(Self::Npy),
            Some("csv" | "tsv" | "txt") => Ok(Self::Csv),
            Some("parquet" | "pq") => Ok(Self::Parquet),
            found => Err(Error::file(
                path,
                match found {
                    Some(other) => format!(
                        "has the extension `.{other}`; expected .npz, .npy, .csv or .parquet"
                    ),
                    None => "has no extension; expected .npz, .npy, .csv or .parquet".into(),
                },
                "convert it, for example with np.savez(\"data.npz\", x=x, y=y), or correct its name",
            )),
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::Npz => "an npz (zip) archive",
            Self::Npy => "an npy array",
            Self::Csv => "a table of text",
            Self::Parquet => "a parquet table",
        }
    }

    fn extension(self) -> &'static str {
        match self {
            Self::Npz => "npz",
            Self::Npy => "npy",
            Self::Csv => "csv",
            Self::Parquet => "parquet",
        }
    }
}

/// First bytes of the formats a user may hand in, ours or not.
const MARKS: [(&[u8], Option<Format>, &str); 13] = [
    (b"PK\x03\x04", Some(Format::Npz), "an npz (zip) archive"),
    (b"PK\x05\x06", Some(Format::Npz), "an npz (zip) archive"),
    (npy::MAGIC, Some(Format::Npy), "an npy array"),
    (b"PAR1", Some(Format::Parquet), "a parquet table"),
    (b"\x89HDF", None, "an HDF5 file"),
    (b"root", None, "a ROOT file"),
    (b"\x1f\x8b", None, "a gzip file"),
    (b"\x28\xb5\x2f\xfd", None, "a zstd file"),
    (b"\x80\x02", None, "a Python pickle"),
    (b"\x80\x03", None, "a Python pickle"),
    (b"\x80\x04", None, "a Python pickle"),
    (b"\x80\x05", None, "a Python pickle"),
    (b"\xff\xfe", None, "UTF-16 text"),
];

/// The format of an existing file; the first bytes must agree with the extension.
pub(crate) fn recognise(path: &Path) -> Result<Format> {
    let metadata = path
        .metadata()
        .map_err(|refused| Error::reading(path, refused))?;
    if metadata.is_dir() {
        return Err(Error::file(
            path,
            "is a folder; expected a file",
            "name a file in it: .npz, .npy, .csv or .parquet",
        ));
    }
    let format = Format::of(path)?;
    let mut start = Vec::new();
    File::open(path)
        .and_then(|file| file.take(4096).read_to_end(&mut start))
        .map_err(|refused| Error::reading(path, refused))?;
    if start.is_empty() {
        return Err(Error::file(
            path,
            format!("is empty (0 bytes); expected {}", format.text()),
            "write the file again",
        ));
    }
    let mark = MARKS.iter().find(|(mark, ..)| start.starts_with(mark));
    match mark {
        Some(&(_, Some(found), _)) if found == format => Ok(format),
        Some(&(_, Some(found), text)) => Err(Error::file(
            path,
            format!("holds {text}; expected {}", format.text()),
            format!(
                "rename it to {}",
                path.with_extension(found.extension()).display()
            ),
        )),
        Some(&(_, None, text)) => Err(Error::file(
            path,
            format!("holds {text}; expected {}", format.text()),
            "unpack or convert it, for example with np.savez(\"data.npz\", x=x, y=y)",
        )),
        None if format == Format::Csv && !start.contains(&0) => Ok(format),
        None if format == Format::Csv => Err(Error::file(
            path,
            "holds binary data; expected a table of text",
            "give the file the extension of its format: .npz, .npy or .parquet",
        )),
        None => Err(Error::file(
            path,
            format!(
                "is not {}: its first bytes are of no known kind",
                format.text()
            ),
            "check that the file is complete and has the extension of its format",
        )),
    }
}

#[cfg(not(feature = "parquet"))]
pub(crate) fn without_parquet(path: &Path) -> Error {
    Error::file(
        path,
        "is a parquet file; this build of neb was made without parquet",
        "convert it to .npz or .csv, or build neb with the feature `parquet`",
    )
}
