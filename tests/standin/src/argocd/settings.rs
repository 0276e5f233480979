//! What a container takes from its environment and its arguments when it starts.

use std::time::Duration;

use super::{
    duration::{self, Parsed, SECOND_NS},
    log::{Level, flag, text_line},
    version::Version,
};
use crate::processes::{Component, Process};

/// The resync period that stands for "never": a hundred years of 365 days.
const NEVER_S: i64 = 100 * 365 * 24 * 3600;

/// The settings of an application controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerSettings {
    /// `timeout.reconciliation`, whole seconds; "never" is a hundred years.
    pub resync_s: i64,
    /// `timeout.hard.reconciliation`, whole seconds; 0 is off.
    pub hard_resync_s: i64,
    /// `timeout.reconciliation.jitter`, whole seconds.
    pub jitter_s: i64,
    /// How long the first repo errors of a scheduled comparison are kept quiet, whole seconds; 0 is not at all.
    pub repo_error_grace_s: i64,
    /// Globs or `/expressions/` of further namespaces whose Applications are served.
    pub application_namespaces: Vec<String>,
    /// The first pause between attempts of self-healing, whole seconds.
    pub self_heal_s: i64,
    /// Whether redeliveries are dropped, so that nothing is compared on schedule.
    pub drops_redeliveries: bool,
}

/// What starting a container came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start<T> {
    /// The settings, or why the process ended at once.
    pub settings: Result<T, String>,
    /// Warnings about values that were not taken; written before the log format is known, so always text.
    pub warnings: Vec<String>,
}

/// Reads one duration.
struct Reader<'a> {
    process: &'a Process,
    version: Version,
    warnings: Vec<String>,
    fatal: Option<String>,
}

impl Reader<'_> {
    fn new(process: &Process) -> Reader<'_> {
        Reader { process, version: Version::of_tag(&process.version), warnings: Vec::new(), fatal: None }
    }

    /// The value of a variable, in nanoseconds; anything wrong with it is a warning and the default.
    fn duration_ns(&mut self, variable: &str, default_ns: i64) -> i64 {
        let Some(text) = self.process.env.get(variable).filter(|text| !text.is_empty()) else { return default_ns };
        match duration::of_environment(self.version, text) {
            Parsed::Ns(ns) if ns >= 0 => ns,
            Parsed::Ns(ns) => {
                let value = duration::print(ns);
                self.warn(&format!("Value in {variable} is {value}, which is less than minimum 0s allowed"));
                default_ns
            }
            Parsed::Bad => {
                let both = self.version.at_least(2, 14) && duration::reads_days(self.version);
                let what = if both { "duration" } else { "duration string" };
                self.warn(&format!("Could not parse '{text}' as a {what} from environment {variable}"));
                default_ns
            }
            Parsed::Fatal => {
                let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
                self.fatal.get_or_insert_with(|| {
                    let reason = format!("strconv.ParseInt: parsing \"{digits}\": value out of range");
                    text_line(Level::Error, &reason, &[]).replacen("level=error", "level=fatal", 1)
                });
                default_ns
            }
        }
    }

    fn warn(&mut self, message: &str) {
        self.warnings.push(text_line(Level::Warning, message, &[]));
    }

    /// Whole seconds: a flag is an integer and wins, the variable is cut to seconds.
    fn seconds(&mut self, name: &str, variable: &str, default_s: i64) -> i64 {
        // The variable is read first, whatever the flag says: it is the flag's default.
        let of_env = self.duration_ns(variable, default_s * SECOND_NS) / SECOND_NS;
        let Some(text) = flag(self.process, name) else { return of_env };
        text.parse().unwrap_or_else(|_| {
            let reason = "strconv.ParseInt: parsing";
            self.fatal = Some(format!(
                "Error: invalid argument \"{text}\" for \"--{name}\" flag: {reason} \"{text}\": invalid syntax"
            ));
            of_env
        })
    }

    fn finish<T>(self, settings: T) -> Start<T> {
        Start { settings: self.fatal.map_or(Ok(settings), Err), warnings: self.warnings }
    }
}

/// The settings of a controller (argo-cd cmd/argocd-application-controller/commands/argocd_application_controller.go).
pub fn controller(process: &Process) -> Start<ControllerSettings> {
    let mut reader = Reader::new(process);
    let version = reader.version;
    let (period, jitter) = if version.at_least(3, 0) { (120, 60) } else { (180, 0) };
    let resync_s = reader.seconds("app-resync", "ARGOCD_RECONCILIATION_TIMEOUT", period);
    let hard_resync_s = reader.seconds("app-hard-resync", "ARGOCD_HARD_RECONCILIATION_TIMEOUT", 0);
    let (mut jitter_s, mut repo_error_grace_s) = (0, 0);
    if version.at_least(2, 10) {
        jitter_s = reader.seconds("app-resync-jitter", "ARGOCD_RECONCILIATION_JITTER", jitter);
        let variable = "ARGOCD_REPO_ERROR_GRACE_PERIOD_SECONDS";
        repo_error_grace_s = reader.seconds("repo-error-grace-period-seconds", variable, 180);
    }
    let self_heal_s = if version.since(&[(2, 11, 12), (2, 12, 7), (2, 13, 0)]) { 2 } else { 5 };
    reader.finish(ControllerSettings {
        resync_s: if resync_s == 0 { NEVER_S } else { resync_s },
        hard_resync_s,
        jitter_s,
        repo_error_grace_s,
        application_namespaces: application_namespaces(process),
        self_heal_s,
        drops_redeliveries: [Version::new(3, 1, 14), Version::new(3, 2, 9), Version::new(3, 3, 7)].contains(&version),
    })
}

/// How long the repo-server keeps the refs of a repository (argo-cd cmd/argocd-repo-server/commands/
/// argocd_repo_server.go); 0 has been replaced by the default age limit of its cache, and what is less than a second
/// by an hour.
pub fn revision_cache(process: &Process) -> Start<Duration> {
    let mut reader = Reader::new(process);
    let ns = |text: String| duration::parse_go(&text);
    let mut expiration_ns = reader.duration_ns("ARGOCD_RECONCILIATION_TIMEOUT", 180 * SECOND_NS);
    if let Some(text) = flag(process, "revision-cache-expiration") {
        match ns(text.clone()) {
            Some(ns) => expiration_ns = ns,
            None => {
                let flag = "invalid argument";
                reader.fatal = Some(format!(
                    "Error: {flag} \"{text}\" for \"--revision-cache-expiration\" flag: time: invalid duration \"{text}\""
                ));
            }
        }
    }
    if expiration_ns <= 0 {
        let day_ns = 24 * 3600 * SECOND_NS;
        let of_env = reader.duration_ns("ARGOCD_DEFAULT_CACHE_EXPIRATION", day_ns);
        expiration_ns = flag(process, "default-cache-expiration").and_then(ns).unwrap_or(of_env);
    }
    let expiration = Duration::from_nanos(expiration_ns.max(0).unsigned_abs());
    let hour = Duration::from_secs(3600);
    reader.finish(if expiration < Duration::from_secs(1) { hour } else { expiration })
}

/// A setting that is text: the flag, else the variable.
pub fn setting(process: &Process, name: &str, variable: &str) -> Option<String> {
    flag(process, name).or_else(|| process.env.get(variable).cloned())
}

/// A setting that is on or off: the flag (`--name` or `--name=true`), else the variable.
pub fn bool_setting(process: &Process, name: &str, variable: &str) -> bool {
    let long = format!("--{name}");
    let of_flag = process.args.iter().rev().find_map(|argument| match argument.strip_prefix(&long)? {
        "" | "=true" => Some(true),
        "=false" => Some(false),
        _ => None,
    });
    let of_env = || process.env.get(variable).is_some_and(|value| value.eq_ignore_ascii_case("true"));
    of_flag.unwrap_or_else(of_env)
}

/// The further namespaces that a controller or a server serves.
pub fn application_namespaces(process: &Process) -> Vec<String> {
    let list = setting(process, "application-namespaces", "ARGOCD_APPLICATION_NAMESPACES").unwrap_or_default();
    list.split(',').map(|item| item.trim().to_owned()).filter(|item| !item.is_empty()).collect()
}

/// Why the container ends right after its start, with everything it then has printed last; `None` when it runs.
pub fn refuses_to_start(process: &Process) -> Option<String> {
    match process.component {
        Component::Controller => controller(process).settings.err(),
        Component::RepoServer => revision_cache(process).settings.err(),
        Component::Server => None,
    }
}

/// The shard of a controller: `ARGOCD_CONTROLLER_SHARD`, else the ordinal at the end of the pod's name.
pub fn shard(process: &Process) -> Option<u32> {
    let of_env = process.env.get("ARGOCD_CONTROLLER_SHARD").and_then(|text| text.parse().ok());
    of_env.or_else(|| process.pod.rsplit('-').next()?.parse().ok())
}

#[cfg(test)]
pub(super) mod tests {
    use std::{collections::BTreeMap, time::SystemTime};

    use super::*;

    pub fn process(component: Component, version: &str, env: &[(&str, &str)], args: &[&str]) -> Process {
        Process {
            namespace: "argocd".into(),
            pod: "argocd-application-controller-0".into(),
            component,
            env: env.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect::<BTreeMap<_, _>>(),
            args: args.iter().map(ToString::to_string).collect(),
            version: version.into(),
            started_at: SystemTime::UNIX_EPOCH,
            log: Default::default(),
        }
    }

    const TIMEOUT: &str = "ARGOCD_RECONCILIATION_TIMEOUT";

    #[test]
    fn what_is_no_flag_or_far_too_large_ends_the_process() {
        let ends = |version: &str, env: &[(&str, &str)], args: &[&str]| {
            refuses_to_start(&process(Component::Controller, version, env, args)).unwrap_or_default()
        };
        let huge = [(TIMEOUT, "9223372036854775808s")];
        assert_eq!(
            ends("v3.5.1", &[], &["--app-resync", "1m"]),
            "Error: invalid argument \"1m\" for \"--app-resync\" flag: strconv.ParseInt: parsing \"1m\": invalid syntax"
        );
        assert!(ends("v3.5.1", &huge, &[]).contains("level=fatal"));
        assert_eq!(ends("v3.2.12", &huge, &[]), "");
    }

    #[test]
    fn the_refs_live_as_long_as_the_repo_server_was_told() {
        let lifetime = |env: &[(&str, &str)], args: &[&str]| {
            revision_cache(&process(Component::RepoServer, "v3.5.1", env, args)).settings.unwrap()
        };
        let seconds = Duration::from_secs;
        assert_eq!(lifetime(&[], &[]), seconds(180));
        assert_eq!(lifetime(&[(TIMEOUT, "30s")], &[]), seconds(30));
        assert_eq!(lifetime(&[(TIMEOUT, "0s")], &[]), seconds(24 * 3600), "off is the default age limit");
        assert_eq!(lifetime(&[(TIMEOUT, "0s"), ("ARGOCD_DEFAULT_CACHE_EXPIRATION", "1h")], &[]), seconds(3600));
        assert_eq!(lifetime(&[(TIMEOUT, "500ms")], &[]), seconds(3600), "below a second is an hour");
        assert_eq!(lifetime(&[(TIMEOUT, "1500ms")], &[]), Duration::from_millis(1500));
        assert_eq!(lifetime(&[(TIMEOUT, "30s")], &["--revision-cache-expiration", "1m"]), seconds(60));
    }
}
