//! Whether an Application has to be compared, how thoroughly, and why (argo-cd v3.5.1 controller/appcontroller.go,
//! `needRefreshAppStatus`).

use jiff::Timestamp;
use serde_json::Value;

use crate::argocd::{duration, settings::ControllerSettings};

/// The annotation that asks for a refresh.
pub const REFRESH: &str = "argocd.argoproj.io/refresh";
/// The annotation that asks for a hydration.
pub const HYDRATE: &str = "argocd.argoproj.io/hydrate";

/// How thorough a comparison is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// 1: with the revision of the last comparison.
    Recent = 1,
    /// 2: cached refs are good enough.
    Latest,
    /// 3: the remote is asked.
    ForceResolve,
}

/// What has to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refresh {
    /// As the log has it.
    pub reason: String,
    /// How thorough.
    pub level: Level,
    /// Without the cached manifests.
    pub hard: bool,
}

/// Decides about `app` at `now`; `requested` is what the controller has asked of itself.
pub fn need(app: &Value, settings: &ControllerSettings, now: Timestamp, requested: Option<Level>) -> Option<Refresh> {
    let (spec, compared) = (&app["spec"], &app["status"]["sync"]["comparedTo"]);
    let refresh = |reason: String, level| Some(Refresh { reason, level, hard: false });
    if let Some(kind) = app["metadata"]["annotations"][REFRESH].as_str() {
        let hard = kind == "hard";
        let kind = if hard { "hard" } else { "normal" };
        return Some(Refresh { reason: format!("{kind} refresh requested"), level: Level::ForceResolve, hard });
    }
    if sources_differ(spec, compared) {
        let many = is_multi_source(spec);
        let reason = if many { "at least one of the spec.sources differs" } else { "spec.source differs" };
        return refresh(reason.into(), Level::ForceResolve);
    }
    let reconciled = app["status"]["reconciledAt"].as_str().and_then(|text| text.parse::<Timestamp>().ok());
    let expired = |period_s: i64| reconciled.is_none_or(|at| now.duration_since(at).as_secs_f64() > period_s as f64);
    let at = reconciled.map_or("never".to_owned(), |at| at.strftime("%Y-%m-%d %H:%M:%S +0000 UTC").to_string());
    let period = |seconds: i64| duration::print(seconds.saturating_mul(duration::SECOND_NS));
    if settings.hard_resync_s > 0 && expired(settings.hard_resync_s) {
        let expiry = period(settings.hard_resync_s);
        let reason = format!("comparison expired, requesting hard refresh. reconciledAt: {at}, expiry: {expiry}");
        return Some(Refresh { reason, level: Level::Latest, hard: true });
    }
    // A negative period, which only a flag can bring about, is "never" (argo-cd v3.5.1).
    if reconciled.is_none() || (settings.resync_s > 0 && expired(settings.resync_s)) {
        let expiry = period(settings.resync_s);
        let reason = format!("comparison expired, requesting refresh. reconciledAt: {at}, expiry: {expiry}");
        return refresh(reason, Level::Latest);
    }
    if spec["destination"] != compared["destination"] {
        return refresh("spec.destination differs".into(), Level::Latest);
    }
    if spec["ignoreDifferences"] != compared["ignoreDifferences"] {
        return refresh("spec.ignoreDifferences differs".into(), Level::Latest);
    }
    requested.and_then(|level| refresh("controller refresh requested".into(), level))
}

/// Whether `spec.sources` counts; a hydrated Application has one source, whatever else it names.
pub fn is_multi_source(spec: &Value) -> bool {
    !spec["sourceHydrator"].is_object() && spec["sources"].as_array().is_some_and(|sources| !sources.is_empty())
}

/// `spec.source`, or what a hydrated Application is synced from.
pub fn single_source(spec: &Value) -> Value {
    let hydrator = &spec["sourceHydrator"];
    if !hydrator.is_object() {
        return spec["source"].clone();
    }
    let (dry, sync) = (&hydrator["drySource"], &hydrator["syncSource"]);
    let repo_url = if sync["repoURL"].is_string() { &sync["repoURL"] } else { &dry["repoURL"] };
    serde_json::json!({
        "repoURL": repo_url,
        "path": sync["path"],
        "targetRevision": sync["targetBranch"],
    })
}

fn sources_differ(spec: &Value, compared: &Value) -> bool {
    if is_multi_source(spec) {
        spec["sources"] != compared["sources"]
    } else {
        single_source(spec) != compared["source"]
    }
}

/// Go's `strconv.ParseBool` says true.
pub fn is_true(value: &Value) -> bool {
    matches!(value.as_str(), Some("1" | "t" | "T" | "TRUE" | "true" | "True"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn settings(resync_s: i64, hard_resync_s: i64) -> ControllerSettings {
        ControllerSettings {
            resync_s,
            hard_resync_s,
            jitter_s: 0,
            repo_error_grace_s: 180,
            application_namespaces: vec![],
            self_heal_s: 2,
            drops_redeliveries: false,
        }
    }

    fn compared() -> Value {
        let (source, destination) = (json!({"repoURL": "u", "targetRevision": "main"}), json!({"namespace": "evt"}));
        json!({
            "metadata": {},
            "spec": {"source": source, "destination": destination},
            "status": {
                "reconciledAt": "2026-08-12T09:30:00Z",
                "sync": {"comparedTo": {"source": source, "destination": destination}},
            },
        })
    }

    fn reason(app: &Value, settings: &ControllerSettings, now: &str, requested: Option<Level>) -> String {
        let need = need(app, settings, now.parse().unwrap(), requested);
        need.map_or("none".into(), |need| format!("{} {:?} hard:{}", need.reason, need.level, need.hard))
    }

    #[test]
    fn an_expired_comparison_is_level_2_and_an_asked_for_one_level_3() {
        let (mut app, settings) = (compared(), settings(30, 0));
        assert_eq!(reason(&app, &settings, "2026-08-12T09:30:30Z", None), "none");
        assert_eq!(
            reason(&app, &settings, "2026-08-12T09:30:30.1Z", None),
            "comparison expired, requesting refresh. reconciledAt: 2026-08-12 09:30:00 +0000 UTC, expiry: 30s Latest \
             hard:false"
        );
        app["metadata"]["annotations"] = json!({REFRESH: "hard"});
        assert_eq!(
            reason(&app, &settings, "2026-08-12T09:30:31Z", None),
            "hard refresh requested ForceResolve hard:true"
        );
        app["metadata"]["annotations"] = json!({REFRESH: ""});
        assert_eq!(
            reason(&app, &settings, "2026-08-12T09:30:01Z", None),
            "normal refresh requested ForceResolve hard:false"
        );
    }

    #[test]
    fn a_changed_spec_is_compared_with_what_was_compared() {
        let (mut app, settings) = (compared(), settings(30, 0));
        app["spec"]["destination"]["namespace"] = json!("other");
        assert_eq!(reason(&app, &settings, "2026-08-12T09:30:01Z", None), "spec.destination differs Latest hard:false");
        app["spec"]["source"]["targetRevision"] = json!("dev");
        assert_eq!(
            reason(&app, &settings, "2026-08-12T09:30:01Z", None),
            "spec.source differs ForceResolve hard:false"
        );
        let mut many = compared();
        many["spec"]["sources"] = json!([{"repoURL": "u"}]);
        assert!(reason(&many, &settings, "2026-08-12T09:30:01Z", None).starts_with("at least one of the spec.sources"));
    }

    #[test]
    fn the_hard_period_wins_over_the_soft_one() {
        let got = reason(&compared(), &settings(30, 60), "2026-08-12T09:31:01Z", Some(Level::Recent));
        assert!(got.contains("hard refresh") && got.ends_with("expiry: 1m0s Latest hard:true"), "{got}");
    }

    #[test]
    fn a_new_application_is_compared_although_polling_is_off() {
        let mut app = compared();
        app["status"] = Value::Null;
        let never = settings(3_153_600_000, 0);
        assert!(reason(&app, &never, "2026-08-12T09:30:01Z", None).starts_with("spec.source differs"));
        assert_eq!(reason(&compared(), &never, "2036-08-12T09:30:01Z", None), "none");
        assert_eq!(
            reason(&compared(), &never, "2036-08-12T09:30:01Z", Some(Level::Recent)),
            "controller refresh requested Recent hard:false"
        );
    }
}
