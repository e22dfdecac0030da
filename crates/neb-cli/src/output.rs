//! Results to standard output, notes to standard error.

use std::io::{self, Write};

use serde::Serialize;

/// How a command talks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    /// Errors only.
    pub(crate) quiet: bool,
    /// Results as JSON.
    pub(crate) json: bool,
}

impl Output {
    /// The result: as JSON if asked for, else as the text that `text` makes of it.
    pub(crate) fn result<T: Serialize>(
        &self,
        result: &T,
        text: impl FnOnce(&T) -> String,
    ) -> anyhow::Result<()> {
        let text = if self.json {
            serde_json::to_string_pretty(result)?
        } else {
            text(result)
        };
        print(&text)
    }

    /// Something worth knowing that is not the result.
    pub(crate) fn note(&self, text: impl AsRef<str>) {
        if !self.quiet {
            eprintln!("{}", text.as_ref());
        }
    }
}

/// Writes to standard output; a reader that has seen enough (`neb ... | head`) is no failure.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    match writeln!(stdout, "{}", text.trim_end()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}
