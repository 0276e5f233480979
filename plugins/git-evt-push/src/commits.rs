//! The commits of a push, with the files that each changed, from git itself.
//!
//! A wrong list makes the server plant old manifests under the new commit (argo-cd v3.5.1 util/webhook/webhook.go,
//! `storePreviouslyCachedManifests`); no list only makes it look at every Application. So lists are either exact or left
//! out.

use std::collections::{HashMap, HashSet};

use kit::error::Error;
use serde_json::{Value, json};

use crate::{answer::Answer, git::Git};

/// The most commits that are listed: the limit of GitHub's own push event is close to it.
pub const LIMIT: usize = 2000;

/// What a push brought to the remote.
#[derive(Clone, Debug, PartialEq)]
pub struct Listing {
    /// Oldest first.
    pub commits: Vec<Commit>,
    /// The files of each commit, by its id; `None` where a list could be wrong.
    pub files: Option<HashMap<String, Files>>,
}

/// One commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Its full id.
    pub id: String,
    /// The ids of its parents.
    pub parents: Vec<String>,
    /// When it was committed, RFC 3339.
    pub timestamp: String,
    /// Its message.
    pub message: String,
}

/// The files that a commit changed against its first parent. A renamed file is removed and added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    added: Vec<String>,
    modified: Vec<String>,
    removed: Vec<String>,
}

impl Listing {
    /// `commits` of the event record.
    pub fn to_json(&self) -> Value {
        let none = Files::default();
        self.commits
            .iter()
            .map(|commit| {
                let mut entry = json!({"id": commit.id, "message": commit.message, "timestamp": commit.timestamp});
                if let Some(files) = &self.files {
                    let Files { added, modified, removed } = files.get(&commit.id).unwrap_or(&none);
                    entry["added"] = json!(added);
                    entry["modified"] = json!(modified);
                    entry["removed"] = json!(removed);
                }
                entry
            })
            .collect()
    }
}

/// Lists what came with a push of `after` over `before`.
///
/// Without `before` (a new ref) or with `forced` only the last commit is listed, without files: what the remote had of
/// the others is not known here. What git cannot list is left out, and said: the push has happened all the same.
///
/// # Errors
/// When git cannot be run, or the command was interrupted.
pub fn list(git: &Git, before: Option<&str>, after: &str, forced: bool) -> Result<Listing, Error> {
    let known = before.filter(|_| !forced);
    let range = known.map_or_else(|| vec!["-1".into(), after.to_owned()], |before| vec![format!("{before}..{after}")]);
    let limit = format!("--max-count={}", LIMIT + 1);
    let format = "--format=%H%x00%P%x00%cI%x00%B";
    // Replacements (git replace) are this side's alone.
    let log = ["--no-replace-objects", "log", "-z", "--topo-order", "--no-show-signature", "--encoding=UTF-8"];
    let mut args: Vec<String> =
        log.iter().chain(&["--no-patch", &limit, format]).map(|arg| (*arg).to_owned()).collect();
    args.extend(range);
    args.push("--".into());
    let Some(log) = printed(git, git.ask(&args)?, "commits") else {
        return Ok(Listing { commits: Vec::new(), files: None });
    };
    let mut commits = parse_commits(&log);
    let whole = known.is_some() && commits.len() <= LIMIT && !touches_shallow_edge(git, &commits)?;
    commits.truncate(LIMIT);
    commits.reverse();
    let files = match known.filter(|_| whole) {
        Some(before) => files(git, before, after, &commits)?,
        None => None,
    };
    Ok(Listing { commits, files })
}

/// Whether the parents of a commit were cut off when the repository was cloned: it looks like a first commit then.
fn touches_shallow_edge(git: &Git, commits: &[Commit]) -> Result<bool, Error> {
    if commits.iter().all(|commit| !commit.parents.is_empty()) {
        return Ok(false);
    }
    Ok(git.ask(["rev-parse", "--is-shallow-repository"])?.line() != "false")
}

fn files(git: &Git, before: &str, after: &str, commits: &[Commit]) -> Result<Option<HashMap<String, Files>>, Error> {
    const DIFF: [&str; 8] = [
        "--no-replace-objects",
        "diff-tree",
        "-r",
        "-z",
        "--no-renames",
        "--ignore-submodules=none",
        "--no-ext-diff",
        "--root",
    ];
    // A commit with its first parent: the parents on the line are taken for the commit's own.
    let lines: String = commits
        .iter()
        .map(|commit| match commit.parents.first() {
            Some(parent) => format!("{} {parent}\n", commit.id),
            None => format!("{}\n", commit.id),
        })
        .collect();
    let each = git.feed(DIFF.iter().chain(&["--name-status", "--stdin"]), lines.into_bytes())?;
    let Some(files) = printed(git, each, "files").and_then(|bytes| parse_files(&bytes)) else { return Ok(None) };
    // A merge can undo what the remote had without any of the commits showing it against its first parent.
    let between = git.ask(DIFF.iter().chain(&["--name-only", before, after, "--"]))?;
    let listed: HashSet<&[u8]> = files
        .values()
        .flat_map(|files| files.added.iter().chain(&files.modified).chain(&files.removed))
        .map(String::as_bytes)
        .collect();
    let Some(between) = printed(git, between, "files") else { return Ok(None) };
    let complete = between.split(|byte| *byte == 0).filter(|name| !name.is_empty()).all(|name| listed.contains(name));
    Ok(complete.then_some(files))
}

/// What git printed; `None`, and a word about it, when it failed.
fn printed(git: &Git, answer: Answer, what: &str) -> Option<Vec<u8>> {
    if answer.ok() {
        return Some(answer.stdout);
    }
    git.talk().warn(format!("the {what} are left out of the record: git: {}", answer.reason()));
    None
}

fn parse_commits(bytes: &[u8]) -> Vec<Commit> {
    let fields: Vec<_> = bytes.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    fields
        .chunks_exact(4)
        .map(|fields| Commit {
            id: fields[0].to_string(),
            parents: fields[1].split_whitespace().map(str::to_owned).collect(),
            timestamp: fields[2].to_string(),
            message: fields[3].trim_end_matches('\n').to_owned(),
        })
        .collect()
}

/// Reads `diff-tree --stdin -z --name-status`: an id, then a letter and a name for each file. `None` when a name is not
/// UTF-8 or a letter not known: JSON could not hold the one, and the other has no place in the lists.
fn parse_files(bytes: &[u8]) -> Option<HashMap<String, Files>> {
    let mut found: HashMap<String, Files> = HashMap::new();
    let mut files = None;
    let mut fields = bytes.split(|byte| *byte == 0).filter(|field| !field.is_empty());
    while let Some(field) = fields.next() {
        let field = str::from_utf8(field).ok()?;
        if field.len() >= 40 {
            files = Some(found.entry(field.to_owned()).or_default());
            continue;
        }
        let name = str::from_utf8(fields.next()?).ok()?.to_owned();
        let files = files.as_mut()?;
        match field {
            "A" => files.added.push(name),
            "D" => files.removed.push(name),
            "M" | "T" => files.modified.push(name),
            _ => return None,
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_line_breaks_and_quotes_are_kept() {
        let id = "a".repeat(40);
        let files = parse_files(format!("{id}\0A\0a\n\"b\"\0M\0é\0D\0x y\0T\0link\0").as_bytes()).unwrap();
        let expected = Files {
            added: vec!["a\n\"b\"".into()],
            modified: vec!["é".into(), "link".into()],
            removed: vec!["x y".into()],
        };
        assert_eq!(files[&id], expected);
    }

    #[test]
    fn a_list_that_cannot_be_exact_is_no_list() {
        let id = "a".repeat(40);
        for rest in [&b"\0A\0\xff\0"[..], b"\0U\0x\0", b"\0A\0"] {
            assert_eq!(parse_files(&[id.as_bytes(), rest].concat()), None);
        }
    }
}
