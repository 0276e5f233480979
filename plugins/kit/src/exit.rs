//! Exit codes, chosen by what the caller should do next.

use std::process::ExitCode;

/// How a command ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// 0: done, or the answer is yes.
    Done = 0,
    /// 1: a definite no.
    No = 1,
    /// 2: the call has to be changed.
    Usage = 2,
    /// 3: the answer could not be found out.
    Unknown = 3,
    /// 4: not allowed.
    Denied = 4,
    /// 124: the deadline passed.
    Deadline = 124,
    /// 130: SIGINT.
    Interrupted = 130,
    /// 143: SIGTERM.
    Terminated = 143,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}

/// The table of exit codes that ends every `--help` and man page.
pub const TABLE: &str = "\
Exit status:
  0    done, or the answer is yes
  1    a definite no: not at the revision, moved during a hold, event refused, push rejected, operation failed
  2    fix the call: flags, input record, nothing found under that name, value not accepted
  3    could not find out: unreachable, TLS, 5xx, watch lost for good, git failed for another reason
  4    not allowed: 401 or 403, with the missing verb and resource named
  124  the deadline passed; the last state seen is in the output
  130  interrupted (143: terminated); what was learned so far is printed";
