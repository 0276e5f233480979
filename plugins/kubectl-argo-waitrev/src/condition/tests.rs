//! `tests/shapes.json`: a status, and what it says at each level. `{a}` stands for 40 times an a.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::*;

#[derive(Deserialize)]
struct Row {
    name: String,
    wanted: Wish,
    object: View,
    verdicts: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Wish {
    commit: String,
    #[serde(default)]
    repo_urls: Vec<String>,
    source: Option<String>,
    #[serde(default)]
    dry: bool,
    #[serde(default)]
    contained_in: BTreeSet<String>,
}

fn rows() -> Vec<Row> {
    let mut text = include_str!("../../tests/shapes.json").to_owned();
    for letter in ["a", "b", "c", "d", "e", "A"] {
        text = text.replace(&format!("{{{letter}}}"), &letter.repeat(40));
    }
    serde_json::from_str(&text).unwrap()
}

fn wanted(wish: Wish) -> Wanted {
    Wanted {
        commit: wish.commit,
        repo_urls: wish.repo_urls,
        source: wish.source.map(|source| source.parse().unwrap()),
        dry: wish.dry,
        contained_in: wish.contained_in,
    }
}

fn level(name: &str) -> Level {
    Level::from_str(name, false).unwrap()
}

fn word(value: impl serde::Serialize) -> String {
    serde_json::to_value(value).unwrap().as_str().unwrap().to_owned()
}

#[test]
fn each_shape_says_what_it_says_at_each_level() {
    let mut wrong = Vec::new();
    let rows = rows();
    assert!(rows.len() >= 60);
    for row in rows {
        let wanted = wanted(row.wanted);
        assert_eq!(row.verdicts.len(), 4, "{}", row.name);
        for (name, expected) in row.verdicts {
            let judgement = judge(&row.object, &wanted, level(&name), false);
            let found = format!("{}:{}", word(judgement.verdict), word(judgement.reason));
            if found != expected {
                wrong.push(format!("{} ({name}): {found}, not {expected}", row.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_level_is_never_reached_before_the_one_below_it() {
    for row in rows() {
        let wanted = wanted(row.wanted);
        let reached = |level| judge(&row.object, &wanted, level, false).verdict == Verdict::Reached;
        for pair in Level::value_variants().windows(2) {
            assert!(!reached(pair[1]) || reached(pair[0]), "{}: {pair:?}", row.name);
        }
    }
}

#[test]
fn degraded_is_final_only_where_the_user_says_so() {
    let text = r#"{"spec":{"source":{"repoURL":"https://h/r"}},
        "status":{"sync":{"status":"Synced","revision":"aaaaaaa"},"health":{"status":"Degraded"}}}"#;
    let view: View = serde_json::from_str(text).unwrap();
    let wanted = Wanted { commit: "aaaaaaa".into(), ..Wanted::default() };
    let verdict = |level, is_final| judge(&view, &wanted, level, is_final).verdict;
    assert_eq!(verdict(Level::Healthy, false), Verdict::NotYet);
    assert_eq!(verdict(Level::Healthy, true), Verdict::Never);
    assert_eq!(verdict(Level::Deployed, true), Verdict::Reached);
}
