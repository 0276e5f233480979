//! What `--help` and the man page say after the flags.

/// The sections: examples, environment, files.
pub fn sections() -> String {
    format!("{EXAMPLES}\n\n{}", kit::cluster::surroundings())
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

#[cfg(test)]
mod tests {
    use crate::args::Args;

    #[test]
    fn the_man_page_is_what_the_definitions_say() {
        manual::check(kit::command::definition::<Args>(), "kubectl argo-resync");
    }
}
