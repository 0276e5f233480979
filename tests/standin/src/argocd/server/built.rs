//! What argocd-server reads when it builds its HTTP server, and when it builds it anew.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use serde_json::Value;

use super::{Server, certificate};
use crate::argocd::{
    log::Level,
    random,
    webhook::{Handler, Secrets},
};

/// How long the listeners are closed while the server restarts inside its process.
const RESTART: Duration = Duration::from_millis(20);

/// What is read when the HTTP server is built.
pub struct Built {
    /// The webhook secrets.
    pub secrets: Secrets,
    /// `url` in `argocd-cm`.
    pub url: Value,
    /// `webhook.maxPayloadSizeMB`.
    pub limit_mb: u64,
}

/// Reads everything.
pub(crate) fn build(handler: &Handler) -> Built {
    let (store, install, version) = (&handler.argo.cluster.store, &handler.process.namespace, handler.version);
    let secrets = Secrets::read(store, install, version, &mut |warning| {
        handler.logger.print(Level::Warning, &warning, &[]);
    });
    if version.at_least(3, 5) && secrets.github.is_empty() {
        let message = "GHCR webhook secret is not configured; incoming webhook events will not be validated";
        handler.logger.print(Level::Warning, message, &[]);
    }
    handler.read_jitter();
    let default_mb = if version.at_least(2, 14) { 50 } else { 1024 };
    let config = store.get("configmaps", install, "argocd-cm").unwrap_or_default();
    let limit_mb = config["data"]["webhook.maxPayloadSizeMB"].as_str().and_then(|text| text.parse().ok());
    Built { secrets, url: config["data"]["url"].clone(), limit_mb: limit_mb.unwrap_or(default_mb) }
}

impl Server {
    /// Restarts the server inside its process when something that it watches has changed.
    pub(super) async fn follow_settings(self: Arc<Self>) {
        let Handler { argo, process, .. } = &*self.handler;
        let store = &argo.cluster.store;
        let mut newest = store.newest();
        let mut seen = 0;
        loop {
            let now = *newest.borrow_and_update();
            let changed = |resource| store.since(resource, seen).is_none_or(|events| !events.is_empty());
            if changed("secrets") || changed("configmaps") {
                self.follow_certificate();
                if let Some(what) = self.reload_reason() {
                    let own = argo.cluster.faults.argo.reload_delay(&process.pod);
                    let usual = argo.cluster.options.secret_reload.mul_f64(0.5 + random());
                    tokio::time::sleep(own.unwrap_or(usual)).await;
                    self.handler.logger.info(&format!("{what} modified. restarting"), &[]);
                    self.restart().await;
                    continue;
                }
            }
            seen = now;
            if newest.changed().await.is_err() {
                return;
            }
        }
    }

    /// What has changed since the server was built, if that is a reason to build it anew.
    fn reload_reason(&self) -> Option<&'static str> {
        let Handler { argo, process, version, .. } = &*self.handler;
        let (store, install) = (&argo.cluster.store, &process.namespace);
        let object = |resource: &str, name: &str| store.get(resource, install, name).unwrap_or_default();
        // Objects without this label do not notify: the ConfigMap never did, the Secret does not since v3.5.
        let is_part = |object: &Value| object["metadata"]["labels"]["app.kubernetes.io/part-of"] == "argocd";
        let built = self.built();
        let config = object("configmaps", "argocd-cm");
        if is_part(&config) && config["data"]["url"] != built.url {
            return Some("url");
        }
        if version.at_least(3, 5) && !is_part(&object("secrets", "argocd-secret")) {
            return None;
        }
        built.secrets.reload_reason(&Secrets::read(store, install, *version, &mut |_| {}))
    }

    fn follow_certificate(&self) {
        let new = certificate::read(&self.handler);
        let mut tls = self.tls.lock().expect("no thread panics while it holds the certificate");
        if new.as_ref().map(|tls| &tls.pem) != tls.as_ref().map(|tls| &tls.pem) {
            self.handler.logger.info("tls certificate modified. reloading certificate", &[]);
            *tls = new;
        }
    }

    async fn restart(&self) {
        if self.handler.version.at_least(2, 14) {
            self.handler.logger.info("API Server received signal: GracefulRestartSignal", &[]);
        }
        self.restarting.store(true, Ordering::SeqCst);
        tokio::time::sleep(RESTART).await;
        let built = Arc::new(build(&self.handler));
        *self.built.lock().expect("no thread panics while it holds the settings") = built;
        self.restarting.store(false, Ordering::SeqCst);
        self.announce();
    }
}
