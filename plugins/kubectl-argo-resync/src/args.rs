//! The flags.

use std::{path::PathBuf, time::Duration};

use clap::Parser;
use kit::{cluster::ClusterArgs, duration, talk::TalkArgs};

/// Change Argo CD's polling period, and prove that it is in force
///
/// Without PERIOD nothing is changed: the values in argocd-cm, what each running pod uses, and where they differ are
/// reported.
#[derive(Parser, Clone, Debug)]
#[command(after_long_help = crate::manual::sections())]
#[command(version)]
pub struct Args {
    /// New period: 30s, 5m, 1h (a bare number is seconds), `off`, or `default`
    #[arg(value_name = "PERIOD")]
    pub period: Option<String>,

    /// New jitter: 10s, `0s` for none, or `default`
    #[arg(long, value_name = "DURATION|default")]
    pub jitter: Option<String>,

    /// Put back what FILE, the output of an earlier run, names under `previous`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["period", "jitter"])]
    pub restore: Option<PathBuf>,

    /// Restart the pods even if nothing was changed
    #[arg(long, conflicts_with = "no_restart")]
    pub restart: bool,

    /// Write the values only; the pods keep theirs until their next restart
    #[arg(long)]
    pub no_restart: bool,

    /// Put the old values back when a restart fails
    #[arg(long, conflicts_with = "no_restart")]
    pub rollback: bool,

    /// Print the patches and change nothing
    #[arg(long)]
    pub dry_run: bool,

    /// Write the startup line of each controller pod to FILE, as it stands in the log
    #[arg(long, value_name = "FILE")]
    pub line_out: Option<PathBuf>,

    /// Time for everything together
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration::parse)]
    pub timeout: Duration,

    /// Time that a new pod may fail for before the wait ends
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration::parse)]
    pub error_grace: Duration,

    /// Compare this Application again afterwards (`name` or `namespace/name`); may be repeated
    #[arg(long, value_name = "APP", help_heading = "Refresh")]
    pub refresh: Vec<String>,

    /// The same, without the cached manifests; may be repeated
    #[arg(long, value_name = "APP", help_heading = "Refresh")]
    pub hard_refresh: Vec<String>,

    /// Refresh the Applications with these labels
    #[arg(long, value_name = "SELECTOR", help_heading = "Refresh")]
    pub refresh_selector: Option<String>,

    /// Hard refresh the Applications with these labels
    #[arg(long, value_name = "SELECTOR", help_heading = "Refresh")]
    pub hard_refresh_selector: Option<String>,

    /// Look for labels in all namespaces, not only in that of Argo CD
    #[arg(short = 'A', long, help_heading = "Refresh")]
    pub all_namespaces: bool,

    /// Time that one Application may take to answer
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = duration::parse,
        help_heading = "Refresh")]
    pub app_timeout: Duration,

    /// How many Applications may be refreshing at a time
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..),
        help_heading = "Refresh")]
    pub max_in_flight: u16,

    /// The controller's workload: `statefulset/NAME` or `deployment/NAME`
    #[arg(long, value_name = "KIND/NAME", help_heading = "Argo CD")]
    pub controller: Option<String>,

    /// The repo-server's workload: `deployment/NAME` or `statefulset/NAME`
    #[arg(long, value_name = "KIND/NAME", help_heading = "Argo CD")]
    pub repo_server: Option<String>,

    /// Which cluster
    #[command(flatten)]
    pub cluster: ClusterArgs,

    /// What to say
    #[command(flatten)]
    pub talk: TalkArgs,
}

impl Args {
    /// Whether anything about the settings or the pods is to be changed.
    pub fn changes(&self) -> bool {
        self.period.is_some() || self.jitter.is_some() || self.restore.is_some() || self.restart
    }

    /// Whether any Application is to be refreshed.
    pub fn refreshes(&self) -> bool {
        !self.refresh.is_empty()
            || !self.hard_refresh.is_empty()
            || self.refresh_selector.is_some()
            || self.hard_refresh_selector.is_some()
    }
}
