//! `--set` on files of every format: the diff that git sees touches the value alone.
#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod repo;

use std::{fs, os::unix::fs::PermissionsExt};

use repo::{Repo, lists};

const YAML: &str = "\
# Release of the shop.
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, labels: {\"app.kubernetes.io/version\": \"1.9\"}} # flow
spec:
  template:
    spec:
      containers:
        - name: shop   # the first
          image: &image registry.example.com/shop:v1
        - name: again
          image: *image
---
kind: ConfigMap
data:
  a.b: 'one'
  note: |
    first line
    second line

  last: \"no newline\"";

/// The lines that changed, as git shows them.
fn changed(repo: &Repo) -> Vec<String> {
    let diff = repo.git(["diff", "--unified=0", "--text", "HEAD~1", "HEAD"]);
    diff.split('\n')
        .filter(|line| line.starts_with(['+', '-']) && !line.starts_with("+++") && !line.starts_with("---"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn only_the_line_of_the_value_changes() {
    let crlf = YAML.replace('\n', "\r\n");
    let json = "{\n\t\"image\" : {\"tag\": \"1.9\"}, \"replicas\": 3\n}";
    let toml = "# c\n[image] # d\ntag = '1.9'   # e\n\"a.b\" = 1\n";
    for (name, contents, set, old, new) in [
        (
            "a.yaml",
            YAML,
            "metadata.labels.\"app.kubernetes.io/version\"=1.10",
            "metadata: {name: shop, labels: {\"app.kubernetes.io/version\": \"1.9\"}} # flow",
            "metadata: {name: shop, labels: {\"app.kubernetes.io/version\": \"1.10\"}} # flow",
        ),
        (
            "b.yml",
            YAML,
            "spec.template.spec.containers[0].image=registry.example.com/shop:v2",
            "          image: &image registry.example.com/shop:v1",
            "          image: &image registry.example.com/shop:v2",
        ),
        ("c.yaml", YAML, r"data.a\.b=two", "  a.b: 'one'", "  a.b: 'two'"),
        ("d.yaml", YAML, "data.last=still none", "  last: \"no newline\"", "  last: \"still none\""),
        ("e.yaml", YAML, "data.note=first line\nother line", "    second line", "    other line"),
        ("f.yaml", &crlf, "data.'a.b'=two", "  a.b: 'one'\r", "  a.b: 'two'\r"),
        (
            "g.json",
            json,
            "image.tag=1.10",
            "\t\"image\" : {\"tag\": \"1.9\"}, \"replicas\": 3",
            "\t\"image\" : {\"tag\": \"1.10\"}, \"replicas\": 3",
        ),
        ("h.toml", toml, "image.tag=1.10", "tag = '1.9'   # e", "tag = '1.10'   # e"),
        ("i.toml", toml, "image.\"a.b\"=2", "\"a.b\" = 1", "\"a.b\" = 2"),
    ] {
        let repo = Repo::new();
        repo.commit(name, contents);
        repo.git(["push", "--quiet", "origin", "main"]);
        let record = repo.evt(["--set", set, name]).pushed();
        assert_eq!(lists(&record, "modified"), [[name]]);
        assert_eq!(changed(&repo), [format!("-{old}"), format!("+{new}")], "{set}");
        assert_eq!(repo.read(name).ends_with('\n'), contents.ends_with('\n'));
    }
}

#[test]
fn set_twice_edits_both_and_one_document_can_be_chosen() {
    let repo = Repo::new();
    repo.commit("two.yaml", "a: 1\nb: x\n---\na: 1\n");
    let refused = repo.evt(["--set", "a=2", "two.yaml"]).refused();
    assert!(refused.contains("documents 1, 2 all hold `a`") && refused.contains("--doc"), "{refused}");
    let record = repo.evt(["--set", "a=2", "--set", "b=z", "--doc", "1", "two.yaml"]).pushed();
    assert_eq!(repo.read("two.yaml"), "a: 2\nb: z\n---\na: 1\n");
    assert_eq!(record["commits"][1]["message"], "Set a, b in two.yaml");
    // One of two that cannot be set sets neither.
    repo.evt(["--set", "a=3", "--set", "c=z", "--doc", "1", "two.yaml"]).refused();
    assert_eq!(repo.read("two.yaml"), "a: 2\nb: z\n---\na: 1\n");
}

#[test]
fn a_link_is_followed_and_the_mode_stays() {
    let repo = Repo::new();
    repo.write("real.yaml", "rev: r1\n");
    fs::set_permissions(repo.path("real.yaml"), fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink("real.yaml", repo.path("link.yaml")).unwrap();
    repo.commit("x", "1");
    repo.git(["push", "--quiet", "origin", "main"]);
    let record = repo.evt(["--set", "rev=r2", "link.yaml"]).pushed();
    assert_eq!(lists(&record, "modified"), [["real.yaml"]]);
    assert!(repo.path("link.yaml").is_symlink());
    assert_eq!(repo.git(["ls-files", "--stage", "real.yaml"])[..6], *"100755");
}

#[test]
fn a_file_that_git_ignores_is_put_back() {
    let repo = Repo::new();
    repo.commit(".gitignore", "secret.yaml\n");
    repo.write("secret.yaml", "rev: r1\n");
    let object = repo.evt(["--set", "rev=r2", "secret.yaml"]).failed(3, "cannot-stage");
    assert!(object["error"]["message"].as_str().unwrap().contains("secret.yaml, which is as it was"), "{object}");
    assert_eq!(repo.read("secret.yaml"), "rev: r1\n");
}

#[test]
fn commits_are_signed_as_the_user_has_it() {
    let repo = Repo::new();
    let program = repo.dir.path().join("sign");
    // The part of gpg that git needs (git gpg-interface.c): a status line, and a signature on stdout.
    let script = "#!/bin/sh\ncat >/dev/null\necho '[GNUPG:] SIG_CREATED ' >&2\n\
                  printf -- '-----BEGIN PGP SIGNATURE-----\\nx\\n-----END PGP SIGNATURE-----\\n'\n";
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    repo.git(["config", "gpg.program", program.to_str().unwrap()]);
    repo.git(["config", "commit.gpgSign", "true"]);
    repo.evt(["--set", "data.rev=r2", "app.yaml"]).pushed();
    assert!(repo.git(["cat-file", "commit", "HEAD"]).contains("gpgsig -----BEGIN PGP SIGNATURE-----"));
}
