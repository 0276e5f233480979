//! Versions and constraints as Masterminds/semver reads them, which Argo CD uses for version ranges.

use std::cmp::Ordering;

use super::version::Version;

/// The two releases of the library that differ in what can be seen here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    /// v3.3: no number begins with a zero; a pre-release is let in by its own bound only.
    V3_3,
    /// v3.4, since argo-cd v3.2: leading zeros are dropped; one bound with a pre-release part lets pre-releases into
    /// its whole group.
    V3_4,
}

impl Library {
    /// The release that a version of Argo CD is built with.
    pub fn of(version: Version) -> Library {
        if version.at_least(3, 2) { Library::V3_4 } else { Library::V3_3 }
    }
}

/// `v1.2.3-rc.1+build`; the second and third number may be absent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Semver {
    numbers: [u64; 3],
    pre: String,
}

impl Semver {
    /// Reads a version; `None` when it is none.
    pub fn parse(text: &str, library: Library) -> Option<Semver> {
        let parts = Parts::of(text, false)?;
        if library == Library::V3_3 && parts.numbers.into_iter().flatten().any(has_leading_zero) {
            return None;
        }
        let number = |text: Option<&str>| text.map_or(Some(0), |text| text.parse::<u64>().ok());
        let numbers = [number(Some(parts.numbers[0]?))?, number(parts.numbers[1])?, number(parts.numbers[2])?];
        if parts.pre.split('.').any(has_leading_zero) {
            return None;
        }
        Some(Semver { numbers, pre: parts.pre.to_owned() })
    }

    fn compare(&self, other: &Semver) -> Ordering {
        self.numbers.cmp(&other.numbers).then_with(|| match (self.pre.is_empty(), other.pre.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => compare_pre(&self.pre, &other.pre),
        })
    }
}

impl PartialOrd for Semver {
    fn partial_cmp(&self, other: &Semver) -> Option<Ordering> {
        Some(self.compare(other))
    }
}

fn compare_pre(one: &str, other: &str) -> Ordering {
    let (mut ones, mut others) = (one.split('.'), other.split('.'));
    loop {
        let order = match (ones.next(), others.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => Ordering::Less,
            (Some(_), None) => Ordering::Greater,
            (Some(a), Some(b)) => match (a.parse::<u64>(), b.parse::<u64>()) {
                (Ok(a), Ok(b)) => a.cmp(&b),
                (Ok(_), Err(_)) => Ordering::Less,
                (Err(_), Ok(_)) => Ordering::Greater,
                (Err(_), Err(_)) => a.cmp(b),
            },
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

/// The text of a version taken apart; in a constraint a number may be `x`, `X` or `*`.
struct Parts<'a> {
    numbers: [Option<&'a str>; 3],
    pre: &'a str,
}

impl Parts<'_> {
    fn of(text: &str, wildcards: bool) -> Option<Parts<'_>> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let (text, build) = text.split_once('+').map_or((text, None), |(text, build)| (text, Some(build)));
        let (text, pre) = text.split_once('-').map_or((text, None), |(text, pre)| (text, Some(pre)));
        let id = |id: &str| !id.is_empty() && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        if [pre, build].into_iter().flatten().any(|ids| !ids.split('.').all(id)) {
            return None;
        }
        let mut numbers = [None; 3];
        for (index, part) in text.split('.').enumerate() {
            let digits = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
            let wildcard = wildcards && is_wildcard(part);
            if !digits && !wildcard {
                return None;
            }
            *numbers.get_mut(index)? = Some(part);
        }
        Some(Parts { numbers, pre: pre.unwrap_or_default() })
    }
}

fn has_leading_zero(text: &str) -> bool {
    text.len() > 1 && text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit())
}

fn is_wildcard(text: &str) -> bool {
    matches!(text, "x" | "X" | "*")
}

#[derive(Clone, Copy, Debug)]
enum Operator {
    Equal,
    NotEqual,
    Greater,
    Less,
    GreaterEqual,
    LessEqual,
    Tilde,
    Caret,
}

#[derive(Clone, Debug)]
struct Bound {
    operator: Operator,
    version: Semver,
    /// Some number was absent or a wildcard.
    dirty: bool,
    minor_dirty: bool,
    patch_dirty: bool,
}

/// `>=1.2 <2 || ~3.1`: groups of bounds.
#[derive(Clone, Debug)]
pub struct Constraint(Vec<Vec<Bound>>);

impl Constraint {
    /// Reads a constraint; `None` when it is none.
    pub fn parse(text: &str, library: Library) -> Option<Constraint> {
        let groups = rewrite_ranges(text);
        groups.split("||").map(|group| parse_group(group, library)).collect::<Option<Vec<_>>>().map(Constraint)
    }

    /// Whether `version` is inside.
    pub fn contains(&self, version: &Semver, library: Library) -> bool {
        self.0.iter().any(|group| {
            let open = library == Library::V3_4 && group.iter().any(|bound| !bound.version.pre.is_empty());
            group.iter().all(|bound| {
                let exact_unequal = matches!(bound.operator, Operator::NotEqual) && !bound.dirty;
                bound.contains(version, open || (library == Library::V3_3 && exact_unequal))
            })
        })
    }
}

/// `1.2 - 1.4` is `>=1.2, <=1.4`.
fn rewrite_ranges(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut out: Vec<String> = Vec::new();
    let mut index = 0;
    while index < words.len() {
        let range = words.get(index..index + 3).filter(|window| {
            let is_version = |text: &str| Parts::of(text, true).is_some();
            window[1] == "-" && is_version(window[0]) && is_version(window[2])
        });
        match range {
            Some(window) => {
                out.push(format!(">={}, <={}", window[0], window[2]));
                index += 3;
            }
            None => {
                out.push(words[index].to_owned());
                index += 1;
            }
        }
    }
    if out.is_empty() { text.to_owned() } else { out.join(" ") }
}

fn parse_group(text: &str, library: Library) -> Option<Vec<Bound>> {
    let mut bounds = Vec::new();
    let mut rest = text.trim();
    loop {
        let (operator, after) = operator_of(rest);
        let after = after.trim_start();
        let end = after.find(|c: char| c == ',' || c.is_whitespace()).unwrap_or(after.len());
        bounds.push(Bound::parse(operator, &after[..end], library)?);
        rest = after[end..].trim_start();
        rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
        if rest.is_empty() {
            return after[end..].trim().is_empty().then_some(bounds);
        }
    }
}

fn operator_of(text: &str) -> (Operator, &str) {
    let known = [
        ("!=", Operator::NotEqual),
        (">=", Operator::GreaterEqual),
        ("=>", Operator::GreaterEqual),
        ("<=", Operator::LessEqual),
        ("=<", Operator::LessEqual),
        ("~>", Operator::Tilde),
        ("~", Operator::Tilde),
        ("^", Operator::Caret),
        (">", Operator::Greater),
        ("<", Operator::Less),
        ("=", Operator::Equal),
    ];
    let found = known.iter().find_map(|(sign, operator)| Some((*operator, text.strip_prefix(sign)?)));
    found.unwrap_or((Operator::Equal, text))
}

impl Bound {
    fn parse(operator: Operator, text: &str, library: Library) -> Option<Bound> {
        let parts = Parts::of(text, true)?;
        let absent = |number: Option<&str>| number.is_none_or(is_wildcard);
        let [major, minor, patch] = parts.numbers;
        let (text, minor_dirty, patch_dirty) = if absent(major) {
            ("0.0.0".to_owned(), false, false)
        } else if absent(minor) {
            (format!("{}.0.0", major?), true, false)
        } else if absent(patch) {
            (format!("{}.{}.0", major?, minor?), false, true)
        } else {
            (format!("{}.{}.{}", major?, minor?, patch?), false, false)
        };
        let dirty = [major, minor, patch].into_iter().any(absent);
        let text = if parts.pre.is_empty() { text } else { format!("{text}-{}", parts.pre) };
        Some(Bound { operator, version: Semver::parse(&text, library)?, dirty, minor_dirty, patch_dirty })
    }

    /// Masterminds/semver constraints.go: one rule for each operator.
    fn contains(&self, version: &Semver, open_to_pre: bool) -> bool {
        if !version.pre.is_empty() && self.version.pre.is_empty() && !open_to_pre {
            return false;
        }
        let ([major, minor, patch], [bound_major, bound_minor, bound_patch]) = (version.numbers, self.version.numbers);
        match self.operator {
            Operator::Equal if self.dirty => self.tilde(version),
            Operator::Equal => version.compare(&self.version).is_eq(),
            Operator::NotEqual if !self.dirty => version.compare(&self.version).is_ne(),
            Operator::NotEqual if major != bound_major => true,
            Operator::NotEqual if minor != bound_minor && !self.minor_dirty => true,
            Operator::NotEqual if self.minor_dirty => false,
            Operator::NotEqual if patch != bound_patch && !self.patch_dirty => true,
            Operator::NotEqual if self.patch_dirty => {
                let some_pre = !version.pre.is_empty() || !self.version.pre.is_empty();
                some_pre && version.pre != self.version.pre
            }
            Operator::NotEqual => version.compare(&self.version).is_ne(),
            Operator::Greater if !self.dirty => version.compare(&self.version).is_gt(),
            Operator::Greater if major != bound_major => major > bound_major,
            Operator::Greater if self.minor_dirty => false,
            Operator::Greater if self.patch_dirty => minor > bound_minor,
            Operator::Greater => version.compare(&self.version).is_gt(),
            Operator::Less => version.compare(&self.version).is_lt(),
            Operator::GreaterEqual => version.compare(&self.version).is_ge(),
            Operator::LessEqual if !self.dirty => version.compare(&self.version).is_le(),
            Operator::LessEqual => {
                major < bound_major || (major == bound_major && (minor <= bound_minor || self.minor_dirty))
            }
            Operator::Tilde => self.tilde(version),
            Operator::Caret => {
                if version.compare(&self.version).is_lt() {
                    return false;
                }
                if bound_major > 0 || self.minor_dirty {
                    return major == bound_major;
                }
                if major > 0 {
                    return false;
                }
                if bound_minor > 0 || self.patch_dirty {
                    return minor == bound_minor;
                }
                minor == 0 && patch == bound_patch
            }
        }
    }

    fn tilde(&self, version: &Semver) -> bool {
        if version.compare(&self.version).is_lt() {
            return false;
        }
        if self.version.numbers == [0, 0, 0] && !self.minor_dirty && !self.patch_dirty {
            return true;
        }
        version.numbers[0] == self.version.numbers[0]
            && (version.numbers[1] == self.version.numbers[1] || self.minor_dirty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Constraint, version, and what the library says, computed with Masterminds/semver v3.3.1 and v3.4.0: `true`,
    /// `false`, `bad-constraint` or `bad-version`.
    const BY_LIBRARY: &str = include_str!("../../tests/data/semver.tsv");

    #[test]
    fn constraints_hold_where_they_hold_for_the_library() {
        let (mut rows, mut wrong) = (0, Vec::new());
        for row in BY_LIBRARY.lines() {
            let [constraint, version, before, since] = *row.split('\t').collect::<Vec<_>>() else { panic!("{row:?}") };
            for (expected, library) in [(before, Library::V3_3), (since, Library::V3_4)] {
                let got = match (Constraint::parse(constraint, library), Semver::parse(version, library)) {
                    (None, _) => "bad-constraint",
                    (_, None) => "bad-version",
                    (Some(constraint), Some(version)) if constraint.contains(&version, library) => "true",
                    _ => "false",
                };
                if got != expected {
                    wrong.push(format!("{constraint:?} of {version:?}, {library:?}: {got}"));
                }
            }
            rows += 1;
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(rows > 500, "{rows}");
    }
}
