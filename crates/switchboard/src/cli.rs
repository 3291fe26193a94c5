//! The command line: which commands there are, and what is common to all.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::commands::{
    call, completions, config as config_command, demo, doctor, events, import, key, mcp, schedule, serve,
    status, tools,
};
use crate::config::{GlobalFlags, Inputs, Resolved, environment, specs};
use crate::{Exit, Failure};

/// One server through which AI agents reach each other and the people who own them.
///
/// Without a command: `serve`.
#[derive(Debug, Parser)]
#[command(name = "switchboard", version, after_help = Exit::MEANINGS, max_term_width = 110)]
pub(crate) struct Cli {
    /// Read options from this file instead of the usual one. As variable: SWITCHBOARD_CONFIG.
    #[arg(long, value_name = "FILE", global = true, help_heading = "Options of every command")]
    config: Option<PathBuf>,
    #[command(flatten)]
    flags: GlobalFlags,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the server.
    Serve(serve::Args),
    /// Speak MCP on standard input and output: a bridge to the running server, which is started if there is none.
    Mcp(mcp::Args),
    /// Call a tool of the running server.
    Call(call::Args),
    /// List the tools, and what listing them costs an agent.
    Tools(tools::Args),
    /// Tell what the running server does.
    Status(status::Args),
    /// Show in a few seconds what this is good for: three agents work side by side on a real server.
    Demo(demo::Args),
    /// Look for what is wrong, and say how to mend it.
    Doctor(doctor::Args),
    /// Make, list and end keys.
    Key(key::Args),
    /// Make, list and steer schedules.
    Schedule(Box<schedule::Args>),
    /// Take over what a replaced system has kept.
    Import(import::Args),
    /// Follow what happens.
    Events(events::Args),
    /// Write the completions for a shell to standard output.
    Completions(completions::Args),
    /// Show the options and where they come from.
    Config(config_command::Args),
}

/// What every command is given.
#[derive(Debug)]
pub(crate) struct Context {
    inputs: Inputs,
}

impl Context {
    /// What the options are made from.
    pub(crate) fn inputs(&self) -> &Inputs {
        &self.inputs
    }

    /// The options.
    pub(crate) fn options(&self) -> Result<Resolved, Failure> {
        self.inputs.resolve()
    }
}

/// Does what the command line says.
pub(crate) fn run(arguments: Vec<OsString>) -> Result<(), Failure> {
    let cli = match parse(arguments) {
        Ok(cli) => cli,
        // Prints help and version to stdout and mistakes to stderr, and ends with 0 or 2.
        Err(error) => error.exit(),
    };
    let mut inputs = Inputs { file: cli.config, environment: environment(), flags: cli.flags.0 };
    if let Command::Serve(serve::Args { flags, .. }) | Command::Mcp(mcp::Args { flags, .. }) = &cli.command {
        inputs.flags = inputs.flags.and(flags.0.clone());
    }
    let context = Context { inputs };
    match cli.command {
        Command::Serve(arguments) => serve::run(&context, &arguments),
        Command::Mcp(arguments) => mcp::run(&context, &arguments),
        Command::Call(arguments) => call::run(&context, arguments),
        Command::Tools(arguments) => tools::run(&context, &arguments),
        Command::Status(arguments) => status::run(&context, &arguments),
        Command::Demo(arguments) => demo::run(&context, &arguments),
        Command::Doctor(arguments) => doctor::run(&context, &arguments),
        Command::Key(arguments) => key::run(&context, arguments),
        Command::Schedule(arguments) => schedule::run(&context, *arguments),
        Command::Import(arguments) => import::run(&context, arguments),
        Command::Events(arguments) => events::run(&context, arguments),
        Command::Completions(arguments) => completions::run(&arguments),
        Command::Config(arguments) => config_command::run(&context, &arguments),
    }
}

fn parse(arguments: Vec<OsString>) -> Result<Cli, clap::Error> {
    let matches = command().try_get_matches_from(with_command(arguments))?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command()))
}

/// The whole command line, for parsing, completions and the reference page.
pub(crate) fn command() -> clap::Command {
    Cli::command()
}

/// Puts `serve` where no command stands.
fn with_command(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let mut at = 1;
    while let Some(argument) = arguments.get(at).and_then(|argument| argument.to_str()) {
        match argument {
            "-h" | "--help" | "-V" | "--version" => return arguments,
            _ if takes_value_of_every_command(argument) => at += 2,
            _ if argument.split_once('=').is_some_and(|(name, _)| takes_value_of_every_command(name)) => {
                at += 1;
            }
            _ if argument.starts_with('-') => break,
            _ => return arguments,
        }
    }
    arguments.insert(at.min(arguments.len()), "serve".into());
    arguments
}

fn takes_value_of_every_command(argument: &str) -> bool {
    let Some(name) = argument.strip_prefix("--") else { return false };
    name == "config" || specs().iter().any(|spec| spec.everywhere && spec.flag == name)
}

/// A mistake in the command line that only a command itself can see.
pub(crate) fn usage(message: impl Into<String>) -> Failure {
    Failure::new(Exit::Usage, message)
}

/// A runtime for commands that do one thing at a time.
pub(crate) fn block_on<T>(task: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Failure::failed(format!("cannot start: {error}")))?.block_on(task)
}

#[cfg(test)]
mod tests {
    use clap::error::ErrorKind;

    use super::*;

    fn completed(line: &str) -> String {
        let arguments = line.split(' ').map(OsString::from).collect();
        let words: Vec<_> =
            with_command(arguments).into_iter().map(|word| word.into_string().unwrap()).collect();
        words.join(" ")
    }

    #[test]
    fn serve_is_what_happens_without_a_command() {
        for (line, expected) in [
            ("switchboard", "switchboard serve"),
            ("switchboard --listen 1", "switchboard serve --listen 1"),
            ("switchboard --data-dir x", "switchboard --data-dir x serve"),
            ("switchboard --data-dir", "switchboard --data-dir serve"),
            ("switchboard --data-dir=x --compat", "switchboard --data-dir=x serve --compat"),
            ("switchboard --data-dir x status --json", "switchboard --data-dir x status --json"),
            ("switchboard --help", "switchboard --help"),
            ("switchboard key list", "switchboard key list"),
        ] {
            assert_eq!(completed(line), expected);
        }
    }

    #[test]
    fn the_command_line_contradicts_itself_nowhere() {
        command().debug_assert();
        assert_eq!(
            parse(vec!["switchboard".into(), "--no-such".into()]).unwrap_err().kind(),
            ErrorKind::UnknownArgument
        );
    }
}
