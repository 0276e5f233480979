//! Versions of Argo CD: which of its behaviours a tag has.

use std::fmt;

/// `v3.5.1`; what follows the third number is not looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// The first number.
    pub major: u32,
    /// The second.
    pub minor: u32,
    /// The third.
    pub patch: u32,
}

/// What a tag that is no version (`latest`, a digest) is taken for.
const NEWEST: Version = Version::new(3, 5, 1);

impl Version {
    /// `v<major>.<minor>.<patch>`.
    pub const fn new(major: u32, minor: u32, patch: u32) -> Version {
        Version { major, minor, patch }
    }

    /// Reads an image tag.
    pub fn of_tag(tag: &str) -> Version {
        let mut numbers = tag.trim_start_matches('v').splitn(3, '.').map(|part| {
            let digits = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
            part[..digits].parse::<u32>()
        });
        match (numbers.next(), numbers.next(), numbers.next()) {
            (Some(Ok(major)), Some(Ok(minor)), patch) => {
                Version::new(major, minor, patch.and_then(Result::ok).unwrap_or(0))
            }
            _ => NEWEST,
        }
    }

    /// Whether something that came with `first` and was brought back to older lines is there. `first` has one version
    /// for each line that has it, oldest first; every line after the last one has it from its beginning.
    pub fn since(self, first: &[(u32, u32, u32)]) -> bool {
        let line = first.iter().find(|(major, minor, _)| (*major, *minor) == (self.major, self.minor));
        match (line, first.last()) {
            (Some((_, _, patch)), _) => self.patch >= *patch,
            (None, Some(&(major, minor, patch))) => self >= Version::new(major, minor, patch),
            (None, None) => true,
        }
    }

    /// Whether it is `major.minor.0` or later.
    pub fn at_least(self, major: u32, minor: u32) -> bool {
        self >= Version::new(major, minor, 0)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}.{}.{}", self.major, self.minor, self.patch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_back_ported_change_is_known_by_the_patch_of_its_line() {
        let first = [(2, 14, 20), (3, 0, 19), (3, 1, 8), (3, 3, 0)];
        let has = |tag| Version::of_tag(tag).since(&first);
        assert_eq!(
            ["v2.13.9", "v2.14.19", "v2.14.20", "v3.0.18", "v3.0.19", "v3.2.12", "v3.3.0-rc1", "v3.5.1"].map(has),
            [false, false, true, false, true, false, true, true]
        );
    }

    #[test]
    fn a_tag_that_is_no_version_is_the_newest() {
        assert_eq!(["latest", "v3.1"].map(Version::of_tag), [NEWEST, Version::new(3, 1, 0)]);
    }
}
