//! What goes wrong on request; a test may switch it at any time.

mod pods;
mod requests;

use std::sync::Mutex;

use tokio::sync::watch;

pub use self::{
    pods::PodFault,
    requests::{Matcher, Outcome},
};
use crate::argocd::ArgoFaults;

const HELD: &str = "no thread panics while it holds a fault";

/// The beginning of a pod's name, and its fault; the newest first.
type PodFaults = Vec<(String, PodFault)>;

/// The faults that are on.
#[derive(Default)]
pub struct Faults {
    /// Those inside Argo CD.
    pub argo: ArgoFaults,
    clock_skew_seconds: Mutex<i64>,
    watches: watch::Sender<WatchFaults>,
    unreachable: watch::Sender<bool>,
    pods: watch::Sender<PodFaults>,
    requests: requests::Rules,
}

/// How often each thing has happened to the watches that were open then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WatchFaults {
    pub closed: u64,
    pub aborted: u64,
    pub stalled: u64,
    pub expired: u64,
}

impl Faults {
    /// The controller's clock is so many seconds ahead of everybody else's (behind, when negative).
    pub fn skew_clock(&self, seconds: i64) {
        *self.clock_skew_seconds.lock().expect(HELD) = seconds;
    }

    /// What [`Faults::skew_clock`] was last given; 0 at first.
    pub fn clock_skew_seconds(&self) -> i64 {
        *self.clock_skew_seconds.lock().expect(HELD)
    }

    /// Ends all open watches as a server does whose time for them is over.
    pub fn close_watches(&self) {
        self.watches.send_modify(|watches| watches.closed += 1);
    }

    /// Cuts the connections of all open watches.
    pub fn abort_watches(&self) {
        self.watches.send_modify(|watches| watches.aborted += 1);
    }

    /// Sends nothing more on the open watches and leaves their connections open, as when the other end is gone without
    /// a word. Watches opened later are not affected.
    pub fn stall_watches(&self) {
        self.watches.send_modify(|watches| watches.stalled += 1);
    }

    /// Ends all open watches with an `ERROR` event, code 410.
    pub fn expire_watches(&self) {
        self.watches.send_modify(|watches| watches.expired += 1);
    }

    /// While on, the API server's port refuses connections and the open ones are cut.
    pub fn refuse_connections(&self, on: bool) {
        self.unreachable.send_replace(on);
    }

    pub(crate) fn watches(&self) -> watch::Receiver<WatchFaults> {
        self.watches.subscribe()
    }

    /// Lets the next `times` requests that match fail; `usize::MAX` is until [`Faults::answer_all`].
    pub fn fail(&self, matcher: Matcher, times: usize, outcome: Outcome) {
        self.requests.add(matcher, times, outcome);
    }

    /// Ends what [`Faults::fail`] began.
    pub fn answer_all(&self) {
        self.requests.clear();
    }

    /// From now on, pods whose name begins with `prefix` have a fault when they start.
    pub fn break_pods(&self, prefix: &str, fault: PodFault) {
        self.pods.send_modify(|pods| pods.insert(0, (prefix.into(), fault)));
    }

    /// Ends what [`Faults::break_pods`] began; pods that wait or crash then start.
    pub fn heal_pods(&self) {
        self.pods.send_modify(Vec::clear);
    }

    pub(crate) fn take(&self, method: &str, path: &str, watch: bool) -> Option<Outcome> {
        self.requests.take(method, path, watch)
    }

    pub(crate) fn of_pod(&self, name: &str) -> Option<PodFault> {
        self.pods.borrow().iter().find(|(prefix, _)| name.starts_with(prefix)).map(|(_, fault)| fault.clone())
    }

    pub(crate) fn pods(&self) -> watch::Receiver<PodFaults> {
        self.pods.subscribe()
    }

    pub(crate) fn unreachable(&self) -> watch::Receiver<bool> {
        self.unreachable.subscribe()
    }
}
