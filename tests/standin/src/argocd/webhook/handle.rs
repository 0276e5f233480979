//! What the workers of argocd-server do with a payload (argo-cd v3.5.1 util/webhook/webhook.go, `HandleEvent`, and
//! registry.go).

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{
    event::{Push, push},
    matching::{Matcher, Verdict, judge_image, panics, url_pattern},
    namespaces::serves,
    parsers::Payload,
};
use crate::argocd::{
    Argo,
    controller::{APPLICATIONS, HYDRATE, REFRESH, is_multi_source, single_source},
    duration::{self, Parsed},
    log::{Level, Logger},
    random,
    repo_server::Source,
    settings,
    version::Version,
};
use crate::processes::Process;

/// What one argocd-server works with.
pub(crate) struct Handler {
    /// The rest of Argo CD.
    pub argo: Arc<Argo>,
    /// The container.
    pub process: Process,
    /// Its version.
    pub version: Version,
    /// Its log.
    pub logger: Logger,
    /// `webhook.refresh.jitter` and its threshold, as they were when the HTTP server was built.
    pub jitter: Mutex<(Duration, usize)>,
}

impl Handler {
    /// Reads `webhook.refresh.jitter` and its threshold (since v3.5).
    pub fn read_jitter(&self) {
        let config = self.argo.cluster.store.get("configmaps", &self.process.namespace, "argocd-cm");
        let text = |key: &str| config.as_ref().and_then(|config| config["data"][key].as_str());
        let jitter_ns = match text("webhook.refresh.jitter").map(duration::parse_days) {
            Some(Parsed::Ns(ns)) if self.version.at_least(3, 5) => ns.max(0),
            _ => 0,
        };
        let threshold = text("webhook.refresh.jitter.threshold").and_then(|text| text.parse().ok()).unwrap_or(10);
        *self.jitter.lock().expect("no thread panics while it holds the jitter") =
            (Duration::from_nanos(jitter_ns.unsigned_abs()), threshold);
    }

    /// All Applications that this install serves.
    fn applications(&self) -> Vec<Arc<Value>> {
        let namespaces = settings::application_namespaces(&self.process);
        let (all, _) = self.argo.cluster.store.list(APPLICATIONS, None);
        let serves = |app: &Arc<Value>| {
            let namespace = app["metadata"]["namespace"].as_str().unwrap_or_default();
            serves(namespace, &self.process.namespace, &namespaces, self.version)
        };
        all.into_iter().filter(serves).collect()
    }
}

/// Handles one payload; false when the handler panics.
pub(crate) fn handle(handler: &Arc<Handler>, payload: Payload) -> bool {
    let (logger, version, began) = (&handler.logger, handler.version, Instant::now());
    let framed = version.at_least(3, 5);
    if framed {
        logger.info("Webhook handler started", &[]);
    }
    let survived = match payload {
        Payload::Other => {
            logger.info("Ignoring webhook event", &[]);
            true
        }
        Payload::Image(repository, tag) => {
            handle_image(handler, &repository, &tag);
            true
        }
        Payload::Push(provider, body) if panics(provider, &body, version) => false,
        Payload::Push(provider, body) => {
            handle_push(handler, &push(provider, &body, version));
            true
        }
    };
    if framed {
        let took = duration::print(i64::try_from(began.elapsed().as_nanos()).unwrap_or(i64::MAX));
        logger.info(&format!("Webhook handler completed in {took}"), &[]);
    }
    survived
}

fn handle_push(handler: &Arc<Handler>, push: &Push) {
    let logger = &handler.logger;
    if push.urls.is_empty() {
        logger.info("Ignoring webhook event", &[]);
        return;
    }
    for url in &push.urls {
        let Push { revision, touched_head, .. } = push;
        let message = format!("Received push event repo: {url}, revision: {revision}, touchedHead: {touched_head}");
        logger.info(&message, &[]);
    }
    let applications = handler.applications();
    for url in &push.urls {
        let Some(pattern) = url_pattern(url, handler.version) else {
            let level = if logs_errors(handler.version) { Level::Error } else { Level::Warning };
            logger.print(level, &format!("Failed to get repoRegexp: failed to parse URL '{url}'"), &[]);
            continue;
        };
        let matcher = Matcher::of(Push { urls: vec![url.clone()], ..push.clone() }, handler.version);
        let mut refreshed = 0;
        for app in &applications {
            let verdict = matcher.judge(app);
            log_urls(logger, app, &verdict, url, pattern.as_str());
            for index in &verdict.moves_cache {
                move_cache(handler, app, *index, push);
            }
            if verdict.refresh {
                refreshed += 1;
                refresh_matched(handler, app, &verdict, refreshed);
            }
        }
    }
}

/// The URL test, which is only reached where the ref matched.
fn log_urls(logger: &Logger, app: &Value, verdict: &Verdict, url: &str, pattern: &str) {
    for source in verdict.sources.iter().filter(|source| source.reference) {
        let repo_url = source_at(app, source.index)["repoURL"].as_str().unwrap_or_default().to_owned();
        let message = if source.url {
            format!("{repo_url} uses repoURL {url}")
        } else {
            format!("{repo_url} does not match {pattern}")
        };
        logger.print(Level::Debug, &message, &[]);
    }
}

fn refresh_matched(handler: &Arc<Handler>, app: &Arc<Value>, verdict: &Verdict, refreshed: usize) {
    let (logger, version) = (&handler.logger, handler.version);
    let name = app["metadata"]["name"].as_str().unwrap_or_default();
    if version >= Version::new(3, 5, 1) {
        logger.info("refreshing app from webhook", &fields(app));
        if verdict.hydrate {
            logger.info("webhook trigger refresh app to hydrate", &fields(app));
        }
    } else if version.since(&[(3, 0, 23), (3, 1, 12), (3, 2, 6), (3, 3, 0)]) {
        logger.info(&format!("refreshing app '{name}' from webhook"), &[]);
        if verdict.hydrate {
            logger.info(&format!("webhook trigger refresh app to hydrate '{name}'"), &[]);
        }
    } else if verdict.sources.iter().any(|source| source.dry && source.rule().is_none()) {
        logger.info(&format!("webhook trigger refresh app to hydrate '{name}'"), &[]);
    }
    let (jitter, threshold) = *handler.jitter.lock().expect("no thread panics while it holds the jitter");
    let delay = if refreshed > threshold { jitter.mul_f64(random()) } else { Duration::ZERO };
    if delay.is_zero() {
        request_refresh(handler, app, verdict.hydrate);
        return;
    }
    let (handler, app, hydrate) = (handler.clone(), app.clone(), verdict.hydrate);
    tokio::spawn(async move {
        tokio::time::sleep(delay).await;
        request_refresh(&handler, &app, hydrate);
    });
}

/// Sets the annotation, and the other one if the Application is to be hydrated.
fn request_refresh(handler: &Handler, app: &Value, hydrate: bool) {
    let text = |field: &str| app["metadata"][field].as_str().unwrap_or_default();
    let (namespace, name) = (text("namespace"), text("name"));
    let written = handler.argo.cluster.store.update(APPLICATIONS, namespace, name, |app| {
        let annotations = &mut app["metadata"]["annotations"];
        annotations[REFRESH] = json!("normal");
        if hydrate {
            annotations[HYDRATE] = json!("normal");
        }
        Ok(())
    });
    let logger = &handler.logger;
    match written {
        Ok(_) => {
            let again = format!("Requested app '{name}' {}", if hydrate { "hydration" } else { "refresh" });
            logger.info(&format!("Requested app '{name}' refresh"), &[]);
            if handler.version.at_least(3, 5) {
                logger.info(&again, &[]);
            }
        }
        Err(_) if logs_errors(handler.version) => {
            let message = format!("Failed to refresh app '{name}': applications.argoproj.io \"{name}\" not found");
            logger.print(Level::Error, &message, &[]);
        }
        Err(_) => {
            let verb = if hydrate { "hydrate" } else { "refresh" };
            let reason = format!("applications.argoproj.io \"{name}\" not found");
            let message = format!("Failed to {verb} app '{name}' for controller reprocessing: {reason}");
            logger.print(Level::Warning, &message, &[]);
        }
    }
}

/// The releases that log at error what others log as warnings.
fn logs_errors(version: Version) -> bool {
    version.since(&[(3, 0, 23), (3, 1, 12), (3, 2, 6), (3, 3, 0)]) && !version.at_least(3, 5)
}

/// The manifests of the commit before become those of the commit after.
fn move_cache(handler: &Handler, app: &Value, index: usize, push: &Push) {
    let (logger, version) = (&handler.logger, handler.version);
    if handler.process.env.get("ARGOCD_WEBHOOK_MANIFEST_CACHE_WARM_DISABLED").map(String::as_str) == Some("true") {
        return;
    }
    let text = |field: &str| app["metadata"][field].as_str().unwrap_or_default();
    let (namespace, name) = (text("namespace"), text("name"));
    let new = version >= Version::new(3, 5, 1);
    let failed = |reason: &str| {
        let level = match version {
            version if version == Version::new(3, 5, 0) => Level::Debug,
            version if logs_errors(version) => Level::Error,
            _ => Level::Warning,
        };
        if new {
            let message = format!("Failed to store cached manifests of previous revision: {reason}");
            logger.print(level, &message, &fields(app));
        } else {
            let message = format!("Failed to store cached manifests of previous revision for app '{name}': {reason}");
            logger.print(level, &message, &[]);
        }
    };
    let sources = app["spec"]["sources"].as_array().filter(|_| is_multi_source(&app["spec"]));
    if new && sources.is_some_and(|sources| sources.iter().any(|source| source["ref"].is_string())) {
        failed("moving manifest cache is currently not supported for multi-source applications");
        return;
    }
    let source = Source::of(&source_at(app, index));
    // The name alone is the key, which is the controller's only in the install namespace.
    let known = namespace == handler.process.namespace;
    let application = if known { format!("{namespace}/{name}") } else { name.to_owned() };
    let (install, keep) = (&handler.process.namespace, !version.at_least(2, 11));
    let moved = handler.argo.repo.move_manifests(install, &application, &source, &push.before, &push.after, keep);
    match (moved, new) {
        (true, true) | (false, true) => {
            let message = if moved {
                "manifests cache moved"
            } else {
                "manifest cache miss while moving manifests cache to the new revision"
            };
            let mut fields = fields(app);
            fields.push(("old_cacheKey", json!(format!("mfst|{name}|{}", push.before))));
            fields.push(("new_cacheKey", json!(format!("mfst|{name}|{}", push.after))));
            logger.info(message, &fields);
        }
        (false, false) => failed("cache: key is missing"),
        (true, false) => {}
    }
}

fn source_at(app: &Value, index: usize) -> Value {
    let spec = &app["spec"];
    if spec["sourceHydrator"].is_object() && index == 1 {
        return spec["sourceHydrator"]["drySource"].clone();
    }
    if is_multi_source(spec) { spec["sources"][index].clone() } else { single_source(spec) }
}

fn handle_image(handler: &Arc<Handler>, repository: &str, tag: &str) {
    let logger = &handler.logger;
    let url = format!("ghcr.io/{repository}");
    logger.info("Received registry webhook event", &[("repo", json!(url)), ("tag", json!(tag))]);
    for app in handler.applications() {
        if judge_image(&url, tag, &app, handler.version) {
            let name = app["metadata"]["name"].as_str().unwrap_or_default();
            logger.info(&format!("Refreshing app '{name}' due to OCI push {url}:{tag}"), &[]);
            request_refresh(handler, &app, true);
        }
    }
}

fn fields(app: &Value) -> Vec<(&'static str, Value)> {
    let metadata = &app["metadata"];
    vec![
        ("app-namespace", metadata["namespace"].clone()),
        ("application", metadata["name"].clone()),
        ("project", app["spec"]["project"].clone()),
    ]
}
