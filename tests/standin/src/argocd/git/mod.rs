//! What the repo-server does with the real `git`: list the refs of a remote, resolve a revision, read the files of a
//! commit.

mod clone;
mod objects;
mod refs;
mod run;

pub use self::{
    clone::{Clone, File},
    refs::{Refs, is_full_id, ls_remote, resolve},
};

/// How to reach a remote.
#[derive(Clone, Debug)]
pub struct Remote {
    /// As written in the Application.
    pub url: String,
    /// User and password from the repository's Secret.
    pub login: Option<(String, String)>,
    /// What the lab's in-cluster address stands for.
    pub in_cluster: String,
}
