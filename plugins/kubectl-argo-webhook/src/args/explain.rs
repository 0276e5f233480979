//! The flags of `explain`.

use std::path::PathBuf;

use clap::{ArgGroup, Args as Flags};
use kit::{cluster::ClusterArgs, talk::TalkArgs, version::Version};

use super::EventArgs;

/// Explains an event.
#[derive(Debug, Flags)]
#[command(group = ArgGroup::new("origin").required(true))]
pub struct Explain {
    /// The event.
    #[command(flatten)]
    pub event: EventArgs,

    /// Read the Applications from this file: YAML documents or JSON, a List too; - is stdin
    #[arg(long, value_name = "FILE", help_heading = "Applications")]
    pub applications: Option<PathBuf>,

    /// Version of Argo CD whose rules to use [default: that of the cluster's server, else the newest known]
    #[arg(long, value_name = "VERSION", value_parser = version, help_heading = "Applications")]
    pub server_version: Option<Version>,

    /// Namespaces that Argo CD serves beside its own: globs, or expressions between slashes [default: what the cluster
    /// says; all of a file]
    #[arg(long, value_name = "LIST", value_delimiter = ',', help_heading = "Applications")]
    pub application_namespaces: Option<Vec<String>>,

    /// The cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,

    /// How to talk.
    #[command(flatten)]
    pub talk: TalkArgs,
}

fn version(text: &str) -> Result<Version, String> {
    Version::parse(text).ok_or_else(|| format!("`{text}` is not a version such as v3.5.1"))
}
