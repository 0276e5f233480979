//! Versions and constraints as Masterminds/semver v3 reads them (argo-cd v3.5.1 util/webhook/webhook.go tests a target
//! revision with it). Pure; `semver.tsv` beside the stand-in's tests was written by the Go library itself.

use std::cmp::Ordering;

use kit::version::Version;

/// The releases of the library that differ in what can be seen here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    /// v3.3.1, in argo-cd v2.14 to v3.1: a bound lets pre-releases in only for itself, no number begins with a zero.
    V3_3,
    /// v3.4.0, since argo-cd v3.2: one bound with a pre-release part opens its whole group, leading zeros are dropped.
    V3_4,
}

impl Library {
    /// The release in a version of Argo CD.
    pub fn of(version: Version) -> Self {
        if version >= Version(3, 2, 0) { Library::V3_4 } else { Library::V3_3 }
    }
}

/// A version; build metadata do not count.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Semver {
    numbers: [u64; 3],
    pre: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
    Tilde,
    Caret,
}

/// Longer ones first.
const OPERATORS: [(&str, Operator); 12] = [
    ("!=", Operator::NotEqual),
    (">=", Operator::GreaterOrEqual),
    ("=>", Operator::GreaterOrEqual),
    ("<=", Operator::LessOrEqual),
    ("=<", Operator::LessOrEqual),
    ("~>", Operator::Tilde),
    ("=", Operator::Equal),
    (">", Operator::Greater),
    ("<", Operator::Less),
    ("~", Operator::Tilde),
    ("^", Operator::Caret),
    ("", Operator::Equal),
];

/// One comparison.
#[derive(Clone, Debug)]
struct Bound {
    operator: Operator,
    version: Semver,
    /// How many numbers were given before the first `x` or the end: 0 to 3.
    given: usize,
}

/// Whether `name` is a version that lies in the range `constraint`; `None` when either is not what it should be.
pub fn lies_in(name: &str, constraint: &str, library: Library) -> Option<bool> {
    let groups = parse_constraint(constraint, library)?;
    let version = parse_version(name, library)?;
    Some(groups.iter().any(|group| {
        let open = group.iter().any(|bound| !bound.version.pre.is_empty());
        group.iter().all(|bound| bound.lets_in(&version, library, open))
    }))
}

/// Whether a text is a range, and not merely a name.
pub fn is_constraint(text: &str, library: Library) -> bool {
    parse_constraint(text, library).is_some()
}

impl Bound {
    fn lets_in(&self, version: &Semver, library: Library, group_is_open: bool) -> bool {
        let open = match library {
            Library::V3_4 => group_is_open,
            // A full `!=` compares whatever comes.
            Library::V3_3 => !self.version.pre.is_empty() || (self.operator == Operator::NotEqual && self.given == 3),
        };
        if !version.pre.is_empty() && !open {
            return false;
        }
        let (bound, given) = (&self.version, self.given);
        let order = version.compare(bound);
        let [major, minor, patch] = version.numbers;
        let [low_major, low_minor, low_patch] = bound.numbers;
        match self.operator {
            Operator::Equal if given == 3 => order == Ordering::Equal,
            Operator::Equal | Operator::Tilde => {
                let everything = bound.numbers == [0; 3] && matches!(given, 0 | 3);
                let same = major == low_major && (given == 1 || minor == low_minor);
                order != Ordering::Less && (everything || same)
            }
            Operator::NotEqual => match given {
                1 => major != low_major,
                2 => {
                    [major, minor] != [low_major, low_minor] || compare_pre(&version.pre, &bound.pre) != Ordering::Equal
                }
                _ => order != Ordering::Equal,
            },
            Operator::Greater => match given {
                1 => major > low_major,
                2 => [major, minor] > [low_major, low_minor],
                _ => order == Ordering::Greater,
            },
            Operator::GreaterOrEqual => order != Ordering::Less,
            Operator::Less => order == Ordering::Less,
            Operator::LessOrEqual => match given {
                3 => order != Ordering::Greater,
                1 => major <= low_major,
                _ => [major, minor] <= [low_major, low_minor],
            },
            Operator::Caret if order == Ordering::Less => false,
            Operator::Caret if low_major > 0 || given == 1 => major == low_major,
            Operator::Caret if low_minor > 0 || given == 2 => [major, minor] == [0, low_minor],
            Operator::Caret => [major, minor, patch] == [0, 0, low_patch],
        }
    }
}

impl Semver {
    fn compare(&self, other: &Self) -> Ordering {
        self.numbers.cmp(&other.numbers).then_with(|| match (self.pre.as_str(), other.pre.as_str()) {
            ("", "") => Ordering::Equal,
            ("", _) => Ordering::Greater,
            (_, "") => Ordering::Less,
            (one, other) => compare_pre(one, other),
        })
    }
}

/// Part by part: numbers by value and before words, what ends first is smaller.
fn compare_pre(one: &str, other: &str) -> Ordering {
    let (mut ones, mut others) = (one.split('.'), other.split('.'));
    loop {
        let (one, other) = (ones.next(), others.next());
        if one.is_none() && other.is_none() {
            return Ordering::Equal;
        }
        let (one, other) = (one.unwrap_or_default(), other.unwrap_or_default());
        let order = match (one.parse::<u64>(), other.parse::<u64>()) {
            _ if one == other => Ordering::Equal,
            _ if one.is_empty() => Ordering::Less,
            _ if other.is_empty() => Ordering::Greater,
            (Ok(one), Ok(other)) => one.cmp(&other),
            (Ok(_), Err(_)) => Ordering::Less,
            (Err(_), Ok(_)) => Ordering::Greater,
            (Err(_), Err(_)) => one.cmp(other),
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

/// The pieces of `v1.x.3-rc.1+build` at the start of a text, and how long they are.
struct Pieces<'a> {
    numbers: Vec<&'a str>,
    pre: &'a str,
    length: usize,
}

fn pieces<'a>(text: &'a str, in_number: impl Fn(char) -> bool) -> Option<Pieces<'a>> {
    let run = |from: usize, fits: &dyn Fn(char) -> bool| {
        let rest = &text[from..];
        from + rest.find(|c| !fits(c)).unwrap_or(rest.len())
    };
    let mut at = usize::from(text.starts_with('v'));
    let mut numbers = Vec::new();
    loop {
        let start = if numbers.is_empty() { at } else { at + 1 };
        let end = run(start, &in_number);
        if end == start {
            break;
        }
        numbers.push(&text[start..end]);
        at = end;
        if numbers.len() == 3 || !text[at..].starts_with('.') {
            break;
        }
    }
    if numbers.is_empty() {
        return None;
    }
    let mut words = |mark: char| {
        if !text[at..].starts_with(mark) {
            return "";
        }
        let start = at + 1;
        let end = run(start, &|c| c.is_ascii_alphanumeric() || c == '-' || c == '.');
        let found = text[start..end].trim_end_matches('.');
        // An empty word ends what belongs to it.
        let found = found.find("..").map_or(found, |end| &found[..end]);
        if found.is_empty() || found.starts_with('.') {
            return "";
        }
        at = start + found.len();
        found
    };
    let pre = words('-');
    words('+');
    Some(Pieces { numbers, pre, length: at })
}

fn parse_version(text: &str, library: Library) -> Option<Semver> {
    let pieces = pieces(text, |c| c.is_ascii_digit())?;
    if pieces.length != text.len() {
        return None;
    }
    semver(&pieces.numbers, pieces.pre, library)
}

fn semver(given: &[&str], pre: &str, library: Library) -> Option<Semver> {
    let padded = |number: &str| number.len() > 1 && number.starts_with('0');
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if pre.split('.').any(|part| digits(part) && padded(part)) {
        return None;
    }
    let mut numbers = [0; 3];
    for (number, text) in numbers.iter_mut().zip(given) {
        if !digits(text) || (library == Library::V3_3 && padded(text)) {
            return None;
        }
        *number = text.parse().ok()?;
    }
    Some(Semver { numbers, pre: pre.to_owned() })
}

/// Groups that are joined by `||`, of bounds that are joined by blanks or commas.
fn parse_constraint(text: &str, library: Library) -> Option<Vec<Vec<Bound>>> {
    hyphen_ranges(text).split("||").map(|group| parse_group(group, library)).collect()
}

fn parse_group(group: &str, library: Library) -> Option<Vec<Bound>> {
    let mut rest = group.trim_start_matches(is_blank);
    let mut bounds = Vec::new();
    loop {
        let (text, operator) = OPERATORS.iter().find(|(text, _)| rest.starts_with(text))?;
        rest = rest[text.len()..].trim_start_matches(is_blank);
        let found = pieces(rest, in_pattern)?;
        let is_any = |number: &&&str| matches!(**number, "x" | "X" | "*");
        let given = found.numbers.iter().position(|number| is_any(&number)).unwrap_or(found.numbers.len());
        bounds.push(Bound {
            operator: *operator,
            version: semver(&found.numbers[..given], found.pre, library)?,
            given,
        });
        let after = &rest[found.length..];
        rest = after.trim_start_matches(is_blank);
        if rest.is_empty() {
            return Some(bounds);
        }
        match rest.strip_prefix(',') {
            Some(next) => rest = next.trim_start_matches(is_blank),
            None if after.len() == rest.len() => return None,
            None => {}
        }
    }
}

/// `1.2 - 3` is `>= 1.2, <= 3`.
fn hyphen_ranges(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('-') {
        let (before, after) = (&rest[..at], &rest[at + 1..]);
        let (left, right) = (before.trim_end_matches(is_blank), after.trim_start_matches(is_blank));
        let spaced = left.len() < before.len() && right.len() < after.len();
        let start = left.rfind(|c: char| is_blank(c) || ",|<>=!~^".contains(c)).map_or(0, |at| at + 1);
        let low = &left[start..];
        let whole = pieces(low, in_pattern).is_some_and(|found| found.length == low.len());
        match pieces(right, in_pattern).filter(|_| spaced && whole) {
            Some(found) => {
                out.push_str(&format!("{}>= {low}, <= {} ", &left[..start], &right[..found.length]));
                rest = &right[found.length..];
            }
            None => {
                out.push_str(&rest[..=at]);
                rest = after;
            }
        }
    }
    out + rest
}

fn in_pattern(c: char) -> bool {
    c.is_ascii_digit() || matches!(c, 'x' | 'X' | '*')
}

/// Go's `\s`.
fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\x0c' | '\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Constraint, version, what v3.3.1 says, what v3.4.0 says.
    #[test]
    fn versions_lie_in_the_ranges_that_the_go_library_puts_them_in() {
        let mut wrong = Vec::new();
        for line in include_str!("../../../../tests/standin/tests/data/semver.tsv").lines() {
            let parts: Vec<&str> = line.split('\t').collect();
            for (library, expected) in [(Library::V3_3, parts[2]), (Library::V3_4, parts[3])] {
                let found = match lies_in(parts[1], parts[0], library) {
                    Some(true) => "true",
                    Some(false) => "false",
                    None if is_constraint(parts[0], library) => "bad-version",
                    None => "bad-constraint",
                };
                if found != expected {
                    wrong.push(format!("{line} {library:?}: {found}"));
                }
            }
        }
        assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
    }
}
