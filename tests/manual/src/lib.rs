//! Makes the man page of a command from its definition, and compares it with the one in `share/man/man1`.
//!
//! A command calls [`check`] from a test of its own, since only it sees its arguments:
//!
//! ```no_run
//! # #[derive(clap::Parser)] struct Args;
//! # use clap::CommandFactory;
//! manual::check(Args::command(), "kubectl argo-waitrev");
//! ```
//!
//! With `UPDATE=1` in the environment the page is written instead. The sections after the options come from the text
//! that follows the long help; see [`sections`](self) below for its form:
//!
//! ```text
//! Examples:
//!   # a reason
//!   command that is shown as it is
//!
//! Environment:
//!   NAME  what it does, and goes on
//!         in lines that are indented further
//! ```

use std::{env, fs, path::Path};

use clap::Command;
use clap_mangen::{
    Man,
    roff::{Roff, bold, roman},
};

/// The sections whose lines are shown as they are.
const VERBATIM: [&str; 1] = ["Examples"];

/// The pages that point to each other.
const PAGES: [&str; 4] = ["git-evt-push", "kubectl-argo-resync", "kubectl-argo-waitrev", "kubectl-argo-webhook"];

/// Compares the page of a command with the one in `share/man/man1`; writes it there when `UPDATE` is set.
///
/// # Panics
/// When they differ, or the page cannot be written.
pub fn check(command: Command, typed_as: &str) {
    let name = command.get_name().to_owned();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../share/man/man1").join(format!("{name}.1"));
    let page = page(command, typed_as);
    if env::var_os("UPDATE").is_some() {
        fs::create_dir_all(path.parent().expect("the path was joined from parts")).expect("the folder can be made");
        fs::write(&path, page).expect("the page can be written");
        return;
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == page,
        "share/man/man1/{name}.1 is not what the definitions say; `UPDATE=1 cargo test -p {name} man_page` writes it"
    );
}

/// The page of a command, in roff.
fn page(command: Command, typed_as: &str) -> String {
    let name = command.get_name().to_owned();
    let version = command.get_version().unwrap_or_default().to_owned();
    let mut command = command.bin_name(typed_as).disable_help_subcommand(true);
    command.build();
    let after = command.get_after_long_help().or(command.get_after_help()).map(ToString::to_string);
    let usage = usage(&mut command);

    let mut page = Roff::new();
    // The date is blank: the page changes with the definitions alone. An empty argument would shift the others.
    page.control("TH", [&*name.to_uppercase(), "1", " ", &*format!("argo-evt {version}"), "argo-evt"]);
    let mut text = page.render();
    let man = Man::new(command.clone());
    text += &render(|out| man.render_name_section(out));
    text += &synopsis(typed_as, &usage);
    text += &render(|out| man.render_description_section(out));
    text += &render(|out| man.render_options_section(out));
    if command.get_subcommands().next().is_some() {
        text += ".SH SUBCOMMANDS\n";
        text += &subcommands(&command, typed_as);
    }
    text + &sections(&after.unwrap_or_default()) + &see_also(&name)
}

fn see_also(name: &str) -> String {
    let mut roff = Roff::new();
    roff.control("SH", ["SEE ALSO"]);
    let tool = if name.starts_with("git-") { "git-push" } else { "kubectl" };
    let pages = PAGES.into_iter().filter(|page| *page != name).chain([tool]).enumerate();
    let comma = |index| if index > 0 { ", " } else { "" };
    roff.text(pages.flat_map(|(index, page)| [roman(comma(index)), bold(page), roman("(1)")]).collect::<Vec<_>>());
    without_preamble(&roff.render())
}

/// `Usage: kubectl argo-webhook [OPTIONS]` and the like, without the word before it.
fn usage(command: &mut Command) -> String {
    let usage = command.render_usage().to_string();
    usage.trim_start_matches("Usage:").trim().to_owned()
}

fn synopsis(typed_as: &str, usage: &str) -> String {
    let mut roff = Roff::new();
    roff.control("SH", ["SYNOPSIS"]);
    lines_of_usage(&mut roff, typed_as, usage);
    without_preamble(&roff.render())
}

fn lines_of_usage(roff: &mut Roff, typed_as: &str, usage: &str) {
    for (index, line) in usage.lines().map(str::trim).filter(|line| !line.is_empty()).enumerate() {
        if index > 0 {
            roff.control("br", []);
        }
        match line.strip_prefix(typed_as) {
            Some(rest) => roff.text([bold(typed_as), roman(rest)]),
            None => roff.text([roman(line)]),
        };
    }
}

/// Each subcommand with the options that it does not share with the command above it.
fn subcommands(command: &Command, typed_as: &str) -> String {
    let mut text = String::new();
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        let typed_as = format!("{typed_as} {}", inner.get_name());
        let shared: Vec<_> = command.get_arguments().map(|arg| arg.get_id().clone()).collect();
        let mut inner = inner.clone().bin_name(&typed_as).mut_args(|arg| {
            let hide = arg.is_hide_set() || shared.contains(arg.get_id()) || arg.get_id() == "help";
            arg.hide(hide)
        });
        let usage = usage(&mut inner);
        let mut roff = Roff::new();
        roff.control("SS", [typed_as.as_str()]);
        lines_of_usage(&mut roff, &typed_as, &usage);
        roff.control("PP", []);
        text += &without_preamble(&roff.render());
        let man = Man::new(inner.clone());
        text += &without_headings(&render(|out| man.render_description_section(out)));
        text += &without_headings(&render(|out| man.render_options_section(out)));
        text += &subcommands(&inner, &typed_as);
    }
    text
}

fn without_headings(text: &str) -> String {
    text.lines().filter(|line| !line.starts_with(".SH ")).map(|line| format!("{line}\n")).collect()
}

/// The text after the long help: a line that is not indented and ends with a colon begins a section.
fn sections(text: &str) -> String {
    let mut roff = Roff::new();
    let mut title = "";
    for line in text.lines().map(str::trim_end) {
        if let Some(heading) = line.strip_suffix(':').filter(|_| !line.starts_with(' ')) {
            if VERBATIM.contains(&title) {
                close(&mut roff);
            }
            title = heading;
            roff.control("SH", [heading.to_uppercase().as_str()]);
            if VERBATIM.contains(&title) {
                roff.control("RS", ["4"]);
                roff.control("nf", []);
            }
        } else if line.is_empty() {
            if VERBATIM.contains(&title) {
                roff.control("sp", []);
            }
        } else if VERBATIM.contains(&title) {
            roff.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
        } else {
            entry(&mut roff, line);
        }
    }
    if VERBATIM.contains(&title) {
        close(&mut roff);
    }
    let text = without_preamble(&roff.render());
    text.lines().filter(|line| !line.is_empty()).map(|line| format!("{line}\n")).collect()
}

fn close(roff: &mut Roff) {
    roff.control("fi", []);
    roff.control("RE", []);
}

/// `  NAME  text` begins an entry, and so does a name alone; a line that is indented further goes on with it.
fn entry(roff: &mut Roff, line: &str) {
    let inner = line.strip_prefix("  ").unwrap_or(line);
    if inner.starts_with(' ') {
        roff.text([roman(inner.trim())]);
        return;
    }
    let (name, text) = inner.split_once("  ").unwrap_or((inner, ""));
    roff.control("TP", []);
    roff.text([bold(name)]);
    if !text.is_empty() {
        roff.text([roman(text.trim())]);
    }
}

fn render(part: impl FnOnce(&mut dyn std::io::Write) -> std::io::Result<()>) -> String {
    let mut out = Vec::new();
    part(&mut out).expect("memory can be written to");
    without_preamble(&String::from_utf8(out).expect("roff is made from text"))
}

/// Each piece of roff begins with the same definition of the apostrophe, which is needed once only.
fn without_preamble(text: &str) -> String {
    let preamble = Roff::new().render();
    text.strip_prefix(&preamble).unwrap_or(text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory, Parser, Subcommand};

    /// Wait for a commit
    ///
    /// It looks before it waits.
    #[derive(Parser)]
    #[command(name = "kubectl-argo-test", version = "1.2.3", after_long_help = AFTER)]
    struct Args {
        #[command(subcommand)]
        _inner: Option<Inner>,
        /// How long
        #[arg(long, default_value = "5m")]
        _timeout: String,
        /// Who
        #[arg(long, global = true)]
        _user: Option<String>,
    }

    #[derive(Subcommand)]
    enum Inner {
        /// Tell why
        Explain {
            /// From a file
            #[arg(long)]
            _applications: Option<String>,
        },
    }

    const AFTER: &str = "\
Examples:
  # with a quote: 'it'
  .dot -x \\
    more

Environment:
  HOME  where the heart
        is
  A_LONG_NAME
        alone";

    #[test]
    fn a_page_has_its_sections_and_each_subcommand_only_its_own_options() {
        let page = page(Args::command(), "kubectl argo-test");
        let at = |part: &str| page.find(part).unwrap_or_else(|| panic!("no {part:?} in:\n{page}"));
        let order = [
            ".TH KUBECTL-ARGO-TEST 1 \" \" \"argo-evt 1.2.3\"",
            "kubectl\\-argo\\-test \\- Wait for a commit",
            "\\fBkubectl argo\\-test\\fR [OPTIONS] [COMMAND]",
            "It looks before it waits.",
            "\\fB\\-\\-timeout\\fR",
            ".SH SUBCOMMANDS",
            ".SS \"kubectl argo-test explain\"",
            "\\fB\\-\\-applications\\fR",
            ".SH EXAMPLES",
            "\n\\&.dot \\-x \\\\\n  more\n",
            ".SH ENVIRONMENT",
            ".TP\n\\fBHOME\\fR\nwhere the heart\nis\n.TP\n\\fBA_LONG_NAME\\fR\nalone\n.SH \"SEE ALSO\"\n",
        ];
        assert!(order.map(at).is_sorted(), "{page}");
        assert_eq!(page.matches("\\-\\-user").count(), 1, "{page}");
    }
}
