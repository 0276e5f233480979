//! Explains which Applications an event touches, by the server's own rules.

pub mod application;
#[cfg(test)]
mod cases;
pub mod judge;
pub mod reference;
pub mod seen;
pub mod semver;
pub mod url;

use kit::{
    application::is_true,
    cluster::Cluster,
    command::{Context, Report},
    error::Error,
    exit::Exit,
    namespaces::Served,
    talk::Talk,
    version::Version,
};
use serde_json::{Map, Value, json};

use crate::{
    args::{Explain, Kind},
    letter,
    provider::Provider,
    server,
};
use application::App;
use judge::{Judge, Verdict};

/// What is known about the server that would get the event.
struct Rules {
    version: Version,
    served: Option<Served>,
    namespace: String,
    refresh_jitter: Option<String>,
}

/// Prints what would become of the event.
///
/// # Errors
/// When the event or the Applications cannot be read.
pub async fn run(args: Explain, context: Context) -> Result<Report, Error> {
    let talk = &context.talk;
    let letter = letter::read(&args.event, Kind::Push).await?;
    let (apps, rules) = match &args.applications {
        Some(path) => {
            let version = args.server_version.unwrap_or(Version::NEWEST);
            let served = args.application_namespaces.as_deref().map(|list| Served::of(list, version)).transpose()?;
            let namespace = args.cluster.namespace.clone();
            let apps = application::of_file(path, &namespace)?;
            (apps, Rules { version, served, namespace, refresh_jitter: None })
        }
        None => {
            let cluster = args.cluster.connect(talk).await?;
            let rules = rules_of(&cluster, &args, talk).await?;
            (application::of_cluster(&cluster, talk).await?, rules)
        }
    };
    let seen = seen::read(args.event.provider, &letter.body, rules.version)?;
    let judge = Judge::new(seen, rules.version);
    let mut refreshes = 0;
    let mut applications = Vec::new();
    for app in &apps {
        let object = explain(app, &judge, &rules);
        refreshes += u64::from(object["refresh"] == true);
        applications.push(object);
    }
    if let Some(jitter) = &rules.refresh_jitter {
        talk.say(format!("webhook.refresh.jitter is {jitter}: with many Applications, each may wait that long"));
    }
    if args.event.provider == Provider::Bitbucket {
        talk.say("with webhook.bitbucket.uuid set, the server also asks Bitbucket for files and default branch; not looked at");
    }
    talk.say(format!("{refreshes} of {} Applications would refresh (Argo CD v{})", apps.len(), rules.version));
    let mut object = Map::new();
    object.insert("provider".into(), args.event.provider.name().into());
    object.insert("server_version".into(), rules.version.to_string().into());
    object.insert("refreshes".into(), refreshes.into());
    object.insert("refresh_jitter".into(), rules.refresh_jitter.into());
    object.insert("outcome".into(), if refreshes > 0 { "refresh" } else { "no-refresh" }.into());
    object.insert("applications".into(), applications.into());
    if refreshes > 0 {
        return Ok(Report::done(object));
    }
    let error = Error::no("no-refresh", format!("none of {} Applications would refresh", apps.len()))
        .hint("each source names the rule that keeps it out, and what to do about it");
    Ok(Report::failed(object, error))
}

/// The rules of the server in a cluster. Without a server, those of the newest version.
async fn rules_of(cluster: &Cluster, args: &Explain, talk: &Talk) -> Result<Rules, Error> {
    let version = match args.server_version {
        Some(version) => Some(version),
        None => match server::find(cluster, talk).await {
            Ok(server) => server.version,
            Err(error) if error.exit == Exit::Usage => {
                talk.warn(format!("{error}: this is what one would do"));
                None
            }
            Err(error) => return Err(error),
        },
    };
    if version.is_none() {
        talk.warn(format!("the server's version is not known; using the rules of v{}", Version::NEWEST));
    }
    let version = version.unwrap_or(Version::NEWEST);
    let settings = server::matching_settings(cluster, talk).await;
    let patterns = args.application_namespaces.clone().unwrap_or(settings.application_namespaces);
    Ok(Rules {
        version,
        served: Some(Served::of(&patterns, version)?),
        namespace: cluster.namespace.clone(),
        refresh_jitter: settings.refresh_jitter.filter(|_| version >= Version(3, 5, 0)),
    })
}

fn explain(app: &App, judge: &Judge, rules: &Rules) -> Value {
    let sources = judge.sources(app);
    let served = app.name.namespace == rules.namespace
        || rules.served.as_ref().is_none_or(|served| served.has(&app.name.namespace));
    let mut notes = Vec::new();
    if !served {
        notes.push(format!(
            "namespace {} is not served: add it to application.namespaces in argocd-cmd-params-cm",
            app.name.namespace
        ));
    }
    if app.annotations.get("argocd.argoproj.io/skip-reconcile").is_some_and(|value| is_true(value)) {
        notes.push("the annotation skip-reconcile keeps the controller from acting on it".to_owned());
    }
    json!({
        "app": app.name.name,
        "namespace": app.name.namespace,
        "refresh": served && sources.iter().any(|source| source.rule.is_none()),
        "notes": notes,
        "sources": sources.iter().enumerate().map(|(index, source)| of_source(index, source)).collect::<Vec<_>>(),
    })
}

fn of_source(index: usize, verdict: &Verdict) -> Value {
    json!({
        "index": index,
        "role": verdict.role,
        "repo_url": verdict.source.repo_url,
        "target_revision": verdict.source.target_revision,
        "refresh": verdict.rule.is_none(),
        "rule": verdict.rule.map(judge::Rule::name),
        "detail": verdict.detail,
        "hint": verdict.hint,
    })
}
