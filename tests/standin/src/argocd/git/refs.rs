//! The refs of a remote, and what a revision is among them.

use std::collections::BTreeMap;

use super::{Remote, run};
use crate::argocd::{
    semver::{Constraint, Library, Semver},
    version::Version,
};

/// The refs of a remote: names, `HEAD` and `<tag>^{}` among them, and what they point to.
pub type Refs = BTreeMap<String, String>;

/// `git ls-remote`.
///
/// # Errors
/// What git says.
pub async fn ls_remote(remote: &Remote) -> Result<Refs, String> {
    let output = run::git(None, Some(remote), &["ls-remote", &remote.url], None).await?;
    let text = String::from_utf8_lossy(&output);
    Ok(text.lines().filter_map(|line| line.split_once('\t')).map(|(id, name)| (name.into(), id.into())).collect())
}

/// Whether it is a full commit id, which is never looked up.
pub fn is_full_id(revision: &str) -> bool {
    revision.len() == 40 && revision.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// What `revision` is at the remote (argo-cd util/git/client.go, `lsRemote`).
///
/// # Errors
/// Nothing goes by that name.
pub fn resolve(refs: &Refs, revision: &str, tag_prefix: &str, version: Version) -> Result<String, String> {
    if is_full_id(revision) {
        return Ok(revision.into());
    }
    let revision = if revision.is_empty() { "HEAD" } else { revision };
    let newest = newest_tag(refs, revision, tag_prefix, version);
    let name = newest.as_deref().unwrap_or(revision);
    let mut names = vec![name.to_owned()];
    if !name.starts_with("refs/") {
        names.extend(["refs/heads/", "refs/tags/"].map(|folder| format!("{folder}{name}")));
    }
    if let Some(found) = names.iter().find(|name| refs.contains_key(*name)) {
        // An annotated tag: the commit behind it, in later versions.
        let peeled = version.since(&[(2, 13, 6), (2, 14, 8), (3, 0, 21), (3, 1, 0)]);
        let commit = refs.get(&format!("{found}^{{}}")).filter(|_| peeled);
        return Ok(commit.unwrap_or(&refs[found]).clone());
    }
    let short_id = (7..40).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    if short_id {
        return Ok(name.into());
    }
    Err(format!("unable to resolve '{name}' to a commit SHA"))
}

/// The highest tag inside a constraint (argo-cd util/versions/tags.go, since v2.12).
fn newest_tag(refs: &Refs, revision: &str, prefix: &str, version: Version) -> Option<String> {
    if !version.at_least(2, 12) {
        return None;
    }
    let library = Library::of(version);
    // v2.12.0 to v2.12.4 took a version for a constraint.
    let literal = version >= Version::new(2, 12, 5);
    let prefix = if version.at_least(3, 5) { prefix } else { "" };
    if literal && Semver::parse(revision, library).is_some() {
        return Some(format!("{prefix}{revision}"));
    }
    let constraint = Constraint::parse(revision, library)?;
    let tags = refs.keys().filter_map(|name| name.strip_prefix("refs/tags/")?.strip_prefix(prefix));
    let versions = tags.filter_map(|tag| Some((Semver::parse(tag, library)?, tag)));
    let inside = versions.filter(|(version, _)| constraint.contains(version, library));
    let newest = inside.reduce(|best, next| if next.0 > best.0 { next } else { best });
    newest.map(|(_, tag)| format!("{prefix}{tag}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refs() -> Refs {
        [
            ("HEAD", "aa"),
            ("refs/heads/main", "aa"),
            ("refs/heads/both", "b1"),
            ("refs/tags/both", "b2"),
            ("refs/tags/v1.2.0", "t1"),
            ("refs/tags/v1.2.0^{}", "c1"),
            ("refs/tags/v1.10.0", "t2"),
            ("refs/tags/v2.0.0-rc1", "t3"),
            ("refs/tags/app/3.0.0", "t4"),
        ]
        .map(|(name, id)| (name.to_owned(), id.to_owned()))
        .into()
    }

    #[test]
    fn revisions_resolve_as_in_argo_cd() {
        let id = "0123456789012345678901234567890123456789";
        for (revision, prefix, version, expected) in [
            ("", "", "v3.5.1", Some("aa")),
            ("HEAD", "", "v3.5.1", Some("aa")),
            ("main", "", "v3.5.1", Some("aa")),
            ("refs/heads/main", "", "v3.5.1", Some("aa")),
            (id, "", "v3.5.1", Some(id)),
            ("abcdef0", "", "v3.5.1", Some("abcdef0")),
            ("abcdef", "", "v3.5.1", None),
            ("nope", "", "v3.5.1", None),
            ("v1.2.0", "", "v3.5.1", Some("c1")),
            ("v1.2.0", "", "v3.0.20", Some("t1")),
            ("1.*", "", "v3.5.1", Some("t2")),
            ("1.*", "", "v2.11.0", None),
            (">=1.0.0-0", "", "v3.5.1", Some("t3")),
            ("1.2", "", "v2.12.5", None),
            ("1.2", "", "v2.12.4", Some("t1")),
            (">=3", "app/", "v3.5.1", Some("t4")),
            (">=3", "app/", "v3.4.0", None),
        ] {
            let got = resolve(&refs(), revision, prefix, Version::of_tag(version));
            assert_eq!(got.ok().as_deref(), expected, "{revision:?} {prefix:?} on {version}");
        }
    }
}
