//! `--set`: one value of a file is changed and nothing else in it.

mod assignment;
mod json;
mod toml;
mod yaml;
mod yaml_path;
mod yaml_scalar;

use std::path::Path;

use kit::error::Error;

pub use assignment::Assignment;

/// A file after the edit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edited {
    /// Its text; `None` when all values were there already.
    pub text: Option<String>,
    /// What the user should know.
    pub warnings: Vec<String>,
}

/// Makes every assignment. The file's extension says how it is read: `.json`, `.toml`, and everything else as YAML.
///
/// # Errors
/// Names the file, and the key that does not lead to a value. Exit code 2.
pub fn apply(
    path: &Path,
    contents: &[u8],
    assignments: &[Assignment],
    document: Option<usize>,
) -> Result<Edited, Error> {
    let of_file = |error: Error| Error { message: format!("{}: {}", path.display(), error.message), ..error };
    let text = str::from_utf8(contents)
        .map_err(|error| of_file(Error::usage("bad-file", format!("not UTF-8 at byte {}", error.valid_up_to()))))?;
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_ascii_lowercase());
    if document.is_some() && matches!(extension.as_deref(), Some("json" | "toml")) {
        return Err(of_file(Error::usage("no-document", "--doc is for YAML files, which may hold several documents")));
    }
    let mut edited = Edited::default();
    for assignment in assignments {
        let now = edited.text.as_deref().unwrap_or(text);
        let fresh = match extension.as_deref() {
            Some("json") => json::set(now, assignment).map(|fresh| fresh.map(|text| (text, None))),
            Some("toml") => toml::set(now, assignment).map(|fresh| fresh.map(|text| (text, None))),
            _ => yaml::set(now, assignment, document),
        };
        if let Some((fresh, warning)) = fresh.map_err(of_file)? {
            edited.text = Some(fresh);
            edited.warnings.extend(warning);
        }
    }
    Ok(edited)
}

/// The most names that an error lists.
const NAMES: usize = 20;

/// The error for a key that is not there: `path[depth]` is missing among `names`, or its place is no collection.
fn missing(assignment: &Assignment, depth: usize, names: Option<&[String]>) -> Error {
    let parent = match depth {
        0 => "the file".to_owned(),
        depth => format!("`{}`", assignment::written(&assignment.path[..depth])),
    };
    let there = match names {
        None => format!("{parent} is a value"),
        Some([]) => format!("{parent} is empty"),
        Some(names) => {
            let more = if names.len() > NAMES { ", …" } else { "" };
            format!("{parent} has: {}{more}", names[..names.len().min(NAMES)].join(", "))
        }
    };
    Error::usage("no-such-key", format!("no key `{}`; {there}", assignment::written(&assignment.path[..=depth])))
        .hint("--set changes values that exist; a key with a dot in it is quoted: 'data.\"a.b\"=value'")
}

/// The error for a key that leads to a whole collection.
fn not_a_value(key: &str, what: &str) -> Error {
    Error::usage("not-a-value", format!("`{key}` is a {what}, not a value")).hint("name a value in it")
}

/// The error for a value that cannot be put there alone.
fn cannot_set(assignment: &Assignment) -> Error {
    let key = assignment.key();
    Error::usage("cannot-set", format!("cannot write this value at `{key}` without changing more"))
        .hint("edit the file by hand, `git add` it, and run again without --set")
}
