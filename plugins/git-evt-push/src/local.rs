//! The local half: the edit and the commit.

use std::path::{Path, PathBuf};

use kit::{
    error::Error,
    exit::Exit,
    file::{self, Mode},
    talk::Talk,
};

use crate::{args::Args, edit, git::Git};

/// The edit that `--set` asks for, not yet made.
#[derive(Clone, Debug)]
pub struct Edit<'a> {
    /// As the user typed it.
    name: &'a Path,
    /// The file itself: git would stage a link, and has its own idea of the current folder when GIT_WORK_TREE is set.
    path: PathBuf,
    before: Vec<u8>,
    /// `None` when all values are there already.
    after: Option<String>,
}

/// Works out the edit without changing anything.
///
/// # Errors
/// When the file cannot be read or edited; exit code 2.
pub fn plan<'a>(args: &'a Args, talk: &Talk) -> Result<Option<Edit<'a>>, Error> {
    let Some(name) = &args.file else { return Ok(None) };
    let before = file::read(name)?;
    let edited = edit::apply(name, &before, &args.set, args.doc)?;
    for warning in &edited.warnings {
        talk.warn(format!("{}: {warning}", name.display()));
    }
    let path = name.canonicalize().unwrap_or_else(|_| name.clone());
    Ok(Some(Edit { name, path, before, after: edited.text }))
}

/// Makes the edit and the commit. Nothing to commit is no error: the remote may not have the last commit yet.
///
/// # Errors
/// When git refuses; the message says how the work tree and the index are left.
pub fn commit(git: &Git, args: &Args, edit: Option<&Edit<'_>>) -> Result<(), Error> {
    if let Some(edit) = edit {
        stage(git, edit)?;
    }
    if !args.allow_empty && !is_there_something(git, args.all)? {
        return Ok(());
    }
    let head = || git.ask(["rev-parse", "--quiet", "--verify", "HEAD^{commit}"]).map(|answer| answer.line());
    let before = head()?;
    let answer = git.act(commit_args(args))?;
    if answer.ok() {
        return Ok(());
    }
    let kept = match edit {
        Some(edit) => format!("the new value is in {} and staged", edit.name.display()),
        None => "work tree and index are as they were".to_owned(),
    };
    let (exit, what) = match answer.status {
        // git ends with 1 when a hook refuses or nothing is left to commit, and with 128 when it cannot go on.
        Some(1) => (Exit::No, "git refused the commit"),
        _ => (Exit::Unknown, "git could not commit"),
    };
    let state = if head()? == before { "no commit was made" } else { "a commit was made all the same" };
    Err(Error::new(exit, "commit-failed", format!("{what} (its reason is above): {state}, {kept}; nothing was pushed"))
        .hint("put right what git names, and run the same command again"))
}

fn stage(git: &Git, edit: &Edit<'_>) -> Result<(), Error> {
    let name = edit.name.display();
    if let Some(after) = &edit.after {
        file::write(&edit.path, after.as_bytes(), Mode::Kept)?;
    }
    let answer = git.ask(["add".as_ref(), "--".as_ref(), edit.path.as_os_str()])?;
    if answer.ok() {
        return Ok(());
    }
    if edit.after.is_some() {
        file::write(&edit.path, &edit.before, Mode::Kept)?;
    }
    let words = answer.stderr.lines().next().unwrap_or_default().to_owned();
    Err(Error::unknown("cannot-stage", format!("git cannot stage {name}, which is as it was: {words}"))
        .hint(format!("does `git add {name}` work?")))
}

/// Whether a commit would hold something: what is staged, with `-a` what is modified too, or a merge to conclude.
fn is_there_something(git: &Git, all: bool) -> Result<bool, Error> {
    // What is modified inside a submodule is not for this repository to commit.
    let status = git.ask(["status", "--porcelain", "-z", "--untracked-files=no", "--ignore-submodules=dirty"])?;
    if !status.ok() {
        return Err(Error::unknown("git-failed", format!("cannot read the status: git: {}", status.reason())));
    }
    // `XY name`, and for a rename a second field that is a name alone; X is the index, Y the work tree.
    let mut fields = status.stdout.split(|byte| *byte == 0);
    while let Some([index, tree, ..]) = fields.next() {
        if *index != b' ' || (all && *tree != b' ') {
            return Ok(true);
        }
        if *index == b'R' || *index == b'C' {
            fields.next();
        }
    }
    Ok(git.ask(["rev-parse", "--quiet", "--verify", "MERGE_HEAD"])?.ok())
}

fn commit_args(args: &Args) -> Vec<String> {
    let mut list = vec!["commit".to_owned()];
    if args.talk.quiet {
        list.push("--quiet".into());
    }
    if args.all {
        list.push("--all".into());
    }
    if args.allow_empty {
        list.push("--allow-empty".into());
    }
    let messages =
        if args.message.is_empty() { default_message(args).into_iter().collect() } else { args.message.clone() };
    list.extend(messages.into_iter().flat_map(|message| ["--message".to_owned(), message]));
    list
}

/// The message of an edit that the user gave none for. Without an edit git asks the user.
fn default_message(args: &Args) -> Option<String> {
    let name = args.file.as_ref()?.display();
    match &args.set[..] {
        [one] if one.value.len() <= 60 && !one.value.contains('\n') => {
            Some(format!("Set {} to {} in {name}", one.key(), one.value))
        }
        many => {
            let keys: Vec<String> = many.iter().map(edit::Assignment::key).collect();
            Some(format!("Set {} in {name}", keys.join(", ")))
        }
    }
}
