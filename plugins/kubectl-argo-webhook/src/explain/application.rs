//! Applications, as far as the rules look at them.

use std::{collections::BTreeMap, path::Path};

use kit::{
    application::{self, AppName},
    cluster::{Ask, Cluster, Refused},
    error::Error,
    file,
    talk::Talk,
};
use kube::{
    Api,
    api::ListParams,
    core::{NotUsed, Object},
};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// How many Applications one answer of the API server holds at most.
const PAGE: u32 = 500;

/// The part of an Application that matters.
#[derive(Clone, Debug)]
pub struct App {
    /// Its name.
    pub name: AppName,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
    /// Its specification.
    pub spec: Spec,
}

/// `spec`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    /// `spec.source`.
    pub source: Option<Source>,
    /// `spec.sources`; when there are any, `source` does not count.
    #[serde(default)]
    pub sources: Option<Vec<Source>>,
    /// `spec.sourceHydrator`.
    pub source_hydrator: Option<Hydrator>,
}

/// A source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Source {
    /// `repoURL`.
    #[serde(default, rename = "repoURL", deserialize_with = "or_empty")]
    pub repo_url: String,
    /// `targetRevision`.
    #[serde(default, deserialize_with = "or_empty")]
    pub target_revision: String,
    /// `path`.
    #[serde(default, deserialize_with = "or_empty")]
    pub path: String,
}

/// `spec.sourceHydrator`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hydrator {
    /// Where the manifests are written by people.
    #[serde(default)]
    pub dry_source: Source,
    /// Where they are deployed from.
    #[serde(default)]
    pub sync_source: SyncSource,
}

/// `spec.sourceHydrator.syncSource`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SyncSource {
    /// `repoURL`; the dry source's when it is empty.
    #[serde(default, rename = "repoURL", deserialize_with = "or_empty")]
    pub repo_url: String,
    /// `targetBranch`.
    #[serde(default, deserialize_with = "or_empty")]
    pub target_branch: String,
    /// `path`.
    #[serde(default, deserialize_with = "or_empty")]
    pub path: String,
}

/// Reads all Applications of the cluster, or those of Argo CD's namespace where no more is allowed.
///
/// # Errors
/// When they cannot be listed.
pub async fn of_cluster(cluster: &Cluster, talk: &Talk) -> Result<Vec<App>, Error> {
    match list(cluster, "").await {
        Err(Refused { status: Some(403), .. }) => {
            talk.warn(format!(
                "Applications of all namespaces cannot be listed; looking only at namespace {}",
                cluster.namespace
            ));
            Ok(list(cluster, &cluster.namespace).await?)
        }
        other => Ok(other?),
    }
}

async fn list(cluster: &Cluster, namespace: &str) -> Result<Vec<App>, Refused> {
    type Application = Object<Spec, NotUsed>;
    let (client, resource) = (cluster.client.clone(), application::resource());
    let api: Api<Application> = match namespace {
        "" => Api::all_with(client, &resource),
        namespace => Api::namespaced_with(client, namespace, &resource),
    };
    let ask = Ask { verb: "list", resource: "applications.argoproj.io", namespace, name: "" };
    let mut apps = Vec::new();
    let mut page = ListParams::default().limit(PAGE);
    loop {
        let found = cluster.call(ask, api.list(&page)).await?;
        apps.extend(found.items.into_iter().map(|app| App {
            name: AppName {
                namespace: app.metadata.namespace.unwrap_or_default(),
                name: app.metadata.name.unwrap_or_default(),
            },
            annotations: app.metadata.annotations.unwrap_or_default(),
            spec: app.spec,
        }));
        match found.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(apps),
        }
    }
}

/// Reads the Applications in a file; other objects in it are passed over.
///
/// # Errors
/// When it cannot be read or holds no Application; exit code 2.
pub fn of_file(path: &Path, default_namespace: &str) -> Result<Vec<App>, Error> {
    let (bytes, place) = if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut std::io::stdin().lock(), &mut bytes)
            .map_err(|error| Error::usage("cannot-read", format!("cannot read stdin: {error}")))?;
        (bytes, "stdin".to_owned())
    } else {
        (file::read(path)?, path.display().to_string())
    };
    let text = std::str::from_utf8(&bytes)
        .map_err(|_| Error::usage("bad-applications", format!("{place} is not UTF-8 text")))?;
    let mut apps = Vec::new();
    for document in documents(text, &place)? {
        collect(document, default_namespace, &place, &mut apps)?;
    }
    if apps.is_empty() {
        return Err(Error::usage("no-applications", format!("no Application in {place}"))
            .hint("`kubectl get applications.argoproj.io -A -o yaml` writes such a file"));
    }
    Ok(apps)
}

/// An object of any kind; a List holds more of them.
#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    spec: Value,
    #[serde(default)]
    items: Option<Vec<Document>>,
}

#[derive(Default, Deserialize)]
struct Metadata {
    #[serde(default)]
    name: String,
    #[serde(default)]
    namespace: String,
    /// Of any type, as other objects in the file may have what Kubernetes would refuse.
    #[serde(default)]
    annotations: Option<BTreeMap<String, Value>>,
}

/// A field that is there without a value is empty.
fn or_empty<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

fn documents(text: &str, place: &str) -> Result<Vec<Document>, Error> {
    let bad = |why: String| {
        Error::usage("bad-applications", format!("cannot read the Applications in {place}: {why}"))
            .hint("it holds YAML documents or JSON, as `kubectl get applications.argoproj.io -A -o yaml` prints them")
    };
    if text.trim_start().starts_with('{') {
        let documents = serde_json::Deserializer::from_str(text).into_iter();
        return documents.collect::<Result<_, _>>().map_err(|error| bad(error.to_string()));
    }
    // A fleet may have more nodes than the library allows by default, and the file is the user's own.
    let options = serde_saphyr::options! { budget: None };
    serde_saphyr::from_multiple_with_options(text, options)
        .map_err(|error| bad(error.to_string().lines().next().unwrap_or_default().to_owned()))
}

fn collect(document: Document, default_namespace: &str, place: &str, apps: &mut Vec<App>) -> Result<(), Error> {
    for item in document.items.unwrap_or_default() {
        collect(item, default_namespace, place, apps)?;
    }
    if document.kind != "Application" {
        return Ok(());
    }
    let Metadata { name, namespace, annotations } = document.metadata;
    let spec = serde_json::from_value(document.spec).map_err(|error| {
        Error::usage("bad-applications", format!("Application {name} in {place}: {error}"))
            .hint("its `spec` is not one that Argo CD takes")
    })?;
    let namespace = if namespace.is_empty() { default_namespace.to_owned() } else { namespace };
    let texts = annotations.unwrap_or_default().into_iter();
    let annotations = texts.filter_map(|(name, value)| Some((name, value.as_str()?.to_owned()))).collect();
    apps.push(App { name: AppName { namespace, name }, annotations, spec });
    Ok(())
}
