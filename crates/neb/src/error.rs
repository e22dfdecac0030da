//! What can go wrong, in words a user can act on: what was found, where, and what to do next.

use std::path::{Path, PathBuf};

/// The result of every fallible call in this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a call failed. [`Error::hint`] says what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Data or settings that cannot be used; nothing was computed.
    #[error("{message}")]
    Input {
        /// What was found, and where.
        message: String,
        /// What to do next.
        hint: String,
    },
    /// A computation left the finite numbers; the work up to then is in the last checkpoint.
    #[error("{message}")]
    NonFinite {
        /// Which quantity, at which step and batch.
        message: String,
        /// What to do next.
        hint: String,
    },
    /// The caller asked to stop; the work up to then is in the last checkpoint.
    #[error("stopped on request after {steps} steps")]
    Cancelled {
        /// Optimiser steps finished before stopping.
        steps: u64,
    },
    /// A file of ours that cannot be used.
    #[error("{}: {message}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
        /// What to do next.
        hint: String,
    },
    /// The operating system refused to read or write.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
}

impl Error {
    /// Data or settings that cannot be used.
    pub fn input(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Input {
            message: message.into(),
            hint: hint.into(),
        }
    }

    /// A quantity that is no longer finite.
    pub fn non_finite(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::NonFinite {
            message: message.into(),
            hint: hint.into(),
        }
    }

    /// A model or checkpoint file that cannot be used.
    pub fn file(path: &Path, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::File {
            path: path.to_owned(),
            message: message.into(),
            hint: hint.into(),
        }
    }

    /// A refusal of the operating system, with the file it concerns.
    pub fn io(path: &Path, source: std::io::Error) -> Self {
        Self::Io {
            path: path.to_owned(),
            source,
        }
    }

    /// What the user can do next, where there is something to say.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Input { hint, .. } | Self::NonFinite { hint, .. } | Self::File { hint, .. } => {
                Some(hint)
            }
            Self::Io { source, .. } => match source.kind() {
                std::io::ErrorKind::NotFound => Some("check the name and the current folder"),
                std::io::ErrorKind::PermissionDenied => {
                    Some("check the permissions of the file and its folder")
                }
                _ => None,
            },
            Self::Cancelled { .. } => None,
        }
    }
}
