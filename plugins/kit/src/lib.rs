//! What the argo-evt commands share.
//!
//! | module | holds |
//! |---|---|
//! | [`exit`], [`error`] | exit codes and the errors that choose them |
//! | [`command`] | from `main` to the exit code: arguments, runtime, interrupts, the object on stdout |
//! | [`complete`] | what the shells offer where the cursor is |
//! | [`talk`], [`output`] | what is said on stderr, what is printed on stdout |
//! | [`record`] | the event record that moves down a pipeline |
//! | [`duration`], [`moment`] | Go durations, points in time in UNIX seconds and milliseconds |
//! | [`file`] | files that are written whole or not at all |
//! | [`paths`] | which changed files concern an Application |
//! | [`version`] | the version of an Argo CD |
//! | `cluster`, `application` | the Kubernetes client and its flags, the names of Applications (feature `cluster`) |
//! | `namespaces` | the namespaces that an Argo CD serves (feature `cluster`) |

#[cfg(feature = "cluster")]
pub mod application;
#[cfg(feature = "cluster")]
pub mod cluster;
pub mod command;
pub mod complete;
pub mod duration;
pub mod error;
pub mod exit;
pub mod file;
pub mod moment;
#[cfg(feature = "cluster")]
pub mod namespaces;
pub mod output;
pub mod paths;
pub mod record;
pub mod talk;
pub mod version;
