//! What the shells and kubectl offer where the cursor is.
#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod release;
mod suite;

use std::{
    ffi::OsString,
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use release::{have, said, succeeds};
use serde_json::json;
use standin::Standin;

/// `$PATH` with the commands and the programs that kubectl asks for candidates.
fn path() -> OsString {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("completion");
    fs::create_dir_all(&folder).unwrap();
    for name in ["resync", "waitrev", "webhook"].iter().flat_map(|name| [format!("-{name}"), format!("_{name}")]) {
        let program = folder.join(format!("kubectl_complete-argo{name}"));
        if !program.exists() {
            let fresh = folder.join(format!("{name}{}", std::process::id()));
            fs::copy(release::root().join("completions/kubectl_complete"), &fresh).unwrap();
            fs::rename(&fresh, &program).unwrap();
        }
    }
    let path = suite::path();
    std::env::join_paths([folder].into_iter().chain(std::env::split_paths(&path))).unwrap()
}

/// What kubectl answers a shell that asks for the last of `words`.
fn kubectl(kubeconfig: &Path, words: &[&str]) -> Vec<String> {
    let mut command = Command::new("kubectl");
    command.arg("__complete").args(words).env("PATH", path()).env("KUBECONFIG", kubeconfig);
    let output = succeeds(command.stdin(Stdio::null()));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

fn names(answer: &[String]) -> Vec<&str> {
    let (directive, candidates) = answer.split_last().unwrap();
    assert_eq!(directive, ":4", "no files are offered: {answer:?}");
    candidates.iter().map(|line| line.split('\t').next().unwrap()).collect()
}

fn application(namespace: &str, name: &str) -> serde_json::Value {
    json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"namespace": namespace, "name": name},
        "spec": {"project": "default", "source": {"repoURL": "https://git.example.com/a/b", "path": "."},
            "destination": {"namespace": "default", "server": "https://kubernetes.default.svc"}}})
}

#[test]
fn kubectl_offers_the_live_names_of_applications_under_both_names_of_a_plugin() {
    if !release::kubectl_completes_plugins() {
        return;
    }
    let standin = Standin::start();
    for (namespace, name) in [("argocd", "evt"), ("argocd", "shop"), ("team", "front")] {
        standin.store().create("applications.argoproj.io", application(namespace, name)).unwrap();
    }
    let config = standin.kubeconfig();
    for plugin in [&["argo-waitrev"][..], &["argo", "waitrev"]] {
        let ask = |words: &[&str]| kubectl(config, &[plugin, words].concat());
        assert_eq!(names(&ask(&[""])), ["evt", "shop"]);
        assert_eq!(names(&ask(&["evt", "s"])), ["shop"]);
        assert_eq!(names(&ask(&["team/"])), ["team/front"]);
        assert_eq!(names(&ask(&["-n", "team", ""])), ["front"], "the namespace on the line counts");
        assert_eq!(names(&ask(&["-n", "arg"])), ["argocd"]);
    }
    assert_eq!(names(&kubectl(config, &["argo-resync", "--hard-refresh", "e"])), ["evt"]);
    let context = kubectl(config, &["argo-waitrev", "--context", ""]);
    let expected = succeeds(standin.kubectl().args(["config", "get-contexts", "-o", "name"]));
    assert_eq!(names(&context).join("\n"), String::from_utf8(expected.stdout).unwrap().trim_end());
}

#[test]
fn kubectl_offers_flags_their_values_and_files() {
    if !release::kubectl_completes_plugins() {
        return;
    }
    let nowhere = Path::new("/dev/null");
    let flags = kubectl(nowhere, &["argo-waitrev", "--"]);
    for flag in ["--until", "--timeout", "--context", "--namespace", "--help"] {
        assert_eq!(names(&flags).iter().filter(|name| **name == flag).count(), 1, "{flag} in {flags:?}");
    }
    for words in [&["argo-waitrev", "--until", ""][..], &["argo", "waitrev", "evt", "--until="]] {
        assert_eq!(names(&kubectl(nowhere, words)), ["compared", "synced", "deployed", "healthy"]);
    }
    assert_eq!(names(&kubectl(nowhere, &["argo-webhook", "sec"])), ["secret"]);
    assert!(names(&kubectl(nowhere, &["argo-webhook", "secret", ""])).contains(&"show"));
    for words in
        [&["argo-waitrev", "-f", ""][..], &["argo-webhook", "--save-body="], &["argo-resync", "--line-out", "x"]]
    {
        assert_eq!(kubectl(nowhere, words), [":0"], "the shell offers files for {words:?}");
    }
}

#[test]
fn a_cluster_that_does_not_answer_costs_a_moment_and_says_nothing() {
    // It accepts connections, by way of the backlog, and never says a word.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = format!("https://{}", listener.local_addr().unwrap());
    let scratch = tempfile::tempdir().unwrap();
    let plugin = suite::bin().join("kubectl-argo-waitrev");
    for server in [silent.as_str(), "https://127.0.0.1:1"] {
        let config = scratch.path().join("config");
        let text = json!({"apiVersion": "v1", "kind": "Config", "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": server}}], "users": [{"name": "u", "user": {}}]});
        fs::write(&config, text.to_string()).unwrap();
        let start = Instant::now();
        let mut command = Command::new(&plugin);
        let output = succeeds(command.args(["__complete", ""]).env("KUBECONFIG", &config));
        assert_eq!(said(&output), ":4\n", "{server}");
        assert!(start.elapsed() < Duration::from_secs(5), "{server}: {:?}", start.elapsed());
    }
    let mut command = Command::new(&plugin);
    let output = succeeds(
        command
            .args(["__complete", ""])
            .env("KUBECONFIG", scratch.path().join("config"))
            .env("KUBECONFIG", "/dev/null/x"),
    );
    assert_eq!(said(&output), ":4\n", "no kubeconfig at all");
}

/// A repository with a remote, a branch and a file.
fn repository() -> (tempfile::TempDir, PathBuf) {
    let scratch = tempfile::tempdir().unwrap();
    let work = scratch.path().join("work");
    let script = "git init -q -b main work && cd work && git config user.email a@example.com && git config user.name A \
                  && echo a: 1 >values.yaml && git add . && git commit -qm one && git branch feature/x \
                  && git remote add upstream ../bare.git";
    succeeds(Command::new("sh").args(["-c", script]).current_dir(scratch.path()));
    (scratch, work)
}

/// What is offered at the end of each line, as far as the shells agree.
const LINES: [(&str, &[&str]); 6] = [
    ("git evt-push --remo", &["--remote"]),
    ("git evt-push --remote ", &["upstream"]),
    ("git evt-push --branch f", &["feature/x"]),
    ("git evt-push --set a=2 val", &["values.yaml"]),
    ("git -C ../work evt-push --allow", &["--allow-empty"]),
    ("git evt-push --branch=f", &["--branch=feature/x"]),
];

#[test]
fn bash_completes_git_evt_push() {
    let git = Path::new("/usr/share/bash-completion/completions/git");
    if !have("bash") || !git.exists() {
        println!("skipped: git's completion for bash is not on this machine");
        return;
    }
    let (_scratch, work) = repository();
    for (line, expected) in LINES {
        // What readline does: set the line, call the function, and offer files where there is nothing.
        let script = r#"
            source "$1"; source "$2"
            COMP_LINE=$3 COMP_POINT=${#3} COMP_TYPE=9
            COMP_WORDBREAKS=$' \t\n"\'><=;|&(:'
            line=${3//=/ = }
            read -ra COMP_WORDS <<<"$line"
            [[ $line != *' ' ]] || COMP_WORDS+=("")
            COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
            __git_wrap__git_main
            [[ ${#COMPREPLY[@]} -gt 0 ]] || mapfile -t COMPREPLY < <(compgen -f -- "${COMP_WORDS[COMP_CWORD]}")
            printf '%s\n' "${COMPREPLY[@]}"
        "#;
        let mut command = Command::new("bash");
        command.args(["--norc", "-c", script, "bash"]).arg(git);
        command.arg(release::root().join("completions/git-evt-push.bash")).arg(line);
        let output = succeeds(command.env("PATH", path()).current_dir(&work));
        let text = String::from_utf8(output.stdout.clone()).unwrap();
        // Where `=` breaks words, readline keeps what is before it.
        let expected: Vec<_> = expected.iter().map(|word| word.rsplit('=').next().unwrap()).collect();
        assert_eq!(text.lines().map(str::trim_end).collect::<Vec<_>>(), expected, "{line:?}: {}", said(&output));
    }
}

#[test]
fn fish_completes_git_evt_push() {
    if !have("fish") {
        return;
    }
    let (scratch, work) = repository();
    let share = scratch.path().join("share/fish/vendor_conf.d");
    fs::create_dir_all(&share).unwrap();
    fs::copy(release::root().join("completions/git-evt-push.fish"), share.join("git-evt-push.fish")).unwrap();
    for (line, expected) in LINES {
        let mut command = Command::new("fish");
        command.args(["-c", "complete -C \"$argv[1]\"", line]);
        command.env("PATH", path()).env("HOME", scratch.path()).env("XDG_DATA_HOME", scratch.path().join("share"));
        let output = succeeds(command.current_dir(&work));
        let text = String::from_utf8(output.stdout.clone()).unwrap();
        let offered: Vec<_> = text.lines().map(|line| line.split('\t').next().unwrap()).collect();
        assert_eq!(offered, expected, "{line:?}: {}", said(&output));
    }
}

#[test]
fn zsh_completes_git_evt_push() {
    if !have("zsh") {
        return;
    }
    let (_scratch, work) = repository();
    let home = tempfile::tempdir().unwrap();
    let config = format!(
        r#"
            PS1= fpath=('{}' $fpath)
            autoload -U compinit && compinit -D -u
            bindkey '^I' complete-word
            shown() {{ print -r -- "shown<$BUFFER>"; exit }}
            zle -N shown && bindkey '^T' shown
            zle-line-init() {{ print -r -- ready }}
            zle -N zle-line-init
        "#,
        release::root().join("completions").display()
    );
    fs::write(home.path().join(".zshrc"), config).unwrap();
    for (line, expected) in LINES {
        // A shell in a terminal of its own: what stands on its line after TAB is what a person sees.
        let script = r#"
            zmodload zsh/zpty
            zpty shell zsh -i
            zpty -r shell text '*ready*'
            zpty -w -n shell "$1"$'\t'$'\x14'
            zpty -r shell text '*shown<*>*'
            print -r -- "$text"
        "#;
        let mut command = Command::new("zsh");
        command.args(["-f", "-c", script, "zsh", line]).env("ZDOTDIR", home.path());
        let output = succeeds(command.env("PATH", path()).env("TERM", "dumb").current_dir(&work));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let (_, shown) = text.rsplit_once("shown<").unwrap_or_else(|| panic!("{line:?}: {}", said(&output)));
        let (buffer, _) = shown.split_once('>').unwrap();
        let last = buffer.trim_end().rsplit(' ').next().unwrap();
        assert_eq!([last], expected, "{line:?}: {}", said(&output));
    }
}
