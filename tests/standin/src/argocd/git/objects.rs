//! The objects of a repository, read through one `git cat-file --batch`.

use std::{fmt::Write as _, path::Path, process::Stdio};

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    process::{Child, ChildStdin, ChildStdout, Command},
};

/// An open repository.
pub struct Objects {
    _child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

/// One object.
pub struct Object {
    /// Its full id.
    pub id: String,
    /// Its contents.
    pub bytes: Vec<u8>,
}

/// An entry of a tree.
pub struct Entry {
    /// `100644`, `100755`, `120000`, `40000`, `160000`.
    pub mode: String,
    /// The name in its folder.
    pub name: String,
    /// The full id.
    pub id: String,
}

impl Objects {
    /// Opens the repository in `dir`.
    ///
    /// # Errors
    /// git cannot be run.
    pub fn open(dir: &Path) -> Result<Objects, String> {
        let mut child = Command::new("git")
            .arg("--git-dir")
            .arg(dir)
            .args(["cat-file", "--batch"])
            .env_remove("GIT_DIR")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("git cat-file: {error}"))?;
        let stdin = child.stdin.take().expect("stdin is piped");
        let stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
        Ok(Objects { _child: child, stdin, stdout })
    }

    /// The object that goes by `name` (gitrevisions(7)); `None` when there is none.
    ///
    /// # Errors
    /// git has ended.
    pub async fn get(&mut self, name: &str) -> Result<Option<Object>, String> {
        if name.contains('\n') {
            return Ok(None);
        }
        self.ask(name).await.map_err(|error| format!("git cat-file: {error}"))
    }

    async fn ask(&mut self, name: &str) -> std::io::Result<Option<Object>> {
        self.stdin.write_all(format!("{name}\n").as_bytes()).await?;
        let mut head = String::new();
        if self.stdout.read_line(&mut head).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        // `<id> <kind> <size>`; anything else says that there is no such object, or more than one.
        let mut words = head.trim_end().rsplit(' ');
        let (size, kind, id) = (words.next().and_then(|size| size.parse().ok()), words.next(), words.next());
        let (Some(size), Some("commit" | "tree" | "blob" | "tag"), Some(id)) = (size, kind, id) else {
            return Ok(None);
        };
        let mut bytes = vec![0; size];
        self.stdout.read_exact(&mut bytes).await?;
        self.stdout.read_u8().await?;
        Ok(Some(Object { id: id.to_owned(), bytes }))
    }
}

/// The entries of a tree, from its contents.
pub fn entries(tree: &[u8]) -> Vec<Entry> {
    let mut rest = tree;
    let mut all = Vec::new();
    while let Some(end) = rest.iter().position(|byte| *byte == 0) {
        let (head, after) = (String::from_utf8_lossy(&rest[..end]).into_owned(), &rest[end + 1..]);
        let (Some((mode, name)), Some((id, next))) = (head.split_once(' '), after.split_at_checked(20)) else { break };
        let id = id.iter().fold(String::new(), |mut id, byte| {
            let _ = write!(id, "{byte:02x}");
            id
        });
        all.push(Entry { mode: mode.into(), name: name.into(), id });
        rest = next;
    }
    all
}
