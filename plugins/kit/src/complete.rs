//! Completion: what could stand where the cursor is.
//!
//! Every command has a hidden first word, [`WORD`]. The words after it are those on the command line, the last one as far
//! as it is typed. The answer is in the form of cobra, which kubectl asks for (kubectl v1.32
//! pkg/cmd/plugin/plugin_completion.go): a candidate a line, a tab and its description, and at the end a colon and a
//! [directive](Directive).

use std::{
    ffi::OsString,
    io::{self, Write},
    path::PathBuf,
};

use clap::{Arg, ArgAction, Command, ValueHint};

mod git;
#[cfg(feature = "cluster")]
mod live;

/// The first word of a call that asks for candidates.
pub const WORD: &str = "__complete";

/// What the shell does with the candidates: cobra's `ShellCompDirective` (cobra v1.8 completions.go).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Directive {
    /// Offer files where there is no candidate.
    Default = 0,
    /// Offer nothing but the candidates.
    NoFiles = 4,
    /// Offer folders.
    Folders = 16,
}

/// A candidate and its description, which may be empty.
type Candidate = (String, String);

/// The value that is being typed.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    /// One of these.
    OneOf(Vec<Candidate>),
    /// Something that the cluster or the kubeconfig knows.
    Live(Live),
    /// A remote of the repository.
    Remote,
    /// A branch of the repository.
    Branch,
    /// A file.
    File,
    /// A folder.
    Folder,
    /// Something that only the user knows.
    Free,
}

/// Names that the cluster or the kubeconfig knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Live {
    Applications,
    Namespaces,
    Contexts,
    Clusters,
    Users,
}

/// What could stand where the cursor is.
#[derive(Debug, PartialEq, Eq)]
struct Wanted {
    /// Flags and subcommands.
    words: Vec<Candidate>,
    /// The value, where one may stand.
    value: Option<Value>,
    /// The part of the last word that a value would continue.
    typed: String,
}

/// Prints the candidates for the last of `words`. Says nothing when something is not known: an error in the middle of a
/// command line helps nobody.
pub(crate) fn answer(command: Command, words: &[OsString]) {
    let mut built = command.clone();
    built.build();
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let Wanted { words: mut candidates, value, typed } = wanted(&built, &words);
    let mut directive = Directive::NoFiles;
    match value {
        None | Some(Value::Free) => {}
        Some(Value::OneOf(values)) => candidates.extend(values),
        Some(Value::File) => directive = Directive::Default,
        Some(Value::Folder) => directive = Directive::Folders,
        Some(Value::Remote) => candidates.extend(git::remotes().into_iter().map(plain)),
        Some(Value::Branch) => candidates.extend(git::branches().into_iter().map(plain)),
        #[cfg(feature = "cluster")]
        Some(Value::Live(live)) => candidates.extend(live::names(live, command, &words, &typed).into_iter().map(plain)),
        #[cfg(not(feature = "cluster"))]
        Some(Value::Live(_)) => {}
    }
    let mut text = String::new();
    for (word, description) in candidates.iter().filter(|(word, _)| word.starts_with(&typed)) {
        text += word;
        if !description.is_empty() {
            text += "\t";
            text += description;
        }
        text.push('\n');
    }
    text += &format!(":{}\n", directive as u8);
    let _ = io::stdout().lock().write_all(text.as_bytes());
}

fn plain(word: String) -> Candidate {
    (word, String::new())
}

/// Follows `words` through the definition of a command that has been built.
fn wanted(command: &Command, words: &[String]) -> Wanted {
    let (last, before) = words.split_last().map_or(("", words), |(last, before)| (last.as_str(), before));
    let mut at = command;
    let mut seen: Vec<&str> = Vec::new();
    let mut option = None;
    let mut position = 0;
    let mut only_positions = false;
    for word in before {
        if option.take().is_some() {
            continue;
        }
        if !only_positions && word == "--" {
            only_positions = true;
        } else if !only_positions && word.len() > 1 && word.starts_with('-') {
            let (flags, value_follows) = flags(at, word);
            seen.extend(flags.iter().map(|flag| flag.get_id().as_str()));
            option = flags.last().copied().filter(|_| value_follows);
        } else if let Some(inner) = at.find_subcommand(word).filter(|_| position == 0 && !only_positions) {
            at = inner;
        } else {
            position += 1;
        }
    }
    let value = |arg: &Arg, typed: &str| Wanted { words: Vec::new(), value: Some(value(arg)), typed: typed.into() };
    if let Some(option) = option {
        return value(option, last);
    }
    if !only_positions && last.starts_with('-') {
        return match last.split_once('=') {
            Some((flag, typed)) => match flags(at, flag) {
                (flags, true) => value(flags[flags.len() - 1], typed),
                (_, false) => Wanted { words: Vec::new(), value: None, typed: typed.into() },
            },
            None => Wanted { words: flags_left(at, &seen), value: None, typed: last.into() },
        };
    }
    let mut words = if position == 0 && !only_positions { subcommands(at) } else { Vec::new() };
    let positional = at.get_positionals().filter(|arg| !arg.is_hide_set()).enumerate();
    let positional = positional
        .filter(|(index, arg)| *index == position || (*index < position && takes_many(arg)))
        .map(|(_, arg)| arg)
        .last();
    if positional.is_none() && !only_positions {
        words.extend(flags_left(at, &seen));
    }
    Wanted { words, value: positional.map(self::value), typed: last.into() }
}

/// The flags that a word such as `--all` or `-qn` is made of, and whether the last one waits for the next word.
fn flags<'a>(command: &'a Command, word: &str) -> (Vec<&'a Arg>, bool) {
    let mut found = Vec::new();
    if let Some(long) = word.strip_prefix("--") {
        let (name, has_value) = long.split_once('=').map_or((long, false), |(name, _)| (name, true));
        found.extend(command.get_arguments().find(|arg| arg.get_long() == Some(name)));
        let waits = found.last().is_some_and(|arg| takes_value(arg)) && !has_value;
        return (found, waits);
    }
    let mut letters = word.trim_start_matches('-').chars();
    while let Some(letter) = letters.next() {
        let Some(arg) = command.get_arguments().find(|arg| arg.get_short() == Some(letter)) else { break };
        found.push(arg);
        if takes_value(arg) {
            return (found, letters.next().is_none());
        }
    }
    (found, false)
}

/// The long flags that may still be given, and the short ones that have no long form.
fn flags_left(command: &Command, seen: &[&str]) -> Vec<Candidate> {
    command
        .get_arguments()
        .filter(|arg| !arg.is_positional() && !arg.is_hide_set())
        .filter(|arg| !seen.contains(&arg.get_id().as_str()) || takes_many(arg))
        .filter_map(|arg| {
            let flag = match (arg.get_long(), arg.get_short()) {
                (Some(long), _) => format!("--{long}"),
                (None, short) => format!("-{}", short?),
            };
            Some((flag, description(arg.get_help())))
        })
        .collect()
}

fn subcommands(command: &Command) -> Vec<Candidate> {
    let shown = command.get_subcommands().filter(|inner| !inner.is_hide_set());
    shown.map(|inner| (inner.get_name().into(), description(inner.get_about()))).collect()
}

fn takes_value(arg: &Arg) -> bool {
    arg.get_action().takes_values()
}

fn takes_many(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Append | ArgAction::Count)
        || arg.get_num_args().is_some_and(|range| range.max_values() > 1)
}

fn description(help: Option<&clap::builder::StyledStr>) -> String {
    help.map(|help| help.to_string().lines().next().unwrap_or_default().to_owned()).unwrap_or_default()
}

/// What kind of value an argument takes: its possible values, or what its names say.
fn value(arg: &Arg) -> Value {
    let possible = arg.get_possible_values();
    if !possible.is_empty() {
        let shown = possible.iter().filter(|value| !value.is_hide_set());
        return Value::OneOf(shown.map(|value| (value.get_name().into(), description(value.get_help()))).collect());
    }
    let value_name = arg.get_value_names().and_then(|names| names.first()).map_or("", |name| name.as_str());
    match (arg.get_id().as_str(), value_name) {
        (_, "APP") => Value::Live(Live::Applications),
        ("namespace", _) => Value::Live(Live::Namespaces),
        ("context", _) => Value::Live(Live::Contexts),
        ("cluster", _) => Value::Live(Live::Clusters),
        ("user", _) => Value::Live(Live::Users),
        ("remote", _) => Value::Remote,
        ("branch", _) => Value::Branch,
        _ => match arg.get_value_hint() {
            ValueHint::DirPath => Value::Folder,
            ValueHint::AnyPath | ValueHint::FilePath => Value::File,
            _ if arg.get_value_parser().type_id() == std::any::TypeId::of::<PathBuf>() => Value::File,
            _ => Value::Free,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Parser, Subcommand, ValueEnum};

    #[derive(Clone, Copy, ValueEnum)]
    enum Until {
        /// Compared with it
        Compared,
        Synced,
    }

    #[derive(Parser)]
    #[command(name = "wait")]
    struct Args {
        #[command(subcommand)]
        _inner: Option<Inner>,
        #[arg(value_name = "APP")]
        _apps: Vec<String>,
        /// How far
        #[arg(short, long, value_enum)]
        until: Option<Until>,
        #[arg(short, long)]
        from: Option<PathBuf>,
        #[arg(short, long)]
        quiet: bool,
        #[arg(long)]
        set: Vec<String>,
        #[arg(long, hide = true)]
        secret: bool,
        #[arg(short, long)]
        namespace: Option<String>,
    }

    #[derive(Subcommand)]
    enum Inner {
        /// Look at it
        Explain {
            #[arg(long)]
            offline: bool,
        },
    }

    fn ask(words: &[&str]) -> Wanted {
        let mut command = <Args as clap::CommandFactory>::command();
        command.build();
        wanted(&command, &words.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    fn words(wanted: &Wanted) -> Vec<&str> {
        wanted.words.iter().map(|(word, _)| word.as_str()).filter(|word| word.starts_with(&wanted.typed)).collect()
    }

    #[test]
    fn a_value_is_wanted_after_its_flag_in_every_spelling() {
        let until =
            Some(Value::OneOf(vec![("compared".into(), "Compared with it".into()), ("synced".into(), String::new())]));
        for line in [&["--until", "s"][..], &["--until=s"], &["-u", "s"], &["-qu", "s"], &["evt", "-q", "-u", "s"]] {
            let wanted = ask(line);
            assert_eq!((&wanted.value, wanted.typed.as_str()), (&until, "s"), "{line:?}");
        }
        assert_eq!(ask(&["--from", ""]).value, Some(Value::File));
        assert_eq!(ask(&["-n", ""]).value, Some(Value::Live(Live::Namespaces)));
        assert_eq!(ask(&["--set", ""]).value, Some(Value::Free));
    }

    #[test]
    fn flags_are_offered_once_unless_they_may_be_repeated() {
        assert_eq!(words(&ask(&["--set", "a=b", "-q", "--"])), ["--until", "--from", "--set", "--namespace", "--help"]);
        assert_eq!(words(&ask(&["explain", "--"])), ["--offline", "--help"]);
        assert_eq!(words(&ask(&["--unt"])), ["--until"]);
    }

    #[test]
    fn names_and_subcommands_are_offered_where_they_may_stand() {
        let first = ask(&[""]);
        assert_eq!(first.value, Some(Value::Live(Live::Applications)));
        assert_eq!(words(&first), ["explain", "help"]);
        let second = ask(&["one", "tw"]);
        assert_eq!((second.value, second.words.len()), (Some(Value::Live(Live::Applications)), 0));
        assert_eq!(ask(&["--", "-x"]).value, Some(Value::Live(Live::Applications)));
    }

    #[test]
    fn flags_are_offered_where_nothing_else_may_stand() {
        assert_eq!(words(&ask(&["explain", ""])), ["--offline", "--help"]);
        assert_eq!(ask(&["--nonsense=a"]).value, None);
    }
}
