//! Sends an event: finds the key and the way, delivers, and prints the record.

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
    answer::{self, Asked, Meaning},
    args::{Kind, Send},
    delivery::{self, Parcel},
    dry_run, key,
    letter::{self, Letter},
    payload,
    provider::Provider,
    random,
    route::{Attempt, Direct, Route},
    server::{self, Server},
    signature,
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
    let Target { routes, server } = target(&args, cluster.as_ref(), body.len(), talk).await?;
    if let Some(path) = &args.save_body {
        file::write(path, &body, Mode::Public)?;
    }

    let object = &mut record.0;
    object.shift_remove("error");
    set(object, "provider", provider.name());
    set(object, "event", if args.kind == Kind::Ping { "ping" } else { "push" });
    set(object, "delivery", delivery);
    set(object, "url", routes[0].url());
    set(object, "via", routes[0].name());
    set(object, "signed", proof.is_some());
    set(object, "signature", proof.and_then(|proof| proof.signature));
    set(object, "body_bytes", body.len());
    set(object, "body_sha256", signature::sha256(&body));
    if args.dry_run {
        object.extend(dry_run::describe(&args, &headers, &routes[0], cluster.as_ref(), talk).await?);
        return Ok(Report::done(record.0));
    }

    let job = Job {
        parcel: Parcel { headers, body: Bytes::from(body), ours: args.event.body_file.is_none() },
        asked: Asked {
            provider,
            kind: args.kind,
            signed: object["signed"] == true,
            namespace: &args.cluster.namespace,
        },
        args: &args,
        cluster: cluster.as_ref(),
        server: server.as_ref(),
        context: &context,
    };
    let mut outcomes = Vec::new();
    for route in &routes {
        let outcome = job.deliver(route).await;
        let interrupted = outcome.outcome == "interrupted";
        outcomes.push(outcome);
        if interrupted {
            break;
        }
    }
    // The record tells of the pod that fared worst.
    let worst = outcomes.iter().position(|outcome| outcome.error.is_some()).unwrap_or_default();
    let pods: Vec<Value> = routes.iter().zip(&outcomes).map(|(route, outcome)| outcome.of_pod(route)).collect();
    let told = outcomes.swap_remove(worst);
    told.add_to(object);
    if args.all_pods {
        set(object, "url", routes[worst].url());
        set(object, "pods", pods);
    }
    Ok(match told.error {
        Some(error) => Report::failed(record.0, error),
        None => Report::done(record.0),
    })
}

/// What one delivery came to.
struct Outcome {
    attempts: u32,
    last: Option<Attempt>,
    outcome: &'static str,
    meaning: Option<Meaning>,
    error: Option<Error>,
}

impl Outcome {
    fn add_to(&self, object: &mut Map<String, Value>) {
        let answer = self.last.as_ref().and_then(|last| last.result.as_ref().ok());
        set(object, "attempts", self.attempts);
        set(object, "http_status", answer.map(|answer| answer.status));
        set(object, "response", answer.map(|answer| answer.body.clone()));
        if let Some(last) = &self.last {
            set(object, "request_ms", last.took_ms());
            last.sent.stamp(object, "sent");
        }
        set(object, "outcome", self.outcome);
        if let Some(Meaning { code, cause, next, .. }) = &self.meaning {
            set(object, "answer", json!({"code": code, "cause": cause, "next": next}));
        }
    }

    fn of_pod(&self, route: &Route) -> Value {
        json!({
            "pod": match route {
                Route::PortForward(to) => Some(&to.pod),
                _ => None,
            },
            "attempts": self.attempts,
            "http_status": self.last.as_ref().and_then(|last| last.result.as_ref().ok()).map(|answer| answer.status),
            "request_ms": self.last.as_ref().map(Attempt::took_ms),
            "outcome": self.outcome,
            "cause": self.meaning.as_ref().map(|meaning| &meaning.cause),
        })
    }
}

/// What all deliveries of one call share.
struct Job<'a> {
    parcel: Parcel,
    asked: Asked<'a>,
    args: &'a Send,
    cluster: Option<&'a Cluster>,
    server: Option<&'a Server>,
    context: &'a Context,
}

impl Job<'_> {
    async fn deliver(&self, route: &Route) -> Outcome {
        let talk = &self.context.talk;
        let limit = self.cluster.map_or(self.args.cluster.request_timeout, |cluster| cluster.limit);
        let sent =
            delivery::deliver(route, &self.parcel, limit, self.args.retries, talk, &self.context.interrupt).await;
        let (attempts, last) = match sent {
            Ok(delivery) => (delivery.attempts, delivery.last),
            Err((attempts, error)) => {
                return Outcome { attempts, last: None, outcome: "interrupted", meaning: None, error: Some(error) };
            }
        };
        let answer = match &last.result {
            Ok(answer) => answer,
            Err(trouble) => {
                let error = Some(delivery::unanswered(trouble, route));
                return Outcome { attempts, last: Some(last), outcome: "unanswered", meaning: None, error };
            }
        };
        let mut meaning = answer::meaning(answer, self.asked);
        if let (Some(cluster), Some(server)) = (self.cluster, self.server)
            && answer::is_unsaid(answer)
            && !self.args.expect_status.contains(&answer.status)
        {
            let log = server::recent_log(cluster, server, talk).await;
            if let Some(reason) = answer::reason_in_log(log.iter().map(String::as_str)) {
                meaning = answer::of_reason(&reason, self.asked);
                meaning.cause = format!("{} (the server's log: {reason})", meaning.cause);
            }
        }
        let outcome = match meaning.exit {
            Exit::Done => "accepted",
            Exit::Unknown => "unavailable",
            _ => "refused",
        };
        let error = delivery::answered(answer.status, &meaning, &self.args.expect_status).err();
        if error.is_none() {
            talk.say(format!("answered {}: {}", answer.status, meaning.cause));
        }
        Outcome { attempts, last: Some(last), outcome, meaning: Some(meaning), error }
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
    /// One, or one for each pod.
    routes: Vec<Route>,
    /// The server, when it was looked for in the cluster.
    server: Option<Server>,
}

async fn target(args: &Send, cluster: Option<&Cluster>, bytes: usize, talk: &Talk) -> Result<Target, Error> {
    if let Some(url) = &args.url {
        let url = endpoint(url)?;
        let tls = TrustArgs::of(args).of_url(cluster).await?.config()?;
        return Ok(Target { routes: vec![Route::Direct(Direct::to_url(&url, tls)?)], server: None });
    }
    let Some(cluster) = cluster else {
        return Err(Error::usage("no-kubeconfig", "no cluster to send to").hint("--url URL names another address"));
    };
    let server = server::find(cluster, talk).await?;
    if bytes > SMALL
        && let Some(limit) = server::body_limit(cluster, server.version, talk).await
        && u64::try_from(bytes).is_ok_and(|bytes| bytes > limit)
    {
        return Err(Error::usage(
            "too-large",
            format!("the body has {bytes} bytes, and the server takes {limit} (webhook.maxPayloadSizeMB in argocd-cm)"),
        )
        .hint("leave the lists of files out, or raise the limit and restart argocd-server"));
    }
    let routes = match args.all_pods {
        true => way::to_all_pods(args, cluster, &server).await?,
        false => vec![way::choose(args, cluster, &server, talk).await?],
    };
    Ok(Target { routes, server: Some(server) })
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
