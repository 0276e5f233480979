//! The forms in which programs print a body again. Pure.

use serde_json::Value;

/// The body as a form with one field `payload`, as GitHub sends it on request.
pub fn to_form(body: &[u8]) -> String {
    let mut out = String::from("payload=");
    for &byte in body {
        match byte {
            b' ' => out.push('+'),
            b'-' | b'.' | b'_' | b'*' => out.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => out.push(char::from(byte)),
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// The field `payload` of a form.
pub fn from_form(body: &[u8]) -> Option<Vec<u8>> {
    let field = body.split(|byte| *byte == b'&').find_map(|field| field.strip_prefix(b"payload="))?;
    let mut out = Vec::new();
    let mut bytes = field.iter();
    while let Some(&byte) = bytes.next() {
        match byte {
            b'+' => out.push(b' '),
            b'%' => {
                let digits = [*bytes.next()?, *bytes.next()?];
                out.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
            }
            byte => out.push(byte),
        }
    }
    Some(out)
}

/// The JSON in all usual layouts: fields in their order or sorted, with and without blanks, indented, and with the
/// escapes that Python and Go make.
pub fn all(body: &[u8]) -> impl Iterator<Item = String> {
    let value = serde_json::from_slice::<Value>(body).ok();
    let sorted = value.clone().map(|mut value| {
        value.sort_all_objects();
        value
    });
    [value, sorted].into_iter().flatten().flat_map(|value| {
        let layouts = [
            (",", ":", None),
            (", ", ": ", None),
            (",", ": ", Some("  ")),
            (",", ": ", Some("    ")),
            (",", ": ", Some("\t")),
        ];
        layouts.into_iter().flat_map(move |layout| {
            let value = value.clone();
            [Escapes::None, Escapes::Ascii, Escapes::Html]
                .into_iter()
                .map(move |escapes| Printer { layout, escapes }.print(&value))
        })
    })
}

#[derive(Clone, Copy)]
enum Escapes {
    None,
    /// Everything that is not ASCII (Python's `json.dumps`).
    Ascii,
    /// `<`, `>` and `&` (Go's `json.Marshal`).
    Html,
}

#[derive(Clone, Copy)]
struct Printer {
    /// What separates elements, what follows a name, and what indents.
    layout: (&'static str, &'static str, Option<&'static str>),
    escapes: Escapes,
}

impl Printer {
    fn print(self, value: &Value) -> String {
        let mut out = String::new();
        self.value(value, 0, &mut out);
        out
    }

    fn value(self, value: &Value, depth: usize, out: &mut String) {
        match value {
            Value::Array(items) if !items.is_empty() => {
                self.all(('[', ']'), items.iter(), depth, out, |item, out| self.value(item, depth + 1, out));
            }
            Value::Object(fields) if !fields.is_empty() => {
                self.all(('{', '}'), fields.iter(), depth, out, |(name, value), out| {
                    self.string(name, out);
                    out.push_str(self.layout.1);
                    self.value(value, depth + 1, out);
                });
            }
            Value::String(text) => self.string(text, out),
            other => out.push_str(&other.to_string()),
        }
    }

    fn all<T>(
        self,
        (open, close): (char, char),
        items: impl Iterator<Item = T>,
        depth: usize,
        out: &mut String,
        mut print: impl FnMut(T, &mut String),
    ) {
        let line = |depth: usize, out: &mut String| {
            if let Some(indent) = self.layout.2 {
                out.push('\n');
                out.push_str(&indent.repeat(depth));
            }
        };
        out.push(open);
        for (index, item) in items.enumerate() {
            if index > 0 {
                out.push_str(self.layout.0);
            }
            line(depth + 1, out);
            print(item, out);
        }
        line(depth, out);
        out.push(close);
    }

    fn string(self, text: &str, out: &mut String) {
        let plain = Value::from(text).to_string();
        for c in plain.chars() {
            match self.escapes {
                Escapes::Ascii if !c.is_ascii() => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        out.push_str(&format!("\\u{unit:04x}"));
                    }
                }
                Escapes::Html if matches!(c, '<' | '>' | '&' | '\u{2028}' | '\u{2029}') => {
                    out.push_str(&format!("\\u{:04x}", u32::from(c)));
                }
                _ => out.push(c),
            }
        }
    }
}
