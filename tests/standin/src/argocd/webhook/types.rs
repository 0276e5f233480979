//! Go reads the bodies into typed structures: a value of another type is a refusal, one that is absent or `null` is
//! not (go-playground/webhooks v6.4.0, the payload.go of each provider; gogs/go-gogs-client).

use jiff::Timestamp;
use serde_json::Value;

use super::event::Provider;

/// What a field has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Integer,
    Boolean,
    Object,
    Array,
    /// RFC 3339.
    Time,
    /// `2006-01-02T15:04:05+0000` or `…Z`, which refuses `null`, too.
    BitbucketTime,
    /// Azure's own, which refuses `null`, too.
    AzureTime,
}

use Kind::{Array, AzureTime, BitbucketTime, Boolean, Integer, Object, Text, Time};

const COMMITS: [(&str, Kind); 8] = [
    ("commits", Array),
    ("commits[]", Object),
    ("commits[].added", Array),
    ("commits[].added[]", Text),
    ("commits[].modified", Array),
    ("commits[].modified[]", Text),
    ("commits[].removed", Array),
    ("commits[].removed[]", Text),
];

const PUSH: [(&str, Kind); 3] = [("ref", Text), ("before", Text), ("after", Text)];

/// The fields that a sender is likely to fill.
fn fields(provider: Provider) -> (&'static str, Vec<(&'static str, Kind)>) {
    let with_commits = |own: &[(&'static str, Kind)]| [&PUSH[..], &COMMITS[..], own].concat();
    match provider {
        Provider::GitHub => {
            let own = [
                ("created", Boolean),
                ("deleted", Boolean),
                ("forced", Boolean),
                ("compare", Text),
                ("commits[].id", Text),
                ("commits[].message", Text),
                ("commits[].timestamp", Text),
                ("head_commit", Object),
                ("head_commit.id", Text),
                ("head_commit.message", Text),
                ("repository", Object),
                ("repository.id", Integer),
                ("repository.name", Text),
                ("repository.full_name", Text),
                ("repository.private", Boolean),
                ("repository.html_url", Text),
                ("repository.clone_url", Text),
                ("repository.ssh_url", Text),
                ("repository.default_branch", Text),
                ("repository.created_at", Integer),
                ("repository.pushed_at", Integer),
                ("repository.updated_at", Time),
                ("pusher", Object),
                ("sender", Object),
                ("sender.login", Text),
                ("sender.id", Integer),
                ("installation", Object),
                ("installation.id", Integer),
            ];
            ("PushPayload", with_commits(&own))
        }
        Provider::Gogs => {
            let own = [
                ("secret", Text),
                ("compare_url", Text),
                ("commits[].id", Text),
                ("commits[].message", Text),
                ("commits[].url", Text),
                ("commits[].timestamp", Time),
                ("repository", Object),
                ("repository.id", Integer),
                ("repository.name", Text),
                ("repository.full_name", Text),
                ("repository.private", Boolean),
                ("repository.html_url", Text),
                ("repository.default_branch", Text),
                ("repository.created_at", Time),
                ("repository.updated_at", Time),
                ("pusher", Object),
                ("sender", Object),
            ];
            ("PushPayload", with_commits(&own))
        }
        Provider::GitLab => {
            let own = [
                ("object_kind", Text),
                ("checkout_sha", Text),
                ("user_id", Integer),
                ("user_name", Text),
                ("user_username", Text),
                ("project_id", Integer),
                ("project", Object),
                ("project.id", Integer),
                ("project.name", Text),
                ("project.web_url", Text),
                ("project.default_branch", Text),
                ("repository", Object),
                ("repository.homepage", Text),
                ("commits[].id", Text),
                ("commits[].message", Text),
                ("total_commits_count", Integer),
            ];
            ("PushEventPayload", with_commits(&own))
        }
        Provider::Bitbucket => (
            "RepoPushPayload",
            vec![
                ("repository", Object),
                ("repository.full_name", Text),
                ("repository.links", Object),
                ("repository.links.html", Object),
                ("repository.links.html.href", Text),
                ("repository.links.self", Object),
                ("repository.links.self.href", Text),
                ("push", Object),
                ("push.changes", Array),
                ("push.changes[]", Object),
                ("push.changes[].new", Object),
                ("push.changes[].new.name", Text),
                ("push.changes[].new.target", Object),
                ("push.changes[].new.target.hash", Text),
                ("push.changes[].old", Object),
                ("push.changes[].old.target", Object),
                ("push.changes[].old.target.hash", Text),
            ],
        ),
        Provider::BitbucketServer => (
            "RepositoryReferenceChangedPayload",
            vec![
                ("date", BitbucketTime),
                ("actor", Object),
                ("repository", Object),
                ("repository.slug", Text),
                ("repository.links", Object),
                ("changes", Array),
                ("changes[]", Object),
                ("changes[].ref", Object),
                ("changes[].ref.id", Text),
                ("changes[].refId", Text),
                ("changes[].fromHash", Text),
                ("changes[].toHash", Text),
                ("changes[].type", Text),
            ],
        ),
        Provider::AzureDevOps => (
            "GitPushEvent",
            vec![
                ("eventType", Text),
                ("createdDate", AzureTime),
                ("resource", Object),
                ("resource.repository", Object),
                ("resource.repository.remoteUrl", Text),
                ("resource.repository.defaultBranch", Text),
                ("resource.refUpdates", Array),
                ("resource.refUpdates[]", Object),
                ("resource.refUpdates[].name", Text),
                ("resource.refUpdates[].oldObjectId", Text),
                ("resource.refUpdates[].newObjectId", Text),
            ],
        ),
    }
}

/// Checks the types in the body of a push.
///
/// # Errors
/// In Go's words.
pub fn check(provider: Provider, body: &Value) -> Result<(), String> {
    let (structure, fields) = fields(provider);
    if !body.is_object() && !body.is_null() {
        return Err(format!("json: cannot unmarshal {} into Go value of type {structure}", word(body)));
    }
    for (path, kind) in fields {
        check_path(body, path, kind).map_err(|(value, expected)| match kind {
            Time | BitbucketTime | AzureTime if value.is_string() || value.is_null() => {
                format!("parsing time {value} as {expected:?}: cannot parse {value} as \"2006\"")
            }
            _ => {
                let field = path.replace("[]", "");
                format!(
                    "json: cannot unmarshal {} into Go struct field {structure}.{field} of type {expected}",
                    word(&value)
                )
            }
        })?;
    }
    Ok(())
}

fn check_path(value: &Value, path: &str, kind: Kind) -> Result<(), (Value, &'static str)> {
    let (head, rest) = path.split_once('.').map_or((path, None), |(head, rest)| (head, Some(rest)));
    let (name, each) = head.strip_suffix("[]").map_or((head, false), |name| (name, true));
    let Some(field) = value.get(name) else { return Ok(()) };
    let items = if each { field.as_array().map_or(&[][..], Vec::as_slice) } else { std::slice::from_ref(field) };
    items.iter().try_for_each(|item| match rest {
        Some(rest) => check_path(item, rest, kind),
        None => check_kind(item, kind).map_err(|expected| (item.clone(), expected)),
    })
}

fn check_kind(value: &Value, kind: Kind) -> Result<(), &'static str> {
    if value.is_null() && !matches!(kind, BitbucketTime | AzureTime) {
        return Ok(());
    }
    let time = |accepts: fn(&str) -> bool| value.as_str().is_some_and(accepts);
    let (fits, expected) = match kind {
        Text => (value.is_string(), "string"),
        Integer => (value.is_i64() || value.is_u64(), "int64"),
        Boolean => (value.is_boolean(), "bool"),
        Object => (value.is_object(), "struct"),
        Array => (value.is_array(), "[]string"),
        Time => (time(is_rfc3339), "2006-01-02T15:04:05Z07:00"),
        BitbucketTime => (time(is_bitbucket_time), "2006-01-02T15:04:05Z0700"),
        AzureTime => (time(is_rfc3339), "2006-01-02T15:04:05.999999999Z"),
    };
    if fits { Ok(()) } else { Err(expected) }
}

fn is_rfc3339(text: &str) -> bool {
    text.as_bytes().get(10) == Some(&b'T') && text.parse::<Timestamp>().is_ok()
}

fn is_bitbucket_time(text: &str) -> bool {
    let zone = text.get(19..).unwrap_or_default();
    let digits =
        zone.strip_prefix(['+', '-']).is_some_and(|zone| zone.len() == 4 && zone.bytes().all(|b| b.is_ascii_digit()));
    (zone == "Z" || digits) && is_rfc3339(&format!("{}Z", &text[..19]))
}

fn word(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_wrong_type_is_refused_and_an_absent_one_is_not() {
        for (provider, body, expected) in [
            (Provider::GitHub, json!({}), Ok(())),
            (Provider::GitHub, json!({"ref": null, "x": 1}), Ok(())),
            (
                Provider::GitHub,
                json!({"ref": 1}),
                Err("json: cannot unmarshal number into Go struct field PushPayload.ref of type string"),
            ),
            (Provider::GitHub, json!({"repository": {"created_at": 1_754_990_000}}), Ok(())),
            (
                Provider::GitHub,
                json!({"repository": {"created_at": "2026-08-12T09:30:00Z"}}),
                Err(
                    "json: cannot unmarshal string into Go struct field PushPayload.repository.created_at of type int64",
                ),
            ),
            (Provider::Gogs, json!({"repository": {"created_at": "2026-08-12T09:30:00+02:00"}}), Ok(())),
            (
                Provider::Gogs,
                json!({"repository": {"created_at": ""}}),
                Err(r#"parsing time "" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "2006""#),
            ),
            (Provider::BitbucketServer, json!({"date": "2026-08-12T09:30:00+0000"}), Ok(())),
            (Provider::BitbucketServer, json!({"date": "2026-08-12T09:30:00Z"}), Ok(())),
            (Provider::GitHub, json!([]), Err("json: cannot unmarshal array into Go value of type PushPayload")),
            (
                Provider::GitLab,
                json!({"commits": [{"added": [1]}]}),
                Err("json: cannot unmarshal number into Go struct field PushEventPayload.commits.added of type string"),
            ),
        ] {
            assert_eq!(check(provider, &body), expected.map_err(str::to_owned), "{provider:?} {body}");
        }
        for date in [json!("2026-08-12T09:30:00+00:00"), json!(null), json!("")] {
            assert!(check(Provider::BitbucketServer, &json!({"date": date})).is_err(), "{date}");
        }
    }
}
