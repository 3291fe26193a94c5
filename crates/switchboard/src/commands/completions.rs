//! `switchboard completions`

use clap_complete::Shell;

use crate::{Failure, cli, output};

/// Write the completions for a shell to standard output.
///
/// Bash: `switchboard completions bash > ~/.local/share/bash-completion/completions/switchboard`.
/// Zsh: `switchboard completions zsh > ~/.zfunc/_switchboard`.
/// Fish: `switchboard completions fish > ~/.config/fish/completions/switchboard.fish`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The shell.
    shell: Shell,
}

#[expect(clippy::unnecessary_wraps, reason = "all commands have this shape")]
pub(crate) fn run(arguments: &Args) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut cli::command(), "switchboard", &mut script);
    output::text(String::from_utf8_lossy(&script));
    Ok(())
}
