//! Builds, signs and delivers a push event to Argo CD, and explains which Applications it touches.

mod answer;
mod args;
mod delivery;
mod diagnosis;
mod dry_run;
mod event;
mod explain;
mod go_url;
mod key;
mod letter;
mod manual;
mod payload;
mod probe;
mod provider;
mod random;
mod reprint;
mod route;
mod secret;
mod send;
mod server;
mod signature;
mod trust;
mod verify;
mod way;

use std::process::ExitCode;

use args::{Args, Command, SecretCommand};

fn main() -> ExitCode {
    kit::command::run(Args::talk, async |args: Args, context| match args.command {
        None => send::run(args.send, context).await,
        Some(Command::Verify(verify)) => verify::run(*verify, context).await,
        Some(Command::Explain(explain)) => explain::run(*explain, context).await,
        Some(Command::Secret { command: SecretCommand::Set(set) }) => secret::set(*set, context).await,
        Some(Command::Secret { command: SecretCommand::Show(show) }) => secret::show(*show, context).await,
    })
}
