//! What `git push --porcelain` prints (git `transport.c`, `print_ref_status`): per URL a line `To <url>`, then a line
//! per ref, `<flag> TAB <from>:<to> TAB <summary> (<reason>)`. The `Done` at the end is printed whenever the server
//! answered, after a rejection too, and proves nothing.

/// What became of one ref at one URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The remote took it. `before` is what it had: `None` for a new ref.
    Accepted {
        /// The full id that the remote had.
        before: Option<String>,
        /// The full id that it has now, where git says so.
        after: Option<String>,
        /// Whether commits of the remote were given up.
        forced: bool,
    },
    /// The remote had it already.
    UpToDate,
    /// The remote, or git itself, refused.
    Rejected {
        /// Whether the remote refused, and not git on this side.
        by_remote: bool,
        /// Why, in git's or the remote's words.
        reason: String,
    },
    /// The remote did not say what became of it.
    Unknown {
        /// Git's words.
        reason: String,
    },
}

impl Fate {
    /// Whether the remote has the ref as it was pushed.
    pub fn is_there(&self) -> bool {
        matches!(self, Fate::Accepted { .. } | Fate::UpToDate)
    }
}

/// The fate of the ref `to` at each URL, in the order in which git pushed. The ids are full ones when git ran with
/// `core.abbrev` set to the length of an id.
///
/// Lines before the first `To` are not git's: a pre-push hook may print to the same stdout.
pub fn fates(stdout: &[u8], to: &str) -> Vec<(String, Fate)> {
    let text = String::from_utf8_lossy(stdout);
    let mut url = None;
    let mut found = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("To ") {
            url = Some(name);
        } else if let (Some(url), Some(fate)) = (url, fate(line, to)) {
            found.push((url.to_owned(), fate));
        }
    }
    found
}

/// The lines before git's own: what a pre-push hook printed. Git itself never got to speak when there is nothing else.
pub fn preamble(stdout: &[u8]) -> (Vec<String>, bool) {
    let text = String::from_utf8_lossy(stdout);
    let is_gits = |line: &&str| line.starts_with("To ") || *line == "Done";
    let lines = text.lines().take_while(|line| !is_gits(line)).map(str::to_owned).collect();
    (lines, text.lines().any(|line| is_gits(&line)))
}

fn fate(line: &str, to: &str) -> Option<Fate> {
    let mut columns = line.splitn(3, '\t');
    let (flag, refs, summary) = (columns.next()?, columns.next()?, columns.next()?);
    if refs.split_once(':')?.1 != to {
        return None;
    }
    let (summary, reason) = match summary.split_once(" (") {
        Some((summary, reason)) => (summary, reason.strip_suffix(')').unwrap_or(reason)),
        None => (summary, ""),
    };
    let accepted = |separator: &str, forced| {
        let (before, after) = summary.split_once(separator)?;
        Some(Fate::Accepted { before: Some(before.to_owned()), after: Some(after.to_owned()), forced })
    };
    match flag {
        " " => accepted("..", false),
        "+" => accepted("...", true),
        "*" => Some(Fate::Accepted { before: None, after: None, forced: false }),
        "=" => Some(Fate::UpToDate),
        "!" => {
            let kind = summary.trim_matches(['[', ']']);
            let reason = if reason.is_empty() { kind } else { reason }.to_owned();
            Some(match kind {
                "remote failure" => Fate::Unknown { reason },
                _ => Fate::Rejected { by_remote: kind == "remote rejected", reason },
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output of git 2.39 with `core.abbrev=40`, ids shortened here.
    fn one(line: &str) -> Option<Fate> {
        let stdout = format!("hook output\n \trefs/heads/main:refs/heads/main\tx..y\nTo /srv/bare\n{line}\nDone\n");
        fates(stdout.as_bytes(), "refs/heads/main").pop().map(|(_, fate)| fate)
    }

    #[test]
    fn each_flag_is_read() {
        let accepted = |before: Option<&str>, after: Option<&str>, forced| {
            Some(Fate::Accepted { before: before.map(Into::into), after: after.map(Into::into), forced })
        };
        let rejected = |by_remote, reason: &str| Some(Fate::Rejected { by_remote, reason: reason.into() });
        for (line, fate) in [
            (" \tHEAD:refs/heads/main\ta1..b2", accepted(Some("a1"), Some("b2"), false)),
            ("+\tHEAD:refs/heads/main\ta1...b2 (forced update)", accepted(Some("a1"), Some("b2"), true)),
            ("*\tHEAD:refs/heads/main\t[new branch]", accepted(None, None, false)),
            ("=\tHEAD:refs/heads/main\t[up to date]", Some(Fate::UpToDate)),
            ("!\tHEAD:refs/heads/main\t[rejected] (fetch first)", rejected(false, "fetch first")),
            (
                "!\tHEAD:refs/heads/main\t[remote rejected] (pre-receive hook declined)",
                rejected(true, "pre-receive hook declined"),
            ),
            ("!\tHEAD:refs/heads/main\t[remote rejected]", rejected(true, "remote rejected")),
            (
                "!\tHEAD:refs/heads/main\t[remote failure] (remote failed to report status)",
                Some(Fate::Unknown { reason: "remote failed to report status".into() }),
            ),
            ("*\tv1:refs/tags/v1\t[new tag]", None),
            ("-\t:refs/heads/main\t[deleted]", None),
            ("nothing of git's", None),
        ] {
            assert_eq!(one(line), fate, "{line}");
        }
    }

    #[test]
    fn what_a_hook_printed_is_told_from_what_git_says() {
        let hook = || vec!["a".to_owned(), "b".to_owned()];
        assert_eq!(preamble(b"a\nb\nTo x\n=\tm:m\t[up to date]\nDone\n"), (hook(), true));
        assert_eq!(preamble(b"a\nb\n"), (hook(), false));
    }

    #[test]
    fn each_url_has_its_own_fate() {
        let stdout = b"To a\n \tm:refs/heads/main\t1..2\nDone\nTo b\n=\tm:refs/heads/main\t[up to date]\nDone\n";
        let urls: Vec<String> = fates(stdout, "refs/heads/main").into_iter().map(|(url, _)| url).collect();
        assert_eq!(urls, ["a", "b"]);
    }
}
