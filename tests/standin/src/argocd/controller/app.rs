//! The life of one Application: when it is looked at, one thing at a time.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{
    Controller, HYDRATE, Key, Level, Message, REFRESH, autosync, compare, conditions,
    need::{Refresh, need},
    patch::{APPLICATIONS, apply, difference, start_operation},
    rfc3339,
};
use crate::argocd::{log::Level as LogLevel, random};

/// The task of one Application.
pub struct App {
    pub(super) controller: Arc<Controller>,
    pub(super) namespace: String,
    pub(super) name: String,
    /// What the controller has asked of itself and not yet done.
    requested: Option<Level>,
    /// Looks that are due later, each perhaps with a level.
    later: Vec<(Instant, Option<Level>)>,
    /// When the first repo error that was kept quiet came up.
    pub(super) repo_error_since: Option<Instant>,
}

impl App {
    /// Nothing known yet.
    pub fn new(controller: Arc<Controller>, (namespace, name): Key) -> App {
        App { controller, namespace, name, requested: None, later: Vec::new(), repo_error_since: None }
    }

    /// Works until there is nobody left to tell it anything.
    pub async fn run(mut self, mut messages: mpsc::UnboundedReceiver<Message>) {
        let mut redelivery = self.next_redelivery();
        loop {
            let wake = self.later.iter().map(|(at, _)| *at).chain(redelivery).min();
            let mut look = false;
            let mut ask = None;
            tokio::select! {
                message = messages.recv() => {
                    let Some(message) = message else { return };
                    self.take(message, &mut look, &mut ask);
                }
                () = sleep_until(wake), if wake.is_some() => {}
            }
            loop {
                match messages.try_recv() {
                    Ok(message) => self.take(message, &mut look, &mut ask),
                    Err(mpsc::error::TryRecvError::Empty) => break,
                    Err(mpsc::error::TryRecvError::Disconnected) => return,
                }
            }
            let now = Instant::now();
            if redelivery.is_some_and(|at| at <= now) {
                let jitter = Duration::from_secs(self.controller.settings.jitter_s.unsigned_abs()).mul_f64(random());
                self.later.push((now + jitter, None));
                redelivery = self.next_redelivery();
            }
            let due = self.later.extract_if(.., |(at, _)| *at <= now);
            for (_, level) in due.collect::<Vec<_>>() {
                look = true;
                ask = ask.max(level);
            }
            self.requested = self.requested.max(ask);
            if look {
                self.refresh().await;
                self.operate().await;
                self.hydrate().await;
            }
        }
    }

    /// Looks again after `delay`, at `level` if one is given.
    pub(super) fn ask_later(&mut self, delay: Duration, level: Option<Level>) {
        self.later.push((Instant::now() + delay, level));
    }

    fn take(&self, message: Message, look: &mut bool, ask: &mut Option<Level>) {
        match message {
            Message::Live => {
                *look = true;
                *ask = (*ask).max(Some(Level::Recent));
            }
            Message::Changed(Some(before), after)
                if self.controller.settings.drops_redeliveries && only_status_differs(&before, &after) => {}
            Message::Changed(before, after) => {
                *look = true;
                let was_off = before.is_some_and(|before| !autosync::is_on(&before));
                if was_off && autosync::is_on(&after) {
                    *ask = (*ask).max(Some(Level::Latest));
                }
            }
        }
    }

    /// The informer hands every Application out again each period, counted from the start of the container.
    fn next_redelivery(&self) -> Option<Instant> {
        let settings = &self.controller.settings;
        if settings.drops_redeliveries {
            return None;
        }
        let hard = Some(settings.hard_resync_s).filter(|hard| *hard > 0);
        let period =
            Duration::from_secs(hard.map_or(settings.resync_s, |hard| hard.min(settings.resync_s)).max(1) as u64);
        let passed = self.controller.started.elapsed().as_secs_f64() / period.as_secs_f64();
        let next = period.checked_mul(passed as u32 + 1)?;
        self.controller.started.checked_add(next)
    }

    /// The Application as it is now.
    pub(super) fn object(&self) -> Option<Value> {
        self.controller.argo.cluster.store.get(APPLICATIONS, &self.namespace, &self.name)
    }

    pub(super) fn info(&self, app: &Value, message: &str) {
        self.controller.logger.info(message, &self.controller.fields(app));
    }

    /// Compares the Application if something asks for it.
    async fn refresh(&mut self) {
        let controller = self.controller.clone();
        let Some(original) = self.object() else { return };
        let Some(refresh) = need(&original, &controller.settings, controller.now(), self.requested) else { return };
        if refresh.reason == "controller refresh requested" {
            self.requested = None;
        }
        self.info(&original, &format!("Refreshing app status ({}), level ({})", refresh.reason, refresh.level as u8));
        let faults = &controller.argo.cluster.faults.argo;
        if original["metadata"]["annotations"][REFRESH].is_string() && faults.swallows_a_refresh() {
            self.persist(&original, &original["status"]);
            return;
        }
        let began = Instant::now();
        let _turn = controller.comparisons.acquire().await;
        self.reconcile(&original, &refresh).await;
        let mut fields = controller.fields(&original);
        fields.push(("comparison-level", json!(refresh.level as u8)));
        fields.push(("time_ms", json!(began.elapsed().as_millis() as u64)));
        let destination = &original["spec"]["destination"];
        for (field, key) in [("dest-server", "server"), ("dest-name", "name"), ("dest-namespace", "namespace")] {
            fields.push((field, json!(destination[key].as_str().unwrap_or_default())));
        }
        controller.logger.info("Reconciliation completed", &fields);
    }

    async fn reconcile(&mut self, original: &Value, refresh: &Refresh) {
        let controller = self.controller.clone();
        let store = &controller.argo.cluster.store;
        let mut status = match &original["status"] {
            Value::Object(_) => original["status"].clone(),
            _ => json!({}),
        };
        let now = rfc3339(controller.now());
        let wrong = conditions::of_spec(store, &controller.process.namespace, original, controller.version);
        conditions::set(&mut status, &conditions::OF_SPEC, &wrong, &now);
        if !wrong.is_empty() {
            status["sync"]["status"] = json!("Unknown");
            set_health(&mut status, "Unknown", &now);
            self.persist(original, &status);
            return;
        }
        let delay = controller.argo.cluster.faults.argo.comparison_delay();
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        let Some(comparison) = compare::compare(self, original, refresh).await else {
            let message = "Ignoring temporary failed attempt to compare app state against repo";
            controller.logger.print(LogLevel::Warning, message, &controller.fields(original));
            return;
        };
        conditions::set(&mut status, &conditions::OF_COMPARISON, &comparison.conditions, &now);
        let sync_error = self.auto_sync(original, &comparison);
        conditions::set(&mut status, &["SyncError"], &sync_error.into_iter().collect::<Vec<_>>(), &now);
        if refresh.level >= Level::Latest || status["reconciledAt"].is_null() {
            status["reconciledAt"] = json!(now);
        }
        status["sync"] = comparison.sync;
        set_health(&mut status, comparison.health, &now);
        status["resources"] = comparison.resources;
        status["summary"] = json!({});
        status["controllerNamespace"] = json!(controller.process.namespace);
        match comparison.source_types {
            Value::Array(types) => status["sourceTypes"] = types.into(),
            one => status["sourceType"] = one,
        }
        self.persist(original, &status);
    }

    fn auto_sync(&mut self, original: &Value, comparison: &compare::Comparison) -> Option<conditions::Condition> {
        let controller = self.controller.clone();
        if controller.argo.cluster.faults.argo.sync_window_is_closed() {
            self.info(original, "Sync prevented by sync window");
            return None;
        }
        // The operation that counts is the one on record now, not the one before the comparison.
        let decision = autosync::decide(original, comparison, controller.settings.self_heal_s, controller.now());
        match decision {
            autosync::Decision::Off => None,
            autosync::Decision::Skip(reason) => {
                self.info(original, &reason);
                None
            }
            autosync::Decision::Later(reason, delay) => {
                self.info(original, &reason);
                self.ask_later(delay, Some(Level::Latest));
                None
            }
            autosync::Decision::Error(message) => {
                controller.logger.print(LogLevel::Warning, &message, &controller.fields(original));
                Some(("SyncError", message))
            }
            autosync::Decision::Start(operation) => {
                let store = &controller.argo.cluster.store;
                let revisions = comparison.revisions.join(", ");
                let started = start_operation(store, &self.namespace, &self.name, &operation);
                match started {
                    Ok(()) => self.info(original, &format!("Initiated automated sync to '{revisions}'")),
                    Err(_) => {
                        let message = format!("Failed to initiate auto-sync to [{revisions}]");
                        controller.logger.print(LogLevel::Warning, &message, &controller.fields(original));
                    }
                }
                None
            }
        }
    }

    /// One merge patch: the difference of the status, and the refresh annotation removed if it was there at the
    /// beginning, whoever set it since.
    fn persist(&self, original: &Value, status: &Value) {
        let mut patch =
            difference(&json!({"status": original["status"]}), &json!({"status": status})).unwrap_or_else(|| json!({}));
        let both = [REFRESH, HYDRATE];
        let removed = if self.controller.version.at_least(3, 5) { &both[..1] } else { &both[..] };
        for name in removed {
            if original["metadata"]["annotations"][name].is_string() {
                patch["metadata"]["annotations"][name] = Value::Null;
            }
        }
        if patch == json!({}) {
            self.info(original, "No status changes. Skipping patch");
            return;
        }
        if apply(&self.controller.argo.cluster.store, &self.namespace, &self.name, &patch).is_some() {
            self.info(original, "Update successful");
        }
    }
}

fn set_health(status: &mut Value, word: &str, now: &str) {
    if status["health"]["status"] != word {
        status["health"] = json!({"status": word, "lastTransitionTime": now});
    }
}

fn only_status_differs(before: &Value, after: &Value) -> bool {
    let annotations = |app: &Value| app["metadata"]["annotations"].clone();
    before["spec"] == after["spec"]
        && before["operation"] == after["operation"]
        && annotations(before) == annotations(after)
        && before["metadata"]["labels"] == after["metadata"]["labels"]
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}
