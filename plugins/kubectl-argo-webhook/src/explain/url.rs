//! Whether the event's address and an Application's `repoURL` mean one repository (argo-cd v3.5.1
//! util/webhook/webhook.go, `GetWebURLRegex`), and why not. Pure.

use kit::version::Version;

use crate::go_url;

/// What an event's address asks of a `repoURL`.
#[derive(Clone, Debug)]
pub struct Wanted {
    host: String,
    /// Without its first slash.
    path: String,
    version: Version,
}

impl Wanted {
    /// Reads the event's address; `None` when the server cannot, and so skips it.
    pub fn of(url: &str, version: Version) -> Option<Self> {
        let parsed = go_url::parse(url).ok()?;
        let path = if version >= Version(2, 11, 0) { parsed.escaped_path } else { parsed.path };
        Some(Wanted { host: parsed.host, path: path.strip_prefix('/').unwrap_or(&path).to_owned(), version })
    }

    /// Whether a `repoURL` means it; letter case never counts.
    pub fn matches(&self, repo_url: &str) -> bool {
        // Before v3.0 something must stand before the host, and a user only without http.
        let new = self.version >= Version(3, 0, 0);
        let mut starts: Vec<(&str, bool, bool)> = vec![(repo_url, new, true)];
        for scheme in ["http://", "https://", "ssh://"] {
            if let Some(rest) = strip(repo_url, scheme) {
                starts.push((rest, true, new || scheme == "ssh://"));
            }
        }
        starts.into_iter().any(|(rest, may_be_bare, may_have_user)| {
            let user = user(rest).map(|length| &rest[length..]).filter(|_| may_have_user);
            (may_be_bare && self.at_host(rest)) || user.is_some_and(|rest| self.at_host(rest))
        })
    }

    fn at_host(&self, rest: &str) -> bool {
        let prefixed = |prefix| strip(rest, prefix).filter(|_| self.version >= Version(3, 0, 0));
        [Some(rest), prefixed("ssh."), prefixed("altssh.")]
            .into_iter()
            .flatten()
            .any(|rest| strip(rest, &self.host).is_some_and(|rest| self.at_path(rest) || self.at_path(past_port(rest))))
    }

    fn at_path(&self, rest: &str) -> bool {
        let Some(path) = rest.strip_prefix([':', '/']) else { return false };
        strip(path, &self.path).is_some_and(|end| end.is_empty() || end.eq_ignore_ascii_case(".git"))
    }
}

/// What follows a prefix, whatever its letter case.
fn strip<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let head = text.get(..prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then(|| &text[prefix.len()..])
}

/// The length of `user@`: at most 32 letters, digits, `_`, `.`, `-`; not `-` first, and `$` only last.
fn user(text: &str) -> Option<usize> {
    let name = &text[..text.find('@')?];
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.';
    let bytes = name.as_bytes();
    let (first, last) = (*bytes.first()?, *bytes.last()?);
    let inner = bytes.get(1..bytes.len() - 1).unwrap_or_default();
    let fits = bytes.len() <= 32
        && word(first)
        && inner.iter().all(|byte| word(*byte) || *byte == b'-')
        && (bytes.len() == 1 || word(last) || last == b'-' || last == b'$');
    fits.then_some(name.len() + 1)
}

fn past_port(text: &str) -> &str {
    let Some(rest) = text.strip_prefix(':') else { return text };
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    if digits == 0 { text } else { &rest[digits..] }
}

/// What to change so that the two match; `None` when they are simply two repositories.
pub fn hint(event: &str, repo_url: &str, version: Version) -> Option<String> {
    let wanted = Wanted::of(event, version)?;
    let loose = Loose::of(repo_url);
    let ours = Loose::of(event);
    let change = |repo_url: &str| format!("write repoURL as {repo_url}");
    if Wanted::of(event, Version::NEWEST).is_some_and(|newest| newest.matches(repo_url)) {
        return Some(format!("this form matches only from Argo CD v3.0 on: {}", change(&ours.https())));
    }
    let same_host = loose.host.eq_ignore_ascii_case(&ours.host);
    if loose.host.is_empty() {
        return None;
    }
    if same_host && loose.path.eq_ignore_ascii_case(&ours.path) {
        return Some(if loose.has_password {
            "repoURL holds a password, and then never matches: keep it in a repository Secret".into()
        } else if loose.slash_at_end && !event.ends_with('/') {
            "repoURL ends in a slash, which the event's address lacks: leave it out".into()
        } else if event.ends_with('/') || event.to_ascii_lowercase().ends_with(".git") {
            format!(
                "the event's address ends in {}, and then repoURL must, too: send it without (--repo-url {})",
                if event.ends_with('/') { "a slash" } else { ".git" },
                ours.https()
            )
        } else if wanted.path.contains('%') {
            format!("the address is compared with its escapes: {}", change(&ours.https()))
        } else {
            change(&ours.https())
        });
    }
    if same_host
        && (loose.path.ends_with(&format!("/{}", ours.path)) || ours.path.ends_with(&format!("/{}", loose.path)))
    {
        return Some(format!(
            "same repository, but one address has a folder before it that the other lacks, as over SSH: {}",
            change(&ours.https())
        ));
    }
    if loose.host.eq_ignore_ascii_case("ssh.dev.azure.com")
        || loose.host.eq_ignore_ascii_case("vs-ssh.visualstudio.com")
    {
        let azure = ours.path.replacen("/_git/", "/", 1);
        if loose.path.strip_prefix("v3/").is_some_and(|path| path.eq_ignore_ascii_case(&azure)) {
            return Some(format!(
                "Azure's SSH address (v3/…) never matches its web address: {}",
                change(&ours.https())
            ));
        }
    }
    if loose.path.eq_ignore_ascii_case(&ours.path) {
        return Some(format!(
            "same path on another host ({} and {}); only the prefixes ssh. and altssh. are known: send the event with \
             --repo-url {}",
            loose.host,
            ours.host,
            loose.https()
        ));
    }
    None
}

/// An address taken apart without the server's strictness, for hints only.
struct Loose {
    host: String,
    path: String,
    has_password: bool,
    slash_at_end: bool,
}

impl Loose {
    fn of(url: &str) -> Self {
        let (scheme, rest) = url.split_once("://").map_or((false, url), |(_, rest)| (true, rest));
        let end = rest.find('/').unwrap_or(rest.len());
        let at = rest[..end].rfind('@');
        let (user, rest) = at.map_or(("", rest), |at| (&rest[..at], &rest[at + 1..]));
        let split = rest.find(['/', ':']).unwrap_or(rest.len());
        let (host, mut path) = rest.split_at(split);
        if scheme {
            path = past_port(path);
        }
        let slash_at_end = path.ends_with('/');
        let path = path.trim_matches(['/', ':']);
        let bare = path.len().checked_sub(4).filter(|_| path.to_ascii_lowercase().ends_with(".git"));
        Loose {
            host: host.to_owned(),
            path: path[..bare.unwrap_or(path.len())].replace("%20", " ").replace(' ', "%20"),
            has_password: user.contains(':'),
            slash_at_end,
        }
    }

    fn https(&self) -> String {
        format!("https://{}/{}", self.host, self.path)
    }
}
