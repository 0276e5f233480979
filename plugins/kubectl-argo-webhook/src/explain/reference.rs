//! Whether the ref that was pushed to is what a source follows (argo-cd v3.5.1 util/webhook/webhook.go,
//! `sourceRevisionHasChanged`), and why not. Pure.

use kit::{record, version::Version};

use super::{
    seen::{Seen, name_of},
    semver::{self, Library},
};

/// Whether a push concerns a target revision. Branches and tags are not told apart.
pub fn matches(target: &str, seen: &Seen, version: Version) -> bool {
    let last = name_of(target);
    if last.is_empty() || last == "HEAD" {
        return seen.touched_head;
    }
    let target = bare(target);
    target == seen.name
        || (knows_ranges(version) && semver::lies_in(&seen.name, target, Library::of(version)) == Some(true))
}

/// What to do about a target revision that does not match.
pub fn hint(target: &str, seen: &Seen, version: Version) -> String {
    let last = name_of(target);
    let target = bare(target);
    if last.is_empty() || last == "HEAD" {
        return "it follows HEAD, and the push was not to the default branch that the event names".into();
    }
    if record::is_commit(target) && target.len() >= 40 {
        return "it is pinned to a commit, which no event ever moves: change targetRevision".into();
    }
    if semver::lies_in(&seen.name, target, Library::of(version)) == Some(true) {
        return "version ranges count only from Argo CD v2.14.9 and v3.0 on".into();
    }
    if semver::is_constraint(target, Library::of(version)) && target.contains(['*', 'x', '<', '>', '~', '^', '=', ' '])
    {
        return "it follows a version range: push a tag in it (--ref refs/tags/VERSION)".into();
    }
    if target.eq_ignore_ascii_case(&seen.name) {
        return "names are compared with their letter case".into();
    }
    if target.ends_with(&format!("/{}", seen.name)) || seen.name.ends_with(&format!("/{target}")) {
        return "an event must name the full ref: refs/heads/… or refs/tags/…".into();
    }
    format!("it follows another branch or tag: an event for it has --ref refs/heads/{target}")
}

fn bare(target: &str) -> &str {
    target.strip_prefix("refs/heads/").or_else(|| target.strip_prefix("refs/tags/")).unwrap_or(target)
}

fn knows_ranges(version: Version) -> bool {
    version >= Version(2, 14, 9)
}
