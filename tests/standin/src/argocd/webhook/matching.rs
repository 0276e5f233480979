//! Which Applications an event touches, by the rules of each version (argo-cd v3.5.1 util/webhook/webhook.go and
//! util/app/path/path.go, and their older forms).

use regex::Regex;
use serde_json::Value;

use super::event::{Provider, Push, last_part, push};
use crate::argocd::{
    gopath, gourl,
    semver::{Constraint, Library, Semver},
    version::Version,
};

/// The three tests that one source has to pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The event's repository is the source's.
    Url,
    /// The event's ref is the source's target revision.
    Ref,
    /// A changed file is below the paths that the Application names.
    Paths,
}

/// How one source did. A test is made even when one before it failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceVerdict {
    /// `spec.source`, or the place in `spec.sources`; of a hydrated Application 0 is the sync source, 1 the dry one.
    pub index: usize,
    /// The source's repository matches one of the event's addresses.
    pub url: bool,
    /// The target revision matches.
    pub reference: bool,
    /// The paths match.
    pub paths: bool,
    /// It is the dry source of a hydrated Application.
    pub dry: bool,
}

impl SourceVerdict {
    /// The first rule that failed, in the order URL, ref, paths; `None` when the source matches.
    pub fn rule(&self) -> Option<Rule> {
        [(self.url, Rule::Url), (self.reference, Rule::Ref), (self.paths, Rule::Paths)]
            .into_iter()
            .find_map(|(passed, rule)| (!passed).then_some(rule))
    }
}

/// What the server does about one Application.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// It is asked to refresh.
    pub refresh: bool,
    /// It is asked to hydrate, too.
    pub hydrate: bool,
    /// The indices of sources whose cached manifests are moved from the commit before to the one after.
    pub moves_cache: Vec<usize>,
    /// Each source.
    pub sources: Vec<SourceVerdict>,
}

/// What a server of `version` does about `application` when `provider` sends `body`.
pub fn refreshes(provider: Provider, body: &Value, application: &Value, version: Version) -> Verdict {
    Matcher::of(push(provider, body, version), version).judge(application)
}

/// One push, made ready to be held against many Applications.
pub struct Matcher {
    push: Push,
    version: Version,
    patterns: Vec<Regex>,
}

impl Matcher {
    /// For a server of `version`.
    pub fn of(push: Push, version: Version) -> Matcher {
        let patterns = push.urls.iter().filter_map(|url| url_pattern(url, version)).collect();
        Matcher { push, version, patterns }
    }

    /// What the server does about `application`.
    pub fn judge(&self, application: &Value) -> Verdict {
        let Matcher { push, version, patterns } = self;
        let spec = &application["spec"];
        let hydrated = version.at_least(2, 14) && spec["sourceHydrator"].is_object();
        let mut sources = sources(spec, hydrated);
        if hydrated && version.since(&[(2, 14, 11), (3, 0, 0)]) {
            sources.push(Source::of(&spec["sourceHydrator"]["drySource"]));
        }
        let dry = hydrated.then(|| Source::of(&spec["sourceHydrator"]["drySource"]));
        let mut verdict = Verdict::default();
        for (index, source) in sources.iter().enumerate() {
            let paths = refresh_paths(application, source, &sources, hydrated && index == 0, *version);
            verdict.sources.push(SourceVerdict {
                index,
                url: patterns.iter().any(|pattern| pattern.is_match(&source.repo_url)),
                reference: reference_matches(&source.target_revision, push, *version),
                paths: files_matter(&paths, &push.files, *version),
                dry: dry.as_ref() == Some(source),
            });
        }
        decide(&mut verdict, push, *version, hydrated);
        verdict
    }
}

/// Whether the two changes to `hydrate` and to the order of the sources are in (argo-cd v3.2.6 and its like).
fn tests_by_source(version: Version) -> bool {
    version.since(&[(3, 0, 23), (3, 1, 12), (3, 2, 6), (3, 3, 0)])
}

fn decide(verdict: &mut Verdict, push: &Push, version: Version, hydrated: bool) {
    let known = !push.before.is_empty() && !push.after.is_empty();
    for source in &verdict.sources {
        match source.rule() {
            None => {
                verdict.refresh = true;
                verdict.hydrate |= source.dry || (version.at_least(2, 14) && !tests_by_source(version));
                // The old order: the dry source first and on its own, the others after it.
                if tests_by_source(version) || !hydrated {
                    break;
                }
            }
            Some(Rule::Paths) if known && (tests_by_source(version) || !source.dry) => {
                verdict.moves_cache.push(source.index);
            }
            Some(_) => {}
        }
    }
}

/// The three fields of a source that count.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Source {
    repo_url: String,
    target_revision: String,
    path: String,
}

impl Source {
    fn of(value: &Value) -> Source {
        let text = |field: &str| value[field].as_str().unwrap_or_default().to_owned();
        Source { repo_url: text("repoURL"), target_revision: text("targetRevision"), path: text("path") }
    }
}

fn sources(spec: &Value, hydrated: bool) -> Vec<Source> {
    if hydrated {
        let (sync, dry) = (&spec["sourceHydrator"]["syncSource"], &spec["sourceHydrator"]["drySource"]);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let own = text(&sync["repoURL"]);
        return vec![Source {
            repo_url: if own.is_empty() { text(&dry["repoURL"]) } else { own },
            target_revision: text(&sync["targetBranch"]),
            path: text(&sync["path"]),
        }];
    }
    match spec["sources"].as_array() {
        Some(sources) if !sources.is_empty() => sources.iter().map(Source::of).collect(),
        _ => vec![Source::of(&spec["source"])],
    }
}

/// The expression that a `repoURL` has to match; `None` when the event's address does not parse.
pub fn url_pattern(url: &str, version: Version) -> Option<Regex> {
    let url = gourl::parse(url)?;
    let path = if version.at_least(2, 11) { url.escaped_path } else { String::from_utf8_lossy(&url.path).into_owned() };
    let host = regex::escape(&url.hostname);
    let path = regex::escape(path.strip_prefix('/').unwrap_or(&path));
    let user = r"[A-Za-z0-9_.][A-Za-z0-9_.-]{0,30}[A-Za-z0-9_.$-]?@";
    let before_path = r"(?::[0-9]+)?[:/]";
    let pattern = if version.at_least(3, 0) {
        format!(r"(?i)^(?:(?:https?|ssh)://)?(?:{user})?(?:(?:alt)?ssh\.)?{host}{before_path}{path}(?:\.git)?$")
    } else {
        format!(r"(?i)^(?:https?://|{user}|ssh://(?:{user})?){host}{before_path}{path}(?:\.git)?$")
    };
    Regex::new(&pattern).ok()
}

fn reference_matches(target: &str, push: &Push, version: Version) -> bool {
    let last = last_part(target);
    if last.is_empty() || last == "HEAD" {
        return push.touched_head;
    }
    let full = target.starts_with("refs/heads/") || target.starts_with("refs/tags/");
    revisions_match(&push.revision, if full { last } else { target }, version)
}

/// Whether a name is the one wanted, or a version in the range wanted.
fn revisions_match(revision: &str, wanted: &str, version: Version) -> bool {
    if wanted == revision {
        return true;
    }
    if !version.since(&[(2, 14, 9), (3, 0, 0)]) {
        return false;
    }
    let library = Library::of(version);
    match (Constraint::parse(wanted, library), Semver::parse(revision, library)) {
        (Some(constraint), Some(pushed)) => constraint.contains(&pushed, library),
        _ => false,
    }
}

const PATHS: &str = "argocd.argoproj.io/manifest-generate-paths";

fn refresh_paths(application: &Value, source: &Source, all: &[Source], sync: bool, version: Version) -> Vec<String> {
    let by_source = tests_by_source(version);
    if sync && by_source {
        return vec![source.path.clone()];
    }
    let list = application["metadata"]["annotations"][PATHS].as_str().unwrap_or_default();
    let mut paths = Vec::new();
    for item in list.split(';') {
        let item = if version.at_least(3, 4) { item.trim() } else { item };
        if item.is_empty() {
            continue;
        }
        let bases = if by_source { std::slice::from_ref(source) } else { all };
        match item.strip_prefix('/') {
            Some(absolute) => paths.push(absolute.to_owned()),
            None => paths.extend(bases.iter().map(|base| gopath::clean(&gopath::join(&base.path, item)))),
        }
    }
    paths
}

fn files_matter(paths: &[String], files: &[String], version: Version) -> bool {
    if files.is_empty() {
        // These five took an event without files for one that changes nothing.
        return !(version.at_least(2, 11) && version < Version::new(2, 11, 5));
    }
    let absolute = |path: &str| if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    paths.is_empty()
        || files.iter().map(|file| absolute(file)).any(|file| {
            paths.iter().map(|path| absolute(path)).any(|path| {
                file == path || is_inside(&path, &file) || (version.at_least(2, 12) && gopath::matches(&path, &file))
            })
        })
}

/// Whether the folder that holds `file` is `folder` or below it (argo-cd util/security/path_traversal.go).
fn is_inside(folder: &str, file: &str) -> bool {
    let (folder, holder) = (gopath::clean(folder), gopath::dir(file));
    folder == "/" || holder == folder || holder.starts_with(&format!("{folder}/"))
}

/// Whether the handler of a server of `version` panics over a push instead of matching it.
pub fn panics(provider: Provider, body: &Value, version: Version) -> bool {
    let before_fix = !version.since(&[(2, 14, 20), (3, 0, 19), (3, 1, 8), (3, 2, 0)]);
    match provider {
        Provider::Gogs if before_fix && !body["repository"].is_object() => return true,
        Provider::AzureDevOps if before_fix && !body["resource"]["refUpdates"][0].is_object() => return true,
        _ => {}
    }
    // The first character of the path was cut off without a look whether there is one.
    let has_no_path = |url: &String| gourl::parse(url).is_some_and(|url| url.path.is_empty());
    !version.at_least(3, 1) && push(provider, body, version).urls.iter().any(has_no_path)
}

/// Whether a new image at ghcr.io touches `application` (argo-cd v3.5.1 util/webhook/registry.go).
pub fn judge_image(url: &str, tag: &str, application: &Value, version: Version) -> bool {
    let spec = &application["spec"];
    let hydrated = spec["sourceHydrator"].is_object();
    let mut sources = sources(spec, hydrated);
    if hydrated {
        sources.push(Source::of(&spec["sourceHydrator"]["drySource"]));
    }
    let normal = |url: &str| {
        let url = url.strip_prefix("oci://").unwrap_or(url);
        url.strip_suffix('/').unwrap_or(url).to_lowercase()
    };
    let in_range = |target: &str| revisions_match(tag, target, version);
    sources.iter().any(|source| normal(&source.repo_url) == normal(url) && in_range(&source.target_revision))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn version(tag: &str) -> Version {
        Version::of_tag(tag)
    }

    /// Event address, repoURL, whether v3.5.1 and v2.14.0 see one repository (argo-cd util/webhook/webhook.go).
    #[test]
    fn addresses_match_as_the_table_says() {
        let hub = "https://github.com/o/r";
        for (event, repo_url, new, old) in [
            (hub, "https://github.com/o/r", true, true),
            (hub, "https://github.com/o/r.git", true, true),
            (hub, "http://github.com:8080/o/r", true, true),
            (hub, "HTTPS://GITHUB.COM/O/R", true, true),
            (hub, "git@github.com:o/r.git", true, true),
            (hub, "ssh://git@github.com:22/o/r", true, true),
            (hub, "github.com/o/r", true, false),
            (hub, "github.com:o/r", true, false),
            (hub, "ssh://git@ssh.github.com:443/o/r.git", true, false),
            (hub, "https://user@github.com/o/r", true, false),
            (hub, "https://github.com/o/r/", false, false),
            (hub, "https://github.com/o/r.git/", false, false),
            (hub, "https://user:pw@github.com/o/r", false, false),
            (hub, "git://github.com/o/r", false, false),
            (hub, "git@github.com:/o/r", false, false),
            (hub, "https://www.github.com/o/r", false, false),
            ("https://github.com/o/r/", "https://github.com/o/r/", true, true),
            ("https://github.com/o/r/", "https://github.com/o/r", false, false),
            ("http://host:8080/o/r", "http://host:99/o/r", true, true),
            ("http://[::1]/o/r", "http://[::1]/o/r", false, false),
            ("https://h/o r", "https://h/o%20r", true, true),
            ("https://h/o r", "https://h/o r", false, false),
            ("git@github.com:o/r", "git@github.com:o/r", false, false),
        ] {
            for (tag, expected) in [("v3.5.1", new), ("v2.14.0", old)] {
                let matches = url_pattern(event, version(tag)).is_some_and(|pattern| pattern.is_match(repo_url));
                assert_eq!(matches, expected, "{event} against {repo_url} on {tag}");
            }
        }
    }

    #[test]
    fn before_2_11_the_decoded_path_is_compared() {
        let matches = |tag| url_pattern("https://h/o%20r", version(tag)).unwrap().is_match("https://h/o r");
        assert_eq!(["v2.10.0", "v2.11.0"].map(matches), [true, false]);
    }

    fn reference(target: &str, pushed: &str, tag: &str) -> bool {
        let push =
            Push { revision: last_part(pushed).into(), touched_head: pushed == "refs/heads/main", ..Push::default() };
        reference_matches(target, &push, version(tag))
    }

    #[test]
    fn refs_match_by_name_default_branch_or_range() {
        for (target, pushed, expected) in [
            ("main", "refs/heads/main", true),
            ("Main", "refs/heads/main", false),
            ("refs/heads/a/b", "refs/heads/a/b", true),
            ("a/b", "refs/heads/a/b", true),
            ("a/b", "a/b", false),
            ("b", "a/b", true),
            ("v1", "refs/tags/v1", true),
            ("refs/heads/v1", "refs/tags/v1", true),
            ("", "refs/heads/main", true),
            ("HEAD", "refs/heads/main", true),
            ("origin/HEAD", "refs/heads/main", true),
            ("x/", "refs/heads/main", true),
            ("HEAD", "refs/heads/dev", false),
            ("head", "refs/heads/main", false),
            ("1.*", "refs/tags/v1.4.2", true),
            ("refs/tags/1.*", "refs/tags/v1.4.2", true),
            ("1.2", "refs/tags/1.2.9", true),
            ("1.*", "refs/tags/app/1.2.0", false),
            ("6c2bf0ba2c6c1d1a7e3b9a5f7d1f0f2c5f4f1a11", "refs/heads/main", false),
        ] {
            assert_eq!(reference(target, pushed, "v3.5.1"), expected, "{target:?} for {pushed}");
        }
    }

    #[test]
    fn ranges_came_with_2_14_9_and_pre_releases_open_a_group_since_3_2() {
        assert_eq!(["v2.14.8", "v2.14.9"].map(|tag| reference("1.*", "refs/tags/1.2.0", tag)), [false, true]);
        let range = ">=1.0.0-0 <2.0.0";
        assert_eq!(["v3.1.0", "v3.2.0"].map(|tag| reference(range, "refs/tags/1.2.0-rc1", tag)), [false, true]);
    }

    fn app(paths: &str, path: &str) -> Value {
        json!({
            "metadata": {"annotations": {PATHS: paths}},
            "spec": {"source": {"repoURL": "https://h/o/r", "targetRevision": "main", "path": path}},
        })
    }

    fn body(files: &[&str]) -> Value {
        json!({
            "ref": "refs/heads/main", "before": "b", "after": "a",
            "repository": {"html_url": "https://h/o/r", "default_branch": "main"},
            "commits": [{"modified": files}],
        })
    }

    #[test]
    fn paths_decide_between_a_refresh_and_a_moved_cache() {
        for (paths, path, file, tag, expected) in [
            (".", "apps/a", "apps/a/x.yaml", "v3.5.1", true),
            (".", "apps/a", "apps/ab/x.yaml", "v3.5.1", false),
            (".", "", "anything", "v3.5.1", true),
            ("/", "apps/a", "anything", "v3.5.1", true),
            ("../b", "apps/a", "apps/b/c/d", "v3.5.1", true),
            ("../../../..", "apps/a", "other", "v3.5.1", true),
            ("/shared/*.yaml", "apps/a", "shared/x.yaml", "v3.5.1", true),
            ("/shared/*.yaml", "apps/a", "shared/x.yaml", "v2.11.5", false),
            ("/shared/*.yaml", "apps/a", "shared/d/x.yaml", "v3.5.1", false),
            ("/shared/**", "apps/a", "shared/d/x.yaml", "v3.5.1", false),
            ("/s/*", "apps/a", "s/d/x.yaml", "v3.5.1", false),
            (".; /shared", "apps/a", "shared/x.yaml", "v3.4.0", true),
            (".; /shared", "apps/a", "shared/x.yaml", "v3.3.0", false),
            ("  ; ", "apps/a", "zzz", "v3.5.1", true),
            ("", "apps/a", "zzz", "v3.5.1", true),
            ("/Shared", "apps/a", "shared/x", "v3.5.1", false),
        ] {
            let verdict = refreshes(Provider::GitHub, &body(&[file]), &app(paths, path), version(tag));
            assert_eq!(verdict.refresh, expected, "{paths:?} on {path:?} for {file} on {tag}");
            assert_eq!(verdict.moves_cache, if expected { vec![] } else { vec![0] }, "{paths:?} {file}");
        }
        let nothing = refreshes(Provider::GitHub, &body(&[]), &app("/x", "a"), version("v3.5.1"));
        assert!(nothing.refresh, "an event without files refreshes all");
    }

    fn hydrated() -> Value {
        json!({"metadata": {"annotations": {PATHS: "."}}, "spec": {"sourceHydrator": {
            "drySource": {"repoURL": "https://h/o/r", "targetRevision": "main", "path": "dry"},
            "syncSource": {"targetBranch": "env/prod", "path": "out"},
        }}})
    }

    #[test]
    fn a_hydrated_application_hydrates_when_its_dry_source_matches() {
        let verdict = |tag| refreshes(Provider::GitHub, &body(&["dry/x"]), &hydrated(), version(tag));
        let new = verdict("v3.5.1");
        assert_eq!((new.refresh, new.hydrate), (true, true));
        assert_eq!(new.sources.iter().map(SourceVerdict::rule).collect::<Vec<_>>(), [Some(Rule::Ref), None]);
        assert!(!verdict("v2.14.10").refresh, "the dry source was not tested before 2.14.11");
        let mut synced = body(&["out/x"]);
        synced["ref"] = json!("refs/heads/env/prod");
        let sync = refreshes(Provider::GitHub, &synced, &hydrated(), version("v3.5.1"));
        assert_eq!((sync.refresh, sync.hydrate), (true, false));
    }

    #[test]
    fn the_first_matching_source_is_enough() {
        let app = json!({"spec": {"sources": [
            {"repoURL": "https://charts/x", "chart": "x", "targetRevision": "1.0.0"},
            {"repoURL": "https://h/o/r", "targetRevision": "main", "ref": "values"},
            {"repoURL": "https://h/o/r", "targetRevision": "dev"},
        ], "source": {"repoURL": "https://elsewhere/x"}}});
        let verdict = refreshes(Provider::GitHub, &body(&[]), &app, version("v3.5.1"));
        let rules: Vec<_> = verdict.sources.iter().map(SourceVerdict::rule).collect();
        assert_eq!((verdict.refresh, rules), (true, vec![Some(Rule::Url), None, Some(Rule::Ref)]));
    }

    #[test]
    fn every_provider_has_its_own_fields() {
        let app = app("", "a");
        let bodies = [
            (Provider::GitLab, json!({"ref": "refs/heads/main", "project": {"web_url": "https://h/o/r"}})),
            (Provider::Gogs, json!({"ref": "refs/heads/main", "repository": {"html_url": "https://h/o/r"}})),
            (
                Provider::Bitbucket,
                json!({"repository": {"links": {"html": {"href": "https://h/o/r"}}},
                "push": {"changes": [{"new": {"name": "main"}}]}}),
            ),
            (
                Provider::BitbucketServer,
                json!({"repository": {"links": {"clone": [
                {"name": "ssh", "href": "ssh://git@h:7999/o/x.git"}, {"name": "http", "href": "https://h/o/r"}]}},
                "changes": [{"ref": {"id": "refs/heads/main"}}]}),
            ),
            (
                Provider::AzureDevOps,
                json!({"resource": {"repository": {"remoteUrl": "https://h/o/r"},
                "refUpdates": [{"name": "refs/heads/main"}]}}),
            ),
        ];
        for (provider, body) in bodies {
            assert!(refreshes(provider, &body, &app, version("v3.5.1")).refresh, "{provider:?}");
        }
    }
}
