//! From `main` to the exit code.

use std::{ffi::OsString, path::Path, process::ExitCode, time::Duration};

use clap::{CommandFactory, FromArgMatches};
use serde_json::{Map, Value};
use tokio::sync::watch;

use crate::{
    complete,
    error::Error,
    exit::{self, Exit},
    output,
    talk::{Talk, TalkArgs},
};

/// How long a job may take to print what it learned after the first signal.
const GRACE: Duration = Duration::from_secs(2);

/// What a job that has begun leaves behind, whatever its outcome.
#[derive(Clone, Debug)]
pub struct Report {
    /// The object for stdout; it holds `outcome`. Empty when the job has printed its lines itself.
    pub object: Map<String, Value>,
    /// How the command ends.
    pub exit: Exit,
    /// What went wrong; put under `error` in the object and said on stderr.
    pub error: Option<Error>,
    /// Whether the object is the last line of a stream, and so never indented.
    pub stream: bool,
}

impl Report {
    /// A job that ended well.
    pub fn done(object: Map<String, Value>) -> Self {
        Report { object, exit: Exit::Done, error: None, stream: false }
    }

    /// A job that ended with an error.
    pub fn failed(object: Map<String, Value>, error: Error) -> Self {
        Report { object, exit: error.exit, error: Some(error), stream: false }
    }
}

/// Tells a job that SIGINT or SIGTERM arrived.
#[derive(Clone, Debug)]
pub struct Interrupt(watch::Receiver<Option<Exit>>);

impl Interrupt {
    /// Waits for a signal; [`Exit::Interrupted`] or [`Exit::Terminated`].
    pub async fn wait(&self) -> Exit {
        let mut signal = self.0.clone();
        match signal.wait_for(Option::is_some).await {
            Ok(exit) => exit.unwrap_or(Exit::Interrupted),
            Err(_) => std::future::pending().await,
        }
    }
}

/// What a job is given beside its arguments.
#[derive(Clone, Debug)]
pub struct Context {
    /// The voice on stderr.
    pub talk: Talk,
    /// The signals.
    pub interrupt: Interrupt,
}

/// Runs a command: parses the arguments, runs the job, prints its object and its error, returns the exit code.
///
/// An `Err` from the job means that it never began: nothing goes to stdout then.
pub fn run<A>(
    talk: impl FnOnce(&A) -> &TalkArgs,
    job: impl AsyncFnOnce(A, Context) -> Result<Report, Error>,
) -> ExitCode
where
    A: CommandFactory + FromArgMatches,
{
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let name = arguments.first().map(|first| typed_as(first)).unwrap_or_default();
    let command = definition::<A>().bin_name(name);
    if arguments.get(1).is_some_and(|word| word == complete::WORD) {
        complete::answer(command, &arguments[2..]);
        return Exit::Done.into();
    }
    let args = match command.try_get_matches_from(&arguments).and_then(|matches| A::from_arg_matches(&matches)) {
        Ok(args) => args,
        Err(error) => {
            // Help and version go to stdout with code 0; clap's own code for a wrong call is 2, as ours.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(Exit::Usage as u8));
        }
    };
    let voice = Talk::new(talk(&args));
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            voice.error(&Error::unknown("runtime", format!("cannot start: {error}")));
            return Exit::Unknown.into();
        }
    };
    let result = runtime.block_on(until_interrupted(&voice, |context| job(args, context)));
    // A read of stdin may still be blocked in its thread; nothing is lost by leaving it there.
    runtime.shutdown_background();
    end(&voice, result)
}

/// The definition of a command with the exit codes at the end of its help. What the command itself puts after its long
/// help (sections such as `Examples:`) stands before them.
pub fn definition<A: CommandFactory>() -> clap::Command {
    let command = A::command();
    let long = command.get_after_long_help().map(|text| format!("{text}\n\n{}", exit::TABLE));
    command.after_help(exit::TABLE).after_long_help(long.unwrap_or_else(|| exit::TABLE.into()))
}

async fn until_interrupted(
    talk: &Talk,
    job: impl AsyncFnOnce(Context) -> Result<Report, Error>,
) -> Result<Report, Error> {
    let (sender, receiver) = watch::channel(None);
    let context = Context { talk: talk.clone(), interrupt: Interrupt(receiver) };
    let job = job(context);
    let signals = async {
        let exit = signal().await;
        sender.send_replace(Some(exit));
        // A second signal, or a job that does not listen: leave without its object.
        tokio::select! {
            _ = signal() => {}
            () = tokio::time::sleep(GRACE) => {}
        }
        exit
    };
    tokio::select! {
        biased;
        result = job => result,
        exit = signals => Err(interrupted(exit)),
    }
}

/// The error of a job that was interrupted.
pub fn interrupted(exit: Exit) -> Error {
    Error::new(exit, "interrupted", "interrupted").hint("running the same command again finishes the job")
}

async fn signal() -> Exit {
    use tokio::signal::unix::{SignalKind, signal};
    let terminated = async {
        match signal(SignalKind::terminate()) {
            Ok(mut signals) => signals.recv().await,
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => Exit::Interrupted,
        _ = terminated => Exit::Terminated,
    }
}

fn end(talk: &Talk, result: Result<Report, Error>) -> ExitCode {
    talk.clear();
    let (object, stream, exit, error) = match result {
        Ok(Report { mut object, exit, error, stream }) => {
            if let Some(error) = &error {
                object.insert("error".into(), error.to_json());
            }
            (Some(object).filter(|object| !object.is_empty()), stream, exit, error)
        }
        Err(error) => (None, false, error.exit, Some(error)),
    };
    if let Some(error) = &error {
        talk.error(error);
    }
    if let Some(object) = object {
        let object = Value::Object(object);
        if let Err(error) = if stream { output::line(&object) } else { output::print(&object) } {
            talk.error(&Error::unknown("cannot-write", format!("cannot write to stdout: {error}")));
            return Exit::Unknown.into();
        }
    }
    exit.into()
}

/// How the user typed the command, from the path that it was started with. kubectl runs its plugins by their path and
/// turns the dashes that the user typed into underscores first.
fn typed_as(program: &std::ffi::OsStr) -> String {
    let path = Path::new(program);
    let name = path.file_name().unwrap_or(program).to_string_lossy().into_owned();
    if let Some(subcommand) = name.strip_prefix("git-") {
        return format!("git {subcommand}");
    }
    match name.strip_prefix("kubectl-") {
        Some(plugin) if path.components().count() > 1 => {
            format!("kubectl {}", plugin.replace('-', " ").replace('_', "-"))
        }
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usage_line_shows_what_the_user_typed() {
        for (program, typed) in [
            ("/usr/local/bin/kubectl-argo_webhook", "kubectl argo-webhook"),
            ("/usr/local/bin/kubectl-argo-webhook", "kubectl argo webhook"),
            ("kubectl-argo-webhook", "kubectl-argo-webhook"),
            ("/home/me/renamed", "renamed"),
            ("git-evt-push", "git evt-push"),
        ] {
            assert_eq!(typed_as(std::ffi::OsStr::new(program)), typed);
        }
    }
}
