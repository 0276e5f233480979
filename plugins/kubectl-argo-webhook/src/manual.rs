//! What `--help` and the man page say after the flags.

/// The sections: examples, environment, files.
pub fn sections() -> String {
    format!("{EXAMPLES}\n\n{}", kit::cluster::surroundings())
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

#[cfg(test)]
mod tests {
    use crate::args::Args;

    #[test]
    fn the_man_page_is_what_the_definitions_say() {
        manual::check(kit::command::definition::<Args>(), "kubectl argo-webhook");
    }
}
