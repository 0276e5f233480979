//! The push that an event tells of, from a record or from flags. Pure.

use kit::{error::Error, record};
use serde_json::{Map, Value};

use crate::{args::EventArgs, go_url};

/// A push to one ref of one repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Push {
    /// The web address of the repository, as in GitHub's `html_url`.
    pub repo_url: String,
    /// The remote's own address, when it is known.
    pub remote_url: Option<String>,
    /// The full ref: `refs/heads/main`.
    pub reference: String,
    /// The commit before the push; zeros for a new ref, `None` when it must not be said.
    pub before: Option<String>,
    /// The commit after the push.
    pub after: String,
    /// The repository's default branch. Applications that follow `HEAD` are refreshed only when it was pushed to.
    pub default_branch: String,
    /// The commits pushed.
    pub commits: Vec<Commit>,
}

/// One commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Commit {
    /// Its full id.
    pub id: String,
    /// The files it touched; `None` when not all are known, and then the server must look at every Application.
    pub files: Option<Files>,
}

/// The files that a commit touched, from the root of the repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// New files.
    pub added: Vec<String>,
    /// Changed files.
    pub modified: Vec<String>,
    /// Deleted files.
    pub removed: Vec<String>,
}

impl Push {
    /// Reads the push in a record.
    ///
    /// # Errors
    /// When a key is missing or of the wrong type, and for an address or a ref that the server could not match; exit
    /// code 2.
    pub fn of_record(record: &record::Record) -> Result<Self, Error> {
        let text = |key| Ok::<_, Error>(record.text(key)?.filter(|text| !text.is_empty()).map(str::to_owned));
        let complete = record.0.get("files_complete") == Some(&Value::Bool(true));
        let commits = match record.0.get("commits") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(commits)) => {
                commits.iter().map(|commit| commit_of(commit, complete)).collect::<Result<_, _>>()?
            }
            Some(_) => return Err(bad("`commits` of the event record is not a list")),
        };
        let reference = record.require("ref")?.to_owned();
        Push {
            after: record.require("commit")?.to_owned(),
            repo_url: record.require("repo_url")?.to_owned(),
            remote_url: text("remote_url")?,
            before: text("before")?,
            default_branch: text("default_branch")?.unwrap_or_else(|| branch_of(&reference)),
            reference,
            commits,
        }
        .checked()
    }

    /// Makes the push that the flags describe. File names given by hand never come with the commit before.
    ///
    /// # Errors
    /// As [`Push::of_record`].
    pub fn of_flags(args: &EventArgs) -> Result<Self, Error> {
        let need = |value: &Option<String>, flag: &str| {
            value.clone().ok_or_else(|| {
                Error::usage("no-event", format!("an event made by hand needs {flag}"))
                    .hint("--repo-url URL --ref refs/heads/BRANCH --after SHA; or -f RECORD from `git evt-push`")
            })
        };
        let reference = need(&args.reference, "--ref")?;
        let after = need(&args.after, "--after")?;
        let files = Files { added: args.added.clone(), modified: args.modified.clone(), removed: args.removed.clone() };
        let files = (files != Files::default()).then_some(files);
        Push {
            repo_url: need(&args.repo_url, "--repo-url")?,
            remote_url: None,
            before: args.before.clone(),
            default_branch: args.default_branch.clone().unwrap_or_else(|| branch_of(&reference)),
            reference,
            commits: files.map(|files| Commit { id: after.clone(), files: Some(files) }).into_iter().collect(),
            after,
        }
        .checked()
    }

    /// The name without `refs/heads/` or `refs/tags/`.
    pub fn short_name(&self) -> &str {
        self.reference.splitn(3, '/').last().unwrap_or_default()
    }

    /// Whether a tag was pushed.
    pub fn is_tag(&self) -> bool {
        self.reference.starts_with("refs/tags/")
    }

    fn checked(self) -> Result<Self, Error> {
        check_url(&self.repo_url)?;
        check_ref(&self.reference)?;
        for id in [Some(&self.after), self.before.as_ref()].into_iter().flatten() {
            if !record::is_commit(id) {
                return Err(bad(format!("`{id}` is not a commit id")).hint("give the full id: `git rev-parse HEAD`"));
            }
        }
        Ok(self)
    }
}

/// Without a default branch to go by, the branch pushed counts as it: one look too many does no harm, one too few does.
fn branch_of(reference: &str) -> String {
    reference.strip_prefix("refs/heads/").unwrap_or_default().to_owned()
}

/// Refuses addresses that match nothing. Before v3.1 an empty path makes the server panic (argo-cd
/// util/webhook/webhook.go), and an IPv6 host loses its brackets in every version.
fn check_url(url: &str) -> Result<(), Error> {
    let refuse = |why: &str| {
        Err(Error::usage("bad-url", format!("no Application can match the event URL `{url}`: {why}"))
            .hint("it is the repository's web address, such as https://github.com/owner/repository (--repo-url)"))
    };
    let parsed = match go_url::parse(url) {
        Ok(parsed) => parsed,
        Err(why) => return refuse(&why),
    };
    if parsed.has_password {
        return Err(Error::usage("bad-url", "the event URL holds a password, and events are kept in logs")
            .hint("leave user and password out: the server looks only at host and path"));
    }
    if parsed.host.contains(':') {
        return refuse("the server drops the brackets of an IPv6 host, so give the host a name");
    }
    if parsed.host.is_empty() {
        return refuse("it has no host");
    }
    if parsed.escaped_path.trim_matches('/').is_empty() {
        return refuse("it has a host but no path");
    }
    Ok(())
}

/// The server cuts a ref at its slashes, so that a branch `a/b` without its prefix would count as `b`.
fn check_ref(reference: &str) -> Result<(), Error> {
    let name = reference.strip_prefix("refs/").and_then(|rest| rest.split_once('/')).map(|(_, name)| name);
    if name.is_some_and(|name| !name.is_empty()) {
        return Ok(());
    }
    Err(Error::usage("bad-ref", format!("`{reference}` is not a full ref"))
        .hint("write refs/heads/BRANCH or refs/tags/TAG"))
}

fn commit_of(value: &Value, complete: bool) -> Result<Commit, Error> {
    let Value::Object(commit) = value else {
        return Err(bad("`commits` of the event record holds something that is not an object"));
    };
    let id = commit.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
    let files = if complete {
        Some(Files {
            added: names(commit, "added")?,
            modified: names(commit, "modified")?,
            removed: names(commit, "removed")?,
        })
    } else {
        None
    };
    Ok(Commit { id, files })
}

fn names(commit: &Map<String, Value>, key: &str) -> Result<Vec<String>, Error> {
    let wrong = || bad(format!("`commits[].{key}` of the event record is not a list of file names"));
    match commit.get(key) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(names)) => {
            names.iter().map(|name| name.as_str().map(str::to_owned).ok_or_else(wrong)).collect()
        }
        Some(_) => Err(wrong()),
    }
}

fn bad(message: impl Into<String>) -> Error {
    Error::usage("bad-record", message).hint("make the record with `git evt-push`, or correct it")
}

#[cfg(test)]
mod tests {
    use super::*;
    use kit::record::Record;

    fn record(edit: &[(&str, &str)]) -> Record {
        let text = r#"{"commit":"1111111111111111111111111111111111111111","ref":"refs/heads/main",
            "repo_url":"https://h.example/o/r","default_branch":"main","files_complete":true,
            "commits":[{"id":"1","modified":["a b/ü"]}]}"#;
        let mut record = Record::parse(text.as_bytes(), "test").unwrap();
        for (key, value) in edit {
            record.0.insert((*key).into(), serde_json::from_str(value).unwrap());
        }
        record
    }

    #[test]
    fn lists_that_are_not_complete_are_left_out() {
        let push = Push::of_record(&record(&[])).unwrap();
        assert_eq!(push.commits[0].files.as_ref().unwrap().modified, ["a b/ü"]);
        let push = Push::of_record(&record(&[("files_complete", "false")])).unwrap();
        assert_eq!(push.commits[0].files, None);
    }

    #[test]
    fn what_the_server_could_not_match_is_refused() {
        for (key, value, why) in [
            ("repo_url", "\"\"", "no `repo_url`"),
            ("repo_url", "\"https://h.example\"", "a host but no path"),
            ("repo_url", "\"https://h.example//\"", "a host but no path"),
            ("repo_url", "\"git@h.example:o/r\"", "first path segment"),
            ("repo_url", "\"https://[::1]/o/r\"", "IPv6"),
            ("repo_url", "\"o/r\"", "no host"),
            ("repo_url", "\"https://me:hunter2@h.example/o/r\"", "holds a password"),
            ("ref", "\"main\"", "not a full ref"),
            ("ref", "\"heads/main\"", "not a full ref"),
            ("ref", "\"refs/heads/\"", "not a full ref"),
            ("commit", "\"main\"", "not a commit id"),
            ("commit", "7", "not a string"),
            ("commits", "{}", "not a list"),
            ("commits", "[1]", "not an object"),
            ("commits", "[{\"added\":[1]}]", "not a list of file names"),
        ] {
            let error = Push::of_record(&record(&[(key, value)])).unwrap_err();
            assert!(error.message.contains(why), "{key} {value}: {error}");
            assert!(!error.message.contains("hunter2"));
            assert_eq!(error.exit, kit::exit::Exit::Usage);
        }
    }
}
