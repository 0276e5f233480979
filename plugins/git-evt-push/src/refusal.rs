//! Why a push did not succeed, and what to do next.

use kit::{error::Error, exit::Exit};

use crate::{
    answer::Answer,
    porcelain::{self, Fate},
    repository::Target,
};

/// Git's and the providers' words for missing rights. There is no exit status of its own for them: git ends with 128
/// whatever the reason (git `http.c`, `credential.c`; OpenSSH `sshconnect2.c`; the rest are what servers answer).
const DENIED: [&str; 9] = [
    "Authentication failed for",
    "could not read Username",
    "could not read Password",
    "The requested URL returned error: 401",
    "The requested URL returned error: 403",
    "Permission denied (",
    "Access denied",
    "access denied",
    "does not have permission",
];

/// The error of a push that was not taken everywhere.
pub fn error(answer: &Answer, fates: &[(String, Fate)], commit: &str, target: &Target) -> Error {
    let reference = &target.address.reference;
    let short = &commit[..commit.len().min(10)];
    let elsewhere = match fates.iter().find(|(_, fate)| fate.is_there()) {
        Some((url, _)) => format!("; {url} has taken it"),
        None => String::new(),
    };
    for (url, fate) in fates {
        match fate {
            Fate::Rejected { by_remote, reason } => {
                let who = if *by_remote { url.as_str() } else { "git" };
                let message =
                    format!("{who} rejected the push to {reference}: {reason}; your commit {short} is kept{elsewhere}");
                return Error::no("rejected", message).hint(if *by_remote {
                    "the reason of the remote is above; when somebody else pushed at the same time, --retry 3 helps"
                } else {
                    "the remote has commits that you have not: `git pull --rebase` and run again, or use --retry 3"
                });
            }
            Fate::Unknown { reason } => {
                let message = format!("{url} did not say whether it took {reference}: {reason}");
                return Error::unknown("no-answer", message).hint("run the same command again: it finds out");
            }
            Fate::Accepted { .. } | Fate::UpToDate => {}
        }
    }
    let remote = target.address.remote_url.clone().unwrap_or_else(|| target.shown());
    let message =
        |what: &str, reason: &str| format!("{what} {remote}: {reason}; your commit {short} is kept{elsewhere}");
    if let Some(line) = answer.stderr.lines().find(|line| DENIED.iter().any(|words| line.contains(words))) {
        let reason = line.trim_start_matches("fatal: ").trim_start_matches("error: ");
        return Error::new(Exit::Denied, "denied", message("not allowed to push to", reason))
            .hint("git's own credentials are used: does `git push` work in this terminal?");
    }
    // Git ends with 128 where it cannot go on, and speaks of each remote that it has reached.
    if answer.status == Some(1) && !answer.stderr.contains("fatal: ") && !porcelain::preamble(&answer.stdout).1 {
        let message = format!("the pre-push hook refused the push; your commit {short} is kept");
        return Error::no("refused", message)
            .hint("put right what the hook says above, and run the same command again");
    }
    Error::unknown("push-failed", message("cannot push to", &answer.reason()))
        .hint("running the same command again pushes what the remote has not got")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Address;

    fn of(stderr: &str, fates: &[Fate]) -> Error {
        let answer = Answer { status: Some(128), stdout: Vec::new(), stderr: stderr.to_owned() };
        let address = Address {
            reference: "refs/heads/main".into(),
            default_branch: None,
            repo_url: String::new(),
            remote: Some("origin".into()),
            remote_url: Some("https://host/r".into()),
        };
        let target = Target { source: "HEAD".into(), remote: "origin".into(), push_urls: 1, address };
        let fates: Vec<_> = fates.iter().map(|fate| ("url".to_owned(), fate.clone())).collect();
        error(&answer, &fates, "0123456789abcdef", &target)
    }

    #[test]
    fn missing_rights_are_told_from_an_unreachable_remote() {
        for (stderr, exit) in [
            ("fatal: Authentication failed for 'https://host/r/'", Exit::Denied),
            ("fatal: could not read Username for 'https://host': terminal prompts disabled", Exit::Denied),
            ("fatal: unable to access 'https://host/r/': The requested URL returned error: 403", Exit::Denied),
            ("git@host: Permission denied (publickey).\nfatal: Could not read from remote repository.", Exit::Denied),
            ("Host key verification failed.\nfatal: Could not read from remote repository.", Exit::Unknown),
            ("fatal: unable to access 'https://host/r/': Could not resolve host: host", Exit::Unknown),
            ("fatal: the remote end hung up unexpectedly", Exit::Unknown),
            ("", Exit::Unknown),
        ] {
            let error = of(stderr, &[]);
            assert_eq!(error.exit, exit, "{stderr}");
            assert!(error.message.contains("your commit 0123456789 is kept"), "{error}");
        }
    }

    #[test]
    fn a_rejection_is_a_definite_no_and_an_answer_that_is_missing_is_not() {
        let rejected = of("", &[Fate::Rejected { by_remote: false, reason: "fetch first".into() }]);
        assert_eq!(rejected.exit, Exit::No);
        assert!(rejected.message.contains("git rejected the push to refs/heads/main: fetch first"), "{rejected}");
        let accepted = Fate::Accepted { before: None, after: None, forced: false };
        let half = of("", &[accepted, Fate::Rejected { by_remote: true, reason: "hook declined".into() }]);
        assert!(half.message.ends_with("; url has taken it"), "{half}");
        assert_eq!(of("", &[Fate::Unknown { reason: "x".into() }]).exit, Exit::Unknown);
    }
}
