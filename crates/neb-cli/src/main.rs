//! The `neb` program; see the library of this crate.

use std::process::ExitCode;

fn main() -> ExitCode {
    neb_cli::main()
}
