//! What `kubectl argo-resync` does to a cluster, seen from outside.
#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod bench;
mod calls;
mod installs;
mod interrupts;
mod keys;
mod lines;
mod refreshes;
mod reports;
mod rights;
mod rollouts;
mod undoing;
