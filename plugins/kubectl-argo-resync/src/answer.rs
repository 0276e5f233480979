//! Whether an Application has been compared since that was asked. Pure.
//!
//! The annotation's absence proves nothing: a comparison that began before the request removes it too. `reconciledAt` is
//! when a comparison began, in whole seconds of the controller's clock (argo-cd v3.5.1 controller/appcontroller.go).

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::api::DynamicObject;
use serde_json::Value;

/// The annotation that asks for a comparison; `hard` also drops the cached manifests, any other value does not
/// (argo-cd v3.5.1 pkg/apis/application/v1alpha1/types.go).
pub const REFRESH: &str = "argocd.argoproj.io/refresh";

/// Conditions with which the controller gives up before it compares.
const GIVES_UP: [&str; 2] = ["InvalidSpecError", "UnknownError"];
/// Clocks of one cluster differ by less than this, or they are wrong.
const SKEW: SignedDuration = SignedDuration::from_secs(2);
/// What happened so short a time ago may still have consequences.
const RECENT: SignedDuration = SignedDuration::from_secs(1);

/// What matters of an Application at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The value of the annotation, when it is there.
    pub pending: Option<String>,
    /// `status.reconciledAt`.
    pub reconciled_at: Option<Timestamp>,
    /// The first condition that is an error: type and message.
    pub error: Option<(String, String)>,
    /// `status.sync.revision`, or `revisions` joined by commas.
    pub revision: Option<String>,
    /// `status.sync.status`.
    pub sync_status: Option<String>,
    /// An operation is requested or runs; it ends with a comparison.
    pub is_operating: bool,
    /// `status.operationState.finishedAt`.
    pub operated_at: Option<Timestamp>,
}

impl Seen {
    /// Reads an Application; what is missing or of another shape is taken as absent.
    pub fn of(app: &DynamicObject) -> Self {
        let status = &app.data["status"];
        let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let error = status["conditions"].as_array().into_iter().flatten().find_map(|condition| {
            let kind = condition["type"].as_str()?;
            let counts = kind == "ComparisonError" || GIVES_UP.contains(&kind);
            counts.then(|| (kind.to_owned(), text(&condition["message"]).unwrap_or_default()))
        });
        let revisions = status["sync"]["revisions"]
            .as_array()
            .map(|all| all.iter().map(|revision| revision.as_str().unwrap_or_default()).collect::<Vec<_>>().join(","));
        let time = |value: &Value| value.as_str().and_then(|at| at.parse().ok());
        let operation = &status["operationState"];
        Seen {
            pending: app.metadata.annotations.as_ref().and_then(|all| all.get(REFRESH)).cloned(),
            reconciled_at: time(&status["reconciledAt"]),
            error,
            revision: text(&status["sync"]["revision"]).or(revisions),
            sync_status: text(&status["sync"]["status"]),
            is_operating: app.data["operation"].is_object() || operation["phase"] == "Running",
            operated_at: time(&operation["finishedAt"]),
        }
    }

    /// Whether no comparison that counts can have been under way at this moment: none was asked for, none follows an
    /// operation, and none was due by the clock, since one is only when the last is older than the period.
    pub fn is_idle(&self, now: Timestamp, period_s: Option<u64>) -> bool {
        let is_recent = |at: Timestamp| at + RECENT >= now;
        let not_due = self.reconciled_at.is_some_and(|at| {
            let period = period_s.and_then(|seconds| i64::try_from(seconds).ok()).map(SignedDuration::from_secs);
            match period {
                None => false,
                Some(period) if period.is_zero() => !is_recent(at),
                Some(period) => !is_recent(at) && now < at.saturating_add(period).unwrap_or(Timestamp::MAX) - SKEW,
            }
        });
        not_due && self.pending.is_none() && !self.is_operating && !self.operated_at.is_some_and(is_recent)
    }
}

/// One request for a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// When, in whole seconds, by the API server's clock where it said so.
    pub at: Timestamp,
    /// `reconciledAt` of just before.
    pub before: Option<Timestamp>,
    /// Whether no comparison can have been under way: [`Seen::is_idle`].
    pub alone: bool,
    /// The how manieth request it is; the first is 1.
    pub times: u32,
}

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Nothing yet.
    Waiting,
    /// It was compared after the request.
    Refreshed,
    /// It was looked at, and cannot be compared: the condition's type and message.
    Failed(String, String),
    /// The request is gone, but no comparison is known to have begun after it.
    Swallowed,
}

/// Judges what was seen; `now` is by the same clock as `asked.at`.
pub fn judge(asked: &Asked, seen: &Seen, now: Timestamp) -> Answer {
    if seen.pending.is_some() {
        return Answer::Waiting;
    }
    let moved = seen.reconciled_at > asked.before;
    let fresh = seen.reconciled_at.is_some_and(|at| {
        let controller_is_ahead = at > now + SKEW;
        // One that was under way may have begun in the same second, before the request.
        at > asked.at && !controller_is_ahead || at == asked.at && asked.alone
    });
    // One Application is compared by one worker at a time: the comparison that removed the second request began after
    // the one that removed the first had been saved, whatever the clocks say.
    let proven = fresh || (asked.times > 1 && moved);
    match &seen.error {
        Some((kind, message)) if proven || GIVES_UP.contains(&kind.as_str()) => {
            Answer::Failed(kind.clone(), message.clone())
        }
        _ if proven => Answer::Refreshed,
        _ => Answer::Swallowed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::core::ApiResource;
    use serde_json::json;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_000 + second).unwrap()
    }

    fn seen(reconciled: i64) -> Seen {
        Seen { reconciled_at: Some(at(reconciled)), ..Seen::default() }
    }

    fn first() -> Asked {
        Asked { at: at(10), before: Some(at(0)), alone: true, times: 1 }
    }

    #[test]
    fn a_comparison_counts_when_it_began_after_the_request() {
        let now = at(12);
        assert_eq!(judge(&first(), &seen(11), now), Answer::Refreshed);
        assert_eq!(judge(&first(), &seen(10), now), Answer::Refreshed);
        assert_eq!(judge(&first(), &seen(9), now), Answer::Swallowed);
        let pending = Seen { pending: Some("normal".into()), ..seen(11) };
        assert_eq!(judge(&first(), &pending, now), Answer::Waiting);
        let mut never = seen(0);
        never.reconciled_at = None;
        assert_eq!(judge(&first(), &never, now), Answer::Swallowed);
    }

    #[test]
    fn the_same_second_proves_nothing_when_another_comparison_may_have_been_under_way() {
        let asked = Asked { alone: false, ..first() };
        assert_eq!(judge(&asked, &seen(10), at(12)), Answer::Swallowed);
        assert_eq!(judge(&asked, &seen(11), at(12)), Answer::Refreshed);
    }

    #[test]
    fn with_wrong_clocks_the_second_answer_counts() {
        let slow = seen(-30);
        let asked = Asked { before: Some(at(-60)), ..first() };
        assert_eq!(judge(&asked, &slow, at(11)), Answer::Swallowed);
        let again = Asked { before: Some(at(-31)), times: 2, ..asked };
        assert_eq!(judge(&again, &slow, at(12)), Answer::Refreshed);
        let unmoved = Asked { before: Some(at(-30)), times: 2, ..asked };
        assert_eq!(judge(&unmoved, &slow, at(12)), Answer::Swallowed);
        assert_eq!(judge(&first(), &seen(40), at(11)), Answer::Swallowed, "the controller's clock is ahead");
    }

    #[test]
    fn a_comparison_may_be_under_way_when_one_was_due_or_asked_for_or_follows_an_operation() {
        let now = at(100);
        assert!(seen(90).is_idle(now, Some(30)));
        assert!(seen(0).is_idle(now, Some(0)), "nothing is ever due when polling is off");
        for (busy, period_s) in [
            (seen(0), Some(30)),
            (seen(90), None),
            (seen(99), Some(30)),
            (Seen::default(), Some(30)),
            (Seen { pending: Some("normal".into()), ..seen(90) }, Some(30)),
            (Seen { is_operating: true, ..seen(90) }, Some(30)),
            (Seen { operated_at: Some(at(99)), ..seen(90) }, Some(30)),
        ] {
            assert!(!busy.is_idle(now, period_s), "{busy:?}");
        }
    }

    #[test]
    fn an_error_is_an_answer() {
        let error = |kind: &str, reconciled| Seen { error: Some((kind.into(), "why".into())), ..seen(reconciled) };
        let failed = |kind: &str| Answer::Failed(kind.into(), "why".into());
        assert_eq!(judge(&first(), &error("InvalidSpecError", 0), at(12)), failed("InvalidSpecError"));
        assert_eq!(judge(&first(), &error("ComparisonError", 11), at(12)), failed("ComparisonError"));
        assert_eq!(judge(&first(), &error("ComparisonError", 0), at(12)), Answer::Swallowed, "an old error");
    }

    #[test]
    fn an_application_of_an_unknown_shape_is_read_as_far_as_it_goes() {
        let resource: ApiResource = kit::application::resource();
        for (data, revision) in [
            (json!({}), None),
            (json!({"status": {"sync": {"revision": 5}, "conditions": "x", "reconciledAt": "soon"}}), None),
            (json!({"status": {"sync": {"revisions": ["a", "b"]}}}), Some("a,b")),
        ] {
            let app = DynamicObject::new("evt", &resource).data(data);
            assert_eq!(Seen::of(&app).revision.as_deref(), revision);
        }
    }
}
