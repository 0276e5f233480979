//! kubectl finds the plugins under both of their names.
#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod suite;

use std::process::Command;

#[test]
fn each_plugin_answers_with_and_without_the_dash() {
    for plugin in ["resync", "waitrev", "webhook"] {
        for words in [vec![format!("argo-{plugin}")], vec!["argo".to_owned(), plugin.to_owned()]] {
            let output =
                Command::new("kubectl").args(&words).arg("--help").env("PATH", suite::path()).output().unwrap();
            let help = String::from_utf8(output.stdout).unwrap();
            let usage = format!("Usage: kubectl {}", words.join(" "));
            assert!(output.status.success() && help.contains(&usage), "{usage:?} is not in:\n{help}");
        }
    }
}
