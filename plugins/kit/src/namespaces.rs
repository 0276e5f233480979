//! The namespaces whose Applications an Argo CD serves beside its own (argo-cd v3.5.1 util/glob, `application.namespaces`).
//! Pure.

use regex::Regex;

use crate::{error::Error, version::Version};

/// Globs and expressions.
#[derive(Clone, Debug)]
pub struct Served(Vec<Regex>);

impl Served {
    /// Reads a list. An expression stands between slashes, and counts only since v2.12.3.
    ///
    /// # Errors
    /// When one of them cannot be read; exit code 2.
    pub fn of(patterns: &[String], version: Version) -> Result<Self, Error> {
        let patterns = patterns.iter().map(|pattern| pattern.trim()).filter(|pattern| !pattern.is_empty());
        let compiled = patterns.map(|pattern| {
            let expression = pattern.strip_prefix('/').and_then(|rest| rest.strip_suffix('/'));
            let expression = match expression.filter(|_| version >= Version(2, 12, 3)) {
                Some(expression) => expression.to_owned(),
                None => glob(pattern),
            };
            Regex::new(&expression).map_err(|error| {
                Error::usage("bad-namespaces", format!("cannot read `{pattern}` as a list of namespaces: {error}"))
            })
        });
        Ok(Served(compiled.collect::<Result<_, _>>()?))
    }

    /// Whether a namespace is among them.
    pub fn has(&self, namespace: &str) -> bool {
        self.0.iter().any(|pattern| pattern.is_match(namespace))
    }
}

fn glob(pattern: &str) -> String {
    let mut out = String::from("^(?:");
    let mut braces = 0;
    let mut in_set = false;
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            ']' if in_set => {
                in_set = false;
                out.push(']');
            }
            '!' if in_set && out.ends_with('[') => out.push('^'),
            c if in_set => out.push(c),
            '[' => {
                in_set = true;
                out.push('[');
            }
            '*' => {
                while chars.next_if_eq(&'*').is_some() {}
                out.push_str(".*");
            }
            '?' => out.push('.'),
            '{' => {
                braces += 1;
                out.push_str("(?:");
            }
            '}' if braces > 0 => {
                braces -= 1;
                out.push(')');
            }
            ',' if braces > 0 => out.push('|'),
            c => out.push_str(&regex::escape(c.encode_utf8(&mut [0; 4]))),
        }
    }
    out + ")$"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_fit_globs_and_since_v2_12_3_expressions() {
        for (pattern, namespace, fits) in [
            ("team-*", "team-a", true),
            ("team-*", "the-team-a", false),
            ("team-?", "team-ab", false),
            ("{a,b}-x", "b-x", true),
            ("t[a-c]", "tb", true),
            ("t[!a-c]", "tb", false),
            ("a.b", "aXb", false),
            ("/^team-[0-9]+$/", "team-7", true),
            ("/^team-[0-9]+$/", "team-x", false),
            ("*", "anything", true),
        ] {
            assert_eq!(Served::of(&[pattern.into()], Version::NEWEST).unwrap().has(namespace), fits, "{pattern}");
        }
        assert!(!Served::of(&["/team/".into()], Version(2, 12, 2)).unwrap().has("team"));
        assert!(Served::of(&["/(/".into()], Version::NEWEST).is_err());
    }
}
