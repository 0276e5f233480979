//! The event record: one flat JSON object that grows as it moves down a pipeline.

use std::path::Path;

use serde_json::{Map, Value};

use crate::error::Error;

/// A record as it was read; unknown keys stay, in their order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Record(pub Map<String, Value>);

impl Record {
    /// Reads the record in a file, or on stdin when `path` is `-`.
    ///
    /// # Errors
    /// As [`Record::parse`], or when the file cannot be read; exit code 2.
    pub async fn read(path: &Path) -> Result<Self, Error> {
        let (bytes, source) = if path == Path::new("-") {
            let mut bytes = Vec::new();
            let mut stdin = tokio::io::stdin();
            tokio::io::AsyncReadExt::read_to_end(&mut stdin, &mut bytes)
                .await
                .map_err(|error| Error::usage("cannot-read", format!("cannot read stdin: {error}")))?;
            (bytes, "stdin".to_owned())
        } else {
            (crate::file::read(path)?, path.display().to_string())
        };
        Record::parse(&bytes, &source)
    }

    /// Reads one JSON object; `source` is how errors name where it came from.
    ///
    /// # Errors
    /// For nothing at all, for what is not one JSON object, and for the record of a command that failed; exit code 2.
    pub fn parse(bytes: &[u8], source: &str) -> Result<Self, Error> {
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Err(Error::usage("empty-record", format!("no event record on {source}: it is empty"))
                .hint("the command before the pipe probably failed; its message is above"));
        }
        let mut values = serde_json::Deserializer::from_slice(bytes).into_iter::<Value>();
        let bad = |why: String| {
            Error::usage("bad-record", format!("no event record on {source}: {why}"))
                .hint("an event record is one JSON object, as `git evt-push` prints it")
        };
        let Some(Ok(first)) = values.next() else {
            let why = serde_json::from_slice::<Value>(bytes).err().map_or_else(String::new, |error| error.to_string());
            return Err(bad(why));
        };
        match (first, values.next()) {
            (_, Some(Ok(_))) => Err(bad("it holds more than one object".into())
                .hint("send one record at a time: `while read -r record; do …; done`")),
            (_, Some(Err(error))) => Err(bad(error.to_string())),
            (Value::Object(map), None) => Ok(Record(map)),
            (_, None) => Err(bad("it is not an object".into())),
        }
    }

    /// The text under `key`, when there is one.
    ///
    /// # Errors
    /// When the value is something else than text or null; exit code 2.
    pub fn text(&self, key: &str) -> Result<Option<&str>, Error> {
        match self.0.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => {
                Err(Error::usage("bad-record", format!("`{key}` of the event record is not a string: {other}")))
            }
        }
    }

    /// The text under `key`, which has to be there.
    ///
    /// # Errors
    /// When it is missing, empty or not a string; exit code 2.
    pub fn require(&self, key: &str) -> Result<&str, Error> {
        self.text(key)?.filter(|text| !text.is_empty()).ok_or_else(|| {
            let error = Error::usage("bad-record", format!("the event record has no `{key}`"));
            match &self.0.get("error") {
                Some(Value::Object(_)) => error.hint("the command that made it failed: see its `error`"),
                _ => error.hint("make the record with `git evt-push`, or add the key"),
            }
        })
    }

    /// The whole number under `key`, when there is one.
    pub fn number(&self, key: &str) -> Option<u64> {
        self.0.get(key).and_then(Value::as_u64)
    }
}

/// Whether a text is a commit id: 7 to 64 hexadecimal digits; full ids have 40 (SHA-1) or 64 (SHA-256).
pub fn is_commit(text: &str) -> bool {
    (7..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_keys_pass_through_in_order() {
        let text = r#"{"z":1,"commit":"abc","a":{"y":[1.50,null],"b":2}}"#;
        let record = Record::parse(text.as_bytes(), "stdin").unwrap();
        assert_eq!(Value::Object(record.0).to_string(), text.replace("1.50", "1.5"));
    }

    #[test]
    fn what_is_not_one_object_is_refused() {
        for (text, why) in [
            ("", "it is empty"),
            ("  \n", "it is empty"),
            ("[1]", "not an object"),
            ("{\"a\":", "EOF while parsing"),
            ("{} {}", "more than one object"),
            ("{} x", "expected value"),
        ] {
            let error = Record::parse(text.as_bytes(), "stdin").unwrap_err();
            assert!(error.message.contains(why), "{text}: {error}");
            assert!(error.hint.is_some());
        }
    }

    #[test]
    fn a_missing_key_is_named() {
        let record = Record::parse(b"{\"commit\":\"\"}", "stdin").unwrap();
        assert_eq!(record.require("commit").unwrap_err().message, "the event record has no `commit`");
    }
}
