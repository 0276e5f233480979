//! What is waited for, and which sources of an Application can show it.

use std::{borrow::Cow, collections::BTreeSet};

use crate::{
    revision::{same_commit, same_repository},
    view::{Source, View},
};

/// The commit that is waited for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wanted {
    /// Its id, possibly abbreviated.
    pub commit: String,
    /// The repository that it is in, by each of its addresses; empty when nobody said.
    pub repo_urls: Vec<String>,
    /// The source that is meant, when the user chose one.
    pub source: Option<SourceChoice>,
    /// It is a commit of dry manifests.
    pub dry: bool,
    /// Newer commits that are known to contain it.
    pub contained_in: BTreeSet<String>,
}

/// A source of an Application as the user names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceChoice {
    /// Counted from 1, as the argocd command does.
    Position(usize),
    /// Its `name`, its `ref` or its URL.
    Name(String),
}

impl std::str::FromStr for SourceChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(0) => Err("sources are counted from 1".into()),
            Ok(position) => Ok(SourceChoice::Position(position)),
            Err(_) if text.is_empty() => Err("a source has a number or a name".into()),
            Err(_) => Ok(SourceChoice::Name(text.into())),
        }
    }
}

/// How a revision satisfies the wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    /// It is the commit.
    Exact,
    /// It is a newer commit that contains it.
    Newer,
}

/// Why an Application can never show the commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// All its sources are charts or images.
    NoGitSource,
    /// None of its Git sources is the commit's repository; these are they.
    OtherRepository(Vec<String>),
    /// It has no such source; it has so many.
    NoSuchSource(usize),
    /// The source chosen is a chart or an image.
    NotGit(String),
    /// It has no source hydrator.
    NotHydrated,
}

impl Wanted {
    /// Whether a revision is the commit, or contains it.
    pub fn accepts(&self, revision: &str) -> Option<Match> {
        if same_commit(&self.commit, revision) {
            Some(Match::Exact)
        } else if self.contained_in.iter().any(|newer| same_commit(newer, revision)) {
            Some(Match::Newer)
        } else {
            None
        }
    }

    /// The positions, counted from 0, of the sources whose revision can be the commit.
    ///
    /// # Errors
    /// When there is none.
    pub fn sources(&self, view: &View) -> Result<Vec<usize>, Unfit> {
        let sources = sources(view, self.dry);
        if self.dry && view.spec.source_hydrator.is_none() {
            return Err(Unfit::NotHydrated);
        }
        if let Some(choice) = &self.source {
            let position = match choice {
                SourceChoice::Position(position) => Some(position - 1).filter(|at| *at < sources.len()),
                SourceChoice::Name(name) => sources
                    .iter()
                    .position(|source| source.name == *name || source.reference == *name)
                    .or_else(|| sources.iter().position(|source| same_repository(&source.repo_url, name))),
            };
            let position = position.ok_or(Unfit::NoSuchSource(sources.len()))?;
            return if sources[position].is_git() {
                Ok(vec![position])
            } else {
                Err(Unfit::NotGit(sources[position].repo_url.clone()))
            };
        }
        let ours = |source: &Source| {
            self.repo_urls.is_empty() || self.repo_urls.iter().any(|url| same_repository(url, &source.repo_url))
        };
        if !sources.iter().any(|source| source.is_git()) {
            return Err(Unfit::NoGitSource);
        }
        let found: Vec<usize> = sources
            .iter()
            .enumerate()
            .filter(|(_, source)| source.is_git() && ours(source))
            .map(|(at, _)| at)
            .collect();
        if found.is_empty() {
            let urls = sources.iter().filter(|source| source.is_git()).map(|source| source.repo_url.clone()).collect();
            return Err(Unfit::OtherRepository(urls));
        }
        Ok(found)
    }

    /// The revision of the source that is looked at: the one that is the commit, else the first that could be.
    pub fn shown(&self, view: &View) -> String {
        if self.dry {
            let status = &view.status.source_hydrator;
            let last = status.last_successful_operation.as_ref().and_then(|operation| operation.dry_sha.clone());
            let compared = status.last_compared_dry_revision.clone().filter(|sha| self.accepts(sha).is_some());
            return compared.or(last).unwrap_or_default();
        }
        let sync = &view.status.sync;
        if !is_multi_source(view) {
            return sync.revision.clone().unwrap_or_default();
        }
        let positions = self.sources(view).unwrap_or_default();
        let mut revisions = positions.iter().filter_map(|position| sync.revisions.get(*position));
        let first = revisions.clone().next();
        revisions.find(|revision| self.accepts(revision).is_some()).or(first).cloned().unwrap_or_default()
    }
}

/// The sources of an Application, in the order of `status.sync.revisions`. `spec.source` is ignored when there are
/// `sources`, and both are when there is a hydrator, whose sync source may leave its URL to the dry one
/// (argo-cd v3.5.1 pkg/apis/application/v1alpha1/types.go).
pub fn sources(view: &View, dry: bool) -> Vec<Cow<'_, Source>> {
    let Some(hydrator) = &view.spec.source_hydrator else {
        let one = view.spec.source.iter().filter(|_| view.spec.sources.is_empty());
        return view.spec.sources.iter().chain(one).map(Cow::Borrowed).collect();
    };
    let source = if dry { &hydrator.dry_source } else { &hydrator.sync_source };
    if source.repo_url.is_empty() {
        return vec![Cow::Owned(Source { repo_url: hydrator.dry_source.repo_url.clone(), ..source.clone() })];
    }
    vec![Cow::Borrowed(source)]
}

/// Whether the revisions are in `status.sync.revisions`.
pub fn is_multi_source(view: &View) -> bool {
    view.spec.source_hydrator.is_none() && !view.spec.sources.is_empty()
}
