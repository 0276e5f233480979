//! What goes wrong on request; a test may switch it at any time.

use std::sync::Mutex;

use tokio::sync::watch;

const HELD: &str = "no thread panics while it holds a fault";

/// The faults that are on.
#[derive(Default)]
pub struct Faults {
    clock_skew_seconds: Mutex<i64>,
    watches: watch::Sender<WatchFaults>,
    unreachable: watch::Sender<bool>,
    pods: watch::Sender<u64>,
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

    pub(crate) fn pods(&self) -> watch::Receiver<u64> {
        self.pods.subscribe()
    }

    pub(crate) fn unreachable(&self) -> watch::Receiver<bool> {
        self.unreachable.subscribe()
    }
}
