//! A Kubernetes API and Argo CD in one process, faithful in what the suite can observe.
//!
//! It is a stand-in: it replaces a cluster in the tests and in the demo, and shares no code with the plugins that it
//! checks.

pub mod clock;
pub mod processes;
pub mod store;
