//! The event record of a push that the remote has taken.

use kit::error::Error;
use serde_json::{Map, Value, json};

use crate::{commits, git::Git};

/// Where a push went, as the record names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The full name of the ref.
    pub reference: String,
    /// The branch that HEAD of the remote points to, when it is known.
    pub default_branch: Option<String>,
    /// The web address.
    pub repo_url: String,
    /// The remote's name, or its URL; `None` in the repository that was pushed to.
    pub remote: Option<String>,
    /// The remote's URL without credentials.
    pub remote_url: Option<String>,
}

/// What changed there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The id that the ref had, full; `None` for a new ref.
    pub before: Option<String>,
    /// The commit that the ref is at now, full.
    pub commit: String,
    /// Whether commits were given up.
    pub forced: bool,
}

/// The record, without the times of the push.
///
/// # Errors
/// When git cannot be run, or the command was interrupted.
pub fn of(git: &Git, address: &Address, change: &Change) -> Result<Map<String, Value>, Error> {
    let listing = commits::list(git, change.before.as_deref(), &change.commit, change.forced)?;
    let mut record = begin(address, change);
    record.insert("commits".into(), listing.to_json());
    record.insert("files_complete".into(), json!(listing.files.is_some()));
    record.insert("created".into(), json!(change.before.is_none()));
    record.insert("forced".into(), json!(change.forced));
    Ok(record)
}

/// The part of the record that is known as soon as the remote has answered.
pub fn begin(address: &Address, change: &Change) -> Map<String, Value> {
    let before = change.before.clone().unwrap_or_else(|| "0".repeat(change.commit.len()));
    let mut record = Map::new();
    record.insert("commit".into(), json!(change.commit));
    record.insert("before".into(), json!(before));
    record.extend(whereto(address));
    record
}

/// The part of the record that is known before a push.
pub fn whereto(address: &Address) -> Map<String, Value> {
    let mut record = Map::new();
    record.insert("ref".into(), json!(address.reference));
    record.insert("branch".into(), json!(address.reference.strip_prefix("refs/heads/")));
    record.insert("default_branch".into(), json!(address.default_branch));
    record.insert("repo_url".into(), json!(address.repo_url));
    record.insert("remote".into(), json!(address.remote));
    record.insert("remote_url".into(), json!(address.remote_url));
    record
}
