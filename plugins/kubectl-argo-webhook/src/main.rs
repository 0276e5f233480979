//! Builds, signs and delivers a push event to Argo CD, and explains which Applications it touches.
//!
//! ```sh
//! git evt-push -a -m 'Release 1.4' | kubectl argo-webhook -f - --sign | kubectl argo-waitrev shop -f -
//! ```
//!
//! API calls: `list` of `services`, and where they are allowed `list` of `pods` and `get` of the ConfigMaps
//! `argocd-cmd-params-cm` and (for large bodies, and for `explain`) `argocd-cm`. Then, by the way that is taken:
//! `create` of `services/proxy`; `get` (and `create`) of `pods/portforward`; or none but HTTP to the cluster IP. `get` of
//! the Secrets `argocd-server-tls` and `argocd-secret` for the certificate, except through the proxy; of `argocd-secret`
//! and of what it refers to for the key, with `--sign` and no other source. `get` of `pods/log`, where it is allowed, for
//! the reason of a refusal. `explain`: `list` of `applications.argoproj.io`. `secret set`: `patch` of that Secret.
//!
//! Exit codes: [`kit::exit::TABLE`].

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
