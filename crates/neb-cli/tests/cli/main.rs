//! The `neb` program from the outside: arguments and files in; exit code, words and files out.

mod bad_input;
mod commands;
mod folder;
mod report;
mod posterior;
#[cfg(unix)]
mod resume;
mod stage2;
mod stage2_refused;
mod stage2_single;
