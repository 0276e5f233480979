//! Paths as Go's `path/filepath` treats them on Unix.

/// `filepath.Clean`: the shortest path that means the same; empty is `.`.
pub fn clean(path: &str) -> String {
    let rooted = path.starts_with('/');
    let mut kept: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if kept.last().is_some_and(|last| *last != "..") => {
                kept.pop();
            }
            ".." if rooted => {}
            part => kept.push(part),
        }
    }
    let joined = kept.join("/");
    match (rooted, joined.is_empty()) {
        (true, _) => format!("/{joined}"),
        (false, true) => ".".into(),
        (false, false) => joined,
    }
}

/// `filepath.Join` of two; empty when both are.
pub fn join(one: &str, other: &str) -> String {
    match (one.is_empty(), other.is_empty()) {
        (true, true) => String::new(),
        (true, false) => clean(other),
        (false, true) => clean(one),
        (false, false) => clean(&format!("{one}/{other}")),
    }
}

/// `filepath.Dir`: everything before the last slash, cleaned.
pub fn dir(path: &str) -> String {
    clean(&path[..path.rfind('/').map_or(0, |at| at + 1)])
}

/// `filepath.Match` on the whole of `name`; a malformed pattern matches nothing. `*` and `?` do not cross `/`.
pub fn matches(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    match_from(&pattern, &name) == Some(true)
}

/// `None` when the part of the pattern that had to be read is malformed.
fn match_from(pattern: &[char], name: &[char]) -> Option<bool> {
    let Some(first) = pattern.first() else { return Some(name.is_empty()) };
    match first {
        '*' => {
            let rest = &pattern[pattern.iter().take_while(|c| **c == '*').count()..];
            if rest.is_empty() {
                return Some(!name.contains(&'/'));
            }
            for skipped in 0..=name.len() {
                if match_from(rest, &name[skipped..])? {
                    return Some(true);
                }
                if name.get(skipped) == Some(&'/') {
                    break;
                }
            }
            Some(false)
        }
        '?' => match name.first() {
            Some(c) if *c != '/' => match_from(&pattern[1..], &name[1..]),
            _ => Some(false),
        },
        '[' => {
            let (inside, rest) = class(&pattern[1..], name.first().copied())?;
            if inside { match_from(rest, &name[1..]) } else { Some(false) }
        }
        '\\' => {
            let wanted = pattern.get(1)?;
            if name.first() == Some(wanted) { match_from(&pattern[2..], &name[1..]) } else { Some(false) }
        }
        wanted => {
            if name.first() == Some(wanted) {
                match_from(&pattern[1..], &name[1..])
            } else {
                Some(false)
            }
        }
    }
}

/// Reads a class up to its `]`: whether `c` is inside, and what follows it.
fn class(pattern: &[char], c: Option<char>) -> Option<(bool, &[char])> {
    let (negated, mut rest) = match pattern.first()? {
        '^' => (true, &pattern[1..]),
        _ => (false, pattern),
    };
    let (mut inside, mut ranges) = (false, 0);
    loop {
        if rest.first()? == &']' && ranges > 0 {
            return Some((c.is_some() && inside != negated, &rest[1..]));
        }
        let low;
        (low, rest) = class_char(rest)?;
        let mut high = low;
        if rest.first()? == &'-' {
            (high, rest) = class_char(&rest[1..])?;
        }
        inside |= c.is_some_and(|c| low <= c && c <= high);
        ranges += 1;
    }
}

fn class_char(pattern: &[char]) -> Option<(char, &[char])> {
    let (c, rest) = match pattern.first()? {
        '-' | ']' => return None,
        '\\' => (*pattern.get(1)?, &pattern[2..]),
        c => (*c, &pattern[1..]),
    };
    // A class is never the end of the pattern: its bracket is still to come.
    (!rest.is_empty()).then_some((c, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `clean`, path, result; `join`, two paths, result; `match`, pattern, name, result (`error` when malformed):
    /// computed with Go 1.26.
    const BY_GO: &str = include_str!("../../tests/data/gopath.tsv");

    #[test]
    fn paths_are_what_they_are_in_go() {
        let mut rows = 0;
        for row in BY_GO.lines() {
            match *row.split('\t').collect::<Vec<_>>() {
                ["clean", path, expected] => assert_eq!(clean(path), expected, "{row:?}"),
                ["dir", path, expected] => assert_eq!(dir(path), expected, "{row:?}"),
                ["join", one, other, expected] => assert_eq!(join(one, other), expected, "{row:?}"),
                ["match", pattern, name, expected] => {
                    assert_eq!(matches(pattern, name), expected == "true", "{row:?}");
                }
                _ => panic!("{row:?}"),
            }
            rows += 1;
        }
        assert!(rows > 300, "{rows}");
    }
}
