//! The one thing that goes to stdout: JSON.

use std::io::{self, IsTerminal, Write};

use serde_json::Value;

/// Prints an object: indented when stdout is a terminal, one line otherwise.
///
/// # Errors
/// When stdout cannot be written. A closed pipe is not an error: the reader has seen enough.
pub fn print(value: &Value) -> io::Result<()> {
    if io::stdout().is_terminal() { write(format!("{value:#}")) } else { line(value) }
}

/// Prints an object as one line of JSON Lines.
///
/// # Errors
/// As [`print`].
pub fn line(value: &Value) -> io::Result<()> {
    write(value.to_string())
}

fn write(mut text: String) -> io::Result<()> {
    text.push('\n');
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}
