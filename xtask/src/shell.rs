//! Running other programs: what they print is shown as it comes, and kept.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, IsTerminal, Read, Write};
use std::path::Path;
use std::process::Stdio;
use std::sync::Mutex;

use crate::{Failure, Outcome};

pub(crate) struct Command {
    inner: std::process::Command,
    program: String,
}

/// How a program ended and everything it printed, both streams in order of arrival, colours removed.
pub(crate) struct Finished {
    pub(crate) success: bool,
    pub(crate) output: String,
}

impl Command {
    pub(crate) fn new(program: impl AsRef<OsStr>) -> Self {
        let program = program.as_ref();
        let mut inner = std::process::Command::new(program);
        inner.stdin(Stdio::null());
        if std::io::stdout().is_terminal() {
            inner.env("CARGO_TERM_COLOR", "always").env("PY_COLORS", "1").env("FORCE_COLOR", "1");
        }
        Self { inner, program: program.to_string_lossy().into_owned() }
    }

    pub(crate) fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.inner.args(args);
        self
    }

    pub(crate) fn arg(self, arg: impl AsRef<OsStr>) -> Self {
        self.args([arg])
    }

    pub(crate) fn within(mut self, folder: impl AsRef<Path>) -> Self {
        self.inner.current_dir(folder);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.inner.env(name, value);
        self
    }

    /// Runs it, showing what it prints. An unsuccessful end is an answer, not an error.
    pub(crate) fn stream(self) -> Outcome<Finished> {
        self.finish(std::io::stdout(), std::io::stderr())
    }

    /// Runs it in silence. An unsuccessful end is an answer, not an error.
    pub(crate) fn collect(self) -> Outcome<Finished> {
        self.finish(std::io::sink(), std::io::sink())
    }

    fn finish(mut self, out: impl Write + Send, err: impl Write + Send) -> Outcome<Finished> {
        let spawned = self.inner.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = spawned.map_err(|error| self.cannot_start(&error))?;
        let output = Mutex::new(String::new());
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        std::thread::scope(|scope| {
            scope.spawn(|| copy_lines(stdout, &output, out));
            scope.spawn(|| copy_lines(stderr, &output, err));
        });
        let success = child.wait()?.success();
        let output = output.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        Ok(Finished { success, output: without_colours(&output) })
    }

    /// Runs it with our own streams; an unsuccessful end is an error.
    pub(crate) fn run(mut self) -> Outcome {
        let status = self.inner.status().map_err(|error| self.cannot_start(&error))?;
        if status.success() {
            return Ok(());
        }
        Err(Failure::new(format!("{} ended with {status}", self.program)))
    }

    /// Runs it in silence and hands back its standard output; an unsuccessful end is an error.
    pub(crate) fn read(mut self) -> Outcome<String> {
        let output = self.inner.output().map_err(|error| self.cannot_start(&error))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let stderr = String::from_utf8_lossy(&output.stderr);
        Err(Failure::new(format!("{} ended with {}: {}", self.program, output.status, stderr.trim())))
    }

    /// Whether it can be started and ends well. Says nothing either way.
    pub(crate) fn succeeds(mut self) -> bool {
        let status = self.inner.stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    }

    fn cannot_start(&self, error: &std::io::Error) -> Failure {
        Failure::new(format!("{} cannot be started: {error}", self.program))
    }
}

fn copy_lines(source: Option<impl Read>, kept: &Mutex<String>, mut shown: impl Write) {
    let Some(source) = source else { return };
    let mut source = BufReader::new(source);
    let mut line = Vec::new();
    while source.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        // A closed terminal must not stop the program whose output is read here.
        let _ = shown.write_all(&line).and_then(|()| shown.flush());
        if let Ok(mut kept) = kept.lock() {
            kept.push_str(&String::from_utf8_lossy(&line));
        }
        line.clear();
    }
}

/// Removes the escape sequences that set colours (`ESC [ … m`).
fn without_colours(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("\u{1b}[") {
        plain.push_str(&rest[..start]);
        rest = &rest[start + 2..];
        match rest.find(|c: char| c.is_ascii_alphabetic()) {
            Some(end) => rest = &rest[end + 1..],
            None => return plain,
        }
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_removed() {
        assert_eq!(without_colours("\u{1b}[32;1mok\u{1b}[0m 3 \u{1b}[31"), "ok 3 ");
    }

    #[test]
    fn both_streams_are_kept() -> Outcome {
        let finished = Command::new("sh").args(["-c", "echo one; echo two >&2; exit 3"]).collect()?;
        assert!(!finished.success);
        assert!(finished.output.contains("one\n") && finished.output.contains("two\n"));
        Ok(())
    }

    #[test]
    fn a_missing_program_is_named() {
        let failure = Command::new("no-such-program").run().unwrap_err();
        assert!(failure.0.starts_with("no-such-program cannot be started"), "{}", failure.0);
    }
}
