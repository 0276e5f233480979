//! What goes wrong inside Argo CD on request.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard},
    time::Duration,
};

/// The faults of Argo CD; a test may switch each at any time.
#[derive(Default)]
pub struct ArgoFaults(Mutex<State>);

#[derive(Default)]
struct State {
    swallowed: u32,
    comparison_delay: Duration,
    sync_delay: Duration,
    repo_error: Option<String>,
    sync_error: Option<String>,
    sync_window_closed: bool,
    health: HashMap<(String, String), &'static str>,
    webhook_unavailable: u32,
    dropped: u32,
    handler_delay: Duration,
    reload_delays: HashMap<String, Duration>,
}

impl ArgoFaults {
    /// The next `count` requests for a refresh are lost: the annotation goes, nothing is compared.
    pub fn swallow_refreshes(&self, count: u32) {
        self.lock().swallowed = count;
    }

    /// Every comparison takes so much longer, between the moment that `reconciledAt` names and the look at Git.
    pub fn slow_comparisons(&self, delay: Duration) {
        self.lock().comparison_delay = delay;
    }

    /// Every sync stays Running for so long.
    pub fn slow_syncs(&self, delay: Duration) {
        self.lock().sync_delay = delay;
    }

    /// Every look at a repository ends with this error; `None` ends it.
    pub fn fail_repositories(&self, error: Option<&str>) {
        self.lock().repo_error = error.map(str::to_owned);
    }

    /// Every sync fails with this reason; `None` ends it.
    pub fn fail_syncs(&self, error: Option<&str>) {
        self.lock().sync_error = error.map(str::to_owned);
    }

    /// A sync window keeps automated syncs from starting.
    pub fn close_sync_window(&self, closed: bool) {
        self.lock().sync_window_closed = closed;
    }

    /// The health that an Application is found in from now on; `None` is the true one.
    pub fn set_health(&self, namespace: &str, name: &str, health: Option<&'static str>) {
        let key = (namespace.to_owned(), name.to_owned());
        let mut state = self.lock();
        match health {
            Some(health) => state.health.insert(key, health),
            None => state.health.remove(&key),
        };
    }

    /// The next `count` webhook requests are answered 503, as with a full queue.
    pub fn fill_webhook_queue(&self, count: u32) {
        self.lock().webhook_unavailable = count;
    }

    /// The next `count` connections to any argocd-server end without an answer.
    pub fn drop_connections(&self, count: u32) {
        self.lock().dropped = count;
    }

    /// An accepted event waits so long in the queue.
    pub fn delay_events(&self, delay: Duration) {
        self.lock().handler_delay = delay;
    }

    /// The argocd-server of this pod acts on a changed Secret only after `delay`, whatever the option says.
    pub fn delay_secret_reload(&self, pod: &str, delay: Duration) {
        self.lock().reload_delays.insert(pod.to_owned(), delay);
    }

    pub(super) fn swallows_a_refresh(&self) -> bool {
        take_one(&mut self.lock().swallowed)
    }

    pub(super) fn comparison_delay(&self) -> Duration {
        self.lock().comparison_delay
    }

    pub(super) fn sync_delay(&self) -> Duration {
        self.lock().sync_delay
    }

    pub(super) fn repo_error(&self) -> Option<String> {
        self.lock().repo_error.clone()
    }

    pub(super) fn sync_error(&self) -> Option<String> {
        self.lock().sync_error.clone()
    }

    pub(super) fn sync_window_is_closed(&self) -> bool {
        self.lock().sync_window_closed
    }

    pub(super) fn health_of(&self, namespace: &str, name: &str) -> Option<&'static str> {
        self.lock().health.get(&(namespace.to_owned(), name.to_owned())).copied()
    }

    pub(super) fn webhook_is_unavailable(&self) -> bool {
        take_one(&mut self.lock().webhook_unavailable)
    }

    pub(super) fn drops_a_connection(&self) -> bool {
        take_one(&mut self.lock().dropped)
    }

    pub(super) fn event_delay(&self) -> Duration {
        self.lock().handler_delay
    }

    pub(super) fn reload_delay(&self, pod: &str) -> Option<Duration> {
        self.lock().reload_delays.get(pod).copied()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no thread panics while it holds the faults")
    }
}

fn take_one(left: &mut u32) -> bool {
    let any = *left > 0;
    *left = left.saturating_sub(1);
    any
}
