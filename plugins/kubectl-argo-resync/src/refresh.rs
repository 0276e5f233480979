//! Asking Applications to be compared again, a bounded number at a time, until each has proven that it was.

use std::{collections::BTreeSet, time::Duration};

use futures::StreamExt as _;
use k8s_openapi::jiff::Timestamp;
use kit::{
    application::AppName,
    cluster::{Ask, Cluster, Refused},
    error::Error,
    talk::Talk,
};
use kube::{
    Api,
    api::{DynamicObject, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::{
    answer::{Answer, Asked, REFRESH, Seen, judge},
    deadline::Deadline,
    restart::FIELD_MANAGER,
    targets::Target,
};

const LOOK_FIRST: Duration = Duration::from_millis(200);
const LOOK_AT_LEAST: Duration = Duration::from_secs(1);
/// `reconciledAt` has to have moved by a second before a second answer can be told from the first.
const ASK_AGAIN: Duration = Duration::from_millis(1_100);
const TRIES: u32 = 5;

/// How a refresh ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Refreshed {
    /// What was asked for.
    pub target: Target,
    /// Its entry in the output.
    pub entry: Value,
    /// What went wrong.
    pub error: Option<Error>,
}

/// What refreshes are made with.
#[derive(Clone, Copy)]
pub struct Means<'a> {
    /// Where.
    pub cluster: &'a Cluster,
    /// The voice on stderr.
    pub talk: &'a Talk,
    /// How many may be asked and not yet answered.
    pub limit: usize,
    /// The time for one.
    pub patience: Duration,
    /// The time for all.
    pub deadline: Deadline,
    /// The shortest polling period that a controller runs with, 0 is off; `None` when it is not known.
    pub period_s: Option<u64>,
}

/// Refreshes all targets: one Application of each repository first, since its answer freshens the refs that the others
/// read, then the rest. Results are added as they come, so that an interrupt leaves those that there are.
pub async fn all(means: Means<'_>, targets: Vec<Target>, results: &mut Vec<Refreshed>) {
    let total = targets.len();
    let mut failed = 0;
    let mut known = BTreeSet::new();
    let (first, rest): (Vec<_>, Vec<_>) =
        targets.into_iter().partition(|target| known.insert(target.repository.clone()));
    for wave in [first, rest] {
        let mut running = futures::stream::iter(wave).map(|target| one(means, target)).buffer_unordered(means.limit);
        while let Some(result) = running.next().await {
            failed += usize::from(result.error.is_some());
            results.push(result);
            let trouble = if failed > 0 { format!(", {failed} without success") } else { String::new() };
            if total > 1 {
                let what = format!("refreshed {} of {total} Applications{trouble}", results.len());
                means.talk.status(&what, &means.deadline.time());
            }
        }
    }
    results.sort_by(|a, b| a.target.app.cmp(&b.target.app));
}

async fn one(means: Means<'_>, target: Target) -> Refreshed {
    let mut last = Progress::default();
    let error = ask_until_answered(means, &target, &mut last).await.err();
    let outcome = match &error {
        None => "refreshed",
        Some(error) if error.code == "no-answer" => "no-answer",
        Some(error) if error.code == "not-asked" => "not-asked",
        Some(_) => "failed",
    };
    let mut entry = json!({
        "app": target.app.name,
        "namespace": target.app.namespace,
        "kind": target.kind(),
        "outcome": outcome,
        "asked": last.asked,
        "asked_at": last.asked_at.map(Timestamp::as_second),
        "reconciled_at": last.seen.reconciled_at.map(Timestamp::as_second),
        "revision": last.seen.revision,
        "sync_status": last.seen.sync_status,
    });
    if let Some(error) = &error {
        entry["error"] = error.to_json();
    }
    Refreshed { target, entry, error }
}

#[derive(Default)]
struct Progress {
    asked: u32,
    asked_at: Option<Timestamp>,
    seen: Seen,
}

async fn ask_until_answered(means: Means<'_>, target: &Target, progress: &mut Progress) -> Result<(), Error> {
    let Means { cluster, talk, .. } = means;
    let patience = Deadline::new(means.patience.min(means.deadline.left()));
    let app = &target.app;
    if patience.left().is_zero() {
        return Err(Error::new(kit::exit::Exit::Deadline, "not-asked", format!("{app} was not asked any more"))
            .hint("running the same command again asks; --timeout sets the time"));
    }
    loop {
        let asked = match ask(means, target, progress).await {
            Ok(asked) => asked,
            Err(refused) if passes(&refused) && !patience.left().is_zero() => {
                talk.detail(&refused.error.message);
                tokio::time::sleep(LOOK_AT_LEAST.min(patience.left())).await;
                continue;
            }
            Err(refused) => return Err(refused.error),
        };
        let since = std::time::Instant::now();
        let mut pause = LOOK_FIRST;
        let answer = loop {
            tokio::time::sleep(pause.min(patience.left())).await;
            pause = (pause * 2).min(LOOK_AT_LEAST);
            match look(cluster, app).await {
                Ok(object) => {
                    progress.seen = Seen::of(&object);
                    let elapsed = k8s_openapi::jiff::SignedDuration::try_from(since.elapsed()).unwrap_or_default();
                    let answer = judge(&asked, &progress.seen, asked.at + elapsed);
                    if answer != Answer::Waiting {
                        break answer;
                    }
                }
                Err(refused) if passes(&refused) => talk.detail(&refused.error.message),
                Err(refused) => return Err(refused.error),
            }
            if patience.left().is_zero() {
                let why = match progress.seen.pending {
                    Some(_) => "the refresh annotation is still there",
                    None => "it could not be read",
                };
                return Err(no_answer(app, why));
            }
        };
        match answer {
            Answer::Refreshed => return Ok(()),
            Answer::Failed(kind, message) => {
                return Err(Error::no("comparison-failed", format!("{app} cannot be compared: {kind}: {message}"))
                    .hint("it was looked at: the message is Argo CD's own"));
            }
            Answer::Swallowed | Answer::Waiting => {
                talk.detail(format!("{app}: an older comparison took the request with it: asking again"));
                if patience.left() <= ASK_AGAIN {
                    return Err(no_answer(app, "no comparison began after the request"));
                }
                tokio::time::sleep(ASK_AGAIN).await;
            }
        }
    }
}

fn no_answer(app: &AppName, why: &str) -> Error {
    Error::new(kit::exit::Exit::Deadline, "no-answer", format!("{app} did not answer in time: {why}"))
        .hint("is its controller up, does a shard own its cluster? --timeout and --app-timeout set the time")
}

/// Sets the annotation, unless a request that is at least as strong is pending; a hard one is never weakened.
async fn ask(means: Means<'_>, target: &Target, progress: &mut Progress) -> Result<Asked, Refused> {
    let (cluster, app) = (means.cluster, &target.app);
    let api = api(cluster, app);
    let request =
        Ask { verb: "patch", resource: "applications.argoproj.io", namespace: &app.namespace, name: &app.name };
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() };
    for attempt in 1.. {
        let object = look(cluster, app).await?;
        let seen = Seen::of(&object);
        let was_pending = seen.pending.is_some();
        let now = Timestamp::now();
        let enough = was_pending && (!target.hard || seen.pending.as_deref() == Some("hard"));
        let at = if enough {
            now
        } else {
            let mut patch = json!({"metadata": {"annotations": {REFRESH: target.kind()}}});
            if !target.hard {
                // Somebody may ask for a hard refresh right now.
                patch["metadata"]["resourceVersion"] = json!(object.metadata.resource_version);
            }
            match cluster.call(request, api.patch(&app.name, &params, &Patch::Merge(&patch))).await {
                Ok(written) => server_time(&written).filter(|_| !was_pending).unwrap_or(now),
                Err(Refused { status: Some(409), .. }) if attempt < TRIES => {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
                Err(refused) => return Err(refused),
            }
        };
        let at = Timestamp::from_second(at.as_second()).unwrap_or(at);
        progress.asked += 1;
        progress.asked_at.get_or_insert(at);
        let alone = seen.is_idle(at, means.period_s);
        progress.seen = seen;
        return Ok(Asked { at, before: progress.seen.reconciled_at, alone, times: progress.asked });
    }
    unreachable!("the last attempt returns")
}

/// When the API server recorded the request: its clock is closer to the controller's than this machine's.
fn server_time(written: &DynamicObject) -> Option<Timestamp> {
    let entries = written.metadata.managed_fields.iter().flatten();
    entries
        .filter(|entry| entry.manager.as_deref() == Some(FIELD_MANAGER))
        .filter_map(|e| Some(e.time.as_ref()?.0))
        .max()
}

fn passes(refused: &Refused) -> bool {
    refused.status.is_none_or(|status| status == 429 || status >= 500)
}

fn api(cluster: &Cluster, app: &AppName) -> Api<DynamicObject> {
    Api::namespaced_with(cluster.client.clone(), &app.namespace, &kit::application::resource())
}

async fn look(cluster: &Cluster, app: &AppName) -> Result<DynamicObject, Refused> {
    let ask = Ask { verb: "get", resource: "applications.argoproj.io", namespace: &app.namespace, name: &app.name };
    cluster.call(ask, api(cluster, app).get(&app.name)).await
}
