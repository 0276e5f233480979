//! What `--help` and the man page say after the flags.

/// The sections: examples, environment, files.
pub fn sections() -> String {
    format!("{EXAMPLES}\n\n{}", kit::cluster::surroundings())
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
  kubectl argo-waitrev evt -f push.json --hold 40s";

#[cfg(test)]
mod tests {
    use crate::args::Args;

    #[test]
    fn the_man_page_is_what_the_definitions_say() {
        manual::check(kit::command::definition::<Args>(), "kubectl argo-waitrev");
    }
}
