//! The file of startup lines that `--line-out` asks for.

use std::path::Path;

use kit::{
    error::Error,
    file::{self, Mode},
};

use crate::observe::ControllerPod;

/// Finds a path that cannot be written before anything is changed.
///
/// # Errors
/// Names the path; exit code 2.
pub fn check(path: &Path) -> Result<(), Error> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if path.is_dir() || folder.is_some_and(|folder| !folder.is_dir()) {
        let message = format!("cannot write {}: it is no file in a folder that exists", path.display());
        return Err(Error::usage("cannot-write", message).hint("give --line-out another path"));
    }
    Ok(())
}

/// Writes the startup line of each pod with a newline, in the order of the pods.
///
/// # Errors
/// When a pod's log has none (exit code 3), or the file cannot be written.
pub fn write(path: &Path, pods: &[ControllerPod]) -> Result<(), Error> {
    let mut bytes = Vec::new();
    for pod in pods {
        let Some(line) = &pod.line else {
            return Err(Error::unknown("no-line", format!("controller pod {}: {}", pod.name, pod.proof.how))
                .hint("--restart makes new pods, whose logs begin with the line"));
        };
        bytes.extend_from_slice(&line.bytes);
        bytes.push(b'\n');
    }
    file::write(path, &bytes, Mode::Public)
}
