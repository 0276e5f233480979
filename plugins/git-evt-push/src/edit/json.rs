//! One value of a JSON file, changed in place: no other byte is touched.

use std::collections::BTreeMap;

use kit::error::Error;
use serde_json::{Value, value::RawValue};

use super::{assignment::Assignment, cannot_set, missing, not_a_value};

/// Sets the value; `None` when it is there already. Text stays text; where a number, a boolean or null stands, the new
/// value is one of them if JSON reads it so, and text otherwise.
///
/// # Errors
/// When the text is not JSON, or the key does not lead to a value. Exit code 2.
pub fn set(text: &str, assignment: &Assignment) -> Result<Option<String>, Error> {
    let body = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut tree: Value = serde_json::from_str(body).map_err(bad)?;
    let raw = find(body, assignment)?;
    let fresh = match raw.as_bytes()[0] {
        b'{' => return Err(not_a_value(&assignment.key(), "mapping")),
        b'[' => return Err(not_a_value(&assignment.key(), "list")),
        b'"' => Value::from(assignment.value.as_str()).to_string(),
        _ => scalar(&assignment.value),
    };
    let now: Value = serde_json::from_str(&fresh).map_err(bad)?;
    if serde_json::from_str::<Value>(raw).map_err(bad)? == now {
        return Ok(None);
    }
    // Both are slices of the same text.
    let start = raw.as_ptr() as usize - text.as_ptr() as usize;
    let mut edited = text.to_owned();
    edited.replace_range(start..start + raw.len(), &fresh);

    let mut place = &mut tree;
    for key in &assignment.path {
        let next = match place {
            Value::Object(map) => map.get_mut(key),
            Value::Array(items) => key.parse::<usize>().ok().and_then(|index| items.get_mut(index)),
            _ => None,
        };
        place = next.ok_or_else(|| cannot_set(assignment))?;
    }
    *place = now;
    let edited_body = edited.strip_prefix('\u{feff}').unwrap_or(&edited);
    if serde_json::from_str::<Value>(edited_body).is_ok_and(|edited| edited == tree) {
        Ok(Some(edited))
    } else {
        Err(cannot_set(assignment))
    }
}

/// The bytes of the value that the key leads to.
fn find<'a>(text: &'a str, assignment: &Assignment) -> Result<&'a str, Error> {
    let mut raw = serde_json::from_str::<&RawValue>(text).map_err(bad)?.get();
    for (depth, key) in assignment.path.iter().enumerate() {
        let next: Result<&RawValue, Option<Vec<String>>> = match raw.as_bytes().first() {
            Some(b'{') => {
                let entries: BTreeMap<String, &RawValue> = serde_json::from_str(raw).map_err(bad)?;
                entries.get(key).copied().ok_or_else(|| Some(entries.into_keys().collect()))
            }
            Some(b'[') => {
                let items: Vec<&RawValue> = serde_json::from_str(raw).map_err(bad)?;
                let names = (0..items.len()).map(|index| index.to_string()).collect();
                key.parse().ok().and_then(|index: usize| items.get(index).copied()).ok_or(Some(names))
            }
            _ => Err(None),
        };
        raw = next.map_err(|names| missing(assignment, depth, names.as_deref()))?.get();
    }
    Ok(raw)
}

fn scalar(value: &str) -> String {
    match serde_json::from_str::<Value>(value) {
        Ok(Value::Null | Value::Bool(_) | Value::Number(_)) => value.trim().to_owned(),
        _ => Value::from(value).to_string(),
    }
}

fn bad(error: serde_json::Error) -> Error {
    Error::usage("bad-file", format!("not JSON: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(text: &str, assignment: &str) -> Result<Option<String>, Error> {
        set(text, &Assignment::parse(assignment).unwrap())
    }

    #[test]
    fn only_the_value_changes() {
        for (text, assignment, expected) in [
            ("{\n\t\"a\" : \"x\" ,\r\n  \"b\":1e0}\n", "a=y", "{\n\t\"a\" : \"y\" ,\r\n  \"b\":1e0}\n"),
            ("{\"a\":{\"b.c\":[1, 2]}}", "a.\"b.c\"[1]=3", "{\"a\":{\"b.c\":[1, 3]}}"),
            ("{\"a\":\"1.9\"}", "a=1.10", "{\"a\":\"1.10\"}"),
            ("{\"a\":1}", "a=two", "{\"a\":\"two\"}"),
            ("{\"a\":null}", "a=true", "{\"a\":true}"),
            ("{\"a\":\"\\u00e9\"}", "a=say \"hi\"\n", "{\"a\":\"say \\\"hi\\\"\\n\"}"),
            ("\u{feff}[\"x\"]", "0=y", "\u{feff}[\"y\"]"),
        ] {
            assert_eq!(edit(text, assignment).unwrap().as_deref(), Some(expected));
        }
    }

    #[test]
    fn what_is_there_already_is_no_change() {
        assert_eq!(edit("{\"a\": \"\\u0078\"}", "a=x").unwrap(), None);
        assert_eq!(edit("{\"a\": 3}", "a=3").unwrap(), None);
    }

    #[test]
    fn what_does_not_lead_to_a_value_is_refused_by_name() {
        for (text, assignment, message) in [
            ("{\"a\":{\"b\":1}}", "a.c=2", "no key `a.c`; `a` has: b"),
            ("{\"a\":[1]}", "a.1=2", "no key `a.1`; `a` has: 0"),
            ("{\"a\":1}", "a.b=2", "no key `a.b`; `a` is a value"),
            ("{\"a\":[1]}", "a=2", "`a` is a list, not a value"),
            ("{\"a\":{}}", "a=2", "`a` is a mapping, not a value"),
        ] {
            assert_eq!(edit(text, assignment).unwrap_err().message, message);
        }
        assert!(edit("{\"a\": // no\n1}", "a=2").unwrap_err().message.starts_with("not JSON: "));
    }
}
