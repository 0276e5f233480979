//! `tests/sequences.json`: what an Application was seen to do over time, and what follows. `{a}` stands for 40 times an
//! a; each object is a merge patch of the one before it; times are milliseconds since the beginning.

use std::collections::BTreeSet;

use clap::ValueEnum;
use kit::{moment::Moment, record::Record};
use serde::Deserialize;
use serde_json::{Value, json};

use super::*;
use crate::{
    condition::Level,
    effect::Push,
    group::{Group, Members},
    wanted::Wanted,
};

/// The wall clock at the beginning: 2001-09-09T01:46:40Z.
const BEGINNING_MS: u64 = 1_000_000_000_000;

#[derive(Deserialize)]
struct Row {
    name: String,
    rules: Wish,
    events: Vec<Event>,
    expect: Expected,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Wish {
    level: Option<String>,
    hold_ms: Option<u64>,
    stable_ms: Option<u64>,
    grace_ms: Option<u64>,
    pushed_ms: Option<u64>,
    sent_ms: Option<u64>,
    push_ms: u64,
    event_refused: bool,
    forbid_refresh: bool,
    fail_on_degraded: bool,
    once: bool,
    contained_in: BTreeSet<String>,
    no_effect: Option<String>,
    files: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Event {
    Plain(u64, String, Value),
    Jumped(u64, String, Value, i64),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    outcome: String,
    at_ms: Option<u64>,
    refresh_requested: Option<bool>,
    moved: Option<bool>,
    flips: Option<u32>,
    exit: Option<u8>,
    message: Option<String>,
    trigger: Option<String>,
}

fn at(ms: u64, jump_ms: i64) -> At {
    At { elapsed: Duration::from_millis(ms), wall: Moment::from_ms((BEGINNING_MS + ms).saturating_add_signed(jump_ms)) }
}

fn rules(wish: &Wish, start: At) -> Rules {
    let wall = |ms: u64| Moment::from_ms(BEGINNING_MS + ms);
    let push = wish.files.as_ref().and_then(|files| {
        let record = json!({"files_complete": true, "commits": [{"added": [], "modified": files, "removed": []}]});
        Push::of(&Record(record.as_object()?.clone()))
    });
    Rules {
        wanted: Wanted { commit: "a".repeat(40), contained_in: wish.contained_in.clone(), ..Wanted::default() },
        level: wish.level.as_ref().map_or(Level::Compared, |level| Level::from_str(level, false).unwrap()),
        start,
        once: wish.once,
        hold: wish.hold_ms.map(Duration::from_millis),
        stable: wish.stable_ms.map(Duration::from_millis),
        error_grace: Duration::from_millis(wish.grace_ms.unwrap_or(10_000)),
        fail_on_degraded: wish.fail_on_degraded,
        forbid_refresh: wish.forbid_refresh,
        stale_after: Duration::from_secs(300),
        no_effect: wish.no_effect.as_ref().map_or(NoEffect::Fail, |word| NoEffect::from_str(word, false).unwrap()),
        push,
        pushed_at: wish.pushed_ms.map(wall),
        push_began: wish.pushed_ms.map(|ms| wall(ms.saturating_sub(wish.push_ms))),
        sent_at: wish.sent_ms.map(wall),
        event_refused: wish.event_refused,
    }
}

/// The Application before anything happens: at b, Synced, Healthy.
fn beginning() -> Value {
    json!({
        "metadata": {"name": "evt", "namespace": "argocd", "uid": "u1"},
        "spec": {
            "source": {"repoURL": "https://h/r", "targetRevision": "main", "path": "app"},
            "syncPolicy": {"automated": {}},
        },
        "status": {"sync": {"status": "Synced", "revision": "b".repeat(40)}, "health": {"status": "Healthy"}},
    })
}

fn spelled(text: &str) -> String {
    ["a", "b", "c"].iter().fold(text.to_owned(), |text, id| text.replace(&format!("{{{id}}}"), &id.repeat(40)))
}

fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else { return target.clone_from(patch) };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, value) in patch {
        merge(&mut target[key], value);
    }
}

/// Plays a sequence as the loop does: everything until the record is taken in when it comes.
fn play(wish: &Wish, events: &[Event]) -> (Account, Rules) {
    let parts = |event: &Event| match event {
        Event::Plain(ms, kind, patch) => (at(*ms, 0), kind.clone(), patch.clone()),
        Event::Jumped(ms, kind, patch, jump) => (at(*ms, *jump), kind.clone(), patch.clone()),
    };
    let record = events.iter().map(parts).find(|(_, kind, _)| kind == "record").map(|(at, ..)| at);
    let rules = rules(wish, record.unwrap_or(at(0, 0)));
    let mut group = Group::new(Members::default());
    let mut object = beginning();
    let mut looked = false;
    for (now, kind, patch) in events.iter().map(parts) {
        merge(&mut object, &patch);
        let view = || Box::new(View::deserialize(&object).unwrap());
        match kind.as_str() {
            "look" => group.listed(vec![view()], now, Cause::FirstLook, &rules),
            "again" => group.listed(vec![view()], now, Cause::LookAgain { asked: now.elapsed }, &rules),
            "missing" => group.listed(Vec::new(), now, Cause::LookAgain { asked: now.elapsed }, &rules),
            "change" => group.see(view(), now, Cause::Change, &rules),
            "gone" => group.gone(&view().name(), now, &rules),
            "deadline" => group.give_up(now, &rules),
            "record" => {}
            other => panic!("no such event: {other}"),
        }
        looked |= kind == "look";
        if looked && record.is_none_or(|record| now.elapsed >= record.elapsed) {
            group.begin(now, &rules);
        }
    }
    let account = group.accounts.into_values().next().unwrap();
    (*account, rules)
}

#[test]
fn each_sequence_ends_as_it_should() {
    let rows: Vec<Row> = serde_json::from_str(&spelled(include_str!("../../tests/sequences.json"))).unwrap();
    let mut wrong = Vec::new();
    for Row { name, rules, events, expect } in rows {
        let (account, rules) = play(&rules, &events);
        let Some((end, at)) = &account.end else {
            wrong.push(format!("{name}: it did not end"));
            continue;
        };
        let mut printed = serde_json::Map::new();
        account.trace.add(&mut printed, &rules);
        let message = end.error.as_ref().map_or("", |error| error.message.as_str());
        let found = json!({
            "outcome": end.outcome.word(),
            "at_ms": expect.at_ms.map(|_| at.elapsed.as_millis()),
            "refresh_requested": expect.refresh_requested.map(|_| account.refresh_requested),
            "moved": expect.moved.map(|_| end.outcome == Outcome::Moved),
            "flips": expect.flips.map(|_| account.flips),
            "exit": expect.exit.map(|_| end.exit as u8),
            "message": expect.message.as_ref().map(|part| message.contains(part.as_str())),
            "trigger": expect.trigger.as_ref().map(|_| printed.get("trigger")),
        });
        let expected = json!({
            "outcome": expect.outcome,
            "at_ms": expect.at_ms,
            "refresh_requested": expect.refresh_requested,
            "moved": expect.moved,
            "flips": expect.flips,
            "exit": expect.exit,
            "message": expect.message.map(|_| true),
            "trigger": expect.trigger,
        });
        if found != expected {
            wrong.push(format!("{name}:\n    {found}\nnot {expected}; {message}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Any way through a set of states, none of which has the commit: names, other commits, errors, operations on the commit,
/// gaps, deletions. 5,000 of them, always the same ones.
#[test]
fn no_sequence_without_the_commit_ends_in_success() {
    let patches: Vec<Value> = [
        json!({}),
        json!({"status": {"sync": {"revision": "{b}", "status": "Synced"}}}),
        json!({"status": {"sync": {"revision": "{c}", "status": "Synced"}}}),
        json!({"status": {"sync": {"revision": "{c}", "status": "OutOfSync"}}}),
        json!({"status": {"sync": {"revision": "main", "status": "Unknown"}}}),
        json!({"status": {"sync": {"revision": "aaaaaa", "status": "Synced"}}}),
        json!({"status": {"sync": {"revision": "aaaaaaab", "status": "Synced"}}}),
        json!({"status": {"sync": null}}),
        json!({"status": null}),
        json!({"status": {"sync": {"revision": null, "revisions": ["{a}"], "status": "Synced"}}}),
        json!({"status": {"conditions": [{"type": "ComparisonError", "message": "at {a}"}]}}),
        json!({"status": {"conditions": null}}),
        json!({"status": {"operationState": {"phase": "Succeeded", "syncResult": {"revision": "{a}"}}}}),
        json!({"status": {"operationState": {"phase": "Running", "operation": {"sync": {"revision": "{a}"}}}}}),
        json!({"status": {"operationState": null}, "operation": {"sync": {"revision": "{a}"}}}),
        json!({"operation": null, "status": {"history": [{"id": 9, "revision": "{a}"}]}}),
        json!({"status": {"health": {"status": "Degraded"}}}),
        json!({"status": {"health": {"status": "Healthy"}}}),
        json!({"spec": {"source": {"targetRevision": "{a}"}}}),
        json!({"spec": {"sources": [{"repoURL": "https://h/r"}, {"repoURL": "https://h/x"}]}}),
        json!({"spec": {"sources": null}}),
        json!({"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}}),
        json!({"metadata": {"annotations": null}}),
        json!({"status": {"sourceHydrator": {"lastSuccessfulOperation": {"drySHA": "{a}", "hydratedSHA": "{c}"}}}}),
    ]
    .iter()
    .map(|patch: &Value| serde_json::from_str(&spelled(&patch.to_string())).unwrap())
    .collect();
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..5_000 {
        let levels = ["compared", "synced", "deployed", "healthy"];
        let wish = Wish {
            level: Some(levels[random.usize(0..4)].into()),
            stable_ms: random.bool().then_some(50),
            grace_ms: Some(random.u64(0..500)),
            no_effect: Some("wait".into()),
            files: random.bool().then(|| vec!["x/y".into()]),
            ..Wish::default()
        };
        let mut events = vec![Event::Plain(0, "look".into(), patches[random.usize(0..patches.len())].clone())];
        for step in 1..random.u64(2..12) {
            let kind = ["change", "change", "change", "again", "again", "again", "gone"][random.usize(0..7)];
            events.push(Event::Plain(step * 100, kind.into(), patches[random.usize(0..patches.len())].clone()));
        }
        events.push(Event::Plain(9_999, "deadline".into(), json!({})));
        let (account, _) = play(&wish, &events);
        let (end, _) = account.end.expect("the deadline ends it");
        assert!(end.exit != Exit::Done && account.met.is_none(), "{end:?}: {:?}", account.view);
    }
}
