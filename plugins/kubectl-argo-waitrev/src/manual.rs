//! What `--help` and the man page say after the flags.

/// The sections: examples, outcomes, environment, files.
pub fn sections() -> String {
    format!("{EXAMPLES}\n\n{OUTCOMES}\n\n{}", kit::cluster::surroundings())
}

const EXAMPLES: &str = "\
Examples:
  # push, and wait until Argo CD has found the commit
  git evt-push --set data.rev=r2 app/signal.yaml | kubectl argo-waitrev evt -f - > poll.json

  # until the commit is deployed and healthy, five minutes at most
  kubectl argo-waitrev evt --revision 3f2c1d7 --until healthy --timeout 5m

  # all Applications of a team, with one watch
  kubectl argo-waitrev -l team=shop -f push.json

  # prove that it does not get there by itself
  kubectl argo-waitrev evt -f push.json --hold 40s

  # a newer commit that contains this one is as good
  kubectl argo-waitrev evt -f push.json --git-dir .

  # what happens to all Applications, as it happens
  kubectl argo-waitrev --all -A -f push.json --until healthy --stream";

const OUTCOMES: &str = "\
Outcomes:
  reached           it came to the commit while it was watched: 0
  already           it was there at the first look: 0; during a hold: 1
  superseded        it is at a newer commit that contains it, as --git-dir proves: 0
  held              it stayed where it was, and a last look confirmed it: 0
  skipped           selected, and without a source that can show the commit: 0
  no-effect         the push touched none of its paths: 1, or as --no-effect says
  moved             it is at another commit than before: 124; during a hold: 1
  deleted           it is gone, or is going: 1
  error             it cannot be compared, and the condition lasted: 1
  operation-failed  the operation on the commit ended badly: 1
  hydration-failed  hydrating the dry commit failed: 1
  degraded          Degraded at the commit, with --fail-on-degraded: 1
  refreshed         a refresh was requested, with --forbid-refresh: 1
  not-at-revision   asked with --timeout 0, and not there: 1
  lost              the time is up; a refresh was cleared and the revision did not move: 124
  stale             the time is up; it was not compared although it should have been: 124
  deadline          the time is up; `error` says what held it up: 124
  pending           another Application decided the whole before this one
  unreachable       the cluster could not be asked, or not to the end: 3
  interrupted       SIGINT or SIGTERM: 130 or 143";

#[cfg(test)]
mod tests {
    use crate::args::Args;

    #[test]
    fn the_man_page_is_what_the_definitions_say() {
        manual::check(kit::command::definition::<Args>(), "kubectl argo-waitrev");
    }
}
