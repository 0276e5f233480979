//! The file lists are those of `git diff-tree`, over a random history with merges and renames.
#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod repo;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt::Write,
};

use repo::{Outcome, Repo, URL};
use serde_json::{Value, json};

const COMMITS: usize = 500;

/// Numbers that look random and are the same in each run (xorshift64*).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % bound
    }
}

/// Each commit's files, by name.
type Tree = BTreeMap<String, String>;

/// A stream for `git fast-import`: commits on lines of history that fork, change, rename and remove files, and merge.
/// Most merges take what either side has; some throw something away.
fn stream(numbers: &mut Numbers) -> String {
    let mut stream = String::new();
    let mut trees: Vec<Tree> = Vec::new();
    for mark in 1..=COMMITS {
        let parent = match trees.len() {
            0 => None,
            // Mostly one of the last few, so that there are long lines as well as forks.
            count => Some(count - 1 - numbers.below(count.min(6))),
        };
        let other =
            parent.filter(|parent| *parent > 6 && numbers.below(5) == 0).map(|parent| parent - 1 - numbers.below(6));
        let before = parent.map(|parent| trees[parent].clone()).unwrap_or_default();
        let mut tree = before.clone();
        if let Some(other) = other {
            let careless = numbers.below(4) == 0;
            for (name, contents) in &trees[other] {
                if !careless || numbers.below(2) == 0 {
                    tree.insert(name.clone(), contents.clone());
                }
            }
        }
        for _ in 0..numbers.below(4) {
            change(&mut tree, numbers, mark);
        }
        writeln!(
            stream,
            "commit refs/heads/main\nmark :{mark}\ncommitter T <t@example.com> {} +0000",
            1_700_000_000 + mark
        )
        .unwrap();
        let message = format!("commit {mark}");
        writeln!(stream, "data {}\n{message}", message.len()).unwrap();
        if let Some(parent) = parent {
            writeln!(stream, "from :{}", parent + 1).unwrap();
        }
        if let Some(other) = other {
            writeln!(stream, "merge :{}", other + 1).unwrap();
        }
        stream.push_str("deleteall\n");
        for (name, contents) in &tree {
            writeln!(stream, "M 100644 inline {name}\ndata {}\n{contents}", contents.len()).unwrap();
        }
        trees.push(tree);
    }
    stream
}

fn change(tree: &mut Tree, numbers: &mut Numbers, mark: usize) {
    let known: Vec<String> = tree.keys().cloned().collect();
    let fresh = format!("d{}/f{}", numbers.below(5), numbers.below(40));
    match (numbers.below(4), known.is_empty()) {
        (0, _) | (_, true) => {
            tree.insert(fresh, format!("added by {mark}\n{}", "line\n".repeat(20)));
        }
        (1, _) => {
            let contents = tree.remove(&known[numbers.below(known.len())]).unwrap();
            tree.insert(fresh, contents);
        }
        (2, _) => {
            tree.remove(&known[numbers.below(known.len())]);
        }
        _ => {
            tree.insert(known[numbers.below(known.len())].clone(), format!("changed by {mark}\n"));
        }
    }
}

/// What `git diff-tree` says of a commit against its first parent: letter and name.
fn diff_tree(repo: &Repo, commit: &str) -> BTreeSet<(char, String)> {
    let parents = repo.git(["rev-list", "--parents", "-1", commit]);
    let base = parents.split(' ').nth(1).map_or_else(|| vec!["--root", commit], |parent| vec![parent, commit]);
    let args = ["diff-tree", "--no-commit-id", "-r", "--no-renames", "--name-status"];
    let lines = repo.git(args.iter().chain(&base));
    lines.lines().map(|line| (line.chars().next().unwrap(), line[2..].to_owned())).collect()
}

fn listed(commit: &Value) -> BTreeSet<(char, String)> {
    [('A', "added"), ('M', "modified"), ('D', "removed")]
        .iter()
        .flat_map(|(letter, name)| {
            commit[name].as_array().unwrap().iter().map(|file| (*letter, file.as_str().unwrap().to_owned()))
        })
        .collect()
}

#[test]
fn lists_are_those_of_diff_tree_or_are_left_out() {
    let mut numbers = Numbers(20_261_130);
    let repo = Repo::empty(&["init", "--quiet", "--bare", "--initial-branch=main", "bare.git"]);
    repo.import(&stream(&mut numbers));
    let all: Vec<String> = repo.git(["rev-list", "--topo-order", "main"]).lines().map(str::to_owned).collect();
    let mut known: HashMap<String, BTreeSet<(char, String)>> = HashMap::new();
    let (mut complete, mut left_out, mut merges) = (0, 0, 0);
    for _ in 0..60 {
        let new = &all[numbers.below(all.len() / 2)];
        let older: Vec<String> = repo.git(["rev-list", new]).lines().skip(1).map(str::to_owned).collect();
        let old = &older[numbers.below(older.len().min(80))];
        let mut command = repo.command(&repo.work());
        let range = format!("{old}..{new}");
        let args = ["evt-push", "--repo-url", URL, "--branch", "main", "--describe", &range];
        let record = Outcome::new(command.args(args).output().unwrap()).record;
        assert_eq!((&record["before"], &record["commit"]), (&json!(old), &json!(new)));

        let expected: BTreeSet<String> = repo.git(["rev-list", &range]).lines().map(str::to_owned).collect();
        let commits = record["commits"].as_array().unwrap();
        let ids: BTreeSet<String> = commits.iter().map(|commit| commit["id"].as_str().unwrap().to_owned()).collect();
        assert_eq!(ids, expected);
        assert_eq!(commits.len(), expected.len());
        assert_eq!(commits.last().unwrap()["id"], json!(new));

        let mut union = BTreeSet::new();
        for id in &expected {
            let files = known.entry(id.clone()).or_insert_with(|| diff_tree(&repo, id));
            union.extend(files.iter().map(|(_, name)| name.clone()));
        }
        let between = repo.git(["diff-tree", "-r", "--no-renames", "--name-only", old, new]);
        let whole = between.lines().all(|name| union.contains(name));
        assert_eq!(record["files_complete"], json!(whole), "{range}");
        for commit in commits {
            if whole {
                assert_eq!(listed(commit), known[commit["id"].as_str().unwrap()], "{range}");
            } else {
                assert!(["added", "modified", "removed"].iter().all(|name| commit.get(name).is_none()));
            }
        }
        if whole {
            complete += 1;
        } else {
            left_out += 1;
        }
        merges += repo.git(["rev-list", "--merges", "--count", &range]).parse::<usize>().unwrap();
    }
    assert!(complete > 10 && left_out > 3 && merges > 50, "{complete} complete, {left_out} left out, {merges} merges");
}
