//! Puts the rules together: which Applications an event touches (argo-cd v3.5.1 util/webhook/webhook.go,
//! `HandleEvent`). Pure.

use kit::{paths, version::Version};

use super::{
    application::{App, Source},
    reference,
    seen::Seen,
    url::{self, Wanted},
};

/// A rule that an event must pass to touch a source, in the order in which they are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The repository is the source's.
    Url,
    /// The ref is the one that the source follows.
    Ref,
    /// A changed file is among the paths that the Application names.
    Paths,
}

impl Rule {
    /// As it is printed.
    pub fn name(self) -> &'static str {
        match self {
            Rule::Url => "url",
            Rule::Ref => "ref",
            Rule::Paths => "paths",
        }
    }
}

/// How one source fares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The source.
    pub source: Source,
    /// What it is to the Application: `source`, or the hydrator's `sync` or `dry`.
    pub role: &'static str,
    /// The first rule that kept it out; `None` when it is touched.
    pub rule: Option<Rule>,
    /// What was compared.
    pub detail: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// An event, ready to be held against Applications.
#[derive(Clone, Debug)]
pub struct Judge {
    seen: Seen,
    wanted: Vec<(String, Option<Wanted>)>,
    version: Version,
}

impl Judge {
    /// Takes an event and the version whose rules hold.
    pub fn new(seen: Seen, version: Version) -> Self {
        let wanted = seen.urls.iter().map(|url| (url.clone(), Wanted::of(url, version))).collect();
        Judge { seen, wanted, version }
    }

    /// Judges each source of an Application.
    pub fn sources(&self, app: &App) -> Vec<Verdict> {
        let sources = sources(app, self.version);
        let bases: Vec<&str> = sources.iter().map(|(source, _)| source.path.as_str()).collect();
        sources.iter().map(|(source, role)| self.source(app, source, role, &bases)).collect()
    }

    fn source(&self, app: &App, source: &Source, role: &'static str, bases: &[&str]) -> Verdict {
        let (rule, detail, hint) = self.rules(app, source, role, bases);
        Verdict { source: source.clone(), role, rule, detail, hint }
    }

    fn rules(&self, app: &App, source: &Source, role: &str, bases: &[&str]) -> (Option<Rule>, String, Option<String>) {
        let (seen, version) = (&self.seen, self.version);
        let repo_url = source.repo_url.as_str();
        if !self.wanted.iter().any(|(_, wanted)| wanted.as_ref().is_some_and(|wanted| wanted.matches(repo_url))) {
            let events = seen.urls.join(" and ");
            let hint = seen.urls.iter().find_map(|event| url::hint(event, repo_url, version));
            return (Some(Rule::Url), format!("event {events}, repoURL {repo_url}"), hint);
        }
        let target = source.target_revision.as_str();
        if !reference::matches(target, seen, version) {
            let shown = if target.is_empty() { "HEAD" } else { target };
            let detail = format!("event `{}`, targetRevision `{shown}`", seen.name);
            return (Some(Rule::Ref), detail, Some(reference::hint(target, seen, version)));
        }
        let (named, items) = paths_of(app, source, role, bases, version);
        if let Some(detail) = all_files(&items, &seen.files, version) {
            return (None, detail.into(), None);
        }
        if let Some(file) = seen.files.iter().find(|file| items.iter().any(|item| paths::hits(item, file, version))) {
            return (None, format!("{file} is among {named}"), None);
        }
        let mut hint = String::from("none of the files pushed is among these paths, so nothing is asked to refresh");
        if !seen.before.is_empty() && !seen.after.is_empty() {
            hint.push_str(
                "; the server moves the cached manifests to the new commit, and status.sync.revision stays at the old \
                 one until the next refresh",
            );
        }
        (Some(Rule::Paths), format!("{} files, paths {named}", seen.files.len()), Some(hint))
    }
}

/// Why every file counts; `None` when they have to be looked at.
fn all_files(items: &[String], files: &[String], version: Version) -> Option<&'static str> {
    // v2.11.0 to .4 took an event without files for one that changes nothing.
    let blind = version >= Version(2, 11, 0) && version < Version(2, 11, 5);
    if files.is_empty() && !blind {
        Some("the event tells no files, and so touches everything")
    } else if items.is_empty() && !files.is_empty() {
        Some("no paths are named, and so every push counts")
    } else {
        None
    }
}

/// Since these versions each source has its own paths, and the hydrator's dry source is one among the others.
fn by_source(version: Version) -> bool {
    match version {
        Version(3, 0, patch) => patch >= 23,
        Version(3, 1, patch) => patch >= 12,
        Version(3, 2, patch) => patch >= 6,
        other => other >= Version(3, 3, 0),
    }
}

/// The paths that count for a source: as the user wrote them, and ready to be compared.
fn paths_of(app: &App, source: &Source, role: &str, bases: &[&str], version: Version) -> (String, Vec<String>) {
    if role == "sync" && by_source(version) {
        return (source.path.clone(), paths::items(".", &source.path, version));
    }
    let annotation = app.annotations.get(paths::ANNOTATION).map(String::as_str).unwrap_or_default();
    let own = [source.path.as_str()];
    let bases = if by_source(version) { &own[..] } else { bases };
    let mut items: Vec<String> = bases.iter().flat_map(|base| paths::items(annotation, base, version)).collect();
    items.sort_unstable();
    items.dedup();
    (annotation.to_owned(), items)
}

fn sources(app: &App, version: Version) -> Vec<(Source, &'static str)> {
    let spec = &app.spec;
    if let Some(hydrator) = spec.source_hydrator.as_ref().filter(|_| version >= Version(2, 14, 0)) {
        let (sync, dry) = (&hydrator.sync_source, &hydrator.dry_source);
        let sync = Source {
            repo_url: if sync.repo_url.is_empty() { dry.repo_url.clone() } else { sync.repo_url.clone() },
            target_revision: sync.target_branch.clone(),
            path: sync.path.clone(),
        };
        let mut both = vec![(sync, "sync")];
        if version >= Version(2, 14, 11) {
            both.push((dry.clone(), "dry"));
        }
        return both;
    }
    match spec.sources.as_deref() {
        Some(sources) if !sources.is_empty() => sources.iter().map(|source| (source.clone(), "source")).collect(),
        _ => vec![(spec.source.clone().unwrap_or_default(), "source")],
    }
}
