//! What `--help` and the man page say after the flags.

/// The sections: examples, environment, files.
pub fn sections() -> String {
    format!(
        "{EXAMPLES}

Environment:
  GIT_DIR, GIT_WORK_TREE and all that git reads
              as for git itself, which does the work
  GIT_TERMINAL_PROMPT
              0 where there is no terminal, unless it is set: git asks nobody for a password
{}

Files:
  .git/config, ~/.gitconfig
              evt.repoUrl is the default of --repo-url, evt.remote that of --remote",
        kit::talk::ENVIRONMENT
    )
}

const EXAMPLES: &str = "\
Examples:
  # change one value, commit, push; comments, quotes and order stay
  git evt-push --set data.rev=r2 app/signal.yaml

  # push, send the event, wait until it is deployed and healthy
  git evt-push -a -m 'Release 1.4' | kubectl argo-webhook -f - --sign |
      kubectl argo-waitrev shop -f - --until healthy

  # describe a push that has happened
  git evt-push --describe main@{1}..main

  # in hooks/post-receive of a bare repository: one record a line
  git evt-push --stdin";

#[cfg(test)]
mod tests {
    use crate::args::Args;

    #[test]
    fn the_man_page_is_what_the_definitions_say() {
        manual::check(kit::command::definition::<Args>(), "git evt-push");
    }
}
