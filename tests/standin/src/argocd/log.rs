//! Log lines as logrus writes them, in text or JSON.

use std::time::SystemTime;

use serde_json::{Map, Value, json};

use super::version::Version;
use crate::{
    LogFormat, clock,
    processes::{Component, Process},
};

/// How severe a line is, the most severe first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// `error`.
    Error,
    /// `warning`.
    Warning,
    /// `info`.
    Info,
    /// `debug`.
    Debug,
}

impl Level {
    fn word(self) -> &'static str {
        match self {
            Level::Error => "error",
            Level::Warning => "warning",
            Level::Info => "info",
            Level::Debug => "debug",
        }
    }
}

/// Writes the log of one container.
#[derive(Clone, Debug)]
pub struct Logger {
    process: Process,
    format: LogFormat,
    level: Level,
}

impl Logger {
    /// With the format and level that the container was started with.
    pub fn of(process: &Process) -> Logger {
        let variable = match process.component {
            Component::Controller => "ARGOCD_APPLICATION_CONTROLLER",
            Component::RepoServer => "ARGOCD_REPO_SERVER",
            Component::Server => "ARGOCD_SERVER",
        };
        let of_env = |suffix: &str| process.env.get(&format!("{variable}{suffix}")).cloned();
        // The server's level is the one name with an underscore before the word.
        let level = flag(process, "loglevel").or_else(|| of_env("_LOGLEVEL")).or_else(|| of_env("_LOG_LEVEL"));
        let format = match flag(process, "logformat").or_else(|| of_env("_LOGFORMAT")).as_deref() {
            Some("json") => LogFormat::Json,
            Some("text") => LogFormat::Text,
            _ if Version::of_tag(&process.version).at_least(3, 0) => LogFormat::Json,
            _ => LogFormat::Text,
        };
        let level = match level.as_deref() {
            Some("debug" | "trace") => Level::Debug,
            Some("warn" | "warning") => Level::Warning,
            Some("error" | "fatal") => Level::Error,
            _ => Level::Info,
        };
        Logger { process: process.clone(), format, level }
    }

    /// Writes a line, unless its level is muted.
    pub fn print(&self, level: Level, message: &str, fields: &[(&str, Value)]) {
        if let Some(line) = self.line(level, message, fields) {
            self.process.print(line);
        }
    }

    /// Writes a line of level info.
    pub fn info(&self, message: &str, fields: &[(&str, Value)]) {
        self.print(Level::Info, message, fields);
    }

    /// The line, unless its level is muted.
    pub fn line(&self, level: Level, message: &str, fields: &[(&str, Value)]) -> Option<String> {
        let line = match self.format {
            LogFormat::Json => json_line,
            LogFormat::Text => text_line,
        };
        (level <= self.level).then(|| line(level, message, fields))
    }
}

/// The value of `--name value` or `--name=value` among the arguments; the last one counts.
pub fn flag(process: &Process, name: &str) -> Option<String> {
    let long = format!("--{name}");
    let mut found = None;
    for (index, argument) in process.args.iter().enumerate() {
        let Some(rest) = argument.strip_prefix(&long) else { continue };
        if rest.is_empty() {
            found = process.args.get(index + 1).cloned();
        } else if let Some(value) = rest.strip_prefix('=') {
            found = Some(value.to_owned());
        }
    }
    found
}

/// `time="…" level=info msg="…"` and the fields in the order of their names.
pub fn text_line(level: Level, message: &str, fields: &[(&str, Value)]) -> String {
    let mut line =
        format!("time=\"{}\" level={} msg={}", clock::rfc3339(SystemTime::now()), level.word(), quoted(message));
    let mut fields = fields.to_vec();
    fields.sort_by_key(|(name, _)| *name);
    for (name, value) in fields {
        let value = value.as_str().map_or_else(|| value.to_string(), quoted);
        line.push_str(&format!(" {name}={value}"));
    }
    line
}

/// logrus leaves a word of letters, digits and `-._/@^+` as it is (text_formatter.go).
fn quoted(text: &str) -> String {
    if text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._/@^+".contains(&byte)) {
        return text.to_owned();
    }
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_control() => quoted.push_str(&format!("\\x{:02x}", c as u32)),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// One object; Go sorts its keys and escapes what HTML would read as markup.
fn json_line(level: Level, message: &str, fields: &[(&str, Value)]) -> String {
    let mut all: Vec<(&str, Value)> = fields.to_vec();
    all.push(("level", json!(level.word())));
    all.push(("msg", json!(message)));
    all.push(("time", json!(clock::rfc3339(SystemTime::now()))));
    all.sort_by_key(|(name, _)| *name);
    let object: Map<String, Value> = all.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Value::Object(object).to_string().replace('&', "\\u0026").replace('<', "\\u003c").replace('>', "\\u003e")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn logger(version: &str, args: &[&str]) -> Logger {
        Logger::of(&Process {
            namespace: "argocd".into(),
            pod: "argocd-server-0".into(),
            component: Component::Server,
            env: BTreeMap::new(),
            args: args.iter().map(ToString::to_string).collect(),
            version: version.into(),
            started_at: SystemTime::now(),
            log: Default::default(),
        })
    }

    #[test]
    fn the_format_changed_from_text_to_json_with_3_0() {
        let line = |version| logger(version, &[]).line(Level::Info, "a <b>", &[("app", json!("x y"))]).unwrap();
        let (old, new) = (line("v2.14.1"), line("v3.0.0"));
        assert!(old.starts_with("time=\"20") && old.ends_with("Z\" level=info msg=\"a <b>\" app=\"x y\""), "{old}");
        assert!(new.starts_with(r#"{"app":"x y","level":"info","msg":"a \u003cb\u003e","time":"20"#), "{new}");
    }

    #[test]
    fn the_last_flag_wins() {
        let logger = logger("v3.5.1", &["argocd-server", "--loglevel", "debug", "--loglevel=warn"]);
        assert!(logger.line(Level::Info, "quiet", &[]).is_none());
        assert!(logger.line(Level::Warning, "loud", &[]).is_some());
    }
}
