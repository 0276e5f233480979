//! One value of a TOML file, changed in place: no other byte is touched.

use kit::error::Error;
use toml_edit::{Document, Item, Value};

use super::{assignment::Assignment, cannot_set, missing, not_a_value};

/// Sets the value; `None` when it is there already. Text stays text in its own quotes; where something else stands, the
/// new value is what TOML reads it as, and text otherwise.
///
/// # Errors
/// When the text is not TOML, or the key does not lead to a value. Exit code 2.
pub fn set(text: &str, assignment: &Assignment) -> Result<Option<String>, Error> {
    let document = parse(text)?;
    let item = find(document.as_item(), assignment)?;
    let range = item.span().unwrap_or_default();
    let written = text.get(range.clone()).unwrap_or_default();
    let (fresh, now) = match item.as_value() {
        Some(Value::String(current)) if *current.value() == assignment.value => return Ok(None),
        Some(Value::String(_)) => (quoted(written, &assignment.value), assignment.value.clone()),
        Some(Value::Array(_)) => return Err(not_a_value(&assignment.key(), "list")),
        None if item.is_array_of_tables() => return Err(not_a_value(&assignment.key(), "list")),
        Some(Value::InlineTable(_)) | None => return Err(not_a_value(&assignment.key(), "mapping")),
        Some(_) if written == assignment.value => return Ok(None),
        Some(old) => match assignment.value.parse::<Value>() {
            // Newer forms of a time are not read by every reader; where a time stands, its author knows.
            Ok(Value::Datetime(_)) if !old.is_datetime() => (basic(&assignment.value), assignment.value.clone()),
            Ok(value @ (Value::Integer(_) | Value::Float(_) | Value::Boolean(_) | Value::Datetime(_))) => {
                (assignment.value.trim().to_owned(), scalar(&value))
            }
            _ => (basic(&assignment.value), assignment.value.clone()),
        },
    };
    let mut edited = text.to_owned();
    edited.replace_range(range, &fresh);

    let mut expected = Vec::new();
    flatten(document.as_item(), &mut Vec::new(), &mut expected);
    for (path, value) in &mut expected {
        if *path == assignment.path {
            value.clone_from(&now);
        }
    }
    let mut found = Vec::new();
    flatten(parse(&edited).map_err(|_| cannot_set(assignment))?.as_item(), &mut Vec::new(), &mut found);
    if found == expected { Ok(Some(edited)) } else { Err(cannot_set(assignment)) }
}

fn parse(text: &str) -> Result<Document<String>, Error> {
    // The parser's own message shows the line; the first part of it says what is wrong.
    Document::parse(text.to_owned()).map_err(|error| {
        Error::usage("bad-file", format!("not TOML: {}", error.message().lines().next().unwrap_or_default()))
    })
}

fn find<'a>(root: &'a Item, assignment: &Assignment) -> Result<&'a Item, Error> {
    let mut item = root;
    for (depth, key) in assignment.path.iter().enumerate() {
        let next = match item.as_table_like() {
            Some(table) => table.get(key),
            None => key.parse::<usize>().ok().and_then(|index| item.get(index)),
        };
        item = next.ok_or_else(|| missing(assignment, depth, is_collection(item).then(|| names(item)).as_deref()))?;
    }
    Ok(item)
}

fn is_collection(item: &Item) -> bool {
    item.is_table_like() || item.is_array() || item.is_array_of_tables()
}

fn names(item: &Item) -> Vec<String> {
    let length =
        item.as_array().map(toml_edit::Array::len).or(item.as_array_of_tables().map(toml_edit::ArrayOfTables::len));
    match (item.as_table_like(), length) {
        (Some(table), _) => table.iter().map(|(key, _)| key.to_owned()).collect(),
        (None, Some(length)) => (0..length).map(|index| index.to_string()).collect(),
        (None, None) => Vec::new(),
    }
}

/// Every scalar with the way to it.
fn flatten(item: &Item, path: &mut Vec<String>, found: &mut Vec<(Vec<String>, String)>) {
    if let Some(value) = item.as_value().filter(|value| !value.is_array() && !value.is_inline_table()) {
        found.push((path.clone(), scalar(value)));
        return;
    }
    for name in names(item) {
        let child =
            item.as_table_like().map_or_else(|| item.get(name.parse().unwrap_or(0usize)), |table| table.get(&name));
        path.push(name);
        if let Some(child) = child {
            flatten(child, path, found);
        }
        path.pop();
    }
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => text.value().clone(),
        Value::Integer(number) => number.value().to_string(),
        Value::Float(number) => number.value().to_string(),
        Value::Boolean(flag) => flag.value().to_string(),
        Value::Datetime(time) => time.value().to_string(),
        Value::Array(_) | Value::InlineTable(_) => String::new(),
    }
}

/// Text in the quotes of the text that it replaces, where they can hold it.
fn quoted(written: &str, value: &str) -> String {
    let plain = |value: &str| !value.chars().any(|c| c.is_control() && c != '\t' && c != '\n');
    let newline = if written.contains("\r\n") { "\r\n" } else { "\n" };
    let opening = |quotes: &str| {
        // The first line break is not part of the text.
        let begins_below = written[quotes.len()..].starts_with(newline) || value.starts_with('\n');
        format!("{quotes}{}", if begins_below { newline } else { "" })
    };
    if written.starts_with("'''") && plain(value) && !value.contains("'''") && !value.ends_with('\'') {
        return format!("{}{value}'''", opening("'''"));
    }
    if written.starts_with("\"\"\"") || written.starts_with("'''") {
        let lines: Vec<String> = value.split('\n').map(basic).collect();
        let lines: Vec<&str> = lines.iter().map(|line| &line[1..line.len() - 1]).collect();
        return format!("{}{}\"\"\"", opening("\"\"\""), lines.join(newline));
    }
    if written.starts_with('\'') && plain(value) && !value.contains(['\'', '\n']) {
        return format!("'{value}'");
    }
    basic(value)
}

/// JSON's escapes are TOML's too; TOML wants DEL escaped as well.
fn basic(value: &str) -> String {
    serde_json::Value::from(value).to_string().replace('\u{7f}', "\\u007f")
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
            ("# top\n[a]\nb = \"x\" # c\r\n", "a.b=y", "# top\n[a]\nb = \"y\" # c\r\n"),
            ("a.b.c = 'x'", "a.b.c=C:\\y", "a.b.c = 'C:\\y'"),
            ("v = \"1.9\"\n", "v=1.10", "v = \"1.10\"\n"),
            ("n = 1_000\n", "n=2_000", "n = 2_000\n"),
            ("n = 1\n", "n=two", "n = \"two\"\n"),
            ("t = 2026-01-02\n", "t=2026-01-03", "t = 2026-01-03\n"),
            ("l = [ 1, # one\n  2 ]\n", "l[1]=3", "l = [ 1, # one\n  3 ]\n"),
            ("i = { \"a.b\" = \"x\" }\n", "i.\"a.b\"=y", "i = { \"a.b\" = \"y\" }\n"),
            ("[[p]]\nn = 'a'\n[[p]]\nn = 'b'\n", "p[1].n=c", "[[p]]\nn = 'a'\n[[p]]\nn = 'c'\n"),
            ("s = \"\"\"\none\n\"\"\"\n", "s=a\n\"b\"\n", "s = \"\"\"\na\n\\\"b\\\"\n\"\"\"\n"),
            ("s = \"\"\"x\"\"\"\n", "s=\nc:\\n", "s = \"\"\"\n\nc:\\\\n\"\"\"\n"),
            ("n = 3\n", "n=12:30", "n = \"12:30\"\n"),
            ("s = '''x'''\n", "s=y\\z", "s = '''y\\z'''\n"),
        ] {
            assert_eq!(edit(text, assignment).unwrap().as_deref(), Some(expected), "{text}");
        }
        assert_eq!(edit("a = 'x'", "a=it's").unwrap().as_deref(), Some("a = \"it's\""));
    }

    #[test]
    fn what_is_there_already_is_no_change() {
        assert_eq!(edit("a = \"\\u0078\"\n", "a=x").unwrap(), None);
        assert_eq!(edit("a = 3\n", "a=3").unwrap(), None);
    }

    #[test]
    fn what_does_not_lead_to_a_value_is_refused_by_name() {
        for (text, assignment, message) in [
            ("[a]\nb = 1\n", "a.c=2", "no key `a.c`; `a` has: b"),
            ("a = [1]\n", "a.1=2", "no key `a.1`; `a` has: 0"),
            ("a = 1\n", "a.b=2", "no key `a.b`; `a` is a value"),
            ("a = [1]\n", "a=2", "`a` is a list, not a value"),
            ("[a]\nb = 1\n", "a=2", "`a` is a mapping, not a value"),
            ("[[a]]\nb = 1\n", "a=2", "`a` is a list, not a value"),
        ] {
            assert_eq!(edit(text, assignment).unwrap_err().message, message);
        }
        assert!(edit("a = \n", "a=2").unwrap_err().message.starts_with("not TOML: "));
    }
}
