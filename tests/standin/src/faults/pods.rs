//! Faults of pods.

use std::time::Duration;

/// What keeps a pod from becoming ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PodFault {
    /// It starts so much later.
    Slow(Duration),
    /// Its containers start, write these lines, and end with an exit code, again and again.
    CrashLoop {
        /// The last words.
        lines: Vec<String>,
        /// `exitCode`.
        exit_code: i32,
    },
    /// Its image cannot be pulled.
    ImagePull,
    /// No node has room for it.
    Unschedulable,
    /// It runs, and its readiness probe fails.
    NeverReady,
}
