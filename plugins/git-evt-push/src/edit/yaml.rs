//! One scalar of a YAML file, changed in place: no other byte is touched.

use granit_parser::Event;
use kit::error::Error;

use super::{
    assignment::Assignment,
    cannot_set,
    yaml_path::{self, Piece},
    yaml_scalar::{self, Place},
};

/// Sets the value in a text that may hold several documents; `None` when it is there already, and otherwise the text and
/// what is worth a warning. `document` counts from 1; without it the key has to stand in one document only.
///
/// # Errors
/// When the text is not YAML, when the key does not lead to one scalar, and when the value cannot be written there
/// without changing something else. Exit code 2.
pub fn set(
    text: &str,
    assignment: &Assignment,
    document: Option<usize>,
) -> Result<Option<(String, Option<String>)>, Error> {
    let pieces = yaml_path::parse(text)?;
    let at = yaml_path::find(&pieces, assignment, document)?;
    let (Event::Scalar(current, style, anchor, tag), range) = &pieces[at] else {
        return Err(yaml_path::refuse(&pieces, at, assignment));
    };
    let place = Place {
        written: &text[range.clone()],
        current,
        style: *style,
        tagged_text: tag.as_ref().is_some_and(|tag| tag.is_yaml_core_schema_tag("str")),
        in_flow: yaml_path::in_flow(&pieces[..at]),
        column: range.start - text[..range.start].rfind('\n').map_or(0, |newline| newline + 1),
    };
    let expected = place.expected(&assignment.value);
    if !place.is_absent() && **current == *expected {
        return Ok(None);
    }
    if !place.can_hold(&assignment.value) {
        return Err(cannot_set(assignment));
    }
    let mut fresh = text.to_owned();
    let value = yaml_scalar::write(&place, &assignment.value);
    if place.is_absent() {
        let (start, value) = gap(text, range.start, &value);
        fresh.insert_str(start, &value);
    } else {
        fresh.replace_range(range.clone(), &value);
    }
    if !only_differs_at(&pieces, &fresh, at, &expected) {
        return Err(cannot_set(assignment));
    }
    let aliases = pieces.iter().filter(|(event, _)| *anchor != 0 && *event == Event::Alias(*anchor)).count();
    let warning = (aliases > 0).then(|| {
        let key = assignment.key();
        format!("`{key}` has an anchor: {aliases} more of the file's values change with it")
    });
    Ok(Some((fresh, warning)))
}

/// Where a value goes that is not written at all, and how: the parser places it before the colon of its key.
fn gap(text: &str, start: usize, value: &str) -> (usize, String) {
    let rest = &text[start..];
    let colon = rest.find(|c: char| !c.is_whitespace()).filter(|at| rest[*at..].starts_with(':'));
    let start = colon.map_or(start, |at| start + at + 1);
    let before = if text[..start].ends_with([' ', '\t']) { "" } else { " " };
    (start, format!("{before}{value}"))
}

fn only_differs_at(pieces: &[Piece<'_>], fresh: &str, at: usize, expected: &str) -> bool {
    let Ok(now) = yaml_path::parse(fresh) else { return false };
    let target = |event: &Event<'_>, old: &Event<'_>| match (event, old) {
        (Event::Scalar(value, style, anchor, tag), Event::Scalar(was, was_style, was_anchor, was_tag)) => {
            **value == *expected
                && (anchor, tag) == (was_anchor, was_tag)
                && yaml_scalar::stays_text(was, *was_style, value, *style)
        }
        _ => false,
    };
    now.len() == pieces.len()
        && now.iter().zip(pieces).enumerate().all(
            |(index, ((event, _), (old, _)))| {
                if index == at { target(event, old) } else { event == old }
            },
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(text: &str, assignment: &str) -> Result<Option<String>, Error> {
        Ok(set(text, &Assignment::parse(assignment).unwrap(), None)?.map(|(text, _)| text))
    }

    /// The text after the edit, and the same text with only the value replaced, as the test writes it out.
    fn becomes(text: &str, assignment: &str, expected: &str) {
        assert_eq!(edit(text, assignment).unwrap().as_deref(), Some(expected), "{assignment} in:\n{text}");
    }

    #[test]
    fn comments_quotes_and_order_stay() {
        becomes(
            "# top\nz: 1 # one\ndata:\n  # rev\n  rev: r1   # which\n  other: 'x'\n",
            "data.rev=r2",
            "# top\nz: 1 # one\ndata:\n  # rev\n  rev: r2   # which\n  other: 'x'\n",
        );
        becomes("a: 'r1' # c", "a=r2", "a: 'r2' # c");
        becomes("a: \"r1\"\r\nb: 2\r\n", "a=r2", "a: \"r2\"\r\nb: 2\r\n");
        becomes("\u{feff}é: à # ü\nb: x", "é=ö", "\u{feff}é: ö # ü\nb: x");
        becomes("a: &x r1\nb: *x\n", "a=r2", "a: &x r2\nb: *x\n");
        becomes("a: !!str r1\n", "a=r2", "a: !!str r2\n");
        becomes("a: !!str 1\n", "a=1.10", "a: !!str \"1.10\"\n");
        becomes("a: one\n  two\nb: 1\n", "a=three", "a: three\nb: 1\n");
    }

    #[test]
    fn an_anchor_whose_value_is_used_elsewhere_is_worth_a_warning() {
        let warning = |text| set(text, &Assignment::parse("a=r2").unwrap(), None).unwrap().unwrap().1;
        assert_eq!(warning("a: &x r1\nb: &y 1\nc: *y\n"), None);
        let told = warning("a: &x r1\nb: [*x, *x]\n").unwrap();
        assert!(told.contains("2 more"), "{told}");
    }

    #[test]
    fn text_stays_text_and_numbers_stay_numbers() {
        becomes("a: r1\n", "a=1.10", "a: \"1.10\"\n");
        becomes("a: \"1.9\"\n", "a=1.10", "a: \"1.10\"\n");
        becomes("a: '1.9'\n", "a=it's", "a: 'it''s'\n");
        for word in ["yes", "NO", "on", "null", "~", "0x1f", "1e3", "12:30:45", "2026-01-02", ".inf", "0o7", "1_000"] {
            becomes("a: r1\n", &format!("a={word}"), &format!("a: \"{word}\"\n"));
        }
        becomes("replicas: 3\n", "replicas=5", "replicas: 5\n");
        becomes("on: true\n", "on=false", "on: false\n");
        becomes("a: r1\n", "a=# no", "a: \"# no\"\n");
        becomes("a: r1\n", "a=b: c", "a: \"b: c\"\n");
        becomes("a: r1\n", "a=", "a: \"\"\n");
        becomes("a: r1\n", "a=two\nlines", "a: \"two\\nlines\"\n");
        becomes("a: r1\n", "a=https://x/y?z#w", "a: https://x/y?z#w\n");
    }

    #[test]
    fn flow_style_and_json_in_yaml_are_edited() {
        becomes("a: {b: r1, c: [x, y]}\n", "a.c[1]=z", "a: {b: r1, c: [x, z]}\n");
        becomes("a: {b: r1}\n", "a.b=x, y", "a: {b: \"x, y\"}\n");
        becomes("{\"a\": {\"b\": \"r1\"}}", "a.b=r2", "{\"a\": {\"b\": \"r2\"}}");
    }

    #[test]
    fn blocks_keep_their_header_and_their_line_breaks() {
        becomes("a: |\n  one\n  two\n\nb: 1\n", "a=three", "a: |\n  three\n\nb: 1\n");
        becomes("a: |-\n    one\nb: 1\n", "a=two\n\nthree", "a: |-\n    two\n\n    three\nb: 1\n");
        becomes("a: >\n  one\n  two\n", "a=three\nfour", "a: >\n  three\n\n  four\n");
        becomes("a: |\r\n  one\r\n  two\r\nb: 1\r\n", "a=x\ny", "a: |\r\n  x\r\n  y\r\nb: 1\r\n");
        becomes("a: |\n  one", "a=two", "a: |\n  two");
        becomes("- |2\n   one\n", "0= x", "- |2\n   x\n");
        assert_eq!(edit("a: |\n  one\n", "a=one").unwrap(), None);
    }

    #[test]
    fn a_value_that_is_not_written_is_put_in() {
        becomes("a:\nb: 1\n", "a=r1", "a: r1\nb: 1\n");
        becomes("a: # c\n", "a=r1", "a: r1 # c\n");
        becomes("a: {b: , c: 1}", "a.b=x", "a: {b: x , c: 1}");
        becomes("- \n- y\n", "0=x", "- x\n- y\n");
    }

    #[test]
    fn keys_with_dots_and_quotes_are_found() {
        becomes("data:\n  'a.b': x\n", "data.\"a.b\"=z", "data:\n  'a.b': z\n");
        becomes("1: x\n", "1=z", "1: z\n");
    }

    #[test]
    fn a_document_is_chosen_by_number_or_by_holding_the_key_alone() {
        let text = "kind: A\n---\nkind: B\ndata: {rev: r1}\n---\n";
        becomes(text, "data.rev=r2", "kind: A\n---\nkind: B\ndata: {rev: r2}\n---\n");
        assert_eq!(edit(text, "kind=C").unwrap_err().message, "documents 1, 2 all hold `kind`");
        let second = set(text, &Assignment::parse("kind=C").unwrap(), Some(2)).unwrap().unwrap();
        assert_eq!(second, ("kind: A\n---\nkind: C\ndata: {rev: r1}\n---\n".into(), None));
        assert!(set(text, &Assignment::parse("kind=C").unwrap(), Some(4)).is_err());
    }

    #[test]
    fn what_is_there_already_is_no_change() {
        for text in ["a: r1\n", "a: 'r1'\n", "a: {\"x\": 1}\n"] {
            let assignment = if text.contains('x') { "a.x=1" } else { "a=r1" };
            assert_eq!(edit(text, assignment).unwrap(), None, "{text}");
        }
    }

    #[test]
    fn what_does_not_lead_to_one_scalar_is_refused_by_name() {
        for (text, assignment, message) in [
            ("data:\n  rev: r1\n  x: 1\n", "data.rv=r2", "no key `data.rv`; `data` has: rev, x"),
            ("a: [x]\n", "a.3=r2", "no key `a.3`; `a` has: 0"),
            ("a: x\n", "a.b=r2", "no key `a.b`; `a` is a value"),
            ("", "a=r2", "no key `a`; the file is empty"),
            ("a: {}\n", "a.b=r2", "no key `a.b`; `a` is empty"),
            ("# none\n", "a=r2", "no key `a`; the file is empty"),
            ("kind: A\n---\nkind: B\n", "a=r2", "no key `a`; the file has: kind (document 1 of 2)"),
            ("a: {b: 1}\n", "a=r2", "`a` is a mapping, not a value"),
            ("a: [1]\n", "a=r2", "`a` is a list, not a value"),
            ("a: &x {b: 1}\nc: *x\n", "c.b=r2", "the way to `c.b` leads through an alias (*name)"),
            ("a: 1\na: 2\n", "a=r2", "the key `a` stands there twice"),
            ("a: |\n  b\n", "a=x\u{2028}y", "cannot write this value at `a` without changing more"),
            ("a: |\n", "a=true", "cannot write this value at `a` without changing more"),
        ] {
            assert_eq!(edit(text, assignment).unwrap_err().message, message);
        }
        assert!(edit("{{ if }}\na: [", "a=1").unwrap_err().message.starts_with("not YAML: "));
    }
}
