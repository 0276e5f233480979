//! Sends an event: reads it, makes its body, finds the key and the way, delivers, and prints the record.

use bytes::Bytes;
use kit::{
    cluster::Cluster,
    command::{Context, Report},
    error::Error,
    exit::Exit,
    file::{self, Mode},
    talk::Talk,
};
use serde_json::{Map, Value, json};

use crate::{
    answer::{self, Asked},
    args::{Kind, Send},
    delivery::{self, Parcel},
    key,
    letter::{self, Letter},
    payload,
    provider::Provider,
    random,
    route::{Direct, Route},
    server, signature,
    way::{self, TrustArgs},
};

/// Smaller bodies pass every limit that a server can have.
const SMALL: usize = 1024 * 1024;

/// Sends the event that the flags describe.
///
/// # Errors
/// Before anything was sent; afterwards the report holds the error.
pub async fn run(args: Send, context: Context) -> Result<Report, Error> {
    let talk = &context.talk;
    let provider = args.event.provider;
    let Letter { mut record, body, is_tag } = letter::read(&args.event, args.kind).await?;
    if let Some(path) = &args.save_body {
        file::write(path, &body, Mode::Public)?;
    }
    let cluster = match needs_cluster(&args) {
        true => Some(args.cluster.connect_without_retries(talk).await?),
        false => args.cluster.connect_without_retries(talk).await.ok(),
    };
    let proof = match key(&args, cluster.as_ref(), talk).await? {
        Some(key) => Some(signature::sign(provider, &key.0, &body)),
        None => None,
    };
    let delivery = random::uuid()?;
    let named = payload::headers(provider, args.kind, is_tag, &delivery);
    let headers = delivery::headers(&named, proof.as_ref().map_or(&[], |proof| &proof.headers))?;
    let target = target(&args, cluster.as_ref(), body.len(), talk).await?;

    let object = &mut record.0;
    object.shift_remove("error");
    set(object, "provider", provider.name());
    set(object, "event", if args.kind == Kind::Ping { "ping" } else { "push" });
    set(object, "delivery", delivery);
    set(object, "url", target.route.url());
    set(object, "via", target.route.name());
    set(object, "signed", proof.is_some());
    set(object, "signature", proof.and_then(|proof| proof.signature));
    set(object, "body_bytes", body.len());
    set(object, "body_sha256", signature::sha256(&body));

    let parcel = Parcel { headers, body: Bytes::from(body), ours: args.event.body_file.is_none() };
    let limit = match &cluster {
        Some(cluster) => cluster.limit,
        None => args.cluster.request_timeout,
    };
    let sent = delivery::deliver(&target.route, &parcel, limit, args.retries, talk, &context.interrupt).await;
    let sent = match sent {
        Ok(sent) => sent,
        Err(error) => {
            set(object, "outcome", "interrupted");
            return Ok(Report::failed(record.0, error));
        }
    };
    set(object, "attempts", sent.attempts);
    let answer = sent.last.result.as_ref().ok();
    set(object, "http_status", answer.map(|answer| answer.status));
    set(object, "response", answer.map(|answer| answer.body.clone()));
    set(object, "request_ms", u64::try_from(sent.last.took.as_millis()).unwrap_or(u64::MAX));
    sent.last.sent.stamp(object, "sent");
    let answer = match sent.last.result {
        Ok(answer) => answer,
        Err(trouble) => {
            set(object, "outcome", "unanswered");
            let error = delivery::unanswered(&trouble, &target.route);
            return Ok(Report::failed(record.0, error));
        }
    };
    let asked =
        Asked { provider, kind: args.kind, signed: object["signed"] == true, namespace: &args.cluster.namespace };
    let mut meaning = answer::meaning(&answer, asked);
    if let (Some(cluster), Some(server)) = (&cluster, &target.server)
        && answer::is_unsaid(&answer)
        && !args.expect_status.contains(&answer.status)
    {
        let log = server::recent_log(cluster, server, talk).await;
        if let Some(reason) = answer::reason_in_log(log.iter().map(String::as_str)) {
            meaning = answer::of_reason(&reason, asked);
            meaning.cause = format!("{} (the server's log: {reason})", meaning.cause);
        }
    }
    set(object, "outcome", outcome(meaning.exit));
    set(object, "answer", json!({"code": meaning.code, "cause": meaning.cause, "next": meaning.next}));
    match delivery::answered(answer.status, &meaning, &args.expect_status) {
        Ok(()) => {
            talk.say(format!("answered {}: {}", answer.status, meaning.cause));
            Ok(Report::done(record.0))
        }
        Err(error) => Ok(Report::failed(record.0, error)),
    }
}

fn needs_cluster(args: &Send) -> bool {
    args.url.is_none() || (args.sign && args.secret_file.is_none() && args.secret_env.is_none())
}

async fn key(args: &Send, cluster: Option<&Cluster>, talk: &Talk) -> Result<Option<key::Key>, Error> {
    let key = match (args.sign, &args.secret_file, &args.secret_env, cluster) {
        (false, ..) => return Ok(None),
        (true, Some(path), ..) => key::from_file(path, talk)?,
        (true, None, Some(name), _) => key::from_env(name, talk)?,
        (true, None, None, Some(cluster)) => key::from_cluster(cluster, args.event.provider, talk).await?,
        (true, None, None, None) => {
            return Err(Error::usage("no-key", "no key to sign with").hint("--secret-file FILE"));
        }
    };
    if args.event.provider == Provider::Azuredevops && !key.0.contains(&b':') {
        return Err(Error::usage("bad-key", "the key of azuredevops is a user name, a colon and a password")
            .hint("write user:password into the file"));
    }
    Ok(Some(key))
}

struct Target {
    route: Route,
    /// The server, when it was looked for in the cluster.
    server: Option<server::Server>,
}

async fn target(args: &Send, cluster: Option<&Cluster>, bytes: usize, talk: &Talk) -> Result<Target, Error> {
    if let Some(url) = &args.url {
        let url = endpoint(url)?;
        let tls = TrustArgs::of(args).of_url(cluster).await?.config()?;
        return Ok(Target { route: Route::Direct(Direct::to_url(&url, tls)?), server: None });
    }
    let Some(cluster) = cluster else {
        return Err(Error::usage("no-kubeconfig", "no cluster to send to").hint("--url URL names another address"));
    };
    let server = server::find(cluster, talk).await?;
    if bytes > SMALL
        && let Some(limit) = server::body_limit(cluster, server.version).await?
        && u64::try_from(bytes).is_ok_and(|bytes| bytes > limit)
    {
        return Err(Error::usage(
            "too-large",
            format!("the body has {bytes} bytes, and the server takes {limit} (webhook.maxPayloadSizeMB in argocd-cm)"),
        )
        .hint("leave the lists of files out, or raise the limit and restart argocd-server"));
    }
    Ok(Target { route: way::choose(args, cluster, &server, talk).await?, server: Some(server) })
}

/// The endpoint at an address that the user gave.
fn endpoint(url: &str) -> Result<String, Error> {
    let bad = |why: &str| {
        Error::usage("bad-url", format!("cannot send to that --url: {why}"))
            .hint("an address such as https://argocd.example.com/api/webhook")
    };
    let mut parsed = reqwest::Url::parse(url).map_err(|error| bad(&error.to_string()))?;
    if !matches!(parsed.scheme(), "http" | "https") {
        return Err(bad("it does not begin with http:// or https://"));
    }
    if parsed.password().is_some() || !parsed.username().is_empty() {
        return Err(bad("it holds a user or a password, and addresses are printed"));
    }
    if parsed.path() == "/" {
        parsed.set_path("/api/webhook");
    }
    Ok(parsed.into())
}

fn outcome(exit: Exit) -> &'static str {
    match exit {
        Exit::Done => "accepted",
        Exit::Unknown => "unavailable",
        _ => "refused",
    }
}

fn set(object: &mut Map<String, Value>, key: &str, value: impl Into<Value>) {
    object.insert(key.into(), value.into());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_a_path_means_the_endpoint() {
        assert_eq!(endpoint("https://argocd.example.com").unwrap(), "https://argocd.example.com/api/webhook");
        assert_eq!(endpoint("http://h:8080/x/api/webhook").unwrap(), "http://h:8080/x/api/webhook");
        for url in ["argocd.example.com", "ftp://h/x", "https://", "https://me:pw@h/"] {
            let error = endpoint(url).unwrap_err();
            assert!(!error.message.contains("pw@"), "{error}");
        }
    }
}
