//! URLs as Go's `net/url` reads them, as far as webhook matching looks at them.

/// A host without its port and a path in its escaped form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// `URL.Hostname()`.
    pub hostname: String,
    /// `URL.EscapedPath()`.
    pub escaped_path: String,
    /// `URL.Path`: the decoded path, as bytes.
    pub path: Vec<u8>,
}

/// `url.Parse`; `None` when it refuses.
pub fn parse(text: &str) -> Option<Url> {
    let text = text.split_once('#').map_or(Some(text), |(before, fragment)| {
        let sound = unescape(fragment.as_bytes(), false).is_some();
        sound.then_some(before)
    })?;
    if text.bytes().any(|byte| byte < 0x20 || byte == 0x7f) {
        return None;
    }
    if text == "*" {
        return Some(Url { hostname: String::new(), escaped_path: "*".into(), path: b"*".to_vec() });
    }
    let (scheme, rest) = scheme(text)?;
    let rest = rest.split_once('?').map_or(rest, |(before, _)| before);
    if !rest.starts_with('/') {
        if scheme {
            // What follows is opaque: neither host nor path.
            return Some(Url { hostname: String::new(), escaped_path: String::new(), path: Vec::new() });
        }
        if rest.split('/').next().is_some_and(|segment| segment.contains(':')) {
            return None;
        }
    }
    let (hostname, path) = match rest.strip_prefix("//").filter(|_| scheme || !rest.starts_with("///")) {
        Some(after) => {
            let slash = after.find('/').unwrap_or(after.len());
            (hostname(&after[..slash])?, &after[slash..])
        }
        None => (String::new(), rest),
    };
    let decoded = unescape(path.as_bytes(), false)?;
    let escaped_path = if is_valid_escaped(path) { path.to_owned() } else { escape(&decoded) };
    Some(Url { hostname, escaped_path, path: decoded })
}

/// Whether there is a scheme, and what follows it.
fn scheme(text: &str) -> Option<(bool, &str)> {
    for (index, c) in text.char_indices() {
        match c {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if index == 0 => return Some((false, text)),
            '0'..='9' | '+' | '-' | '.' => {}
            ':' if index == 0 => return None,
            ':' => return Some((true, &text[index + 1..])),
            _ => return Some((false, text)),
        }
    }
    Some((false, text))
}

fn hostname(authority: &str) -> Option<String> {
    let (user, host) = authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
    if let Some(user) = user {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
        if !user.chars().all(allowed) || unescape(user.as_bytes(), false).is_none() {
            return None;
        }
    }
    if let Some(literal) = host.strip_prefix('[') {
        let (inside, port) = literal.split_once(']')?;
        let address = inside.split('%').next().unwrap_or_default();
        return (is_port(port) && address.parse::<std::net::Ipv6Addr>().is_ok())
            .then(|| inside.replacen("%25", "%", 1));
    }
    if let Some((_, port)) = host.split_once(':')
        && !port.bytes().all(|byte| byte.is_ascii_digit())
    {
        return None;
    }
    let decoded = String::from_utf8(unescape(host.as_bytes(), true)?).ok()?;
    match decoded.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => Some(name.to_owned()),
        _ => Some(decoded),
    }
}

fn is_port(text: &str) -> bool {
    text.is_empty() || text.strip_prefix(':').is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()))
}

fn unescape(text: &[u8], host: bool) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut index = 0;
    while let Some(&byte) = text.get(index) {
        if byte == b'%' {
            let digit = |at: usize| (*text.get(at)? as char).to_digit(16);
            let (high, low) = (digit(index + 1)?, digit(index + 2)?);
            // A host may only escape what is not ASCII.
            if host && high < 8 {
                return None;
            }
            out.push((high * 16 + low) as u8);
            index += 3;
            continue;
        }
        if host && byte < 0x80 && !byte.is_ascii_alphanumeric() && !b"-_.~!$&'()*+,;=:[]<>\"".contains(&byte) {
            return None;
        }
        out.push(byte);
        index += 1;
    }
    Some(out)
}

fn is_valid_escaped(path: &str) -> bool {
    path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.~!$&'()*+,;=:@[]%/".contains(&byte))
}

fn escape(path: &[u8]) -> String {
    let mut out = String::new();
    for &byte in path {
        if byte.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@".contains(&byte) {
            out.push(byte as char);
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// URL, host, escaped path, both quoted; or `error`: computed with Go 1.26.
    const BY_GO: &str = include_str!("../../tests/data/gourl.tsv");

    #[test]
    fn urls_are_read_as_go_reads_them() {
        let mut rows = 0;
        for row in BY_GO.lines() {
            let columns: Vec<&str> = row.split('\t').collect();
            let got = parse(columns[0]);
            match columns[1..] {
                ["error"] => assert_eq!(got, None, "{row:?}"),
                [host, path] => {
                    let got = got.unwrap_or_else(|| panic!("refused: {row:?}"));
                    assert_eq!((got.hostname.as_str(), got.escaped_path.as_str()), (host, path), "{row:?}");
                }
                _ => panic!("{row:?}"),
            }
            rows += 1;
        }
        assert!(rows > 40, "{rows}");
    }
}
