//! What `--help` and the man page say after the flags.

/// The sections: examples, outcomes, environment, files.
pub fn sections() -> String {
    format!("{EXAMPLES}\n\n{OUTCOMES}\n\n{}", kit::cluster::surroundings())
}

const EXAMPLES: &str = "\
Examples:
  # push and notify, signed with the key in argocd-secret
  git evt-push -a -m 'Release 1.4' | kubectl argo-webhook -f - --sign

  # see the request, and the curl line that makes it; send nothing
  kubectl argo-webhook -f push.json --dry-run

  # prove that the server refuses what nobody signed
  kubectl argo-webhook -f push.json --expect-status 400

  # which Applications would it refresh, and why not the others
  kubectl argo-webhook explain -f push.json

  # why does the signature not match
  kubectl argo-webhook verify --body-file body.json --headers headers.txt --secret-file key

  # a new key, in force on every argocd-server pod when this returns
  kubectl argo-webhook secret set --generate --out webhook-secret";

const OUTCOMES: &str = "\
Outcomes:
  accepted       the event is queued; that says nothing about any Application: 0
  refused        4xx, or a redirect: 1, 2 or 4; 0 where --expect-status names it
  unavailable    5xx, or an answer that is not Argo CD's: 3
  unanswered     no connection, or no answer: 3
  dry-run        nothing was sent: 0
  refresh        explain: at least one Application would refresh: 0
  no-refresh     explain: none would: 1
  valid          verify: the signature is right: 0
  not-valid      verify: it is not, and `fault` says why: 1
  set, missing   secret show: there is a key, or none: 0 or 1
  enforced       secret set: every server refuses events without the key: 0
  put-back       secret set: not every server did in time; the old key is back: 124
  not-enforced   secret set: and the old key could not be put back: 124
  interrupted    SIGINT or SIGTERM: 130 or 143";

#[cfg(test)]
mod tests {
    use crate::args::Args;

    #[test]
    fn the_man_page_is_what_the_definitions_say() {
        manual::check(kit::command::definition::<Args>(), "kubectl argo-webhook");
    }
}
