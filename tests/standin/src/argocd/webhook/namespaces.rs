//! Which namespaces an install serves (argo-cd util/glob/list.go).

use regex::Regex;

use crate::argocd::version::Version;

/// Whether an install serves the Applications of `namespace`: its own, and those that a glob or a `/expression/`
/// names (expressions since v2.12.3).
pub fn serves(namespace: &str, install: &str, patterns: &[String], version: Version) -> bool {
    namespace == install
        || patterns.iter().any(|pattern| {
            let expression = pattern.strip_prefix('/').and_then(|rest| rest.strip_suffix('/'));
            match expression.filter(|_| version.since(&[(2, 12, 3), (2, 13, 0)])) {
                Some(expression) => Regex::new(expression).is_ok_and(|regex| regex.is_match(namespace)),
                None => glob(pattern).is_match(namespace),
            }
        })
}

/// A glob of gobwas/glob without separators, as far as names of namespaces need it: `*`, `?`, `{a,b}`, `[a-z]`, `[!a]`.
fn glob(pattern: &str) -> Regex {
    let (mut out, mut depth) = (String::from("^(?:"), 0_u32);
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '*' => out.push_str(".*"),
            '?' => out.push('.'),
            '{' => {
                depth += 1;
                out.push_str("(?:");
            }
            '}' if depth > 0 => {
                depth -= 1;
                out.push(')');
            }
            ',' if depth > 0 => out.push('|'),
            '[' => {
                out.push('[');
                if chars.next_if_eq(&'!').is_some() {
                    out.push('^');
                }
            }
            ']' | '-' => out.push(c),
            '\\' => out.push_str(&regex::escape(&chars.next().map(String::from).unwrap_or_default())),
            c => out.push_str(&regex::escape(&c.to_string())),
        }
    }
    out.push_str(")$");
    // A pattern that does not compile matches nothing.
    Regex::new(&out).unwrap_or_else(|_| Regex::new("[^\\s\\S]").expect("is a valid expression"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_namespaces_are_named_by_globs_and_expressions() {
        let serves = |pattern: &str, tag| serves("team-a", "argocd", &[pattern.to_owned()], Version::of_tag(tag));
        assert!(serves("team-*", "v3.5.1") && serves("{team-a,x}", "v3.5.1") && serves("/^team-[ab]$/", "v2.12.3"));
        assert!(!serves("team", "v3.5.1") && !serves("/^team-[ab]$/", "v2.12.2"));
    }
}
