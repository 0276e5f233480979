//! Errors that a person reads: what failed, on which object, why, and what to try.

use serde_json::{Value, json};

use crate::exit::Exit;

/// An error with the exit code that it leads to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// What the caller should do next.
    pub exit: Exit,
    /// A stable word for programs: `not-found`, `forbidden`, `bad-record`.
    pub code: &'static str,
    /// Lower case, no full stop: what failed, on which object, the cause after a colon.
    pub message: String,
    /// What to try.
    pub hint: Option<String>,
}

impl Error {
    /// An error that ends with `exit`.
    pub fn new(exit: Exit, code: &'static str, message: impl Into<String>) -> Self {
        Error { exit, code, message: message.into(), hint: None }
    }

    /// The call has to be changed: exit code 2.
    pub fn usage(code: &'static str, message: impl Into<String>) -> Self {
        Error::new(Exit::Usage, code, message)
    }

    /// A definite no: exit code 1.
    pub fn no(code: &'static str, message: impl Into<String>) -> Self {
        Error::new(Exit::No, code, message)
    }

    /// The answer could not be found out: exit code 3.
    pub fn unknown(code: &'static str, message: impl Into<String>) -> Self {
        Error::new(Exit::Unknown, code, message)
    }

    /// Adds what to try.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The value of `error` in a command's object.
    pub fn to_json(&self) -> Value {
        json!({"code": self.code, "message": self.message, "hint": self.hint})
    }
}

/// The innermost causes of an error, joined by colons: libraries often say what happened only there.
pub fn causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(cause) = next {
        let text = cause.to_string();
        if !parts.iter().any(|part| part.contains(&text)) {
            parts.push(text);
        }
        next = cause.source();
    }
    parts.join(": ")
}
