//! How a YAML scalar is written in the style of the one that it replaces.

use std::borrow::Cow;

use granit_parser::ScalarStyle;

/// The scalar that is to be replaced.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// Its bytes: quotes included, the header of a block not.
    pub written: &'a str,
    /// What they mean.
    pub current: &'a str,
    /// Its style.
    pub style: ScalarStyle,
    /// Whether it has the tag of text, `!!str`.
    pub tagged_text: bool,
    /// Whether it stands in braces or brackets.
    pub in_flow: bool,
    /// How many bytes stand before it in its line: the indentation of a block.
    pub column: usize,
}

impl Place<'_> {
    /// Whether there is nothing written, as in `key:`.
    pub fn is_absent(&self) -> bool {
        self.style == ScalarStyle::Plain && self.written.is_empty()
    }

    /// What the place holds once `value` is written there: the header of a block decides about the line breaks at its
    /// end, and the header stays.
    pub fn expected<'v>(&self, value: &'v str) -> Cow<'v, str> {
        if !self.is_block() {
            return Cow::Borrowed(value);
        }
        let breaks = self.current.len() - self.current.trim_end_matches('\n').len();
        Cow::Owned(format!("{}{}", value.trim_end_matches('\n'), "\n".repeat(breaks)))
    }

    /// Whether the value can be written in this style: a block has no escapes.
    pub fn can_hold(&self, value: &str) -> bool {
        !self.is_block() || !value.chars().any(|c| needs_escape(c) && !matches!(c, '\n' | '\t'))
    }

    fn is_block(&self) -> bool {
        matches!(self.style, ScalarStyle::Literal | ScalarStyle::Folded)
    }
}

/// `value` as it is written at `place`.
pub fn write(place: &Place<'_>, value: &str) -> String {
    match place.style {
        ScalarStyle::Literal | ScalarStyle::Folded => block(place, value),
        ScalarStyle::SingleQuoted if !value.chars().any(needs_escape) => format!("'{}'", value.replace('\'', "''")),
        ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => double_quoted(value),
        ScalarStyle::Plain => {
            let was_text = place.tagged_text || !(place.is_absent() || is_implicit(place.current));
            let keeps_type = !was_text || !is_implicit(value);
            if keeps_type && is_plain(value, place.in_flow) { value.to_owned() } else { double_quoted(value) }
        }
    }
}

/// Whether text is still text, for every reader, after `was` became `now`.
pub fn stays_text(was: &str, was_style: ScalarStyle, now: &str, style: ScalarStyle) -> bool {
    let is_text = |value: &str, style| style != ScalarStyle::Plain || !is_implicit(value);
    !is_text(was, was_style) || is_text(now, style)
}

fn block(place: &Place<'_>, value: &str) -> String {
    let newline = if place.written.contains("\r\n") { "\r\n" } else { "\n" };
    let tail = &place.written[place.written.trim_end().len()..];
    let between = if place.style == ScalarStyle::Folded { newline.repeat(2) } else { newline.to_owned() };
    let indent = " ".repeat(place.column);
    let mut text = String::new();
    for (index, line) in value.trim_end_matches('\n').split('\n').enumerate() {
        if index > 0 {
            text.push_str(&between);
            if !line.is_empty() {
                text.push_str(&indent);
            }
        }
        text.push_str(line);
    }
    text + tail
}

fn double_quoted(value: &str) -> String {
    let mut text = String::from("\"");
    for c in value.chars() {
        match c {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\t' => text.push_str("\\t"),
            '\r' => text.push_str("\\r"),
            c if needs_escape(c) => {
                text.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => text.push(c),
        }
    }
    text.push('"');
    text
}

/// Control characters, and what is a line break to YAML 1.1 or to some readers.
fn needs_escape(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}')
}

/// Whether the value can be written without quotes. Says no in doubt.
fn is_plain(value: &str, in_flow: bool) -> bool {
    let mut chars = value.chars();
    let Some(first) = chars.next() else { return false };
    let begins = match first {
        '-' | '?' | ':' => chars.next().is_some_and(|next| next.is_alphanumeric() || matches!(next, '.' | '/' | '_')),
        first => !",[]{}#&*!|>'\"%@`".contains(first),
    };
    begins
        && value.trim() == value
        && !value.contains(": ")
        && !value.contains(" #")
        && !value.ends_with(':')
        && !value.starts_with("---")
        && !value.starts_with("...")
        // The two that YAML 1.1 gives a meaning of their own.
        && !matches!(value, "<<" | "=")
        && !value.chars().any(needs_escape)
        && !(in_flow && value.contains([',', '[', ']', '{', '}', ':']))
}

/// Whether a plain scalar is something else than text to any reader: YAML 1.2 (core schema) or YAML 1.1, which
/// Kubernetes still reads (go-yaml v2 by way of sigs.k8s.io/yaml). Says yes in doubt.
fn is_implicit(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    if matches!(
        lower.as_str(),
        "" | "~" | "null" | "true" | "false" | "yes" | "no" | "on" | "off" | "y" | "n" | "=" | "<<"
    ) {
        return true;
    }
    let digits = lower.trim_start_matches(['+', '-']);
    if matches!(digits, ".inf" | ".nan") {
        return true;
    }
    // Numbers of every base, with underscores and exponents, times (1:30) and dates (2026-01-02).
    digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && digits.contains(|c: char| c.is_ascii_digit())
        && (is_hexadecimal(digits) || digits.chars().all(|c| c.is_ascii_digit() || "._+-:eobtz ".contains(c)))
        && digits.matches(|c: char| c.is_ascii_alphabetic()).count() <= 8
}

fn is_hexadecimal(digits: &str) -> bool {
    digits.strip_prefix("0x").is_some_and(|rest| rest.chars().all(|c| c.is_ascii_hexdigit() || c == '_'))
}
