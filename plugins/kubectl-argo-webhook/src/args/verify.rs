//! The flags of `verify`.

use std::path::PathBuf;

use clap::{ArgGroup, Args as Flags};
use kit::{cluster::ClusterArgs, talk::TalkArgs};

use crate::provider::Provider;

/// Checks a signature.
#[derive(Debug, Flags)]
#[command(group = ArgGroup::new("proof").required(true))]
pub struct Verify {
    /// The exact bytes of the body
    #[arg(long, value_name = "FILE")]
    pub body_file: PathBuf,

    /// The signature, as it stands in its header
    #[arg(long, value_name = "TEXT", group = "proof")]
    pub signature: Option<String>,

    /// The headers of the event: lines `Name: value`, or a JSON object
    #[arg(long, value_name = "FILE", group = "proof")]
    pub headers: Option<PathBuf>,

    /// Whose event it is [default: what the headers say, else github]
    #[arg(long, value_enum, value_name = "NAME")]
    pub provider: Option<Provider>,

    /// File that holds the key; one newline at its end is dropped [default: the key in argocd-secret]
    #[arg(long, value_name = "FILE")]
    pub secret_file: Option<PathBuf>,

    /// Environment variable that holds the key
    #[arg(long, value_name = "NAME", conflicts_with = "secret_file")]
    pub secret_env: Option<String>,

    /// The cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,

    /// How to talk.
    #[command(flatten)]
    pub talk: TalkArgs,
}
