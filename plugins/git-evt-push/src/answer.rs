//! What a git command leaves behind.

use std::process::Output;

/// What a git command left behind.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The exit status; `None` when a signal ended it.
    pub status: Option<i32>,
    /// Everything on stdout.
    pub stdout: Vec<u8>,
    /// Everything on stderr; empty where they went to the user directly.
    pub stderr: String,
}

impl Answer {
    /// Whether git ended with 0.
    pub fn ok(&self) -> bool {
        self.status == Some(0)
    }

    /// Stdout as text without the line break at its end.
    pub fn line(&self) -> String {
        String::from_utf8_lossy(&self.stdout).trim_end_matches('\n').to_owned()
    }

    /// Git's reason: its last `fatal:` or `error:` line, else its last line.
    pub fn reason(&self) -> String {
        let lines = || self.stderr.lines().map(str::trim).filter(|line| !line.is_empty());
        let told = lines().rev().find_map(|line| line.strip_prefix("fatal: ").or(line.strip_prefix("error: ")));
        match told.or(lines().next_back()) {
            Some(line) => line.to_owned(),
            None => self.status.map_or("it was ended by a signal".into(), |status| format!("it ended with {status}")),
        }
    }
}

impl From<Output> for Answer {
    fn from(output: Output) -> Self {
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        Answer { status: output.status.code(), stdout: output.stdout, stderr }
    }
}
