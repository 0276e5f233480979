//! What a container prints when it starts.

use std::time::SystemTime;

use serde_json::json;

use super::{
    duration::{self, SECOND_NS},
    log::{Level, Logger, text_line},
    settings::{Start, controller, revision_cache, shard},
    version::Version,
};
use crate::{
    clock,
    processes::{Component, Process},
};

/// The lines that the container prints when it starts, the last one saying why it ends if it does.
pub fn startup_log(process: &Process) -> Vec<String> {
    match process.component {
        Component::Controller => controller_log(process),
        Component::RepoServer => repo_server_log(process),
        Component::Server => server_log(process),
    }
}

/// `<name> is starting`, written before the log format is known. Fields of the build are not those of a real build.
fn starting(process: &Process, name: &str, with_namespace: bool) -> String {
    let mut fields = vec![
        ("version", json!(format!("{}+standin", process.version))),
        ("commit", json!("0000000000000000000000000000000000000000")),
        ("built", json!(clock::rfc3339(SystemTime::UNIX_EPOCH))),
    ];
    if with_namespace {
        fields.push(("namespace", json!(process.namespace)));
    }
    text_line(Level::Info, &format!("{name} is starting"), &fields)
}

fn controller_log(process: &Process) -> Vec<String> {
    let version = Version::of_tag(&process.version);
    let logger = Logger::of(process);
    let Start { settings, warnings: mut lines } = controller(process);
    let settings = match settings {
        Ok(settings) => settings,
        Err(reason) => {
            lines.push(reason);
            return lines;
        }
    };
    lines.push(starting(process, "ArgoCD Application Controller", true));
    let replicas = process.env.get("ARGOCD_CONTROLLER_REPLICAS").and_then(|text| text.parse().ok()).unwrap_or(1);
    let period = |seconds: i64| duration::print(seconds.saturating_mul(SECOND_NS));
    let mut resync = format!(
        "appResyncPeriod={}, appHardResyncPeriod={}",
        period(settings.resync_s),
        period(settings.hard_resync_s)
    );
    if version.at_least(2, 10) {
        resync.push_str(&format!(", appResyncJitter={}", period(settings.jitter_s)));
    }
    let sharding = match shard(process) {
        Some(shard) if replicas > 1 => format!("Processing clusters from shard {shard}"),
        _ => "Processing all cluster shards".into(),
    };
    let redis = version.at_least(3, 3).then_some("Loading Redis credentials from environment variables");
    let messages = redis.into_iter().chain([sharding.as_str(), &resync, "Starting configmap/secret informers"]);
    lines.extend(messages.filter_map(|message| logger.line(Level::Info, message, &[])));
    lines
}

fn repo_server_log(process: &Process) -> Vec<String> {
    let Start { settings, warnings: mut lines } = revision_cache(process);
    match settings {
        Err(reason) => lines.push(reason),
        Ok(_) => {
            lines.push(starting(process, "ArgoCD Repository Server", false));
            let message = "argocd-repo-server is listening on [::]:8081";
            lines.extend(Logger::of(process).line(Level::Info, message, &[]));
        }
    }
    lines
}

fn server_log(process: &Process) -> Vec<String> {
    let mut lines = vec![starting(process, "ArgoCD API Server", true)];
    lines.extend(Logger::of(process).line(Level::Info, "Starting configmap/secret informers", &[]));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::argocd::settings::tests::process;

    /// The line with the periods as `msg` has it.
    fn periods(version: &str, env: &[(&str, &str)], args: &[&str]) -> String {
        let lines = startup_log(&process(Component::Controller, version, env, args));
        let line = lines.iter().find(|line| line.contains("appResyncPeriod=")).cloned().unwrap_or_default();
        line.split("appResyncPeriod=").nth(1).unwrap_or_default().split('"').next().unwrap_or_default().into()
    }

    const TIMEOUT: &str = "ARGOCD_RECONCILIATION_TIMEOUT";

    #[test]
    fn the_periods_are_printed_as_each_version_prints_them() {
        for (version, env, args, expected) in [
            ("v3.5.1", &[][..], &[][..], "2m0s, appHardResyncPeriod=0s, appResyncJitter=1m0s"),
            ("v2.14.0", &[], &[], "3m0s, appHardResyncPeriod=0s, appResyncJitter=0s"),
            ("v2.9.0", &[], &[], "3m0s, appHardResyncPeriod=0s"),
            ("v3.5.1", &[(TIMEOUT, "0s")], &[], "876000h0m0s, appHardResyncPeriod=0s, appResyncJitter=1m0s"),
            ("v3.5.1", &[(TIMEOUT, "500ms")], &[], "876000h0m0s, appHardResyncPeriod=0s, appResyncJitter=1m0s"),
            ("v3.5.1", &[(TIMEOUT, "1500ms")], &[], "1s, appHardResyncPeriod=0s, appResyncJitter=1m0s"),
            ("v3.5.1", &[(TIMEOUT, "")], &[], "2m0s, appHardResyncPeriod=0s, appResyncJitter=1m0s"),
            ("v3.5.1", &[(TIMEOUT, "nope")], &[], "2m0s, appHardResyncPeriod=0s, appResyncJitter=1m0s"),
            ("v3.2.12", &[(TIMEOUT, "1d")], &[], "2m0s, appHardResyncPeriod=0s, appResyncJitter=1m0s"),
            ("v3.5.1", &[(TIMEOUT, "1d")], &[], "24h0m0s, appHardResyncPeriod=0s, appResyncJitter=1m0s"),
            ("v2.13.0", &[(TIMEOUT, "2m30s")], &[], "3m0s, appHardResyncPeriod=0s, appResyncJitter=0s"),
            (
                "v3.5.1",
                &[(TIMEOUT, "30s"), ("ARGOCD_RECONCILIATION_JITTER", "0s")],
                &["--app-resync", "45", "--app-hard-resync=90"],
                "45s, appHardResyncPeriod=1m30s, appResyncJitter=0s",
            ),
        ] {
            assert_eq!(periods(version, env, args), expected, "{version} {env:?} {args:?}");
        }
    }

    #[test]
    fn a_value_that_is_not_taken_is_a_warning_in_text_whatever_the_format() {
        let first = |version: &str, value: &str| {
            let lines = startup_log(&process(Component::Controller, version, &[(TIMEOUT, value)], &[]));
            lines[0].split_once("level=").map(|(_, rest)| rest.to_owned()).unwrap_or_default()
        };
        assert_eq!(
            first("v3.5.1", "180"),
            format!("warning msg=\"Could not parse '180' as a duration from environment {TIMEOUT}\"")
        );
        for version in ["v3.2.12", "v2.13.0"] {
            assert_eq!(
                first(version, "180"),
                format!("warning msg=\"Could not parse '180' as a duration string from environment {TIMEOUT}\"")
            );
        }
        assert_eq!(
            first("v3.5.1", "-1s"),
            format!("warning msg=\"Value in {TIMEOUT} is -1s, which is less than minimum 0s allowed\"")
        );
    }

    #[test]
    fn the_line_is_json_since_3_0_and_gone_at_level_warn() {
        let log = |version, env: &[(&str, &str)]| startup_log(&process(Component::Controller, version, env, &[]));
        let line = |lines: Vec<String>| lines.into_iter().find(|line| line.contains("appResyncPeriod"));
        assert!(line(log("v3.5.1", &[])).is_some_and(|line| line.starts_with(r#"{"level":"info","msg":"appResync"#)));
        assert!(line(log("v2.14.0", &[])).is_some_and(|line| line.contains(r#"level=info msg="appResync"#)));
        let quiet = log("v3.5.1", &[("ARGOCD_APPLICATION_CONTROLLER_LOGLEVEL", "warn")]);
        assert_eq!(quiet.len(), 1, "only what is printed before the level is known: {quiet:?}");
    }
}
