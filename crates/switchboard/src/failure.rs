//! Why a command did not do what it was asked: a text for people, a hint what to do, and an exit code for scripts.

use std::fmt;
use std::process::ExitCode;

/// What the exit code says. These numbers are documented in the help and stay as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It did not work, or the tool that was called answered with an error.
    Failed = 1,
    /// The command line makes no sense.
    Usage = 2,
    /// An option is wrong.
    Config = 3,
    /// No server answers.
    NoServer = 4,
    /// Something that is needed is in use: the data directory, or a port.
    InUse = 5,
    /// The server wants a key, or another one.
    Denied = 6,
}

impl Exit {
    /// For the help and the reference page.
    pub(crate) const MEANINGS: &'static str = "Exit codes:
  0  done
  1  it did not work, or the tool that was called answered with an error
  2  the command line makes no sense
  3  an option in the file, the environment or a flag is wrong
  4  no server answers
  5  the data directory or a port is in use
  6  the server wants a key, or another one";
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a command did not do what it was asked.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    exit: Exit,
    message: String,
    hint: Option<String>,
}

impl Failure {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), hint: None }
    }

    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::new(Exit::Failed, message)
    }

    pub(crate) fn config(message: impl Into<String>) -> Self {
        Self::new(Exit::Config, message)
    }

    /// What to do about it.
    #[must_use]
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// What to do about it, unless that is known better.
    #[must_use]
    pub(crate) fn hint_if_none(self, hint: impl Into<String>) -> Self {
        if self.hint.is_some() { self } else { self.hint(hint) }
    }

    pub(crate) fn exit(&self) -> Exit {
        self.exit
    }

    pub(crate) fn what_to_do(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// The text of an error and of everything that caused it.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        // Some libraries repeat their cause.
        if !text.contains(&next) {
            text = format!("{text}: {next}");
        }
        cause = error.source();
    }
    text
}
