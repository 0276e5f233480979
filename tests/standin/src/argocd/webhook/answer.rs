//! What argocd-server answers to a request, before anything is looked up, and what it logs about it (argo-cd v3.5.1
//! util/webhook/webhook.go, `Handler`, and its older forms).

use hyper::{Method, StatusCode};

use super::{
    parsers::{Fault, Payload, Request, parser},
    secrets::Secrets,
};
use crate::argocd::{log::Level, version::Version};

/// A line for the log; whether it is marked as one about security.
pub type Line = (Level, String, bool);

/// The answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// 200 without a body.
    Accepted(Option<Payload>),
    /// A status, a line of text, and lines for the log.
    Refused(StatusCode, String, Vec<Line>),
    /// The handler panics, and the connection ends without an answer.
    HangUp,
}

/// Answers a request.
pub fn answer(request: &Request, secrets: &Secrets, version: Version, limit_mb: u64) -> Answer {
    let parsed = match parser(request, version) {
        None => {
            let line = (Level::Debug, "Ignoring unknown webhook event".into(), false);
            return Answer::Refused(StatusCode::BAD_REQUEST, "Unknown webhook event".into(), vec![line]);
        }
        Some(parse) => parse(request, secrets, version),
    };
    parsed.map_or_else(|fault| refuse(&fault, request.method, version, limit_mb), Answer::Accepted)
}

fn refuse(fault: &Fault, method: &Method, version: Version, limit_mb: u64) -> Answer {
    let new = version.at_least(3, 5);
    let mut lines: Vec<Line> = security_line(fault).map(|text| (Level::Info, text, true)).into_iter().collect();
    let reason = match fault {
        Fault::Panic => return Answer::HangUp,
        Fault::Registry => return Answer::Refused(StatusCode::UNAUTHORIZED, "Unauthorized".into(), lines),
        Fault::Payload if new => {
            let text = format!(
                "Webhook processing failed: payload too large or corrupted (limit {limit_mb} MB): error \
                                parsing payload"
            );
            lines.push((Level::Warning, text, true));
            let body = format!("Webhook processing failed: payload must be valid JSON under {limit_mb} MB");
            return Answer::Refused(StatusCode::BAD_REQUEST, body, lines);
        }
        Fault::Payload if limits_size(version) => {
            let text = format!(
                "Webhook processing failed: The payload is either too large or corrupted. Please check the payload \
                 size (must be under {limit_mb} MB) and ensure it is valid JSON"
            );
            lines.push((Level::Warning, text.clone(), true));
            return Answer::Refused(StatusCode::BAD_REQUEST, text, lines);
        }
        Fault::Payload => "error parsing payload".to_owned(),
        Fault::Method => "invalid HTTP Method".into(),
        Fault::Event => "event not defined to be parsed".into(),
        Fault::UnknownEvent(name) => format!("unknown event {name}"),
        Fault::SystemHook => "unknown system hook event System Hook".into(),
        Fault::Missing(header) => format!("missing {header} Header"),
        Fault::Hmac(_) => "HMAC verification failed".into(),
        Fault::Token => "X-Gitlab-Token validation failed".into(),
        Fault::Uuid => "UUID verification failed".into(),
        Fault::BasicAuth => "basic auth verification failed".into(),
        Fault::Json(reason) => reason.clone(),
    };
    lines.push((Level::Info, format!("Webhook processing failed: {reason}"), false));
    let status = if method == Method::POST { StatusCode::BAD_REQUEST } else { StatusCode::METHOD_NOT_ALLOWED };
    let body = match new {
        true => "Webhook processing failed".into(),
        false => format!("Webhook processing failed: {}", html_escaped(&reason)),
    };
    Answer::Refused(status, body, lines)
}

/// Whether there is a limit on the size of a body.
pub fn limits_size(version: Version) -> bool {
    version.at_least(2, 12)
}

fn security_line(fault: &Fault) -> Option<String> {
    Some(match fault {
        Fault::Hmac(provider) => format!("{provider} webhook HMAC verification failed"),
        Fault::Token => "GitLab webhook token verification failed".into(),
        Fault::Uuid => "BitBucket webhook UUID verification failed".into(),
        Fault::BasicAuth => "Azure DevOps webhook basic auth verification failed".into(),
        Fault::Registry => "Registry webhook HMAC verification failed".into(),
        _ => return None,
    })
}

/// Go's `html.EscapeString`.
fn html_escaped(text: &str) -> String {
    let escapes = [("&", "&amp;"), ("'", "&#39;"), ("<", "&lt;"), (">", "&gt;"), ("\"", "&#34;")];
    escapes.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

#[cfg(test)]
mod tests {
    use hyper::HeaderMap;

    use super::*;
    use crate::argocd::webhook::event::Provider;

    const SECRET: &str = "It's a Secret to Everybody";
    /// What [`SIGNED`] and [`SIGNED_SHA1`] sign; both by openssl.
    const BODY: &str = r#"{"ref":"refs/heads/main","x":"<é>"}"#;
    const SIGNED: &str = "588c2559db7fbf253b3f3c6dac4ee15ccff8979d38bbd79566858670215e3dc7";
    const SIGNED_SHA1: &str = "f67cc37af41a459af98f26ffa6363d6c1125bd12";

    fn all_secrets() -> Secrets {
        Secrets {
            github: SECRET.into(),
            gitlab: SECRET.into(),
            bitbucket_uuid: "{u-1}".into(),
            bitbucket_server: SECRET.into(),
            gogs: SECRET.into(),
            azure_username: "user".into(),
            azure_password: "pw".into(),
        }
    }

    /// `POST` unless the first header is `METHOD: …`.
    fn ask(version: &str, secrets: &Secrets, headers: &str, body: &str) -> Answer {
        let mut map = HeaderMap::new();
        let mut method = Method::POST;
        for (name, value) in headers.lines().filter_map(|line| line.trim().split_once(": ")) {
            if name == "METHOD" {
                method = value.parse().unwrap();
            } else {
                map.append(hyper::header::HeaderName::try_from(name).unwrap(), value.parse().unwrap());
            }
        }
        let body = (body != "too long").then_some(body.as_bytes());
        answer(&Request { method: &method, headers: &map, body }, secrets, Version::of_tag(version), 50)
    }

    /// `200`, `200 ignored`, `400 body`, `hang up`.
    fn short(answer: &Answer) -> String {
        match answer {
            Answer::Accepted(Some(_)) => "200".into(),
            Answer::Accepted(None) => "200 ignored".into(),
            Answer::Refused(status, body, _) => format!("{} {body}", status.as_u16()),
            Answer::HangUp => "hang up".into(),
        }
    }

    fn logged(answer: &Answer) -> Vec<String> {
        let Answer::Refused(_, _, lines) = answer else { return Vec::new() };
        lines.iter().map(|(_, text, security)| format!("{text}{}", if *security { " !" } else { "" })).collect()
    }

    /// Headers, body, what v3.4 answers after `Webhook processing failed: `, and the line
    /// that the log has besides the reason. All secrets are set.
    const REFUSED: [(&str, &str, &str, Option<&str>); 27] = [
        ("X-GitHub-Event: release", "{}", "event not defined to be parsed", None),
        ("X-Gogs-Event: create", "{}", "event not defined to be parsed", None),
        ("X-GitHub-Event: push", BODY, "missing X-Hub-Signature-256 Header", None),
        (
            "X-GitHub-Event: push\nX-Hub-Signature: sha1=f67cc37af41a459af98f26ffa6363d6c1125bd12",
            BODY,
            "missing X-Hub-Signature-256 Header",
            None,
        ),
        ("X-Gogs-Event: push", BODY, "missing X-Gogs-Signature Header", None),
        ("X-Event-Key: repo:refs_changed", BODY, "missing X-Hub-Signature Header", None),
        (
            "X-GitHub-Event: push\nX-Hub-Signature-256: sha256=00",
            BODY,
            "HMAC verification failed",
            Some("GitHub webhook HMAC verification failed"),
        ),
        (
            "X-Gogs-Event: push\nX-Gogs-Signature: sha256=588c2559db7fbf253b3f3c6dac4ee15ccff8979d38bbd79566858670215e3dc7",
            BODY,
            "HMAC verification failed",
            Some("Gogs webhook HMAC verification failed"),
        ),
        (
            "X-Event-Key: repo:refs_changed\nX-Hub-Signature: sha256=00",
            BODY,
            "HMAC verification failed",
            Some("BitBucket webhook HMAC verification failed"),
        ),
        (
            "X-Gitlab-Event: Push Hook\nX-Gitlab-Token: nope",
            "{}",
            "X-Gitlab-Token validation failed",
            Some("GitLab webhook token verification failed"),
        ),
        (
            "X-Gitlab-Event: Push Hook",
            "{}",
            "X-Gitlab-Token validation failed",
            Some("GitLab webhook token verification failed"),
        ),
        (
            "X-Gitlab-Event: Job Hook\nX-Gitlab-Token: It's a Secret to Everybody",
            "{}",
            "event not defined to be parsed",
            None,
        ),
        (
            "X-Gitlab-Event: System Hook\nX-Gitlab-Token: It's a Secret to Everybody",
            r#"{"event_name":"repository_update"}"#,
            "unknown system hook event System Hook",
            None,
        ),
        (
            "X-Gitlab-Event: System Hook\nX-Gitlab-Token: It's a Secret to Everybody",
            r#"{"object_kind":"merge_request"}"#,
            "event not defined to be parsed",
            None,
        ),
        (
            "X-Hook-UUID: {u-2}\nX-Event-Key: repo:push",
            "{}",
            "UUID verification failed",
            Some("BitBucket webhook UUID verification failed"),
        ),
        ("X-Hook-UUID: {u-1}\nX-Event-Key: repo:fork", "{}", "event not defined to be parsed", None),
        ("X-Event-Key: repo:push", "{}", "event not defined to be parsed", None),
        (
            "X-Vss-Activityid: a",
            "{}",
            "basic auth verification failed",
            Some("Azure DevOps webhook basic auth verification failed"),
        ),
        (
            "X-Vss-Activityid: a\nAuthorization: Basic dXNlcjpubw==",
            "{}",
            "basic auth verification failed",
            Some("Azure DevOps webhook basic auth verification failed"),
        ),
        (
            "X-Vss-Activityid: a\nAuthorization: Basic dXNlcjpwdw==",
            r#"{"eventType":"workitem.created"}"#,
            "unknown event workitem.created",
            None,
        ),
        (
            "X-GitHub-Event: push\nX-Hub-Signature-256: 757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
            "Hello, World!",
            "invalid character &#39;H&#39; looking for beginning of value",
            None,
        ),
        (
            "X-Hook-UUID: {u-1}\nX-Event-Key: repo:push",
            r#"{"push":[]}"#,
            "json: cannot unmarshal array into Go struct field RepoPushPayload.push of type struct",
            None,
        ),
        ("METHOD: PUT\nX-GitHub-Event: push", BODY, "invalid HTTP Method", None),
        ("METHOD: GET\nX-Gitlab-Event: Push Hook", "", "invalid HTTP Method", None),
        ("METHOD: GET\nX-Hook-UUID: {u-1}", "", "invalid HTTP Method", None),
        (
            "METHOD: GET\nX-Vss-Activityid: a",
            "",
            "basic auth verification failed",
            Some("Azure DevOps webhook basic auth verification failed"),
        ),
        ("METHOD: GET\nX-Vss-Activityid: a\nAuthorization: Basic dXNlcjpwdw==", "", "invalid HTTP Method", None),
    ];

    #[test]
    fn every_refusal_has_its_reason_before_3_5_and_none_since() {
        for (headers, body, reason, line) in REFUSED {
            let status = if headers.starts_with("METHOD") { 405 } else { 400 };
            let old = ask("v3.4.7", &all_secrets(), headers, body);
            assert_eq!(short(&old), format!("{status} Webhook processing failed: {reason}"), "{headers}");
            let new = ask("v3.5.1", &all_secrets(), headers, body);
            assert_eq!(short(&new), format!("{status} Webhook processing failed"), "{headers}");
            let reason = reason.replace("&#39;", "'");
            let mut expected: Vec<String> = line.map(|line| format!("{line} !")).into_iter().collect();
            expected.push(format!("Webhook processing failed: {reason}"));
            assert_eq!(logged(&new), expected, "{headers}");
        }
    }

    #[test]
    fn no_provider_is_an_unknown_event_whatever_the_method() {
        for headers in ["Content-Type: application/json", "METHOD: GET", "X-GitHub-Event: "] {
            assert_eq!(short(&ask("v3.5.1", &all_secrets(), headers, "{}")), "400 Unknown webhook event");
        }
    }

    #[test]
    fn an_empty_or_too_long_body_is_called_so() {
        let old = "400 Webhook processing failed: The payload is either too large or corrupted. Please check the payload \
                   size (must be under 50 MB) and ensure it is valid JSON";
        let new = "400 Webhook processing failed: payload must be valid JSON under 50 MB";
        let azure = "X-Vss-Activityid: a\nAuthorization: Basic dXNlcjpwdw==";
        for (headers, body) in [("X-GitHub-Event: push", ""), ("X-GitHub-Event: push", "too long"), (azure, "{nope")] {
            let said = ["v3.5.1", "v3.4.0", "v2.11.0"].map(|tag| short(&ask(tag, &all_secrets(), headers, body)));
            assert_eq!(said, [new, old, "400 Webhook processing failed: error parsing payload"]);
        }
        let answer = ask("v3.5.1", &all_secrets(), "X-GitHub-Event: push", "");
        let line = "Webhook processing failed: payload too large or corrupted (limit 50 MB): error parsing payload !";
        assert_eq!(logged(&answer), [line]);
    }

    #[test]
    fn what_is_right_is_accepted() {
        let (gitlab, azure) = (format!("X-Gitlab-Token: {SECRET}"), "Authorization: Basic dXNlcjpwdw==");
        for (headers, body) in [
            (format!("X-GitHub-Event: push\nX-Hub-Signature-256: sha256={SIGNED}"), BODY),
            (format!("X-GitHub-Event: ping\nX-Hub-Signature-256: {SIGNED}"), BODY),
            (format!("X-Gogs-Event: push\nX-Gogs-Signature: {SIGNED}"), BODY),
            (format!("X-Event-Key: repo:refs_changed\nX-Hub-Signature: sha256={SIGNED}"), BODY),
            (format!("X-Event-Key: repo:refs_changed\nX-Hub-Signature: _seven_{SIGNED}"), BODY),
            ("X-Event-Key: diagnostics:ping".into(), ""),
            (format!("X-Gitlab-Event: Tag Push Hook\n{gitlab}"), "{}"),
            (format!("X-Gitlab-Event: System Hook\n{gitlab}"), r#"{"event_name":"push"}"#),
            (format!("X-Gitlab-Event: System Hook\n{gitlab}"), r#"{"event_name":"key_create"}"#),
            ("X-Hook-UUID: {u-1}\nX-Event-Key: repo:push".into(), "{}"),
            (format!("X-Vss-Activityid: a\n{azure}"), r#"{"eventType":"git.push"}"#),
            (format!("X-Vss-Activityid: a\n{azure}"), r#"{"eventType":"build.complete"}"#),
        ] {
            assert_eq!(short(&ask("v3.5.1", &all_secrets(), &headers, body)), "200", "{headers}");
        }
    }

    #[test]
    fn the_first_provider_in_the_table_takes_the_request() {
        let both = format!("X-GitHub-Event: push\nX-Gogs-Event: push\nX-Gogs-Signature: {SIGNED}");
        let Answer::Accepted(Some(Payload::Push(provider, _))) = ask("v3.5.1", &all_secrets(), &both, BODY) else {
            panic!("refused")
        };
        assert_eq!(provider, Provider::Gogs);
    }

    #[test]
    fn a_signature_too_short_to_be_cut_ends_the_connection() {
        let headers = "X-Event-Key: repo:refs_changed\nX-Hub-Signature: short";
        assert_eq!(short(&ask("v3.5.1", &all_secrets(), headers, BODY)), "hang up");
        let headers = "X-GitHub-Event: push\nX-Hub-Signature: sha1";
        assert_eq!(short(&ask("v2.12.0", &all_secrets(), headers, BODY)), "hang up");
    }

    #[test]
    fn before_2_13_github_signs_with_sha_1() {
        let sha1 = format!("X-GitHub-Event: push\nX-Hub-Signature: sha1={SIGNED_SHA1}");
        let sha256 = format!("X-GitHub-Event: push\nX-Hub-Signature-256: sha256={SIGNED}");
        let both = format!("{sha1}\nX-Hub-Signature-256: sha256={SIGNED}");
        let statuses =
            |tag: &str| [&sha1, &sha256, &both].map(|headers| short(&ask(tag, &all_secrets(), headers, BODY)) == "200");
        assert_eq!(statuses("v2.12.9"), [true, false, true]);
        assert_eq!(statuses("v2.13.0"), [false, true, true]);
    }

    #[test]
    fn without_secrets_everything_passes_but_a_token_of_gitlab() {
        let none = Secrets::default();
        for headers in [
            "X-GitHub-Event: push\nX-Hub-Signature-256: sha256=00",
            "X-Gogs-Event: push",
            "X-Hook-UUID: {x}\nX-Event-Key: repo:push",
            "X-Event-Key: repo:refs_changed",
            "X-Gitlab-Event: Push Hook",
        ] {
            assert_eq!(short(&ask("v3.5.1", &none, headers, "{}")), "200", "{headers}");
        }
        let token = "X-Gitlab-Event: Push Hook\nX-Gitlab-Token: t";
        let said = ["v2.8.0", "v2.9.0"].map(|tag| short(&ask(tag, &none, token, "{}")));
        assert_eq!(said, ["200", "400 Webhook processing failed: X-Gitlab-Token validation failed"]);
    }

    #[test]
    fn half_a_login_for_azure_is_checked_since_2_13() {
        let half = Secrets { azure_password: "pw".into(), ..Secrets::default() };
        let accepts = |tag| short(&ask(tag, &half, "X-Vss-Activityid: a", r#"{"eventType":"git.push"}"#)) == "200";
        assert_eq!(["v2.12.0", "v2.13.0"].map(accepts), [true, false]);
        assert!(short(&ask("v2.8.0", &half, "X-Vss-Activityid: a", "{}")).contains("Unknown webhook event"));
    }

    #[test]
    fn a_container_image_is_an_event_of_its_own_since_3_5() {
        let body = r#"{"action":"published","package":{"name":"app","package_type":"CONTAINER","owner":{"login":"o"},
            "package_version":{"container_metadata":{"tag":{"name":"1.2.0"}}}}}"#;
        let none = Secrets::default();
        let package = "X-GitHub-Event: package";
        assert_eq!(
            ask("v3.5.1", &none, package, body),
            Answer::Accepted(Some(Payload::Image("o/app".into(), "1.2.0".into())))
        );
        assert_eq!(short(&ask("v3.5.1", &none, package, r#"{"action":"deleted"}"#)), "200 ignored");
        assert_eq!(short(&ask("v3.5.1", &all_secrets(), package, body)), "401 Unauthorized");
        assert_eq!(short(&ask("v3.5.1", &none, package, "")), "400 Webhook processing failed");
        let bare = format!("{package}\nX-Hub-Signature-256: {SIGNED}");
        assert_eq!(short(&ask("v3.5.1", &all_secrets(), &bare, BODY)), "401 Unauthorized");
        let old = short(&ask("v3.4.0", &none, package, body));
        assert_eq!(old, "400 Webhook processing failed: event not defined to be parsed");
    }
}
