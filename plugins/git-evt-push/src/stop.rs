//! Ending git from another thread.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use duct::{Handle, unix::HandleExt};

/// The number is the same on every Unix.
pub const SIGTERM: i32 = 15;

/// Ends the git command that runs and prevents the next.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<Mutex<Running>>);

/// What runs.
#[derive(Debug, Default)]
pub struct Running {
    /// Whether nothing more may be started.
    pub stopped: bool,
    /// The command that runs.
    pub handle: Option<Arc<Handle>>,
}

impl Stop {
    /// Asks git to leave, as SIGTERM does: git removes its lock files then.
    pub fn stop(&self) {
        let mut running = self.lock();
        running.stopped = true;
        if let Some(handle) = &running.handle {
            // It may have ended by itself in this moment.
            let _ = handle.send_signal(SIGTERM);
        }
    }

    /// What runs, for nobody else to change meanwhile.
    pub fn lock(&self) -> MutexGuard<'_, Running> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
