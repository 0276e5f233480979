//! The user's own git, run as a process: so hooks, signing, credentials and configuration hold.

use std::{
    ffi::{OsStr, OsString},
    io::{self, IsTerminal},
    path::PathBuf,
    sync::{Arc, OnceLock},
    thread,
    time::{Duration, Instant},
};

use duct::{Expression, Handle, unix::HandleExt};
use kit::{command::interrupted, error::Error, exit::Exit, talk::Talk};

use crate::{
    answer::Answer,
    pipe::{Pipe, Words},
    stop::{SIGTERM, Stop},
};

/// How long git may take to leave once it was asked to, and the end of its output to come once it has.
const LEAVING: Duration = Duration::from_secs(2);

/// How long nothing may come from a program that git has left behind.
const SILENCE: Duration = Duration::from_millis(200);

/// When a wait is worth a word.
const SLOW: Duration = Duration::from_secs(2);

/// Runs git. One command at a time; [`Stop`] ends it.
#[derive(Debug)]
pub struct Git {
    program: PathBuf,
    talk: Talk,
    stop: Stop,
    timeout: Duration,
    /// When the remote was first talked to: the time before that is the user's own.
    begun: OnceLock<Instant>,
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
        Ok(Git { program, talk, stop, timeout, begun: OnceLock::new() })
    }

    /// The voice on stderr.
    pub fn talk(&self) -> &Talk {
        &self.talk
    }

    /// The time that is left for talking to the remote.
    pub fn remaining(&self) -> Duration {
        match self.begun.get() {
            Some(begun) if !self.timeout.is_zero() => self.timeout.saturating_sub(begun.elapsed()),
            _ => Duration::MAX,
        }
    }

    /// Asks git something about the repository. Git's words are kept for an error.
    ///
    /// # Errors
    /// When git cannot be started, or the command was interrupted. A git that failed is an [`Answer`].
    pub fn ask<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Result<Answer, Error> {
        let command = self.command(args).env("GIT_OPTIONAL_LOCKS", "0").stdin_null();
        self.run(&captured(&command))
    }

    /// As [`Git::ask`], with something on git's stdin.
    ///
    /// # Errors
    /// As [`Git::ask`].
    pub fn feed<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>, stdin: Vec<u8>) -> Result<Answer, Error> {
        self.run(&captured(&self.command(args)).stdin_bytes(stdin))
    }

    /// Lets git do something that may need the user: an editor, a passphrase. What it and its hooks say goes to stderr.
    ///
    /// # Errors
    /// As [`Git::ask`].
    pub fn act<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Result<Answer, Error> {
        self.run(&self.command(args).stdout_to_stderr())
    }

    /// Talks to a remote, within the time that is left. Git's words are shown as they come, and kept.
    ///
    /// # Errors
    /// As [`Git::ask`]; exit code 124 when the time is over.
    pub fn network<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Result<Answer, Error> {
        self.follow(&self.command(args), None)
    }

    /// As [`Git::network`], but says nothing and takes no longer than `limit`: for questions whose failure is no matter.
    ///
    /// # Errors
    /// As [`Git::network`].
    pub fn network_ask<S: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = S>,
        limit: Duration,
    ) -> Result<Answer, Error> {
        self.follow(&self.command(args).stdin_null(), Some(limit))
    }

    /// Puts something back, also after an interrupt.
    ///
    /// # Errors
    /// When git cannot be started.
    pub fn undo<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Result<Answer, Error> {
        let output = captured(&self.command(args)).stdin_null().run();
        output.map(Answer::from).map_err(|error| self.cannot_run(&error))
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

    /// Runs a command to its end.
    fn run(&self, command: &Expression) -> Result<Answer, Error> {
        let handle = self.start(command)?;
        let result = handle.wait().cloned().map(Answer::from);
        self.end(result)
    }

    /// Runs a command that talks to a remote to its end, or to the end of the time.
    fn follow(&self, command: &Expression, silent_limit: Option<Duration>) -> Result<Answer, Error> {
        let begun = Instant::now();
        self.begun.get_or_init(|| begun);
        let left = || silent_limit.unwrap_or(Duration::MAX).saturating_sub(begun.elapsed()).min(self.remaining());
        let pipe = || Pipe::new().map_err(|error| self.cannot_run(&error));
        let ((stdout, out), (stderr, err)) = (pipe()?, pipe()?);
        // The command holds the writing ends, and has to be gone for the reading ends to end.
        let handle = self.start(&quiet(command).stdout_file(out).stderr_file(err))?;
        let mut words = Words::default();
        let mut hear = |bytes: Vec<u8>| {
            words.add(&bytes, |line| {
                if silent_limit.is_none() {
                    self.talk.say(line);
                }
            });
        };
        let mut leaving: Option<Instant> = None;
        let ended = loop {
            hear(stderr.ready());
            match handle.wait_timeout(Duration::from_millis(10)) {
                Ok(None) => {}
                Ok(Some(output)) => break Ok(output.status),
                Err(error) => break Err(error),
            }
            // Most pushes are over before there is anything to say.
            if silent_limit.is_none() && begun.elapsed() > SLOW {
                let limit =
                    if self.timeout.is_zero() { String::new() } else { format!(", {} s left", left().as_secs()) };
                self.talk.status("waiting for the remote", &format!("{} s{limit}", begun.elapsed().as_secs()));
            }
            match leaving {
                None if left().is_zero() => {
                    let _ = handle.send_signal(SIGTERM);
                    leaving = Some(Instant::now());
                }
                Some(since) if since.elapsed() > LEAVING => {
                    let _ = handle.kill();
                }
                _ => {}
            }
        };
        // What git itself has written is in the pipe already; nobody waits for the rest of one that was ended.
        let by_itself = ended.as_ref().is_ok_and(|status| status.code().is_some());
        let stdout = stdout.rest(if by_itself { LEAVING } else { SILENCE });
        hear(stderr.rest(SILENCE));
        let stderr = words.text();
        let answer = self.end(ended.map(|status| Answer { status: status.code(), stdout, stderr }))?;
        self.talk.clear();
        if !answer.ok() && left().is_zero() {
            return Err(Error::new(Exit::Deadline, "timeout", "the remote did not answer in time")
                .hint("--timeout sets the limit; running the same command again finishes the job"));
        }
        Ok(answer)
    }

    fn start(&self, command: &Expression) -> Result<Arc<Handle>, Error> {
        let mut running = self.stop.lock();
        if running.stopped {
            return Err(interrupted(Exit::Interrupted));
        }
        let handle = Arc::new(command.start().map_err(|error| self.cannot_run(&error))?);
        running.handle = Some(Arc::clone(&handle));
        Ok(handle)
    }

    /// The answer of a command that has ended. One that failed after an interrupt was interrupted.
    fn end(&self, result: io::Result<Answer>) -> Result<Answer, Error> {
        let mut running = self.stop.lock();
        running.handle = None;
        let answer = result.map_err(|error| self.cannot_run(&error))?;
        if running.stopped && !answer.ok() { Err(interrupted(Exit::Interrupted)) } else { Ok(answer) }
    }

    fn cannot_run(&self, error: &io::Error) -> Error {
        Error::unknown("cannot-run-git", format!("cannot run {}: {error}", self.program.display()))
    }
}

fn captured(command: &Expression) -> Expression {
    quiet(command).stdout_capture().stderr_capture()
}

/// A command whose messages are in English, and which asks nobody where nobody is.
fn quiet(command: &Expression) -> Expression {
    let command = command.env("LC_ALL", "C");
    let nobody = !io::stdin().is_terminal() && !io::stderr().is_terminal();
    if nobody && std::env::var_os("GIT_TERMINAL_PROMPT").is_none() {
        command.env("GIT_TERMINAL_PROMPT", "0")
    } else {
        command
    }
}
