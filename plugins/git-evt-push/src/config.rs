//! Git's configuration, read once.

use std::collections::HashMap;

/// What `git config --list -z` prints.
#[derive(Clone, Debug, Default)]
pub struct Config(HashMap<String, Vec<String>>);

impl Config {
    /// Reads entries that end in NUL: the key, a line break, the value. A key without a value means true.
    pub fn parse(bytes: &[u8]) -> Self {
        let mut entries: HashMap<String, Vec<String>> = HashMap::new();
        for entry in bytes.split(|byte| *byte == 0).filter(|entry| !entry.is_empty()) {
            let entry = String::from_utf8_lossy(entry);
            let (key, value) = entry.split_once('\n').unwrap_or((&entry, "true"));
            entries.entry(key.to_owned()).or_default().push(value.to_owned());
        }
        Config(entries)
    }

    /// The value that counts: the last one. Section and name are in lower case, as git prints them.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.all(key).last().map(String::as_str)
    }

    /// Every value, in git's order.
    pub fn all(&self, key: &str) -> &[String] {
        self.0.get(key).map_or(&[], Vec::as_slice)
    }

    /// The names of the remotes that have a URL, sorted.
    pub fn remotes(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self
            .0
            .keys()
            .filter_map(|key| {
                let name = key.strip_prefix("remote.")?;
                name.strip_suffix(".url").or(name.strip_suffix(".pushurl"))
            })
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_value_counts_and_names_keep_their_dots() {
        let config = Config::parse(b"remote.a.b.url\n/x\0evt.repourl\nfirst\0evt.repourl\nhttps://h/\nr\0core.bare\0");
        assert_eq!(config.get("evt.repourl"), Some("https://h/\nr"));
        assert_eq!(config.get("core.bare"), Some("true"));
        assert_eq!(config.remotes(), ["a.b"]);
    }
}
