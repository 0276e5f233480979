//! The flags of `secret`.

use std::{path::PathBuf, time::Duration};

use clap::{ArgGroup, Args as Flags, Subcommand};
use kit::{cluster::ClusterArgs, duration, talk::TalkArgs};

use crate::provider::Provider;

/// What to do with the key.
#[derive(Debug, Subcommand)]
pub enum SecretCommand {
    /// Write the key into argocd-secret, and wait until every argocd-server pod enforces it
    Set(Box<SecretSet>),
    /// Show whether a key is set: its length and the start of its SHA-256, never the key
    Show(Box<SecretShow>),
}

/// Writes a key.
#[derive(Debug, Flags)]
#[command(group = ArgGroup::new("new_key").required(true))]
pub struct SecretSet {
    /// Make a new random key of 16 bytes, in hexadecimal
    #[arg(long, group = "new_key")]
    pub generate: bool,

    /// Take the key from this file; one newline at its end is dropped (azuredevops: user:password)
    #[arg(long, value_name = "FILE", group = "new_key")]
    pub from_file: Option<PathBuf>,

    /// Keep the new key in this file, for its owner only, without a newline at its end
    #[arg(long, value_name = "FILE", requires = "generate")]
    pub out: Option<PathBuf>,

    /// Whose events the key is for
    #[arg(long, value_enum, value_name = "NAME", default_value_t = Provider::Github)]
    pub provider: Provider,

    /// Replace a reference ($name:key) by the key itself
    #[arg(long)]
    pub force: bool,

    /// How long to wait for the servers
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration::parse)]
    pub timeout: Duration,

    /// The cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,

    /// How to talk.
    #[command(flatten)]
    pub talk: TalkArgs,
}

/// Looks at a key.
#[derive(Debug, Flags)]
pub struct SecretShow {
    /// Whose events the key is for
    #[arg(long, value_enum, value_name = "NAME", default_value_t = Provider::Github)]
    pub provider: Provider,

    /// The cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,

    /// How to talk.
    #[command(flatten)]
    pub talk: TalkArgs,
}
