//! The user's own git, run as a process: so hooks, signing, credentials and configuration hold.

use std::{
    collections::VecDeque,
    ffi::{OsStr, OsString},
    io::{self, BufRead, BufReader, IsTerminal},
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc},
    thread,
    time::{Duration, Instant},
};

use duct::{Expression, Handle, unix::HandleExt};
use kit::{command::interrupted, error::Error, exit::Exit, talk::Talk};

/// How many lines of git's own words are kept for finding out why it failed.
const KEPT_LINES: usize = 500;

/// How long git may take to leave once it was asked to.
const LEAVING: Duration = Duration::from_secs(2);

const SIGTERM: i32 = 15;

/// What a git command left behind.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The exit status; `None` when a signal ended it.
    pub status: Option<i32>,
    /// Everything on stdout.
    pub stdout: Vec<u8>,
    /// The last lines on stderr; empty where they went to the user directly.
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

/// Runs git. One command at a time; [`Stop`] ends it.
#[derive(Clone, Debug)]
pub struct Git {
    program: PathBuf,
    talk: Talk,
    stop: Stop,
    /// When the time for talking to the remote is over.
    deadline: Option<Instant>,
}

/// Ends the git command that runs and prevents the next.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<Mutex<Running>>);

#[derive(Debug, Default)]
struct Running {
    stopped: bool,
    handle: Option<Arc<Handle>>,
}

impl Stop {
    /// Asks git to leave, as SIGTERM does: git removes its lock files then.
    pub fn stop(&self) {
        let mut running = self.lock();
        running.stopped = true;
        if let Some(handle) = &running.handle {
            // It may have ended by itself in this moment.
            let _ = handle.send_signal(SIGTERM);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Running> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Git {
    /// Finds git on the PATH.
    ///
    /// # Errors
    /// When there is none; exit code 2.
    pub fn find(talk: Talk, stop: Stop, timeout: Duration) -> Result<Self, Error> {
        let program = which::which("git").map_err(|_| {
            Error::usage("no-git", "git is not on the PATH").hint("install git, or add its folder to PATH")
        })?;
        let deadline = (!timeout.is_zero()).then(|| Instant::now() + timeout);
        Ok(Git { program, talk, stop, deadline })
    }

    /// The voice on stderr.
    pub fn talk(&self) -> &Talk {
        &self.talk
    }

    /// The time that is left for talking to the remote.
    pub fn remaining(&self) -> Duration {
        self.deadline.map_or(Duration::MAX, |deadline| deadline.saturating_duration_since(Instant::now()))
    }

    /// Asks git something about the repository. Git's words are kept for an error.
    ///
    /// # Errors
    /// When git cannot be started, or the command was interrupted. A git that failed is an [`Answer`].
    pub fn ask<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Result<Answer, Error> {
        let command = self.command(args).env("GIT_OPTIONAL_LOCKS", "0").stdin_null();
        self.run(&quiet(&command).stderr_capture(), None)
    }

    /// As [`Git::ask`], with something on git's stdin.
    ///
    /// # Errors
    /// As [`Git::ask`].
    pub fn feed<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>, stdin: Vec<u8>) -> Result<Answer, Error> {
        self.run(&quiet(&self.command(args)).stdin_bytes(stdin).stderr_capture(), None)
    }

    /// Lets git do something that may need the user: an editor, a passphrase. What it and its hooks say goes to stderr.
    ///
    /// # Errors
    /// As [`Git::ask`].
    pub fn act<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Result<Answer, Error> {
        self.run(&self.command(args).stdout_to_stderr(), None)
    }

    /// Talks to a remote, within the time that is left. Git's words are shown as they come, and kept.
    ///
    /// # Errors
    /// As [`Git::ask`]; exit code 124 when the time is over.
    pub fn network<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Result<Answer, Error> {
        let (reader, writer) = io::pipe().map_err(|error| self.cannot_run(&error))?;
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(reader).split(b'\n').map_while(Result::ok) {
                if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                    break;
                }
            }
        });
        let command = quiet(&self.command(args)).stderr_file(writer);
        self.run(&command, Some(&lines))
    }

    /// As [`Git::network`], but says nothing: for questions whose failure is no matter.
    ///
    /// # Errors
    /// As [`Git::network`].
    pub fn network_ask<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Result<Answer, Error> {
        let (_sender, lines) = mpsc::channel();
        self.run(&quiet(&self.command(args)).stdin_null().stderr_null(), Some(&lines))
    }

    /// Puts something back, also after an interrupt.
    ///
    /// # Errors
    /// When git cannot be started.
    pub fn undo<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Result<Answer, Error> {
        let output = quiet(&self.command(args)).stdin_null().stderr_capture().run();
        output.map(answer).map_err(|error| self.cannot_run(&error))
    }

    /// Waits, unless the command is interrupted or its time is over first.
    ///
    /// # Errors
    /// When it was interrupted.
    pub fn pause(&self, duration: Duration) -> Result<(), Error> {
        let end = Instant::now() + duration.min(self.remaining());
        while Instant::now() < end {
            if self.stop.lock().stopped {
                return Err(interrupted(Exit::Interrupted));
            }
            thread::sleep(Duration::from_millis(20).min(duration));
        }
        Ok(())
    }

    fn command<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Expression {
        let args: Vec<OsString> = args.into_iter().map(|arg| arg.as_ref().to_owned()).collect();
        let words: Vec<_> = args.iter().map(|arg| crate::url::without_credentials(&arg.to_string_lossy())).collect();
        self.talk.detail(format!("git {}", words.join(" ")));
        duct::cmd(&self.program, args).unchecked()
    }

    /// Runs a command to its end. With `lines` it talks to a remote: it has a time limit, and its stderr comes through
    /// `lines`. They are not read to their end: a program that git leaves behind, such as an ssh master connection, may
    /// hold stderr open for hours.
    fn run(&self, command: &Expression, lines: Option<&mpsc::Receiver<String>>) -> Result<Answer, Error> {
        let handle = {
            let mut running = self.stop.lock();
            if running.stopped {
                return Err(interrupted(Exit::Interrupted));
            }
            let handle = Arc::new(command.start().map_err(|error| self.cannot_run(&error))?);
            running.handle = Some(Arc::clone(&handle));
            handle
        };
        let result = match lines {
            None => handle.wait().cloned().map(answer),
            Some(lines) => self.follow(&handle, lines),
        };
        let mut running = self.stop.lock();
        running.handle = None;
        let answer = result.map_err(|error| self.cannot_run(&error))?;
        if running.stopped && answer.status.is_none() {
            return Err(interrupted(Exit::Interrupted));
        }
        if lines.is_some() && !answer.ok() && self.remaining().is_zero() {
            return Err(Error::new(Exit::Deadline, "timeout", "the remote did not answer in time")
                .hint("--timeout sets the limit; running the same command again finishes the job"));
        }
        Ok(answer)
    }

    fn follow(&self, handle: &Handle, lines: &mpsc::Receiver<String>) -> io::Result<Answer> {
        let mut kept = VecDeque::new();
        let mut hear = |line: String| {
            self.talk.say(line.rsplit('\r').find(|part| !part.trim().is_empty()).unwrap_or_default());
            if kept.len() == KEPT_LINES {
                kept.pop_front();
            }
            kept.push_back(line);
        };
        let mut leaving: Option<Instant> = None;
        let output = loop {
            while let Ok(line) = lines.try_recv() {
                hear(line);
            }
            if let Some(output) = handle.wait_timeout(Duration::from_millis(20))? {
                break output.clone();
            }
            match leaving {
                None if self.remaining().is_zero() => {
                    handle.send_signal(SIGTERM)?;
                    leaving = Some(Instant::now());
                }
                Some(since) if since.elapsed() > LEAVING => handle.kill()?,
                _ => {}
            }
        };
        while let Ok(line) = lines.recv_timeout(Duration::from_millis(50)) {
            hear(line);
        }
        let stderr = Vec::from(kept).join("\n");
        Ok(Answer { status: output.status.code(), stdout: output.stdout, stderr })
    }

    fn cannot_run(&self, error: &io::Error) -> Error {
        Error::unknown("cannot-run-git", format!("cannot run {}: {error}", self.program.display()))
    }
}

fn answer(output: std::process::Output) -> Answer {
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    Answer { status: output.status.code(), stdout: output.stdout, stderr }
}

/// A command whose stdout is for us, whose messages are in English, and which asks nobody where nobody is.
fn quiet(command: &Expression) -> Expression {
    let command = command.stdout_capture().env("LC_ALL", "C");
    let nobody = !io::stdin().is_terminal() && !io::stderr().is_terminal();
    if nobody && std::env::var_os("GIT_TERMINAL_PROMPT").is_none() {
        command.env("GIT_TERMINAL_PROMPT", "0")
    } else {
        command
    }
}
