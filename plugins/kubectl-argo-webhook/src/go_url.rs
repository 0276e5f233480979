//! The parts of an address that argocd-server looks at, as Go's `net/url` reads them. Pure.

/// Host and path of an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoUrl {
    /// The host without port and brackets; an IPv6 address holds colons.
    pub host: String,
    /// The path, percent-decoded, with its first slash. Names that are not UTF-8 are replaced.
    pub path: String,
    /// The path as `EscapedPath` gives it: valid escapes stay, what needs escaping is escaped.
    pub escaped_path: String,
    /// Whether a password stands in it.
    pub has_password: bool,
}

/// Reads an address.
///
/// # Errors
/// Says why Go's `url.Parse` refuses it; no part of a password is in the text.
pub fn parse(text: &str) -> Result<GoUrl, String> {
    if text.bytes().any(|byte| byte < 0x20 || byte == 0x7f) {
        return Err("it holds a control character".into());
    }
    let (text, fragment) = text.split_once('#').unwrap_or((text, ""));
    unescape(fragment)?;
    let (scheme, rest) = split_scheme(text)?;
    let rest = rest.split('?').next().unwrap_or_default();
    if !rest.starts_with('/') {
        if scheme {
            return Ok(GoUrl {
                host: String::new(),
                path: String::new(),
                escaped_path: String::new(),
                has_password: false,
            });
        }
        if rest.split('/').next().is_some_and(|segment| segment.contains(':')) {
            return Err("its first path segment holds a colon, as in scp's short form".into());
        }
    }
    let mut host = String::new();
    let mut has_password = false;
    let mut path = rest;
    if (scheme || !rest.starts_with("///"))
        && let Some(authority) = rest.strip_prefix("//")
    {
        let end = authority.find('/').unwrap_or(authority.len());
        path = &authority[end..];
        let (user, address) = authority[..end].rsplit_once('@').unwrap_or(("", &authority[..end]));
        has_password = user.contains(':');
        if !user.bytes().all(in_user_info) {
            return Err("its user part holds a character that must be escaped".into());
        }
        unescape(user)?;
        host = host_of(address)?;
    }
    let decoded = unescape(path)?;
    let escaped_path = if path.bytes().all(may_stand) { path.to_owned() } else { escape(&decoded) };
    Ok(GoUrl { host, path: String::from_utf8_lossy(&decoded).into_owned(), escaped_path, has_password })
}

/// Whether the text begins with a scheme, and what follows it.
fn split_scheme(text: &str) -> Result<(bool, &str), String> {
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if index > 0 => {}
            b':' if index == 0 => return Err("its scheme is missing".into()),
            b':' => return Ok((true, &text[index + 1..])),
            _ => break,
        }
    }
    Ok((false, text))
}

fn host_of(address: &str) -> Result<String, String> {
    let port_of = |rest: &str| {
        let valid = rest.strip_prefix(':').map_or(rest.is_empty(), |port| port.bytes().all(|b| b.is_ascii_digit()));
        if valid { Ok(()) } else { Err("its port is not a number".to_owned()) }
    };
    if let Some(inner) = address.strip_prefix('[') {
        let (host, rest) = inner.split_once(']').ok_or("its host lacks a closing bracket")?;
        port_of(rest)?;
        let host = String::from_utf8_lossy(&unescape(host)?).into_owned();
        let address = host.split('%').next().unwrap_or_default();
        return match address.parse::<std::net::Ipv6Addr>() {
            Ok(_) => Ok(host),
            Err(_) => Err("what stands in brackets is not an IPv6 address".into()),
        };
    }
    let (host, port) = address.split_at(address.find(':').unwrap_or(address.len()));
    port_of(port)?;
    if host.bytes().any(|byte| !in_host(byte)) {
        return Err("its host holds a character that no host may have".into());
    }
    let decoded = unescape(host)?;
    // Escapes are for names in other scripts.
    if host.contains('%') && decoded.iter().filter(|byte| byte.is_ascii() && **byte != b'%').count() != plain(host) {
        return Err("its host holds an escape that no host may have".into());
    }
    Ok(String::from_utf8_lossy(&decoded).into_owned())
}

/// How many characters of a host are no part of an escape.
fn plain(host: &str) -> usize {
    host.len() - 3 * host.matches('%').count()
}

fn in_host(byte: u8) -> bool {
    byte >= 0x80 || byte.is_ascii_alphanumeric() || b"-_.~!$&'()*+,;=:[]<>\"%".contains(&byte)
}

fn in_user_info(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte)
}

/// What may stand in a path as it is (`validEncoded`).
fn may_stand(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.~/!$&'()*+,;=:@[]%".contains(&byte)
}

fn unescape(text: &str) -> Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
        match (digit(bytes.next()), digit(bytes.next())) {
            (Some(high), Some(low)) => out.push(u8::try_from(high * 16 + low).unwrap_or_default()),
            _ => return Err("it holds a % that begins no escape".into()),
        }
    }
    Ok(out)
}

/// `escape(…, encodePath)`.
fn escape(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for &byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `gourl.tsv` was written by Go's own `net/url`: address, `Hostname()`, `EscapedPath()`; or address, `error`.
    #[test]
    fn addresses_are_read_as_go_reads_them() {
        let mut wrong = Vec::new();
        for line in include_str!("../../../tests/standin/tests/data/gourl.tsv").lines() {
            let parts: Vec<&str> = line.split('\t').collect();
            let found = parse(parts[0]);
            let same = match (&found, &parts[1..]) {
                (Err(_), ["error"]) => true,
                (Ok(url), [host, path]) => url.host == *host && url.escaped_path == *path,
                _ => false,
            };
            if !same {
                wrong.push(format!("{line:?}: {found:?}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
