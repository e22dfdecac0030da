//! One file per command: typed arguments in, library calls, a result out.

pub(crate) mod calibrate;
pub(crate) mod climbing;
mod compare;
mod config;
mod demo;
mod fit;
pub(crate) mod log_prob;
mod omnifold;
pub(crate) mod posterior;
pub(crate) mod report;
pub(crate) mod reproduce;
mod resume;
pub(crate) mod sample;
mod simulate;
mod source;
pub(crate) mod stage2;
pub(crate) mod summary;
mod surrogate;
pub(crate) mod training;
pub(crate) mod unfold;

use anyhow::{Context, Result};
use clap::CommandFactory;

use crate::args::{Args, Command, Common};
use crate::config::DEFAULT_SEED;
use crate::output::Output;

/// What every command needs to know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Session {
    /// The seed typed, if any: a configuration file may hold another.
    pub(crate) seed_flag: Option<u64>,
    /// Replace existing files.
    pub(crate) force: bool,
    /// Whether a run that was stopped is to go on.
    pub(crate) resuming: bool,
    /// How to talk.
    pub(crate) output: Output,
}

impl Session {
    /// The seed of commands that take no configuration file.
    fn seed(&self) -> u64 {
        self.seed_flag.unwrap_or(DEFAULT_SEED)
    }
}

/// Runs what was typed.
pub(crate) fn run(args: Args) -> Result<()> {
    let Common {
        seed,
        threads,
        quiet,
        json,
        force,
    } = args.common;
    if let Some(threads) = threads {
        rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build_global()
            .with_context(|| format!("cannot start {threads} threads"))?;
    }
    let session = Session {
        seed_flag: seed,
        force,
        resuming: false,
        output: Output { quiet, json },
    };
    match args.command {
        Command::Demo(args) => demo::run(&args, session),
        Command::Fit(args) => fit::run(&args, session),
        Command::Simulate(args) => simulate::run(&args, session),
        Command::Surrogate(args) => surrogate::run(&args, session),
        Command::Source(args) => source::run(&args, session),
        Command::LogProb(args) => log_prob::run(&args, session),
        Command::Sample(args) => sample::run(&args, session),
        Command::Compare(args) => compare::run(&args, session),
        Command::Report(args) => report::run(&args, session),
        Command::Posterior(args) => posterior::run(&args, session),
        Command::Calibrate(args) => calibrate::run(&args, session),
        Command::Omnifold(args) => omnifold::run(&args, session),
        Command::Unfold(args) => unfold::run(&args, session),
        Command::Reproduce(args) => reproduce::run(&args, session),
        Command::Config(args) => config::run(&args, session),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Args::command(), "neb", &mut script);
            crate::output::print(&String::from_utf8_lossy(&script))
        }
    }
}
