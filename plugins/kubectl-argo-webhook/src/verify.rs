//! Checks a signature, and says what is wrong with it.

use std::path::Path;

use kit::{
    command::{Context, Report},
    error::Error,
    file,
    talk::Talk,
};
use serde_json::{Map, Value};

use crate::{
    args::Verify,
    diagnosis,
    key::{self, ARGOCD_SECRET},
    provider::Provider,
};

/// Prints whether the signature is right.
///
/// # Errors
/// When a file or the key cannot be read.
pub async fn run(args: Verify, context: Context) -> Result<Report, Error> {
    let talk = &context.talk;
    let body = file::read(&args.body_file)?;
    let headers = args.headers.as_deref().map(headers).transpose()?.unwrap_or_default();
    let provider = args.provider.or_else(|| provider_of(&headers)).unwrap_or(Provider::Github);
    let name = diagnosis::header(provider);
    let value = match &args.signature {
        Some(signature) => signature.clone(),
        None => signature_in(&headers, provider).unwrap_or_default().to_owned(),
    };
    let Keys { key, stored } = keys(&args, provider, talk).await?;
    let found = diagnosis::of(provider, &value, &key, stored.as_deref(), &body);
    let mut object = Map::new();
    object.insert("provider".into(), provider.name().into());
    object.insert("header".into(), name.into());
    object.insert("valid".into(), found.valid.into());
    object.insert("scheme".into(), found.scheme.into());
    object.insert("fault".into(), found.fault.into());
    object.insert("detail".into(), found.detail.clone().into());
    object.insert("body_bytes".into(), body.len().into());
    object.insert("outcome".into(), if found.valid { "valid" } else { "not-valid" }.into());
    if found.valid {
        if serde_json::from_slice::<serde::de::IgnoredAny>(&body).is_err() {
            talk.warn("the body is not JSON, so the server refuses it all the same: the hook's content type must be application/json");
        }
        return Ok(Report::done(object));
    }
    let missing = args.signature.is_none() && value.is_empty();
    let error = match missing {
        true => Error::no("no-signature", format!("the headers hold no {name}")),
        false => Error::no(found.fault.unwrap_or("unknown"), format!("the signature is not right: {}", found.detail)),
    };
    Ok(Report::failed(object, error))
}

struct Keys {
    key: Vec<u8>,
    /// The text of a reference, when the key came by one.
    stored: Option<Vec<u8>>,
}

async fn keys(args: &Verify, provider: Provider, talk: &Talk) -> Result<Keys, Error> {
    match (&args.secret_file, &args.secret_env) {
        (Some(path), _) => Ok(Keys { key: key::from_file(path, talk)?.0, stored: None }),
        (None, Some(name)) => Ok(Keys { key: key::from_env(name, talk)?.0, stored: None }),
        (None, None) => {
            let cluster = args.cluster.connect(talk).await?;
            let key = key::from_cluster(&cluster, provider, talk).await?.0;
            let stored = match provider.secret_keys() {
                [name] => key::read(&cluster, ARGOCD_SECRET).await?.and_then(|mut found| found.data.remove(*name)),
                _ => None,
            };
            Ok(Keys { stored: stored.filter(|stored| *stored != key), key })
        }
    }
}

type Headers = Vec<(String, String)>;

/// Reads `Name: value` lines or a JSON object; a request line is passed over.
fn headers(path: &Path) -> Result<Headers, Error> {
    let text = String::from_utf8_lossy(&file::read(path)?).into_owned();
    if let Ok(Value::Object(object)) = serde_json::from_str(&text) {
        let value = |value: Value| match value {
            Value::String(text) => text,
            Value::Array(mut many) if !many.is_empty() => many.remove(0).as_str().unwrap_or_default().to_owned(),
            other => other.to_string(),
        };
        return Ok(object.into_iter().map(|(name, text)| (name, value(text))).collect());
    }
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    let found: Headers = lines.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned())).collect();
    if found.is_empty() {
        return Err(Error::usage("bad-headers", format!("no headers in {}", path.display()))
            .hint("it holds lines `Name: value`, or a JSON object"));
    }
    Ok(found)
}

fn header<'a>(headers: &'a Headers, name: &str) -> Option<&'a str> {
    headers.iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
}

/// SHA-1 alone is looked at, too: it is a fault that can be named.
fn signature_in(headers: &Headers, provider: Provider) -> Option<&str> {
    let sha1 = || header(headers, "X-Hub-Signature").filter(|_| provider == Provider::Github);
    header(headers, diagnosis::header(provider)).or_else(sha1)
}

/// Whom the server takes an event for: the first whose header is there (argo-cd v3.5.1 util/webhook/scm.go).
fn provider_of(headers: &Headers) -> Option<Provider> {
    let order = [
        ("X-Vss-Activityid", Provider::Azuredevops),
        ("X-Gogs-Event", Provider::Gogs),
        ("X-GitHub-Event", Provider::Github),
        ("X-Gitlab-Event", Provider::Gitlab),
        ("X-Hook-UUID", Provider::Bitbucket),
        ("X-Event-Key", Provider::BitbucketServer),
    ];
    order.into_iter().find(|(name, _)| header(headers, name).is_some()).map(|(_, provider)| provider)
}
