//! `KEY=VALUE`, as `--set` takes it.

/// What `--set` asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The keys from the top of the document down to the value. In a list a key is a number that counts from 0.
    pub path: Vec<String>,
    /// The value, as text.
    pub value: String,
}

impl Assignment {
    /// Reads `data.rev=r2`. Keys are separated by dots; a key that holds a dot, a bracket or an equals sign is quoted
    /// (`data."a.b"`) or has a backslash before it (`data.a\.b`); `images[0]` is the same as `images.0`.
    ///
    /// # Errors
    /// Says what is wrong with the text; made for clap's `value_parser`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut path = Vec::new();
        let mut key = String::new();
        // Whether a key stands before this character, so that `a.` and `.a` are told from `""` and `[0].a`.
        let mut begun = false;
        let mut chars = text.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '=' | '.' if begun => {
                    path.push(std::mem::take(&mut key));
                    begun = false;
                    if c == '=' {
                        return Ok(Assignment { path, value: text[at + 1..].to_owned() });
                    }
                }
                '=' | '.' => return Err(format!("a key is missing before `{}`", &text[at..])),
                '"' | '\'' if !begun => {
                    begun = true;
                    loop {
                        match chars.next() {
                            Some((_, next)) if next == c => break,
                            Some((_, '\\')) => key.extend(chars.next().map(|(_, next)| next)),
                            Some((_, next)) => key.push(next),
                            None => return Err(format!("the quote {c} is not closed")),
                        }
                    }
                }
                '[' => {
                    if begun {
                        path.push(std::mem::take(&mut key));
                    }
                    begun = true;
                    let digits: String = chars.by_ref().map(|(_, c)| c).take_while(|c| *c != ']').collect();
                    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                        return Err(format!("`[{digits}]` is not a place in a list; the first is [0]"));
                    }
                    key = digits;
                }
                '\\' => {
                    begun = true;
                    key.extend(chars.next().map(|(_, next)| next));
                }
                c => {
                    begun = true;
                    key.push(c);
                }
            }
        }
        Err("there is no `=`; write KEY=VALUE, such as data.rev=r2".to_owned())
    }

    /// The key as it is written in messages and on the command line.
    pub fn key(&self) -> String {
        written(&self.path)
    }
}

/// A path as [`Assignment::parse`] reads it.
pub fn written(path: &[String]) -> String {
    let keys: Vec<String> = path
        .iter()
        .map(|key| {
            if key.is_empty() || key.contains(['.', '=', '[', ']', '"', '\'', '\\']) {
                format!("\"{}\"", key.replace('\\', "\\\\").replace('"', "\\\""))
            } else {
                key.clone()
            }
        })
        .collect();
    keys.join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_separated_by_dots_unless_they_are_quoted_or_escaped() {
        for (text, path, value) in [
            ("data.rev=r2", vec!["data", "rev"], "r2"),
            ("a=b=c", vec!["a"], "b=c"),
            ("a=", vec!["a"], ""),
            ("data.\"a.b\"=1", vec!["data", "a.b"], "1"),
            ("data.'a=b'.c=1", vec!["data", "a=b", "c"], "1"),
            (r"metadata.labels.app\.kubernetes\.io/name=x", vec!["metadata", "labels", "app.kubernetes.io/name"], "x"),
            ("images[0].tag=v1", vec!["images", "0", "tag"], "v1"),
            ("images.0.tag=v1", vec!["images", "0", "tag"], "v1"),
            ("[1][2]=v", vec!["1", "2"], "v"),
            (r#""say \"hi\""=v"#, vec!["say \"hi\""], "v"),
        ] {
            let parsed = Assignment::parse(text).unwrap();
            assert_eq!(
                (parsed.path, parsed.value.as_str()),
                (path.iter().map(|key| (*key).to_owned()).collect(), value)
            );
        }
    }

    #[test]
    fn what_names_no_key_is_refused() {
        for text in ["", "data.rev", "=x", ".a=x", "a..b=x", "a.=x", "\"a=x", "a[x]=1", "a[]=1"] {
            assert!(Assignment::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_key_is_written_as_it_is_read() {
        for text in ["data.rev", r#"data."a.b""#, r#"a."x=\"y\"".0"#] {
            assert_eq!(Assignment::parse(&format!("{text}=1")).unwrap().key(), text);
        }
    }
}
