//! What `--help` and the man page say after the flags.

/// The sections: examples, outcomes, proofs, environment, files.
pub fn sections() -> String {
    format!("{EXAMPLES}\n\n{OUTCOMES}\n\n{PROOFS}\n\n{}", kit::cluster::surroundings())
}

const EXAMPLES: &str = "\
Examples:
  # what is set, what each pod runs with, and where they differ
  kubectl argo-resync

  # poll every 30 seconds, keep the proof, compare one Application anew
  kubectl argo-resync 30s --jitter 0s --line-out interval.txt --hard-refresh evt

  # no polling at all
  kubectl argo-resync off

  # Argo CD's own defaults
  kubectl argo-resync default --jitter default

  # put back what an earlier run found
  kubectl argo-resync 2m > before.json
  kubectl argo-resync --restore before.json";

const OUTCOMES: &str = "\
Outcomes:
  report       nothing was asked for but a look: 0
  changed      argocd-cm was changed, and the pods run with it: 0
  restarted    argocd-cm had the values already, pods did not surely run with them: 0
  unchanged    everything was as asked already: 0
  refreshed    every Application was compared after it was asked for: 0
  dry-run      the patches are in the output, nothing was changed: 0
  failed       `error` says what: 1, 2, 3 or 4
  rolled-back  a restart failed, and the old values were put back: that of the failure
  timeout      the time is up; `error` has the last state seen: 124
  interrupted  SIGINT or SIGTERM: 130 or 143; the same command goes on";

const PROOFS: &str = "\
Proofs:
  log       the pod's own log says what it runs with: its startup line, or a scheduled comparison
  spec      the log says nothing any more, but the container is newer than argocd-cm and takes the value from it
  unproven  neither: exit code 3, unless nothing was asked for but a look";

#[cfg(test)]
mod tests {
    use crate::args::Args;

    #[test]
    fn the_man_page_is_what_the_definitions_say() {
        manual::check(kit::command::definition::<Args>(), "kubectl argo-resync");
    }
}
