//! The version of an Argo CD, from the tag of its image.

use std::fmt;

/// `major.minor.patch`; ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32, pub u32, pub u32);

impl Version {
    /// The newest version whose source the rules were read from; an unknown version is treated as this one.
    pub const NEWEST: Version = Version(3, 5, 1);

    /// Reads `v3.5.1`, `3.5`, `2.13.0-rc1+abc`; a pre-release counts as its release.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let release = text.split(['-', '+']).next()?;
        let mut parts = release.split('.');
        let mut number = || parts.next().map(str::parse::<u32>);
        let version = Version(number()?.ok()?, number()?.ok()?, number().unwrap_or(Ok(0)).ok()?);
        number().is_none().then_some(version)
    }

    /// Reads the tag of an image: `quay.io/argoproj/argocd:v3.5.1@sha256:…`. `None` for `latest` and for digests alone.
    pub fn of_image(image: &str) -> Option<Self> {
        let name = image.split('@').next()?;
        let (_, tag) = name.rsplit_once('/').unwrap_or(("", name)).1.split_once(':')?;
        Version::parse(tag)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tag_of_an_image_is_read() {
        for (image, version) in [
            ("quay.io/argoproj/argocd:v3.5.1", Some(Version(3, 5, 1))),
            ("registry:5000/argocd:v2.13.0-rc1@sha256:abc", Some(Version(2, 13, 0))),
            ("registry:5000/argocd", None),
            ("argocd:latest", None),
            ("argocd@sha256:abc", None),
            ("argocd:v3.2.9+unknown", Some(Version(3, 2, 9))),
        ] {
            assert_eq!(Version::of_image(image), version, "{image}");
        }
    }

    #[test]
    fn versions_are_ordered_by_number() {
        assert!(Version::parse("v2.9.20") < Version::parse("v2.13"));
        assert_eq!(Version::parse("3.5.1.2"), None);
    }
}
