//! Everything that is said to the person on stderr.

use std::{
    io::{self, IsTerminal, Write},
    sync::{Arc, Mutex, MutexGuard},
};

use clap::{Args, ValueEnum};

use crate::error::Error;

/// When to colour; `auto` looks at the terminal, `NO_COLOR` and `TERM`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// Where stderr is a terminal that shows colours
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// The flags of [`Talk`].
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Messages")]
pub struct TalkArgs {
    /// Say nothing but errors
    #[arg(short, long, conflicts_with = "verbose")]
    pub quiet: bool,

    /// Also show the requests made
    #[arg(short, long)]
    pub verbose: bool,

    /// Colour the messages
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Color::Auto)]
    pub color: Color,
}

/// What the environment says about the messages, for `--help` and the man pages.
pub const ENVIRONMENT: &str = "  NO_COLOR    when set, no colours
  TERM        `dumb`: no colours, and no line that is drawn over";

/// A voice on stderr; its clones share the status line.
#[derive(Clone, Debug)]
pub struct Talk {
    quiet: bool,
    verbose: bool,
    /// Whether a status line can be drawn over.
    terminal: bool,
    status: Arc<Mutex<Status>>,
}

#[derive(Debug, Default)]
struct Status {
    /// The last status line, so that only changes are printed where it cannot be drawn over.
    what: String,
    frame: usize,
}

const FRAMES: [char; 4] = ['-', '\\', '|', '/'];

impl Talk {
    /// The voice that the flags ask for.
    pub fn new(args: &TalkArgs) -> Self {
        match args.color {
            Color::Auto => anstream::ColorChoice::Auto,
            Color::Always => anstream::ColorChoice::Always,
            Color::Never => anstream::ColorChoice::Never,
        }
        .write_global();
        Talk {
            quiet: args.quiet,
            verbose: args.verbose,
            terminal: io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb"),
            status: Arc::default(),
        }
    }

    /// Says something worth knowing.
    pub fn say(&self, text: impl AsRef<str>) {
        if !self.quiet {
            self.line(text.as_ref());
        }
    }

    /// Warns of something that the user should look at.
    pub fn warn(&self, text: impl AsRef<str>) {
        if !self.quiet {
            self.line(&format!("\x1b[33mwarning:\x1b[0m {}", text.as_ref()));
        }
    }

    /// Says a detail that only `-v` asks for.
    pub fn detail(&self, text: impl AsRef<str>) {
        if self.verbose {
            self.line(&format!("\x1b[2m{}\x1b[0m", text.as_ref()));
        }
    }

    /// Says what is being waited for: `what` decides whether something changed, `time` (elapsed, remaining) moves on.
    /// On a terminal this is one line, drawn over; elsewhere a line when `what` changes.
    pub fn status(&self, what: &str, time: &str) {
        if self.quiet {
            return;
        }
        let time = if time.is_empty() { String::new() } else { format!(" ({time})") };
        let mut status = self.drawn();
        if self.terminal {
            status.frame = (status.frame + 1) % FRAMES.len();
            self.write(&format!("\r{} {what}{time}\x1b[K", FRAMES[status.frame]));
        } else if status.what != what {
            self.write(&format!("{what}{time}\n"));
        }
        what.clone_into(&mut status.what);
    }

    /// Says an error and its hint; `-q` does not silence them.
    pub fn error(&self, error: &Error) {
        self.line(&format!("\x1b[1;31merror:\x1b[0m {}", error.message));
        if let Some(hint) = &error.hint {
            self.line(&format!("\x1b[1;36mhint:\x1b[0m {hint}"));
        }
    }

    /// Removes the status line from the terminal.
    pub fn clear(&self) {
        if self.terminal && !std::mem::take(&mut self.drawn().what).is_empty() {
            self.write("\r\x1b[K");
        }
    }

    /// The line of a terminal may hold the status of the next command in a pipeline, so it is cleared in any case.
    fn line(&self, text: &str) {
        if self.terminal {
            self.write("\r\x1b[K");
        }
        self.write(&format!("{text}\n"));
    }

    fn drawn(&self) -> MutexGuard<'_, Status> {
        self.status.lock().expect("no thread panics while it holds the status line")
    }

    /// There is nowhere to complain to when stderr is closed.
    fn write(&self, text: &str) {
        if self.terminal && text.starts_with('\r') {
            let _ = io::stderr().lock().write_all(text.as_bytes());
        } else {
            let _ = anstream::stderr().lock().write_all(text.as_bytes());
        }
    }
}
