//! The key that events are signed with: where it comes from, by the server's own rules.

use std::{collections::BTreeMap, path::Path};

use base64::{Engine, prelude::BASE64_STANDARD};
use k8s_openapi::api::core::v1::Secret;
use kit::{
    cluster::{Ask, Cluster},
    error::Error,
    talk::Talk,
};
use kube::Api;

use crate::provider::Provider;

/// The Secret that holds the keys of all providers.
pub const ARGOCD_SECRET: &str = "argocd-secret";

/// The data of a Secret.
pub type Data = BTreeMap<String, Vec<u8>>;

/// A key; it is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(pub Vec<u8>);

/// What a value in `argocd-secret` stands for.
#[derive(Debug, PartialEq, Eq)]
pub enum Reference<'a> {
    /// The value itself.
    Literal,
    /// `$key`: another key of `argocd-secret`.
    Own(&'a str),
    /// `$name:key`: a key of another Secret, which must have the label `app.kubernetes.io/part-of: argocd`.
    Other(&'a str, &'a str),
}

/// Reads a value as the server does (argo-cd v3.5.1 util/settings/settings.go, `ReplaceStringSecret`).
pub fn reference(value: &[u8]) -> Reference<'_> {
    match std::str::from_utf8(value).ok().and_then(|text| text.strip_prefix('$')) {
        None => Reference::Literal,
        Some(rest) => match rest.split_once(':') {
            Some((name, key)) => Reference::Other(name, key),
            None => Reference::Own(rest),
        },
    }
}

/// The key in a file; one newline at its end is dropped.
///
/// # Errors
/// When the file cannot be read or is empty; exit code 2.
pub fn from_file(path: &Path, talk: &Talk) -> Result<Key, Error> {
    let mut bytes = kit::file::read(path)?;
    if bytes.ends_with(b"\n") {
        bytes.pop();
        if bytes.ends_with(b"\r") {
            bytes.pop();
        }
        talk.say(format!("the newline at the end of {} is not part of the key", path.display()));
    }
    usable(bytes, &path.display().to_string(), talk)
}

/// The key in an environment variable, byte for byte.
///
/// # Errors
/// When it is not set or empty; exit code 2.
pub fn from_env(name: &str, talk: &Talk) -> Result<Key, Error> {
    let Some(value) = std::env::var_os(name) else {
        return Err(Error::usage("no-key", format!("the environment variable {name} is not set"))
            .hint("export it, or use --secret-file"));
    };
    usable(std::os::unix::ffi::OsStringExt::into_vec(value), &format!("${name}"), talk)
}

/// The key in `argocd-secret`, byte for byte, or what it refers to.
///
/// # Errors
/// When it is missing or empty (the server then checks nothing), or the Secret cannot be read.
pub async fn from_cluster(cluster: &Cluster, provider: Provider, talk: &Talk) -> Result<Key, Error> {
    let data = read(cluster, ARGOCD_SECRET).await?.map(|secret| secret.data).unwrap_or_default();
    let mut parts = Vec::new();
    for name in provider.secret_keys() {
        let place = format!("{name} of {ARGOCD_SECRET} in namespace {}", cluster.namespace);
        let Some(value) = data.get(*name) else {
            return Err(missing(provider, name, &data, cluster));
        };
        let value = resolve(cluster, value, &data, talk).await?;
        parts.push(usable(value, &place, talk)?.0);
    }
    Ok(Key(parts.join(&b':')))
}

/// A Secret with its labels, as far as this command looks at them.
pub struct Found {
    /// The decoded data.
    pub data: Data,
    /// Whether the server reads references to it.
    pub is_part_of_argocd: bool,
}

/// Reads a Secret in Argo CD's namespace.
///
/// # Errors
/// When it cannot be read.
pub async fn read(cluster: &Cluster, name: &str) -> Result<Option<Found>, Error> {
    let api: Api<Secret> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
    let ask = Ask { verb: "get", resource: "secrets", namespace: &cluster.namespace, name };
    let secret = cluster.find(ask, api.get(name)).await?;
    Ok(secret.map(|secret| Found {
        is_part_of_argocd: secret
            .metadata
            .labels
            .is_some_and(|labels| labels.get("app.kubernetes.io/part-of").is_some_and(|of| of == "argocd")),
        data: secret.data.unwrap_or_default().into_iter().map(|(key, value)| (key, value.0)).collect(),
    }))
}

/// What a value means to the server: a reference is followed and trimmed, one that leads nowhere is the key itself.
///
/// # Errors
/// When the Secret referred to cannot be read.
pub async fn resolve(cluster: &Cluster, value: &[u8], own: &Data, talk: &Talk) -> Result<Vec<u8>, Error> {
    let (found, what) = match reference(value) {
        Reference::Literal => return Ok(value.to_vec()),
        Reference::Own(key) => (own.get(key).cloned(), format!("key {key} of {ARGOCD_SECRET}")),
        Reference::Other(name, key) => {
            let found = read(cluster, name).await?.filter(|found| found.is_part_of_argocd);
            let found = found.and_then(|mut found| found.data.remove(key));
            (found, format!("key {key} of the Secret {name} (label app.kubernetes.io/part-of: argocd)"))
        }
    };
    match found {
        Some(found) => Ok(String::from_utf8_lossy(&found).trim().as_bytes().to_vec()),
        None => {
            talk.warn(format!("the key refers to {what}, which does not exist: the server takes the $… text itself"));
            Ok(value.to_vec())
        }
    }
}

fn usable(bytes: Vec<u8>, place: &str, talk: &Talk) -> Result<Key, Error> {
    if bytes.is_empty() {
        return Err(Error::usage("empty-key", format!("the key in {place} is empty")).hint(
            "with an empty key the server accepts everything; `kubectl argo-webhook secret set --generate` makes one",
        ));
    }
    if let Some(doubt) = doubt(&bytes) {
        talk.warn(format!("the key in {place} {doubt}"));
    }
    Ok(Key(bytes))
}

/// What is probably wrong with a key.
pub fn doubt(key: &[u8]) -> Option<&'static str> {
    if key.last().is_some_and(u8::is_ascii_whitespace) {
        return Some("ends in white space, which is part of it: the sender must use it, too");
    }
    let printable = |bytes: &[u8]| bytes.iter().all(|byte| (0x20..0x7f).contains(byte) || byte.is_ascii_whitespace());
    let decoded = BASE64_STANDARD.decode(key).ok().filter(|decoded| decoded.len() >= 6 && printable(decoded));
    decoded.map(|_| "looks like base64 of some text: was it encoded twice?")
}

/// Keys of `argocd-secret` that were probably meant to be `wanted`: the same words in another order, or spelt otherwise.
pub fn near_misses(wanted: &str, data: &Data) -> Vec<String> {
    let words = |name: &str| {
        let name = name.to_ascii_lowercase().replace("hooks", "hook");
        let mut words: Vec<String> = name
            .split(|c: char| !c.is_ascii_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect();
        words.sort_unstable();
        words
    };
    let target = words(wanted);
    data.keys()
        .filter(|name| name.as_str() != wanted)
        .filter(|name| {
            let words = words(name);
            words == target || words.concat() == target.concat()
        })
        .cloned()
        .collect()
}

fn missing(provider: Provider, name: &str, data: &Data, cluster: &Cluster) -> Error {
    let near = near_misses(name, data);
    let error = Error::usage(
        "no-key",
        format!(
            "no key {name} in {}/{ARGOCD_SECRET} (context {}): the server accepts events of {} without checking them",
            cluster.namespace,
            cluster.context,
            provider.title()
        ),
    );
    if near.is_empty() {
        error.hint("`kubectl argo-webhook secret set --generate` makes one; --secret-file takes another key")
    } else {
        error.hint(format!("there is {}, which the server does not read: rename it", near.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dollar_begins_a_reference() {
        assert_eq!(reference(b"plain"), Reference::Literal);
        assert_eq!(reference(b"$other"), Reference::Own("other"));
        assert_eq!(reference(b"$name:key"), Reference::Other("name", "key"));
        assert_eq!(reference(b"\xff$"), Reference::Literal);
    }

    #[test]
    fn doubtful_keys_are_found_and_good_ones_are_not() {
        for (key, doubtful) in [
            (&b"s3cr3t"[..], false),
            (b"4fd1c56f0b7f0f6ac2de7a3fbd0f9a11", false),
            (b"s3cr3t\n", true),
            (b"s3cr3t ", true),
            (b"c3VwZXJzZWNyZXQ=", true),
            (b"\x00\x01binary", false),
        ] {
            assert_eq!(doubt(key).is_some(), doubtful, "{key:?}");
        }
    }

    #[test]
    fn keys_with_the_words_swapped_are_found() {
        let data: Data =
            ["github.webhook.secret", "webhook.github.secrets", "webhooks.github.secret", "admin.password"]
                .map(|name| (name.to_owned(), Vec::new()))
                .into();
        assert_eq!(near_misses("webhook.github.secret", &data), ["github.webhook.secret", "webhooks.github.secret"]);
    }
}
