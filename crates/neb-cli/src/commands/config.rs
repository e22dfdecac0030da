//! `neb config`: the settings a training would use, as a configuration file.

use anyhow::Result;

use super::Session;
use crate::args;
use crate::config::Config;
use crate::output::print;

/// Runs the command.
pub(crate) fn run(args: &args::Config, session: Session) -> Result<()> {
    let config = Config::resolve(
        session.seed_flag,
        args.command,
        &args.config,
        &args.keys,
        &args.source,
    )?;
    if session.output.json {
        session.output.result(&config.to_json(), |_| String::new())
    } else {
        print(&config.to_toml())
    }
}
