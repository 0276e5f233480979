//! The flags.

use std::{path::PathBuf, time::Duration};

use clap::{ArgGroup, Parser};
use kit::{duration, talk::TalkArgs};

use crate::edit::Assignment;

/// Commit, push, and describe the push as JSON
///
/// With --set the file is changed, and committed with what is staged; without it what is staged is committed, and what
/// is modified with -a. Then the branch is pushed, with commits of earlier runs that the remote has not got. The object
/// on stdout is the event record that `kubectl argo-webhook -f` and `kubectl argo-waitrev -f` read.
///
/// Configuration: evt.repoUrl is the default of --repo-url, evt.remote of --remote.
#[derive(Clone, Debug, Parser)]
#[command(after_long_help = crate::manual::sections())]
#[command(version, max_term_width = 100)]
#[command(group = ArgGroup::new("change").args(["set", "message", "all", "allow_empty"]).multiple(true))]
pub struct Args {
    /// File that --set changes: YAML, JSON or TOML
    #[arg(value_name = "FILE", requires = "set")]
    pub file: Option<PathBuf>,

    /// Value to set in FILE: data.rev=r2, 'data."a.b"=x', images[0].tag=v1; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = Assignment::parse, requires = "file")]
    pub set: Vec<Assignment>,

    /// YAML document of FILE that --set changes, counted from 1
    #[arg(long, value_name = "N", requires = "set")]
    pub doc: Option<usize>,

    /// Message of the commit; each further one is a paragraph
    #[arg(short, long, value_name = "MESSAGE")]
    pub message: Vec<String>,

    /// Commit every tracked file that is modified or deleted
    #[arg(short, long)]
    pub all: bool,

    /// Commit even where nothing changed (its empty file list makes Argo CD look at every Application)
    #[arg(long)]
    pub allow_empty: bool,

    /// Remote to push to, instead of the one that git would push the branch to
    #[arg(long, value_name = "REMOTE")]
    pub remote: Option<String>,

    /// Branch of the remote to push to, instead of the one that git would push to
    #[arg(long, value_name = "BRANCH")]
    pub branch: Option<String>,

    /// Push this tag, which exists, instead of a branch
    #[arg(long, value_name = "TAG", conflicts_with_all = ["change", "branch"])]
    pub tag: Option<String>,

    /// Let the push replace commits of the remote that git has seen
    #[arg(long)]
    pub force_with_lease: bool,

    /// How often to fetch, rebase and push again when the push is rejected
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with_all = ["tag", "force_with_lease"])]
    pub retry: u32,

    /// Wait until the remote shows the commit, and add remote_visible_at_ms
    #[arg(long)]
    pub confirm: bool,

    /// Push nothing; describe a push that has happened: what the remote had, and what it has
    #[arg(long, value_name = "OLD..NEW", conflicts_with_all = ["change", "force_with_lease", "retry", "confirm"])]
    pub describe: Option<String>,

    /// Push nothing; describe each line of stdin, as git gives them to a post-receive hook, as a line
    #[arg(long, conflicts_with_all = ["change", "force_with_lease", "retry", "confirm", "describe", "branch", "tag"])]
    pub stdin: bool,

    /// Web address of the repository, as Argo CD reads it
    #[arg(long, value_name = "URL")]
    pub repo_url: Option<String>,

    /// Time that the push may take, with everything else that is asked of the remote; 0 is no limit
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration::parse)]
    pub timeout: Duration,

    #[command(flatten)]
    #[allow(missing_docs)]
    pub talk: TalkArgs,
}
