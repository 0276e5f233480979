//! How the wait for one Application ends.

use kit::exit::Exit;

/// How it ended. The words are those of `outcome` in the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It came to the commit while it was watched.
    Reached,
    /// It was there at the first look.
    Already,
    /// It is at a newer commit that contains the one waited for.
    Superseded,
    /// It stayed where it was.
    Held,
    /// The push touched none of the paths that it is generated from.
    NoEffect,
    /// It has no source that can show the commit, and was selected, not named.
    Skipped,
    /// The wait ended before anything was decided about it.
    Pending,
    /// The deadline passed.
    Deadline,
    /// The deadline passed, and it had not been compared at all although it should have been.
    Stale,
    /// The deadline passed, and a refresh had been cleared without the revision moving.
    Lost,
    /// The deadline passed and it is at another commit than before; during a hold, it moved.
    Moved,
    /// It is not at the commit; asked without waiting.
    NotAtRevision,
    /// It was deleted.
    Deleted,
    /// It cannot be compared.
    Error,
    /// The operation on the commit ended badly.
    OperationFailed,
    /// Hydrating the commit failed.
    HydrationFailed,
    /// It is Degraded at the commit.
    Degraded,
    /// A refresh was requested, which was not allowed.
    Refreshed,
    /// The watch was lost.
    Unreachable,
    /// SIGINT or SIGTERM.
    Interrupted,
}

impl Outcome {
    /// The word in the output.
    pub fn word(self) -> &'static str {
        match self {
            Outcome::Reached => "reached",
            Outcome::Already => "already",
            Outcome::Superseded => "superseded",
            Outcome::Held => "held",
            Outcome::NoEffect => "no-effect",
            Outcome::Skipped => "skipped",
            Outcome::Pending => "pending",
            Outcome::Deadline => "deadline",
            Outcome::Stale => "stale",
            Outcome::Lost => "lost",
            Outcome::Moved => "moved",
            Outcome::NotAtRevision => "not-at-revision",
            Outcome::Deleted => "deleted",
            Outcome::Error => "error",
            Outcome::OperationFailed => "operation-failed",
            Outcome::HydrationFailed => "hydration-failed",
            Outcome::Degraded => "degraded",
            Outcome::Refreshed => "refreshed",
            Outcome::Unreachable => "unreachable",
            Outcome::Interrupted => "interrupted",
        }
    }
}

/// The end of the wait for one Application.
#[derive(Clone, Debug, PartialEq)]
pub struct End {
    /// How.
    pub outcome: Outcome,
    /// The exit code that it asks for.
    pub exit: Exit,
    /// Why, where it is not a yes.
    pub error: Option<kit::error::Error>,
}

impl End {
    /// A yes.
    pub fn yes(outcome: Outcome) -> Self {
        End { outcome, exit: Exit::Done, error: None }
    }

    /// Not a yes; `hint` is what to try.
    pub fn new(exit: Exit, outcome: Outcome, message: impl Into<String>, hint: Option<String>) -> Self {
        let mut error = kit::error::Error::new(exit, outcome.word(), message);
        error.hint = hint;
        End { outcome, exit, error: Some(error) }
    }
}

/// How bad an exit code is for the whole: a definite no is worse than not knowing yet, not being able to find out is
/// worse than both.
pub fn badness(exit: Exit) -> u8 {
    match exit {
        Exit::Done => 0,
        Exit::Deadline => 1,
        Exit::No => 2,
        Exit::Unknown => 3,
        Exit::Denied => 4,
        Exit::Usage => 5,
        Exit::Interrupted | Exit::Terminated => 6,
    }
}
