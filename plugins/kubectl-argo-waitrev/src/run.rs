//! What one run knows: it takes in events, prints the lines of `--stream`, and makes the report.

use std::{collections::BTreeSet, time::Duration};

use kit::{
    application::AppName, command::Report, duration, error::Error, exit::Exit, output, record::Record, talk::Talk,
};
use serde_json::{Map, json};

use crate::{
    account::{Account, Cause},
    ancestry::Repository,
    args::Args,
    change::State,
    clock::At,
    condition::{Level, Reason},
    group::{Group, Members},
    outcome::{End, Outcome},
    report::{self, Course},
    revision::{is_commit, short},
    rules::Rules,
    scope::Scope,
    view::View,
    watch::Event,
    windows::Project,
};

/// What one run knows.
pub struct Run<'a> {
    /// The Applications.
    pub group: Group,
    /// What is asked for.
    pub rules: Rules,
    /// Whether the first look is over.
    pub looked: bool,
    /// What cannot be found out at the moment.
    trouble: Option<Error>,
    course: Course,
    scope: &'a Scope,
    talk: &'a Talk,
    stream: bool,
    repository: Option<Repository>,
    /// The namespace of Argo CD, where AppProjects are.
    argocd: String,
    /// The AppProjects that were asked for.
    projects: BTreeSet<AppName>,
    /// Revisions that are known not to contain the commit.
    older: BTreeSet<String>,
    /// Revisions that the clone does not have, as far as it was said.
    missing: BTreeSet<String>,
}

impl<'a> Run<'a> {
    /// A run that saw nothing yet.
    pub fn new(
        rules: Rules,
        members: Members,
        scope: &'a Scope,
        talk: &'a Talk,
        args: &Args,
        repository: Option<Repository>,
    ) -> Self {
        Run {
            group: Group::new(members),
            rules,
            argocd: args.cluster.namespace.clone(),
            projects: BTreeSet::new(),
            looked: false,
            trouble: None,
            course: Course::default(),
            scope,
            talk,
            stream: args.stream,
            repository,
            older: BTreeSet::new(),
            missing: BTreeSet::new(),
        }
    }

    /// The clone and the revisions in an event that only it can tell about.
    pub fn questions(&self, event: &Event) -> Option<(Repository, Vec<String>)> {
        let repository = self.repository.clone()?;
        let views = match event {
            Event::Listed { views, .. } => views.as_slice(),
            Event::Changed(view, _) => std::slice::from_ref(view),
            _ => return None,
        };
        let open = |revision: &&String| {
            is_commit(revision) && !self.older.contains(*revision) && self.rules.wanted.accepts(revision).is_none()
        };
        let revisions: BTreeSet<String> = views.iter().flat_map(|view| revisions(view)).filter(open).cloned().collect();
        (!revisions.is_empty()).then(|| (repository, revisions.into_iter().collect()))
    }

    /// What the clone says about a revision.
    pub fn answer(&mut self, revision: String, contains: Option<bool>) {
        match contains {
            Some(true) => drop(self.rules.wanted.contained_in.insert(revision)),
            Some(false) => drop(self.older.insert(revision)),
            None => {
                if let Some(repository) = &self.repository
                    && self.missing.insert(revision.clone())
                {
                    let dir = repository.dir().display();
                    self.talk.warn(format!(
                        "{} or the commit is not in {dir}, so nothing is known about it: `git -C {dir} fetch` brings it",
                        short(&revision)
                    ));
                }
            }
        }
    }

    /// An Application that is not synced although it could be, and the AppProject whose sync windows may be the reason;
    /// each project is asked for once.
    pub fn held_back(&mut self, name: Option<&AppName>) -> Option<(AppName, AppName)> {
        if self.rules.level == Level::Compared || self.rules.hold.is_some() {
            return None;
        }
        let project = |account: &Account| {
            let held = account.judgement.as_ref()?.reason == Reason::OutOfSync && account.end.is_none();
            let view = account.view.as_ref().filter(|view| held && view.auto_sync())?;
            let owner = Some(&view.status.controller_namespace).filter(|namespace| !namespace.is_empty());
            let namespace = owner.unwrap_or(&self.argocd).clone();
            Some((account.name.clone(), AppName { namespace, name: view.spec.project.clone() }))
        };
        let new = |found: &(AppName, AppName)| !self.projects.contains(&found.1);
        let found = match name {
            Some(name) => self.group.accounts.get(name).and_then(|account| project(account)).filter(new),
            None => self.group.accounts.values().filter_map(|account| project(account)).find(new),
        }?;
        self.projects.insert(found.1.clone());
        Some(found)
    }

    /// Warns when the windows of a project are closed for as long as there is time.
    pub fn windows(&self, name: &AppName, project: &Project, now: At, left: Duration) {
        let view = self.group.accounts.get(name).and_then(|account| account.view.as_ref());
        if view.is_some_and(|view| project.is_closed(view, now.wall.ms(), left)) {
            self.talk.warn(format!("the sync windows of its project keep {name} from being synced until the deadline"));
        }
    }

    /// Takes in an event.
    ///
    /// # Errors
    /// When a selector finds nothing; exit code 2.
    pub fn take(&mut self, event: Event) -> Result<(), Error> {
        match event {
            Event::Listed { views, cause, gap, at } => {
                if cause == Cause::FirstLook
                    && views.is_empty()
                    && self.scope.names().is_empty()
                    && self.group.is_complete()
                {
                    let message = format!("no Application matches in {}", self.scope.place());
                    return Err(Error::usage("not-found", message).hint(
                        "check the selector and the namespace (-n, -A); --expect-count waits for Applications to be made",
                    ));
                }
                self.course.watch_gaps += u32::from(gap && !self.course.polled);
                self.looked = true;
                let before = self.states();
                self.group.listed(views, at, cause, &self.rules);
                self.tell(before, at);
            }
            Event::Changed(view, at) => {
                let name = view.name();
                self.one(name, at, |group, rules| group.see(view, at, Cause::Change, rules));
            }
            Event::Gone(view, at) => {
                let name = view.name();
                self.one(name.clone(), at, |group, rules| group.gone(&name, at, rules));
            }
            Event::Broken => self.course.watch_restarts += 1,
            Event::Trouble(error) => self.trouble = Some(error),
            Event::Working => self.trouble = None,
            Event::Polling => {
                self.course.polled = true;
                self.talk.warn("watching Applications is not allowed, so they are looked at every second");
            }
        }
        Ok(())
    }

    /// Begins, once the first look is over.
    pub fn begin(&mut self, now: At) {
        if self.looked && !self.group.has_begun() {
            let before = self.states();
            self.group.begin(now, &self.rules);
            self.tell(before, now);
        }
    }

    /// Whether there is nothing left to wait for.
    pub fn is_decided(&self) -> bool {
        self.looked && self.group.is_decided(&self.rules)
    }

    /// Lets time pass.
    pub fn tick(&mut self, now: At) {
        let before = self.states();
        self.group.tick(now, &self.rules);
        self.tell(before, now);
    }

    /// The deadline passed; the end that this is, when it is not about the Applications.
    pub fn deadline(&mut self, now: At) -> Option<End> {
        let lost = self.lost();
        if lost.is_none() && !self.looked {
            return Some(unreachable("no answer to the first look"));
        }
        if lost.is_none() {
            self.group.give_up(now, &self.rules);
        }
        lost
    }

    /// The end that a run has which cannot find out anything any more.
    pub fn lost(&mut self) -> Option<End> {
        self.trouble.take().map(|error| unreachable(&error.message))
    }

    /// Draws the line about what is waited for.
    pub fn draw(&self, now: At, length: Duration) {
        let waited = now.elapsed.saturating_sub(self.rules.start.elapsed);
        let what = match &self.trouble {
            Some(error) => format!("trying again: {error}"),
            None if !self.looked => format!("looking for Applications in {}", self.scope.place()),
            None => self.group.describe(&self.rules),
        };
        let left = length.saturating_sub(waited);
        self.talk.status(&what, &format!("{}, {} left", duration::go(waited), duration::go(left)));
    }

    /// Makes the report; `outside` is what ended the run when it was not the Applications.
    pub fn report(mut self, record: Record, single: bool, outside: Option<End>, now: At) -> Report {
        if let Some(end) = &outside {
            self.group.stop(now, end, &self.rules);
        }
        // The first key of a line says what it is.
        let mut object = if self.stream { Map::from_iter([("type".into(), json!(null))]) } else { Map::new() };
        object.extend(report::clean(record.0));
        if self.stream {
            object.insert("type".into(), json!("result"));
        }
        if let (true, true, Some(name)) = (single, self.group.accounts.is_empty(), self.scope.names().first()) {
            object.insert("app".into(), json!(name.name));
            object.insert("namespace".into(), json!(name.namespace));
        }
        let (mut exit, mut error) = self.group.verdict();
        report::add(&mut object, self.group, &self.rules, self.course, single);
        if let Some(end) = outside {
            object.insert("outcome".into(), json!(end.outcome.word()));
            (exit, error) = (end.exit, end.error);
        }
        Report { object, exit, error, stream: self.stream }
    }

    fn one(&mut self, name: AppName, at: At, change: impl FnOnce(&mut Group, &Rules)) {
        let state = |run: &Self| State::of(run.group.accounts.get(&name).map(|account| &**account), &run.rules);
        let before = if self.stream { state(self) } else { State::default() };
        change(&mut self.group, &self.rules);
        if self.stream {
            self.line(&before, &state(self), &name, at);
        }
    }

    /// The states of all, where lines are printed about them.
    fn states(&self) -> Vec<(AppName, State)> {
        if !self.stream {
            return Vec::new();
        }
        let accounts = self.group.accounts.values();
        accounts.map(|account| (account.name.clone(), State::of(Some(account), &self.rules))).collect()
    }

    fn tell(&self, before: Vec<(AppName, State)>, at: At) {
        let before: std::collections::BTreeMap<AppName, State> = before.into_iter().collect();
        for (name, now) in self.states() {
            self.line(before.get(&name).unwrap_or(&State::default()), &now, &name, at);
        }
    }

    fn line(&self, before: &State, now: &State, name: &AppName, at: At) {
        if let Some(line) = now.line(before, name, at)
            && let Err(error) = output::line(&line)
        {
            self.talk.warn(format!("cannot write to stdout: {error}"));
        }
    }
}

/// The end of a run that cannot find out anything any more.
pub fn unreachable(why: &str) -> End {
    End::new(
        Exit::Unknown,
        Outcome::Unreachable,
        format!("the watch was lost: {why}"),
        Some("run the same command again".into()),
    )
}

/// All revisions that a version of an Application shows.
fn revisions(view: &View) -> impl Iterator<Item = &String> {
    let hydrator = &view.status.source_hydrator;
    let last = hydrator.last_successful_operation.as_ref().and_then(|operation| operation.dry_sha.as_ref());
    let sync = &view.status.sync;
    sync.revision.iter().chain(&sync.revisions).chain(last).chain(&hydrator.last_compared_dry_revision)
}
