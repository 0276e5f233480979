//! The URLs of a remote: as a web address, and without credentials.

/// The web address of a repository, as a provider puts it into `repository.html_url`: without user, password, port of
/// ssh, and `.git`. `None` for a path, a host alone, and what only git's own helpers understand.
pub fn web(url: &str) -> Option<String> {
    let (scheme, authority, path) = split(url)?;
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let path = path.trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path).trim_end_matches('/');
    if host.is_empty() || path.is_empty() {
        return None;
    }
    if matches!(scheme.as_str(), "http" | "https") {
        return Some(format!("{scheme}://{host}/{path}"));
    }
    let name = if host.ends_with(']') { host } else { host.rsplit_once(':').map_or(host, |(name, _)| name) };
    // The names under which these providers take ssh on port 443, and Azure's shorter path.
    let (name, path) = match (name, path.split('/').collect::<Vec<_>>().as_slice()) {
        ("ssh.dev.azure.com", ["v3", organization, project, repository]) => {
            ("dev.azure.com", format!("{organization}/{project}/_git/{repository}"))
        }
        ("ssh.github.com", _) => ("github.com", path.to_owned()),
        ("altssh.gitlab.com", _) => ("gitlab.com", path.to_owned()),
        ("altssh.bitbucket.org", _) => ("bitbucket.org", path.to_owned()),
        (name, _) => (name, path.to_owned()),
    };
    Some(format!("https://{name}/{path}"))
}

/// The URL as git reads it, less what lets somebody in: the user and password of a web URL, which may be a token, and
/// the password of any other.
pub fn without_credentials(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let end = rest.find('/').unwrap_or(rest.len());
    let Some((user, _)) = rest[..end].rsplit_once('@') else { return url.to_owned() };
    let host = &rest[user.len() + 1..];
    match user.split_once(':').map_or(user, |(name, _)| name) {
        name if scheme.contains("ssh") => format!("{scheme}://{name}@{host}"),
        _ => format!("{scheme}://{host}"),
    }
}

/// Scheme, `user@host:port` and path; for `host:path`, as scp has it, the scheme is `ssh`.
fn split(url: &str) -> Option<(String, &str, &str)> {
    if let Some((scheme, rest)) = url.split_once("://") {
        let scheme = scheme.to_ascii_lowercase();
        let known = matches!(scheme.as_str(), "http" | "https" | "ssh" | "git" | "git+ssh" | "ssh+git");
        let (authority, path) = rest.split_once('/')?;
        return known.then_some((scheme, authority, path));
    }
    // git takes a name before the first slash for a host, unless a helper is named (`ext::…`).
    let (authority, path) = match url.find("]:") {
        Some(end) if url[..end].rsplit_once('@').map_or(url, |(_, host)| host).starts_with('[') => {
            (&url[..=end], &url[end + 2..])
        }
        _ => url.split_once(':')?,
    };
    let is_host = !authority.is_empty() && !authority.contains('/') && !path.starts_with(':');
    is_host.then(|| ("ssh".to_owned(), authority, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_web_address_is_the_same_for_every_way_to_write_the_remote() {
        for url in [
            "https://github.com/org/repo",
            "https://github.com/org/repo.git",
            "https://github.com/org/repo.git/",
            "https://user:token@github.com/org/repo.git",
            "git@github.com:org/repo.git",
            "github.com:org/repo",
            "git@github.com:/org/repo.git",
            "ssh://git@github.com/org/repo.git",
            "ssh://git@github.com:22/org/repo.git",
            "ssh://git@ssh.github.com:443/org/repo.git",
            "git+ssh://git@github.com/org/repo.git",
            "git://github.com/org/repo.git",
        ] {
            assert_eq!(web(url).as_deref(), Some("https://github.com/org/repo"), "{url}");
        }
    }

    #[test]
    fn host_port_and_path_of_a_web_url_stay() {
        for (url, address) in [
            ("http://git.local:3000/a/b/c.git", "http://git.local:3000/a/b/c"),
            (
                "http://githttp.gitsrv.svc.cluster.local/cgi-bin/git/evt.git",
                "http://githttp.gitsrv.svc.cluster.local/cgi-bin/git/evt",
            ),
            ("git@ssh.dev.azure.com:v3/org/project/repo", "https://dev.azure.com/org/project/_git/repo"),
            ("ssh://git@[::1]:2222/x/y.git", "https://[::1]/x/y"),
            ("git@[::1]:x/y.git", "https://[::1]/x/y"),
        ] {
            assert_eq!(web(url).as_deref(), Some(address), "{url}");
        }
    }

    #[test]
    fn paths_hosts_alone_and_helpers_have_no_web_address() {
        for url in [
            "/srv/bare/evt.git",
            "../evt.git",
            "./a:b",
            "evt.git",
            "file:///srv/bare/evt.git",
            "https://github.com",
            "https://github.com/",
            "https://github.com/.git",
            "git@github.com:",
            "ext::ssh %S host",
            "codecommit::eu-west-1://repo",
            "s3://bucket/repo",
            "",
        ] {
            assert_eq!(web(url), None, "{url}");
        }
    }

    #[test]
    fn credentials_are_taken_out_of_a_url() {
        for (url, shown) in [
            ("https://user:token@host/r.git", "https://host/r.git"),
            ("https://token@host/r.git", "https://host/r.git"),
            ("https://us@er:p@ss@host:8443/r.git", "https://host:8443/r.git"),
            ("ssh://git:secret@host:22/r", "ssh://git@host:22/r"),
            ("ssh://git@host/r", "ssh://git@host/r"),
            ("git@host:r", "git@host:r"),
            ("https://host/a@b/c", "https://host/a@b/c"),
            ("/srv/bare", "/srv/bare"),
        ] {
            assert_eq!(without_credentials(url), shown);
        }
    }
}
