//! Files that are written whole or not at all.

use std::{fs, io::Write, path::Path};

use crate::{error::Error, exit::Exit};

/// Who may read a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// 0600: it holds a secret.
    Secret,
    /// 0644, less what the umask takes.
    Public,
    /// As before: the file stands there already.
    Kept,
}

/// Writes a file by way of a temporary one beside it, so that a reader sees the old contents or the new ones. Devices
/// and pipes are written in place.
///
/// # Errors
/// Names the file; exit code 2, since another path or other rights are needed.
pub fn write(path: &Path, contents: &[u8], mode: Mode) -> Result<(), Error> {
    let failed = |error: std::io::Error| {
        Error::new(Exit::Usage, "cannot-write", format!("cannot write {}: {error}", path.display()))
            .hint("give a path in a folder that exists and that you may write to")
    };
    if fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        return fs::write(path, contents).map_err(failed);
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    if mode == Mode::Public {
        // The umask applies to what `open` is asked for.
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    }
    let mut file = builder.prefix(".argo-evt-").tempfile_in(folder).map_err(failed)?;
    file.write_all(contents).and_then(|()| file.as_file().sync_all()).map_err(failed)?;
    if mode == Mode::Kept {
        let found = fs::metadata(path).map_err(failed)?;
        file.as_file().set_permissions(found.permissions()).map_err(failed)?;
    }
    file.persist(path).map_err(|error| failed(error.error))?;
    Ok(())
}

/// Reads a file that the user named.
///
/// # Errors
/// Names the file; exit code 2.
pub fn read(path: &Path) -> Result<Vec<u8>, Error> {
    fs::read(path).map_err(|error| {
        Error::usage("cannot-read", format!("cannot read {}: {error}", path.display()))
            .hint("give the path of a file that exists and that you may read")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_secret_file_is_for_its_owner_only_even_where_another_stood() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        fs::write(&path, "old").unwrap();
        write(&path, b"new", Mode::Secret).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file is left");
    }

    #[test]
    fn a_file_that_is_written_again_can_keep_its_mode() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("script");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).unwrap();
        write(&path, b"new", Mode::Kept).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o750);
    }

    #[test]
    fn a_folder_that_does_not_exist_is_named() {
        let error = write(Path::new("/nowhere/at/all"), b"", Mode::Public).unwrap_err();
        assert!(error.message.starts_with("cannot write /nowhere/at/all: "), "{error}");
    }
}
