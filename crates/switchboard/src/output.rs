//! The only way to the standard streams.
//!
//! Results go to stdout. What accompanies them goes to stderr, so that stdout can be piped. When whoever reads stdout has
//! left, the program ends without a word.

use std::fmt::{self, Display, Write as _};
use std::io::{self, Write};

use crate::Failure;

/// Writes a line to stdout.
pub(crate) fn line(text: impl Display) {
    write_or_leave(&mut io::stdout().lock(), &format!("{text}\n"));
}

/// Writes a text that ends its own lines to stdout.
pub(crate) fn text(text: impl Display) {
    write_or_leave(&mut io::stdout().lock(), &text.to_string());
}

/// Writes a value as JSON to stdout, for people to read.
pub(crate) fn json(value: &impl serde::Serialize) {
    // Values of this program have text keys and finite numbers: writing them cannot fail.
    line(serde_json::to_string_pretty(value).unwrap_or_default());
}

/// Writes a line to stderr.
pub(crate) fn note(text: impl Display) {
    // There is nowhere left to complain to.
    let _ = io::stderr().lock().write_all(format!("{text}\n").as_bytes());
}

/// Says why a command failed.
pub(crate) fn failure(failure: &Failure) {
    note(format_args!("{} {failure}", Style::stderr().red("error:")));
    if let Some(hint) = failure.what_to_do() {
        note(format_args!("{} {hint}", Style::stderr().bold("hint:")));
    }
}

fn write_or_leave(stdout: &mut impl Write, text: &str) {
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    match written {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => {
            note(format_args!("error: cannot write to stdout: {error}"));
            std::process::exit(1);
        }
    }
}

/// Colours, if somebody sees them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    coloured: bool,
}

impl Style {
    pub(crate) fn stdout() -> Self {
        Self::on(&io::stdout())
    }

    pub(crate) fn stderr() -> Self {
        Self::on(&io::stderr())
    }

    fn on(stream: &impl io::IsTerminal) -> Self {
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Self { coloured: wanted && stream.is_terminal() }
    }

    pub(crate) fn is_coloured(self) -> bool {
        self.coloured
    }

    pub(crate) fn bold(self, text: impl Display) -> String {
        self.paint("1", text)
    }

    pub(crate) fn dim(self, text: impl Display) -> String {
        self.paint("2", text)
    }

    pub(crate) fn red(self, text: impl Display) -> String {
        self.paint("1;31", text)
    }

    pub(crate) fn green(self, text: impl Display) -> String {
        self.paint("32", text)
    }

    pub(crate) fn yellow(self, text: impl Display) -> String {
        self.paint("33", text)
    }

    pub(crate) fn cyan(self, text: impl Display) -> String {
        self.paint("36", text)
    }

    fn paint(self, code: &str, text: impl Display) -> String {
        if self.coloured { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
    }
}

/// Rows whose columns stand below each other.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.into());
    }
}

impl Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns)
            .map(|column| {
                self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
            })
            .map(Option::unwrap_or_default)
            .collect();
        for row in &self.rows {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                write!(line, "{cell:<width$}  ")?;
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}
