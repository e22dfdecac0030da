//! The `neb` program from the outside: arguments and files in; exit code, words and files out.

mod bad_input;
mod collider;
mod commands;
mod folder;
mod posterior;
mod report;
mod reproduce;
#[cfg(unix)]
mod resume;
mod stage2;
mod stage2_refused;
mod stage2_single;
mod transforms;
mod unfold;
