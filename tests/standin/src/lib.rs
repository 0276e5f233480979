//! A Kubernetes API and Argo CD in one process, faithful in what the suite can observe.
//!
//! It is a stand-in: it replaces a cluster in the tests and in the demo, and shares no code with the plugins that it
//! checks.
//!
//! ```no_run
//! let standin = standin::Standin::start();
//! let apps = standin.store().list("applications.argoproj.io", Some("argocd"));
//! # let _ = (apps, standin.kubeconfig(), standin.git_url("evt.git"));
//! ```
//!
//! Two halves share one [`Cluster`]: the Kubernetes half (`api`, `workloads`, `install`) keeps objects and runs
//! containers, the Argo CD half (`argocd`) is what happens inside the containers. Whatever the API is asked for and does
//! not know is answered 501 and fails the test that asked.

pub mod api;
pub mod argocd;
pub mod certificates;
pub mod clock;
mod cluster;
mod faults;
mod git_http;
mod install;
mod kubeconfig;
mod logs;
mod names;
pub mod processes;
mod requests;
mod service;
mod standin;
pub mod store;
mod workloads;

pub use cluster::{Cluster, Endpoints, LogFormat, Options};
pub use faults::{Faults, Matcher, Outcome, PodFault};
pub use git_http::{GitFault, GitServer};
pub use install::Install;
pub use logs::Logs;
pub use requests::{Request, Requests};
pub use standin::Standin;
