//! The command's flags.

mod explain;
mod secret;
mod verify;

use std::path::PathBuf;

use clap::{ArgGroup, Args as Flags, Parser, Subcommand, ValueEnum};
use kit::{cluster::ClusterArgs, talk::TalkArgs};

pub use explain::Explain;
pub use secret::{SecretCommand, SecretSet, SecretShow};
pub use verify::Verify;

use crate::provider::Provider;

/// Build, sign and deliver a push event to Argo CD
///
/// Without a subcommand the event is sent. An event only tells Argo CD to read Git now; Git decides what is deployed.
#[derive(Debug, Parser)]
#[command(after_long_help = crate::manual::sections())]
#[command(version, args_conflicts_with_subcommands = true)]
pub struct Args {
    /// What to do instead of sending.
    #[command(subcommand)]
    pub command: Option<Command>,

    /// What to send, and how.
    #[command(flatten)]
    pub send: Send,
}

impl Args {
    /// The flags that say how to talk.
    pub fn talk(&self) -> &TalkArgs {
        match &self.command {
            None => &self.send.talk,
            Some(Command::Explain(explain)) => &explain.talk,
            Some(Command::Verify(verify)) => &verify.talk,
            Some(Command::Secret { command: SecretCommand::Set(set) }) => &set.talk,
            Some(Command::Secret { command: SecretCommand::Show(show) }) => &show.talk,
        }
    }
}

/// What to do instead of sending.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show which Applications an event touches, by the server's own rules, and which rule keeps the others out
    ///
    /// Nothing is sent. The Applications are read from the cluster, or from a file.
    Explain(Box<Explain>),

    /// Check a signature as the server does, and name the fault when it is wrong
    ///
    /// Nothing is sent, and with a key from a file or the environment the cluster is not asked for anything.
    Verify(Box<Verify>),

    /// Look at or set the key that events are signed with
    Secret {
        /// What to do with it.
        #[command(subcommand)]
        command: SecretCommand,
    },
}

/// Where the event comes from.
#[derive(Debug, Flags)]
#[command(next_help_heading = "Event")]
#[group(skip)]
pub struct EventArgs {
    /// Event record, as git evt-push prints it; - is stdin
    #[arg(short = 'f', long, value_name = "FILE", group = "origin")]
    pub from: Option<PathBuf>,

    /// Body of the event, kept byte for byte
    #[arg(long, value_name = "FILE", group = "origin")]
    pub body_file: Option<PathBuf>,

    /// Web address of the repository, for an event made by hand
    #[arg(long, value_name = "URL", group = "origin", requires = "hand")]
    pub repo_url: Option<String>,

    /// Full ref that was pushed: refs/heads/main, refs/tags/v1
    #[arg(long = "ref", value_name = "REF", requires = "repo_url", group = "hand")]
    pub reference: Option<String>,

    /// Commit that the ref points to after the push
    #[arg(long, value_name = "SHA", requires = "repo_url")]
    pub after: Option<String>,

    /// Commit that the ref pointed to before the push
    ///
    /// Never together with --added, --modified or --removed: when the files listed miss an Application's paths and
    /// both commits are known, the server plants the manifests of the commit before under the commit after. Only a list
    /// from Git itself is safe, as in the record that git evt-push prints.
    #[arg(long, value_name = "SHA", requires = "repo_url", conflicts_with = "files")]
    pub before: Option<String>,

    /// Default branch of the repository [default: the branch pushed]
    #[arg(long, value_name = "BRANCH", requires = "repo_url")]
    pub default_branch: Option<String>,

    /// File that was added; may be repeated; never together with --before
    #[arg(long, value_name = "PATH", requires = "repo_url", group = "files")]
    pub added: Vec<String>,

    /// File that was modified; may be repeated; never together with --before
    #[arg(long, value_name = "PATH", requires = "repo_url", group = "files")]
    pub modified: Vec<String>,

    /// File that was removed; may be repeated; never together with --before
    #[arg(long, value_name = "PATH", requires = "repo_url", group = "files")]
    pub removed: Vec<String>,

    /// Whose webhook to imitate; it need not be where the repository is
    #[arg(long, value_enum, value_name = "NAME", default_value_t = Provider::Github)]
    pub provider: Provider,
}

/// What happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// Somebody pushed
    #[default]
    Push,
    /// Nothing: the server is asked whether it would accept an event
    Ping,
}

/// How the event reaches the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Via {
    /// cluster-ip when it answers within a second, else service-proxy; port-forward for azuredevops
    #[default]
    Auto,
    /// Straight to the Service's cluster IP
    ClusterIp,
    /// Through the API server
    ServiceProxy,
    /// Through the API server to one pod
    PortForward,
}

/// What to send, and how.
#[derive(Debug, Flags)]
#[command(group = ArgGroup::new("origin"))]
pub struct Send {
    /// The event.
    #[command(flatten)]
    pub event: EventArgs,

    /// What happened
    #[arg(long = "event", value_enum, value_name = "KIND", default_value_t = Kind::Push, help_heading = "Event")]
    pub kind: Kind,

    /// Keep the exact bytes of the body in this file
    #[arg(long, value_name = "FILE", help_heading = "Event")]
    pub save_body: Option<PathBuf>,

    /// Sign the event, with the key in argocd-secret unless another is named
    #[arg(long, help_heading = "Key")]
    pub sign: bool,

    /// File that holds the key; one newline at its end is dropped (azuredevops: user:password)
    #[arg(long, value_name = "FILE", requires = "sign", help_heading = "Key")]
    pub secret_file: Option<PathBuf>,

    /// Environment variable that holds the key
    #[arg(long, value_name = "NAME", requires = "sign", conflicts_with = "secret_file", help_heading = "Key")]
    pub secret_env: Option<String>,

    /// How to reach argocd-server
    #[arg(long, value_enum, value_name = "WAY", default_value_t = Via::Auto, help_heading = "Delivery")]
    pub via: Via,

    /// Send to this address instead, such as an ingress; without a path, /api/webhook is meant
    #[arg(long, value_name = "URL", conflicts_with_all = ["via", "all_pods"], help_heading = "Delivery")]
    pub url: Option<String>,

    /// Send to each argocd-server pod by port-forward, and report each: finds a replica with an old key
    #[arg(long, conflicts_with = "via", help_heading = "Delivery")]
    pub all_pods: bool,

    /// Show the request, and the curl line that makes it; send nothing
    #[arg(long, help_heading = "Delivery")]
    pub dry_run: bool,

    /// Also trust the certificates in this PEM file
    #[arg(long, value_name = "FILE", help_heading = "Delivery")]
    pub ca_file: Option<PathBuf>,

    /// Do not verify the server's certificate
    #[arg(long, conflicts_with = "ca_file", help_heading = "Delivery")]
    pub insecure_skip_tls_verify: bool,

    /// Statuses that count as success, and nothing else does: 400, or 400,401 [default: 2xx]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(100..600), help_heading = "Delivery")]
    pub expect_status: Vec<u16>,

    /// How often to try again when the server is not there or its queue is full
    #[arg(long, value_name = "N", default_value_t = 4, help_heading = "Delivery")]
    pub retries: u32,

    /// The cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,

    /// How to talk.
    #[command(flatten)]
    pub talk: TalkArgs,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_flags_do_not_contradict_each_other() {
        Args::command().debug_assert();
    }

    #[test]
    fn file_names_given_by_hand_never_go_together_with_the_commit_before() {
        let hand = ["x", "--repo-url", "https://h/o/r", "--ref", "refs/heads/main", "--after", "abcdef1"];
        assert!(Args::try_parse_from(hand).is_ok());
        for files in ["--added", "--modified", "--removed"] {
            let with_files = [&hand[..], &[files, "a/b"]].concat();
            assert!(Args::try_parse_from(&with_files).is_ok(), "{files}");
            let with_both = [&with_files[..], &["--before", "abcdef0"]].concat();
            assert!(Args::try_parse_from(&with_both).is_err(), "{files}");
        }
    }
}
