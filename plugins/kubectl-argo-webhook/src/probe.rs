//! Asks every argocd-server pod whether it enforces a key: it must refuse an event without it and accept one with it.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::HeaderMap;
use kit::{cluster::Cluster, error::Error, exit::Exit, talk::Talk};
use rustls::ClientConfig;
use serde_json::{Value, json};

use crate::{
    args::Kind,
    delivery,
    key::Key,
    payload,
    provider::Provider,
    random,
    route::Trouble,
    server::{self, Server},
    signature,
    way::{self, TrustArgs},
};

/// How long to wait between two rounds.
const PAUSE: Duration = Duration::from_millis(250);

/// How long a server may take to answer at all before anything is changed.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a pod answered last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    unsigned: Option<u16>,
    signed: Option<u16>,
}

impl Seen {
    fn enforces(self) -> bool {
        let good = |status: Option<u16>| status.is_some_and(|status| (200..300).contains(&status));
        good(self.signed) && self.unsigned.is_some() && !good(self.unsigned)
    }
}

/// Asks the pods, again and again.
pub struct Prober<'a> {
    cluster: &'a Cluster,
    talk: &'a Talk,
    server: Server,
    tls: Option<ClientConfig>,
    unsigned: HeaderMap,
    signed: HeaderMap,
    body: Bytes,
    pods: BTreeMap<String, Seen>,
}

impl<'a> Prober<'a> {
    /// Finds the pods and sees that they can be asked.
    ///
    /// # Errors
    /// When there is no server or no pod that is ready, or when they cannot be asked.
    pub async fn start(provider: Provider, key: &Key, cluster: &'a Cluster, talk: &'a Talk) -> Result<Self, Error> {
        let server = server::find(cluster, talk).await?;
        let tls = way::tls(TrustArgs::default(), cluster, &server).await?;
        let body = probe(provider);
        let plain = payload::headers(provider, kind(provider), false, &random::uuid()?);
        let proof = signature::sign(provider, &key.0, &body);
        let mut prober = Prober {
            cluster,
            talk,
            server,
            tls,
            unsigned: delivery::headers(&plain, &[])?,
            signed: delivery::headers(&plain, &proof.headers)?,
            body: Bytes::from(body),
            pods: BTreeMap::new(),
        };
        prober.look().await?;
        let Some(pod) = prober.pods.keys().next().cloned() else {
            return Err(Error::unknown(
                "no-pod",
                format!("no pod of argocd-server is ready in namespace {}", cluster.namespace),
            )
            .hint("the key counts only when a server enforces it, so nothing was changed"));
        };
        // It may be reloading for another change just now.
        let start = Instant::now();
        while prober.ask(&pod, false).await?.is_none() {
            if start.elapsed() > PATIENCE {
                return Err(Error::unknown("no-answer", format!("argocd-server in pod {pod} does not answer"))
                    .hint("the key counts only when a server enforces it, so nothing was changed"));
            }
            tokio::time::sleep(PAUSE).await;
        }
        Ok(prober)
    }

    /// Waits until every pod refuses an event without the key and accepts one with it.
    ///
    /// # Errors
    /// At the deadline, or when the pods can no longer be asked.
    pub async fn until_enforced(&mut self, timeout: Duration) -> Result<(), Error> {
        let start = Instant::now();
        loop {
            self.look().await?;
            let waiting: Vec<String> =
                self.pods.iter().filter(|(_, seen)| !seen.enforces()).map(|(pod, _)| pod.clone()).collect();
            for pod in &waiting {
                let seen = Seen { signed: self.ask(pod, true).await?, unsigned: self.ask(pod, false).await? };
                self.pods.insert(pod.clone(), seen);
            }
            let lagging: Vec<&str> =
                self.pods.iter().filter(|(_, seen)| !seen.enforces()).map(|(pod, _)| pod.as_str()).collect();
            if lagging.is_empty() && !self.pods.is_empty() {
                return Ok(());
            }
            let elapsed = start.elapsed();
            if elapsed >= timeout {
                return Err(self.late(timeout));
            }
            self.talk.status(
                &format!("waiting for {} to enforce the key", lagging.join(", ")),
                &format!("{}s of {}s", elapsed.as_secs(), timeout.as_secs()),
            );
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// The pods with what they answered last.
    pub fn to_json(&self) -> Value {
        let pods = self.pods.iter().map(|(pod, seen)| {
            json!({
                "pod": pod,
                "unsigned_status": seen.unsigned,
                "signed_status": seen.signed,
                "enforces": seen.enforces(),
            })
        });
        pods.collect()
    }

    /// Pods that were ready once count until they are gone: a server that reloads is not ready for a moment. Those that
    /// never were read the new key when they start.
    async fn look(&mut self) -> Result<(), Error> {
        let pods = server::pods_of(self.cluster, &self.server).await?;
        self.pods.retain(|known, _| pods.iter().any(|pod| pod.name == *known));
        for pod in pods.into_iter().filter(|pod| pod.ready) {
            self.pods.entry(pod.name).or_default();
        }
        Ok(())
    }

    /// The status that one pod answers with; `None` when it does not answer just now.
    async fn ask(&self, pod: &str, signed: bool) -> Result<Option<u16>, Error> {
        let route = way::to_pod(self.cluster, &self.server, pod, self.tls.clone());
        let headers = if signed { &self.signed } else { &self.unsigned };
        match route.post(headers, &self.body, self.cluster.limit).await.result {
            Ok(answer) => Ok(Some(answer.status)),
            Err(Trouble::Fatal(error)) => Err(error),
            Err(trouble @ Trouble::Tls(_)) => Err(delivery::unanswered(&trouble, &route)),
            Err(_) => Ok(None),
        }
    }

    fn late(&self, timeout: Duration) -> Error {
        let states = self.pods.iter().filter(|(_, seen)| !seen.enforces()).map(|(pod, seen)| {
            let say = |status: Option<u16>| status.map_or("nothing".into(), |status| status.to_string());
            format!("{pod} answered {} without the key and {} with it", say(seen.unsigned), say(seen.signed))
        });
        let states: Vec<String> = states.collect();
        Error::new(
            Exit::Deadline,
            "deadline",
            format!("not every argocd-server enforces the key after {timeout:?}: {}", states.join("; ")),
        )
        .hint("does the Secret argocd-secret have the label app.kubernetes.io/part-of: argocd? the server ignores changes without it")
    }
}

fn kind(provider: Provider) -> Kind {
    if provider == Provider::Github { Kind::Ping } else { Kind::Push }
}

/// An event that is checked and then touches nothing. Only GitHub's ping is checked at all; for the others it is a push
/// to a repository that cannot exist (RFC 6761: `.invalid`).
fn probe(provider: Provider) -> Vec<u8> {
    let url = "https://argo-evt.invalid/probe";
    let body = match provider {
        Provider::Github => return payload::ping(provider).unwrap_or_default(),
        Provider::Gogs => json!({"ref": "refs/heads/probe", "repository": {"html_url": url}}),
        Provider::Gitlab => json!({"object_kind": "push", "ref": "refs/heads/probe", "project": {"web_url": url}}),
        // Without the repository's own link the server has nobody to ask for the files.
        Provider::Bitbucket => json!({"repository": {"links": {"html": {"href": url}}}, "push": {"changes": []}}),
        Provider::BitbucketServer => {
            json!({"repository": {"links": {"clone": [{"name": "http", "href": url}]}},
                "changes": [{"ref": {"id": "refs/heads/probe"}}]})
        }
        Provider::Azuredevops => {
            json!({"eventType": "git.push", "resource": {"refUpdates": [{"name": "refs/heads/probe"}],
                "repository": {"remoteUrl": url}}})
        }
    };
    body.to_string().into_bytes()
}
