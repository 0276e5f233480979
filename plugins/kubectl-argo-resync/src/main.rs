//! Changes Argo CD's polling period, and proves that it is in force.
//!
//! ```text
//! kubectl argo-resync 30s --jitter 0s --hard-refresh evt --line-out interval.txt
//! ```
//!
//! API calls: get and patch `configmaps` (`argocd-cm`; get only: `argocd-cmd-params-cm`), list, get and patch
//! `deployments.apps` and `statefulsets.apps`, list `pods`, get `pods/log`; for a refresh get, list (by label) and patch
//! `applications.argoproj.io`. Without PERIOD nothing is patched, and Applications are listed for the load. The patches
//! of `argocd-cm` and of the workloads are rehearsed first, with `dryRun=All`: what is forbidden changes nothing.
//!
//! Exit codes: 0 done · 1 a pod runs with another value, a rollout failed, an Application cannot be compared · 2 fix the
//! call · 3 unproven or unreachable · 4 not allowed · 124 deadline · 130, 143 interrupted.

mod answer;
mod args;
mod deadline;
mod drift;
mod expected;
mod find;
mod install;
mod job;
mod line_out;
mod load;
mod manual;
mod observe;
mod origin;
mod output;
mod period;
mod plan;
mod preflight;
mod proof;
mod refresh;
mod restart;
mod restore;
mod rollout;
mod run;
mod startup_line;
mod targets;
mod undo;
mod verdict;
mod wanted;
mod warnings;
mod workload;

fn main() -> std::process::ExitCode {
    kit::command::run(|args: &args::Args| &args.talk, run::run)
}
