//! Commit ids: which two are the same commit, and which revision is one at all.

/// Whether `text` is a commit id and not a branch, a tag or a chart version: 7 to 64 hexadecimal digits.
pub fn is_commit(text: &str) -> bool {
    kit::record::is_commit(text)
}

/// Whether two ids name the same commit: full ids are equal, an abbreviated one is a prefix of the other, whichever of
/// the two it is. Argo CD may report an abbreviated `targetRevision` as it is (argo-cd v3.5.1 util/git/client.go).
pub fn same_commit(one: &str, other: &str) -> bool {
    if !is_commit(one) || !is_commit(other) {
        return false;
    }
    let length = one.len().min(other.len());
    one.as_bytes()[..length].eq_ignore_ascii_case(&other.as_bytes()[..length]) && prefix_allowed(one, other)
}

/// Two full ids of different lengths are of different hash functions and never the same commit.
fn prefix_allowed(one: &str, other: &str) -> bool {
    const FULL: [usize; 2] = [40, 64];
    one.len() == other.len() || !(FULL.contains(&one.len()) && FULL.contains(&other.len()))
}

/// The id as it is shown to people.
pub fn short(id: &str) -> &str {
    if is_commit(id) { &id[..id.len().min(9)] } else { id }
}

/// Whether two URLs are of the same repository: scheme, user, port, letter case, `.git` and a trailing slash aside,
/// since an Application may read over ssh what was pushed over https.
pub fn same_repository(one: &str, other: &str) -> bool {
    place(one) == place(other)
}

/// Host and path; a path on this machine has no host.
fn place(url: &str) -> (String, String) {
    let url = url.trim().to_lowercase();
    let (host, path) = match url.split_once("://") {
        Some((_, rest)) => {
            let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
            let host = authority.rsplit('@').next().unwrap_or_default();
            // The colons of an IPv6 address are inside its brackets.
            let port = host.rfind(':').filter(|at| !host[*at..].contains(']'));
            (&host[..port.unwrap_or(host.len())], path)
        }
        // An scp-like address: host and path with a colon between them.
        None => match url.split_once(':') {
            Some((host, path)) if !host.contains('/') => (host.rsplit('@').next().unwrap_or_default(), path),
            _ => ("", url.as_str()),
        },
    };
    let path = path.trim_matches('/');
    (host.to_owned(), path.strip_suffix(".git").unwrap_or(path).trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: &str = "0123456789abcdef0123456789abcdef01234567";

    #[test]
    fn an_abbreviated_id_matches_in_both_directions() {
        assert!(same_commit(FULL, FULL));
        assert!(same_commit(FULL, "0123456") && same_commit("0123456", FULL));
        assert!(same_commit(&FULL.to_uppercase(), FULL));
    }

    #[test]
    fn names_versions_and_other_commits_do_not_match() {
        let other = FULL.replace('7', "8");
        for text in ["main", "", "1.2.3", "012345", "v0123456", "0123456-dirty", &other] {
            assert!(!same_commit(FULL, text) && !same_commit(text, FULL), "{text}");
        }
        assert!(!same_commit(FULL, &format!("{FULL}{}", &FULL[..24])), "an id of SHA-256 that begins alike");
    }

    #[test]
    fn urls_of_one_repository_match() {
        let url = "https://git.example.com/team/app";
        for other in [
            "https://git.example.com/team/app.git",
            "http://user@git.example.com:8080/team/app/",
            "https://user:word@git.example.com/team/app",
            "git@git.example.com:team/app.git",
            "ssh://git@git.example.com:22/Team/App.git",
            "git.example.com:team/app",
        ] {
            assert!(same_repository(url, other), "{other}");
        }
        for other in ["https://git.example.com/team/other", "https://example.com/team/app", "", "/team/app"] {
            assert!(!same_repository(url, other), "{other}");
        }
        assert!(same_repository("/srv/bare/evt.git", "/srv/bare/evt"));
        assert!(same_repository("http://127.0.0.1:4000/cgi-bin/git/evt", "http://127.0.0.1:4000/cgi-bin/git/evt.git"));
    }
}
