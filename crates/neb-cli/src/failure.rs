//! How a command fails: a message, a hint, and the exit code.

use std::path::Path;
use std::process::ExitCode;

/// A computation or check failed.
pub(crate) const FAILED: u8 = 1;
/// Bad input or usage.
const BAD_INPUT: u8 = 2;
/// Interrupted by the user: 128 + SIGINT, as shells have it.
pub(crate) const INTERRUPTED: u8 = 130;

/// A failure of the program itself; those of the libraries have types of their own.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    hint: String,
    code: u8,
}

impl Failure {
    /// Data or settings that cannot be used.
    pub(crate) fn input(message: impl Into<String>, hint: impl Into<String>) -> anyhow::Error {
        Self::with_code(BAD_INPUT, message.into(), hint.into())
    }

    /// A computation that went wrong.
    pub(crate) fn computation(
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> anyhow::Error {
        Self::with_code(FAILED, message.into(), hint.into())
    }

    /// Stopped by the user.
    pub(crate) fn interrupted(
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> anyhow::Error {
        Self::with_code(INTERRUPTED, message.into(), hint.into())
    }

    fn with_code(code: u8, message: String, hint: String) -> anyhow::Error {
        let failure = Self {
            message,
            hint,
            code,
        };
        failure.into()
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// Names the file whose data the library refused; its other errors name what they concern.
pub(crate) fn in_file(path: &Path, error: neb::Error) -> anyhow::Error {
    match error {
        neb::Error::Input { message, hint } => {
            Failure::input(format!("{}: {message}", path.display()), hint)
        }
        other => other.into(),
    }
}

/// What went wrong: the message, what to do next, and the exit code.
pub(crate) fn explain(error: &anyhow::Error) -> (String, Option<&str>, u8) {
    if let Some(failure) = error.downcast_ref::<Failure>() {
        (
            failure.to_string(),
            Some(failure.hint.as_str()),
            failure.code,
        )
    } else if let Some(refused) = error.downcast_ref::<neb_data::Error>() {
        (refused.to_string(), refused.hint(), BAD_INPUT)
    } else if let Some(refused) = error.downcast_ref::<neb::Error>() {
        let code = match refused {
            neb::Error::NonFinite { .. } => FAILED,
            neb::Error::Cancelled { .. } => INTERRUPTED,
            _ => BAD_INPUT,
        };
        (refused.to_string(), refused.hint(), code)
    } else {
        (format!("{error:#}"), None, FAILED)
    }
}

/// Says what went wrong on standard error; returns the exit code.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    let (message, hint, code) = explain(error);
    eprintln!("error: {message}");
    if let Some(hint) = hint {
        eprintln!("hint: {hint}");
    }
    ExitCode::from(code)
}
