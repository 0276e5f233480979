//! Whether a signature is the right one, and if not, which of the usual faults makes it. Pure.

use base64::{Engine, prelude::BASE64_STANDARD};
use subtle::ConstantTimeEq;

use crate::{
    key::{self, Reference},
    provider::Provider,
    reprint, signature,
};

/// Bodies that are printed again to see whether that is what was signed.
const LARGEST_REPRINT: usize = 8 * 1024 * 1024;

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnosis {
    /// Whether the server takes it.
    pub valid: bool,
    /// How it is made: `hmac-sha256`, `hmac-sha1`, `token`, `uuid`, `basic`.
    pub scheme: &'static str,
    /// The fault that makes it; `None` when it is valid.
    pub fault: Option<&'static str>,
    /// In words.
    pub detail: String,
}

impl Diagnosis {
    fn valid(scheme: &'static str, detail: impl Into<String>) -> Self {
        Diagnosis { valid: true, scheme, fault: None, detail: detail.into() }
    }

    fn fault(scheme: &'static str, fault: &'static str, detail: impl Into<String>) -> Self {
        Diagnosis { valid: false, scheme, fault: Some(fault), detail: detail.into() }
    }
}

/// The header that carries the proof of a provider's events.
pub fn header(provider: Provider) -> &'static str {
    match provider {
        Provider::Github => "X-Hub-Signature-256",
        Provider::BitbucketServer => "X-Hub-Signature",
        Provider::Gogs => "X-Gogs-Signature",
        Provider::Gitlab => "X-Gitlab-Token",
        Provider::Bitbucket => "X-Hook-UUID",
        Provider::Azuredevops => "Authorization",
    }
}

/// Looks at what an event brought. `stored` is the text in `argocd-secret`, where it is a reference to the key.
pub fn of(provider: Provider, value: &str, key: &[u8], stored: Option<&[u8]>, body: &[u8]) -> Diagnosis {
    match provider {
        Provider::Github | Provider::BitbucketServer | Provider::Gogs => {
            of_hmac(provider, value.trim(), key, stored, body)
        }
        Provider::Gitlab => of_token("token", value.as_bytes(), key),
        Provider::Bitbucket => of_token("uuid", value.as_bytes(), key),
        Provider::Azuredevops => {
            match value.strip_prefix("Basic ").and_then(|text| BASE64_STANDARD.decode(text).ok()) {
                Some(given) => of_token("basic", &given, key),
                None => Diagnosis::fault("basic", "unknown", "it is not HTTP Basic authentication"),
            }
        }
    }
}

fn of_hmac(provider: Provider, value: &str, key: &[u8], stored: Option<&[u8]>, body: &[u8]) -> Diagnosis {
    const SCHEME: &str = "hmac-sha256";
    let (prefix, hex) = value.split_once('=').map_or(("", value), |(prefix, hex)| (prefix, hex));
    let lower = hex.to_ascii_lowercase();
    if prefix.eq_ignore_ascii_case("sha1") || lower.len() == 40 {
        let right = same(lower.as_bytes(), signature::hmac_sha1(key, body).as_bytes());
        let detail = if right {
            "it is the right HMAC-SHA1, which Argo CD reads only before v2.13; it wants X-Hub-Signature-256"
        } else {
            "it is an HMAC-SHA1, which Argo CD reads only before v2.13, and made with another key or over other bytes"
        };
        return Diagnosis::fault("hmac-sha1", "sha1", detail);
    }
    let expected = signature::hmac_sha256(key, body);
    if same(lower.as_bytes(), expected.as_bytes()) {
        return of_spelling(provider, prefix, hex == lower);
    }
    let makes = |key: &[u8], body: &[u8]| same(lower.as_bytes(), signature::hmac_sha256(key, body).as_bytes());
    if let Some((fault, detail)) = key_fault(key, stored, |key| makes(key, body)) {
        return Diagnosis::fault(SCHEME, fault, detail);
    }
    if let Some((fault, detail)) = body_fault(body, |body| makes(key, body)) {
        return Diagnosis::fault(SCHEME, fault, detail);
    }
    if matches!(key::reference(key), Reference::Other(..)) {
        return Diagnosis::fault(
            SCHEME,
            "key-unresolved-reference",
            "the key at hand is a reference ($name:key), and not the key that it leads to",
        );
    }
    if lower.len() != 64 || !lower.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Diagnosis::fault(SCHEME, "unknown", "it is not 64 hexadecimal digits, as an HMAC-SHA256 has");
    }
    Diagnosis::fault(
        SCHEME,
        "unknown",
        "no usual fault makes it: the key is another one, or the body was changed on the way",
    )
}

/// The digits are right; is the rest?
fn of_spelling(provider: Provider, prefix: &str, is_lower: bool) -> Diagnosis {
    const SCHEME: &str = "hmac-sha256";
    if !is_lower {
        return Diagnosis::fault(SCHEME, "hex-uppercase", "the digits are right, but must be in lower case");
    }
    match (provider, prefix) {
        (Provider::Gogs, "") | (Provider::Github | Provider::BitbucketServer, "sha256") => {
            Diagnosis::valid(SCHEME, "it is the server's own")
        }
        (Provider::Gogs, _) => {
            Diagnosis::fault(SCHEME, "unexpected-prefix", "the digits are right, but Gogs sends them without a prefix")
        }
        (Provider::Github, "") => {
            Diagnosis::valid(SCHEME, "it lacks the prefix sha256=, which Argo CD does without, and others do not")
        }
        // Whatever the first seven characters are, the server cuts them off.
        (Provider::BitbucketServer, prefix) if prefix.len() == 6 => Diagnosis::valid(SCHEME, "it is the server's own"),
        _ => Diagnosis::fault(
            SCHEME,
            "missing-prefix",
            "the digits are right, but must stand behind sha256=: the server cuts off the first seven characters",
        ),
    }
}

fn key_fault(key: &[u8], stored: Option<&[u8]>, makes: impl Fn(&[u8]) -> bool) -> Option<(&'static str, &'static str)> {
    let with = |end: &[u8]| [key, end].concat();
    let bare = key.trim_ascii_end();
    let trimmed = key.trim_ascii();
    let without_line = key.strip_suffix(b"\n").map(|key| key.strip_suffix(b"\r").unwrap_or(key));
    if makes(&with(b"\n")) || makes(&with(b"\r\n")) {
        return Some(("key-trailing-newline", "the signer's key ends in a newline that the key at hand lacks"));
    }
    if without_line.is_some_and(&makes) {
        return Some(("key-trailing-newline", "the key at hand ends in a newline that the signer's lacks"));
    }
    let padded = [with(b" "), with(b"\t"), [b" ", key].concat()];
    if (trimmed != key && (makes(trimmed) || makes(bare))) || padded.iter().any(|key| makes(key)) {
        return Some(("key-blank", "white space around the key makes the difference"));
    }
    if BASE64_STANDARD.decode(trimmed).is_ok_and(|decoded| makes(&decoded) || makes(decoded.trim_ascii_end())) {
        return Some(("key-base64-twice", "the key at hand is base64 of the signer's: it was encoded once too often"));
    }
    let encoded = BASE64_STANDARD.encode(key);
    if makes(encoded.as_bytes()) || makes(BASE64_STANDARD.encode(with(b"\n")).as_bytes()) {
        return Some((
            "key-base64-twice",
            "the signer's key is base64 of the key at hand: it was encoded once too often",
        ));
    }
    stored.filter(|stored| makes(stored)).map(|_| {
        ("key-unresolved-reference", "the signer used the text of the reference ($…), and not the key that it leads to")
    })
}

fn body_fault(body: &[u8], makes: impl Fn(&[u8]) -> bool) -> Option<(&'static str, &'static str)> {
    let with = |end: &[u8]| [body, end].concat();
    if makes(&with(b"\n")) || makes(&with(b"\r\n")) {
        return Some((
            "body-trailing-newline",
            "a body with a newline at its end was signed, and that newline is gone",
        ));
    }
    if body.ends_with(b"\n") && makes(body.trim_ascii_end()) {
        return Some(("body-trailing-newline", "the body ends in a newline that was not there when it was signed"));
    }
    if makes(reprint::to_form(body).as_bytes()) {
        return Some((
            "body-form-encoded",
            "the event was signed as a form (payload=…): its content type must be application/json",
        ));
    }
    if reprint::from_form(body).is_some_and(|json| makes(&json)) {
        return Some(("body-form-encoded", "the body at hand is a form (payload=…), and the JSON in it was signed"));
    }
    if body.len() > LARGEST_REPRINT {
        return None;
    }
    let reprinted = reprint::all(body).any(|text| makes(text.as_bytes()) || makes(format!("{text}\n").as_bytes()));
    reprinted
        .then_some(("body-reprinted", "the JSON was parsed and printed again between signing and here: keep the bytes"))
}

fn of_token(scheme: &'static str, given: &[u8], key: &[u8]) -> Diagnosis {
    if same(given, key) {
        return Diagnosis::valid(scheme, "it is the server's own");
    }
    match key_fault(key, None, |key| same(given, key)) {
        Some((fault, detail)) => Diagnosis::fault(scheme, fault, detail),
        None if given.is_empty() => Diagnosis::fault(scheme, "unknown", "there is none"),
        None => Diagnosis::fault(scheme, "unknown", "it is not the server's"),
    }
}

/// Compares without telling by its time where the two differ.
fn same(one: &[u8], other: &[u8]) -> bool {
    one.ct_eq(other).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &[u8] = b"s3cr3t-of-the-hook";
    const BODY: &[u8] = br#"{"ref":"refs/heads/main","n":1,"a":{"z":1,"b":["x","\u00fc<"]}}"#;

    fn diagnose(value: &str, key: &[u8], body: &[u8]) -> (bool, Option<&'static str>) {
        let found = of(Provider::Github, value, key, None, body);
        (found.valid, found.fault)
    }

    fn signed(key: &[u8], body: &[u8]) -> String {
        format!("sha256={}", signature::hmac_sha256(key, body))
    }

    #[test]
    fn each_usual_fault_is_named() {
        let with = |bytes: &[u8], end: &[u8]| [bytes, end].concat();
        let pretty = "{\n  \"ref\": \"refs/heads/main\",\n  \"n\": 1,\n  \"a\": {\n    \"z\": 1,\n    \"b\": [\n      \"x\",\n      \"ü<\"\n    ]\n  }\n}";
        let python = r#"{"ref": "refs/heads/main", "n": 1, "a": {"z": 1, "b": ["x", "\u00fc<"]}}"#;
        let go = "{\"a\":{\"b\":[\"x\",\"ü\\u003c\"],\"z\":1},\"n\":1,\"ref\":\"refs/heads/main\"}";
        let form = b"payload=%7B%22ref%22%3A%22refs%2Fheads%2Fmain%22%2C%22n%22%3A1%2C%22a%22%3A%7B%22z%22%3A1%2C%22b%22%3A%5B%22x%22%2C%22%5Cu00fc%3C%22%5D%7D%7D";
        let base64 = BASE64_STANDARD.encode(KEY);
        let right = signed(KEY, BODY);
        for (name, value, key, body, fault) in [
            ("right", right.clone(), KEY.to_vec(), BODY.to_vec(), None),
            (
                "signer's newline",
                signed(&with(KEY, b"\n"), BODY),
                KEY.to_vec(),
                BODY.to_vec(),
                Some("key-trailing-newline"),
            ),
            ("our newline", right.clone(), with(KEY, b"\n"), BODY.to_vec(), Some("key-trailing-newline")),
            ("our CRLF", right.clone(), with(KEY, b"\r\n"), BODY.to_vec(), Some("key-trailing-newline")),
            ("blank", right.clone(), with(KEY, b" "), BODY.to_vec(), Some("key-blank")),
            ("signer's blank", signed(&with(KEY, b" "), BODY), KEY.to_vec(), BODY.to_vec(), Some("key-blank")),
            ("base64", right.clone(), base64.clone().into_bytes(), BODY.to_vec(), Some("key-base64-twice")),
            ("reference", right.clone(), b"$hooks:github".to_vec(), BODY.to_vec(), Some("key-unresolved-reference")),
            ("pretty", signed(KEY, pretty.as_bytes()), KEY.to_vec(), BODY.to_vec(), Some("body-reprinted")),
            ("python", signed(KEY, python.as_bytes()), KEY.to_vec(), BODY.to_vec(), Some("body-reprinted")),
            ("go", signed(KEY, go.as_bytes()), KEY.to_vec(), BODY.to_vec(), Some("body-reprinted")),
            (
                "body newline",
                signed(KEY, &with(BODY, b"\n")),
                KEY.to_vec(),
                BODY.to_vec(),
                Some("body-trailing-newline"),
            ),
            ("our body newline", right.clone(), KEY.to_vec(), with(BODY, b"\n"), Some("body-trailing-newline")),
            ("signed as form", signed(KEY, form), KEY.to_vec(), BODY.to_vec(), Some("body-form-encoded")),
            ("our form", right.clone(), KEY.to_vec(), form.to_vec(), Some("body-form-encoded")),
            (
                "upper case",
                format!("sha256={}", right[7..].to_uppercase()),
                KEY.to_vec(),
                BODY.to_vec(),
                Some("hex-uppercase"),
            ),
            ("SHA-1", format!("sha1={}", signature::hmac_sha1(KEY, BODY)), KEY.to_vec(), BODY.to_vec(), Some("sha1")),
            ("other key", signed(b"other", BODY), KEY.to_vec(), BODY.to_vec(), Some("unknown")),
            ("nonsense", "nonsense".into(), KEY.to_vec(), BODY.to_vec(), Some("unknown")),
            ("empty", String::new(), KEY.to_vec(), Vec::new(), Some("unknown")),
        ] {
            assert_eq!(diagnose(&value, &key, &body), (fault.is_none(), fault), "{name}");
        }
    }

    #[test]
    fn a_reference_whose_text_was_used_as_the_key_is_named() {
        let stored = b"$hooks:github";
        let found = of(Provider::Github, &signed(stored, BODY), KEY, Some(stored), BODY);
        assert_eq!(found.fault, Some("key-unresolved-reference"));
    }

    #[test]
    fn each_provider_spells_a_signature_its_own_way() {
        let hex = signature::hmac_sha256(KEY, BODY);
        for (provider, value, fault) in [
            (Provider::Github, format!("sha256={hex}"), None),
            (Provider::Github, hex.clone(), None),
            (Provider::Gogs, hex.clone(), None),
            (Provider::Gogs, format!("sha256={hex}"), Some("unexpected-prefix")),
            (Provider::BitbucketServer, format!("sha256={hex}"), None),
            (Provider::BitbucketServer, hex.clone(), Some("missing-prefix")),
            (Provider::Gitlab, "s3cr3t-of-the-hook".into(), None),
            (Provider::Gitlab, "other".into(), Some("unknown")),
            (Provider::Gitlab, String::new(), Some("unknown")),
            (Provider::Bitbucket, "s3cr3t-of-the-hook\n".into(), Some("key-trailing-newline")),
            (Provider::Azuredevops, format!("Basic {}", BASE64_STANDARD.encode(KEY)), None),
            (Provider::Azuredevops, "Bearer x".into(), Some("unknown")),
        ] {
            let found = of(provider, &value, KEY, None, BODY);
            assert_eq!(found.fault, fault, "{provider:?} {value:?}");
            assert_eq!(found.valid, fault.is_none());
        }
    }
}
