//! This command's flags.

use std::{path::PathBuf, time::Duration};

use clap::{ArgGroup, Parser};
use kit::{cluster::ClusterArgs, duration, talk::TalkArgs};

use crate::{condition::Level, wanted::SourceChoice};

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
    #[arg(short = 'f', long, value_name = "RECORD")]
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

    /// Source to look at: its position from 1 on, its name or its URL
    #[arg(long, value_name = "SOURCE")]
    pub source: Option<SourceChoice>,

    /// Time that an error condition has to last before it ends the wait
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration::parse)]
    pub error_grace: Duration,

    /// End with exit code 1 when a refresh is requested meanwhile
    #[arg(long)]
    pub forbid_refresh: bool,

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
