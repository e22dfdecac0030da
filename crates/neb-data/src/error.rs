//! What can go wrong with a file, in words a user can act on: which file, what was found, what was
//! expected, and a way out.

use std::io;
use std::path::{Path, PathBuf};

/// The result of every fallible call in this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a file could not be read or written. [`Error::hint`] says what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The content of a file, or what was asked of it, cannot be used.
    #[error("{}: {message}", path.display())]
    File {
        /// The file, as the caller named it.
        path: PathBuf,
        /// What was found, where, and what was expected.
        message: String,
        /// What to do next.
        hint: String,
    },
    /// The operating system refused to read or write.
    #[error("{}: cannot be {action}: {}", path.display(), reason(source))]
    Io {
        /// The file, as the caller named it.
        path: PathBuf,
        /// What was attempted: `read` or `written`.
        action: &'static str,
        /// The system's reason.
        source: io::Error,
        /// What to do next.
        hint: String,
    },
    /// Tables that belong together differ in their number of rows.
    #[error("{message}")]
    Rows {
        /// Both tables, with their files and numbers of rows.
        message: String,
        /// What to do next.
        hint: String,
    },
}

impl Error {
    /// What the user can do next.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::File { hint, .. } | Self::Io { hint, .. } | Self::Rows { hint, .. } => Some(hint),
        }
    }

    pub(crate) fn file(path: &Path, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::File {
            path: path.to_owned(),
            message: message.into(),
            hint: hint.into(),
        }
    }

    pub(crate) fn reading(path: &Path, source: io::Error) -> Self {
        let hint = match source.kind() {
            io::ErrorKind::NotFound => "check the name and the current folder",
            io::ErrorKind::PermissionDenied => "check the permissions of the file and its folder",
            _ => "check that the disk is mounted and works",
        };
        Self::Io {
            path: path.to_owned(),
            action: "read",
            source,
            hint: hint.into(),
        }
    }

    pub(crate) fn writing(path: &Path, source: io::Error) -> Self {
        let hint = match source.kind() {
            io::ErrorKind::NotFound => "create the folder first",
            io::ErrorKind::PermissionDenied => {
                "choose another folder, or change the permissions of this one"
            }
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                "free some space or choose another disk; no partial file was left behind"
            }
            _ => "choose another folder or disk; no partial file was left behind",
        };
        Self::Io {
            path: path.to_owned(),
            action: "written",
            source,
            hint: hint.into(),
        }
    }
}

/// What is wrong with a part of a file, before the file is named.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Problem {
    pub(crate) message: String,
    pub(crate) hint: String,
}

impl Problem {
    pub(crate) fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: hint.into(),
        }
    }

    /// Content that cannot be what was written: broken on its way, or a lie.
    pub(crate) fn damaged(message: impl Into<String>) -> Self {
        Self::new(
            message,
            "the file is damaged; copy, download or write it again",
        )
    }

    /// The error of the file `path`.
    pub(crate) fn at(self, path: &Path) -> Error {
        Error::file(path, self.message, self.hint)
    }

    /// The error of `subject` ("array `x`") in the file `path`.
    pub(crate) fn of(self, path: &Path, subject: &str) -> Error {
        Error::file(path, format!("{subject} {}", self.message), self.hint)
    }
}

/// The usual reasons in plain words, without the number of the system call's error.
fn reason(source: &io::Error) -> String {
    match source.kind() {
        io::ErrorKind::NotFound => "no such file or folder".into(),
        io::ErrorKind::PermissionDenied => "permission denied".into(),
        io::ErrorKind::StorageFull => "no space left on the disk".into(),
        _ => source.to_string(),
    }
}
