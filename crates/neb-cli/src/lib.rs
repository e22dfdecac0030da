//! The `neb` program: words to standard error, results to standard output, and an exit code that says how it ended
//! (0 done, 1 a computation or check failed, 2 bad input or usage, 130 interrupted).
//!
//! It is a library so that other front ends ([`embed`]) have the same settings, stages and folders.

mod args;
mod commands;
mod config;
pub mod embed;
mod failure;
mod files;
mod interrupt;
mod output;
mod progress;
mod run_folder;

use std::process::ExitCode;

use clap::Parser;

/// Runs what was typed.
pub fn main() -> ExitCode {
    let args = args::Args::parse();
    match commands::run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure::report(&error),
    }
}
