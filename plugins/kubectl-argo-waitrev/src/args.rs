//! This command's flags.

use std::{path::PathBuf, time::Duration};

use clap::{ArgGroup, Parser};
use kit::{cluster::ClusterArgs, duration, talk::TalkArgs};

use crate::{condition::Level, rules::NoEffect, wanted::SourceChoice};

/// Wait until an Application is at a commit, or prove that it stays where it is
#[derive(Parser, Clone, Debug)]
#[command(after_long_help = crate::manual::sections())]
#[command(version, group = ArgGroup::new("applications").args(["apps", "selector", "all"]).required(true).multiple(true))]
#[command(group = ArgGroup::new("commit").args(["revision", "from"]).required(true))]
pub struct Args {
    /// Applications: NAME or NAMESPACE/NAME
    #[arg(value_name = "APP", conflicts_with_all = ["selector", "all", "all_namespaces"])]
    pub apps: Vec<String>,

    /// Wait for all Applications with these labels
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    pub selector: Option<String>,

    /// Wait for all Applications of the namespace
    #[arg(long)]
    pub all: bool,

    /// Look for Applications in all namespaces
    #[arg(short = 'A', long)]
    pub all_namespaces: bool,

    /// The commit, as a full id or at least 7 digits of it
    #[arg(long, value_name = "SHA", value_parser = commit)]
    pub revision: Option<String>,

    /// Read the commit from an event record; - is stdin
    #[arg(short = 'f', long, value_name = "RECORD", value_hint = clap::ValueHint::FilePath)]
    pub from: Option<PathBuf>,

    /// How far the Applications have to be
    #[arg(long, value_enum, value_name = "LEVEL", default_value_t = Level::Compared)]
    pub until: Level,

    /// Time to wait once the commit is known; 0 looks once
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration::parse)]
    pub timeout: Duration,

    /// Prove that the Applications stay where they are for so long
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, conflicts_with = "until")]
    pub hold: Option<Duration>,

    /// Require that the Applications stay at the level for so long
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, conflicts_with = "hold")]
    pub stable: Option<Duration>,

    /// One Application that gets there is enough
    #[arg(long, conflicts_with = "hold")]
    pub any: bool,

    /// Number of Applications that the selector has to find
    #[arg(long, value_name = "COUNT", conflicts_with = "apps")]
    pub expect_count: Option<usize>,

    /// Source to look at: its position from 1 on, its name or its URL
    #[arg(long, value_name = "SOURCE")]
    pub source: Option<SourceChoice>,

    /// Compare the dry commit of an Application with a source hydrator
    #[arg(long)]
    pub dry: bool,

    /// Clone that tells whether a newer commit contains this one; such a commit counts
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub git_dir: Option<PathBuf>,

    /// What it means that the push touched no path of an Application
    #[arg(long, value_enum, value_name = "MEANING", default_value_t = NoEffect::Fail)]
    pub no_effect: NoEffect,

    /// Time that an error condition has to last before it ends the wait
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration::parse)]
    pub error_grace: Duration,

    /// End with exit code 1 when a refresh is requested meanwhile
    #[arg(long)]
    pub forbid_refresh: bool,

    /// End with exit code 1 when an Application is Degraded at the commit; with --until healthy
    #[arg(long)]
    pub fail_on_degraded: bool,

    /// Age of a comparison that should have been repeated: the longest gap of polling
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration::parse)]
    pub stale_after: Duration,

    /// Print a JSON line for each change, the last one with the result
    #[arg(long)]
    pub stream: bool,

    /// Cluster flags.
    #[command(flatten)]
    pub cluster: ClusterArgs,

    /// Message flags.
    #[command(flatten)]
    pub talk: TalkArgs,
}

/// A branch or a tag is no commit: which one it means changes with every push.
fn commit(text: &str) -> Result<String, String> {
    if kit::record::is_commit(text) {
        Ok(text.to_ascii_lowercase())
    } else {
        Err(format!("`{text}` is not a commit id; `git rev-parse {text}` prints the id of a branch or a tag"))
    }
}
