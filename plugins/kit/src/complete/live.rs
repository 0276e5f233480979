//! Names from the kubeconfig and from the cluster, or nothing at all after a short time.

use std::{sync::mpsc, thread, time::Duration};

use clap::{Command, FromArgMatches};
use kube::{
    Api,
    api::{DynamicObject, ListParams},
    core::ApiResource,
};

use super::Live;
use crate::{
    application,
    cluster::{ClusterArgs, DEFAULT_NAMESPACE},
    error::Error,
    talk::{Talk, TalkArgs},
};

/// Past this a person presses TAB again, or gives up.
const LIMIT: Duration = Duration::from_millis(1500);

/// More names than this are of no use on a screen.
const MOST: u32 = 500;

/// The names that `words` ask for. `command` is what they are read with.
pub(super) fn names(live: Live, command: Command, words: &[String], typed: &str) -> Vec<String> {
    let mut args = cluster_args(command, words);
    args.request_timeout = LIMIT;
    let typed = typed.to_owned();
    // A thread of its own, since a credential plugin blocks; it ends with the process.
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(find(live, &args, &typed)));
    receiver.recv_timeout(LIMIT).ok().and_then(Result::ok).unwrap_or_default()
}

/// The flags about the cluster that are on the command line so far, which is seldom complete.
fn cluster_args(command: Command, words: &[String]) -> ClusterArgs {
    let before = words.split_last().map_or(words, |(_, before)| before);
    let line = std::iter::once("command".to_owned()).chain(before.iter().cloned());
    let mut args = command.ignore_errors(true).try_get_matches_from(line).ok().and_then(|matches| {
        let mut at = &matches;
        while let Some((_, inner)) = at.subcommand() {
            at = inner;
        }
        ClusterArgs::from_arg_matches(at).ok()
    });
    let args = args.get_or_insert_default();
    if args.namespace.is_empty() {
        args.namespace = DEFAULT_NAMESPACE.into();
    }
    args.clone()
}

fn find(live: Live, args: &ClusterArgs, typed: &str) -> Result<Vec<String>, Error> {
    let kubeconfig = || Ok::<_, Error>(args.kubeconfig()?.unwrap_or_default());
    let mut names: Vec<_> = match live {
        Live::Contexts => kubeconfig()?.contexts.into_iter().map(|named| named.name).collect(),
        Live::Clusters => kubeconfig()?.clusters.into_iter().map(|named| named.name).collect(),
        Live::Users => kubeconfig()?.auth_infos.into_iter().map(|named| named.name).collect(),
        Live::Namespaces => list(args, &namespaces(), None)?,
        Live::Applications => match typed.split_once('/') {
            Some((namespace, _)) => list(args, &application::resource(), Some(namespace))?
                .into_iter()
                .map(|name| format!("{namespace}/{name}"))
                .collect(),
            None => list(args, &application::resource(), Some(&args.namespace))?,
        },
    };
    names.sort();
    Ok(names)
}

fn namespaces() -> ApiResource {
    ApiResource {
        group: String::new(),
        version: "v1".into(),
        api_version: "v1".into(),
        kind: "Namespace".into(),
        plural: "namespaces".into(),
    }
}

/// The names of the objects in a namespace, or of those that are in none.
fn list(args: &ClusterArgs, resource: &ApiResource, namespace: Option<&str>) -> Result<Vec<String>, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Error::unknown("runtime", error.to_string()))?;
    runtime.block_on(async {
        let cluster = args.connect(&Talk::new(&TalkArgs { quiet: true, ..TalkArgs::default() })).await?;
        let api: Api<DynamicObject> = match namespace {
            Some(namespace) => Api::namespaced_with(cluster.client, namespace, resource),
            None => Api::all_with(cluster.client, resource),
        };
        let found = api.list_metadata(&ListParams::default().limit(MOST)).await;
        let found = found.map_err(|error| Error::unknown("list", error.to_string()))?;
        Ok(found.items.into_iter().filter_map(|object| object.metadata.name).collect())
    })
}
