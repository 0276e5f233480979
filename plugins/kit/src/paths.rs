//! The annotation `argocd.argoproj.io/manifest-generate-paths`: which changed files concern an Application
//! (argo-cd v3.5.1 util/app/path/path.go).

use crate::version::Version;

/// The annotation.
pub const ANNOTATION: &str = "argocd.argoproj.io/manifest-generate-paths";

/// The paths that the annotation names, from the root of the repository and without a slash at either end; the root
/// itself is empty. `/x` is from the root, everything else from the source's own path. None at all means that every
/// change concerns the Application.
pub fn items(annotation: &str, source_path: &str, version: Version) -> Vec<String> {
    annotation
        .split(';')
        .map(|item| if version >= Version(3, 4, 0) { item.trim() } else { item })
        .filter(|item| !item.trim().is_empty())
        .map(|item| if item.starts_with('/') { clean(item) } else { clean(&format!("{source_path}/{item}")) })
        .collect()
}

/// Whether a changed file is an item, lies inside it, or fits it as a pattern.
pub fn hits(item: &str, file: &str, version: Version) -> bool {
    let file = file.trim_start_matches('/');
    item.is_empty()
        || file.strip_prefix(item).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        || (version >= Version(2, 12, 0) && matches(item, file))
}

/// A path without `.`, `..`, doubled slashes, and slashes at its ends; `..` stops at the root.
fn clean(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Go's `filepath.Match` on Unix: `*` and `?` stop at slashes, `[a-z]` and `[^a-z]` are sets (which do not), `\` takes a meaning away.
/// A malformed pattern matches nothing.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    // Where to go on when what follows the last star does not fit: the star takes one character more.
    let mut star: Option<(usize, usize)> = None;
    loop {
        if pattern.get(p) == Some(&'*') {
            star = Some((p, n));
            p += 1;
            continue;
        }
        if n == name.len() && p == pattern.len() {
            return true;
        }
        if let Some(next) = name.get(n).and_then(|c| one(&pattern[p..], *c)) {
            p += next;
            n += 1;
            continue;
        }
        match star {
            Some((at, taken)) if name.get(taken).is_some_and(|c| *c != '/') => {
                star = Some((at, taken + 1));
                (p, n) = (at + 1, taken + 1);
            }
            _ => return false,
        }
    }
}

/// How much of the pattern one character uses up, if it fits.
fn one(pattern: &[char], c: char) -> Option<usize> {
    match pattern {
        ['?', ..] if c != '/' => Some(1),
        ['[', rest @ ..] => set(rest, c).map(|length| length + 1),
        ['\\', literal, ..] if *literal == c => Some(2),
        ['?' | '\\', ..] => None,
        [literal, ..] if *literal == c => Some(1),
        _ => None,
    }
}

/// The length of a set with its closing bracket, if the character is in it.
fn set(pattern: &[char], c: char) -> Option<usize> {
    let negated = pattern.first() == Some(&'^');
    let mut at = usize::from(negated);
    let mut found = false;
    let mut empty = true;
    while empty || pattern.get(at) != Some(&']') {
        let low = member(pattern, &mut at)?;
        let high = if pattern.get(at) == Some(&'-') {
            at += 1;
            member(pattern, &mut at)?
        } else {
            low
        };
        found |= (low..=high).contains(&c);
        empty = false;
    }
    (found != negated).then_some(at + 1)
}

fn member(pattern: &[char], at: &mut usize) -> Option<char> {
    let escaped = pattern.get(*at) == Some(&'\\');
    *at += usize::from(escaped);
    let c = *pattern.get(*at)?;
    *at += 1;
    (escaped || (c != '-' && c != ']')).then_some(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_relative_to_the_source_unless_they_begin_with_a_slash() {
        for (annotation, expected) in [
            (".", vec!["apps/a"]),
            ("/shared", vec!["shared"]),
            ("../b;/x/./y/", vec!["apps/b", "x/y"]),
            (" . ; ;", vec!["apps/a"]),
            ("../../../..", vec![""]),
            ("/", vec![""]),
            ("", vec![]),
            (" ; ", vec![]),
        ] {
            assert_eq!(items(annotation, "apps/a", Version::NEWEST), expected, "{annotation}");
        }
        assert_eq!(items(" /x", "a", Version(3, 3, 0)), ["a/ /x"], "blanks were kept before v3.4");
    }

    #[test]
    fn a_file_hits_an_item_that_it_is_is_inside_of_or_fits() {
        for (item, file, hit) in [
            ("apps/a", "apps/a", true),
            ("apps/a", "apps/a/x.yaml", true),
            ("apps/a", "apps/ab/x.yaml", false),
            ("apps/a", "Apps/a/x.yaml", false),
            ("", "anything", true),
            ("apps/*/x.yaml", "apps/a/x.yaml", true),
            ("apps/*", "apps/a", true),
            ("apps/*", "apps/a/x.yaml", false),
            ("apps/**", "apps/a/x.yaml", false),
            ("apps/?", "apps/a", true),
            ("apps/[a-c]", "apps/b", true),
            ("apps/[^a-c]", "apps/b", false),
            ("*.yaml", "x.yml.yaml", true),
            ("*a*b", "xaxxb", true),
            ("apps/[", "apps/[", true),
            ("x[", "xa", false),
            ("x\\*", "x*", true),
            ("x\\*", "xy", false),
        ] {
            assert_eq!(hits(item, file, Version::NEWEST), hit, "{item} {file}");
        }
        assert!(!hits("*.yaml", "x.yaml", Version(2, 11, 0)), "patterns came with v2.12");
    }

    /// `paths.tsv` was written by Go's own `filepath.Match`: pattern, name, and whether it fits without an error.
    #[test]
    fn patterns_fit_what_they_fit_in_go() {
        for line in include_str!("paths.tsv").lines() {
            let parts: Vec<&str> = line.split('\t').collect();
            assert_eq!(matches(parts[0], parts[1]).to_string(), parts[2], "{line}");
        }
    }
}
