//! The accounts of all Applications of one run, and when the whole is decided. Pure, as the accounts are.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use kit::{application::AppName, error::Error, exit::Exit};

use crate::{
    account::{Account, Cause},
    alarm::Alarms,
    clock::At,
    outcome::{End, Outcome, badness},
    rules::Rules,
    view::View,
    wanted::Unfit,
};

/// Which Applications are meant, and how many have to get there.
#[derive(Clone, Debug, Default)]
pub struct Members {
    /// Those named; empty when they are selected.
    pub names: BTreeSet<AppName>,
    /// One that gets there is enough.
    pub any: bool,
    /// So many there have to be, if the user said.
    pub expected: Option<usize>,
}

/// The accounts of all Applications of one run.
#[derive(Clone, Debug)]
pub struct Group {
    /// By name.
    pub accounts: BTreeMap<AppName, Box<Account>>,
    members: Members,
    begun: bool,
    /// Those that did not end yet.
    open: BTreeSet<AppName>,
    /// When time alone ends one of them.
    wakes: Alarms,
    /// When stillness will have lasted long enough.
    proofs: Alarms,
}

impl Group {
    /// No accounts yet.
    pub fn new(members: Members) -> Self {
        Group {
            accounts: BTreeMap::new(),
            members,
            begun: false,
            open: BTreeSet::new(),
            wakes: Alarms::default(),
            proofs: Alarms::default(),
        }
    }

    /// Takes in a list: the first look, or one that closes a gap. What is no longer in it is gone.
    pub fn listed(&mut self, views: Vec<Box<View>>, at: At, cause: Cause, rules: &Rules) {
        let names: BTreeSet<AppName> = views.iter().map(|view| view.name()).collect();
        for view in views {
            self.see(view, at, cause, rules);
        }
        let gone: Vec<AppName> = self.open.iter().filter(|name| !names.contains(*name)).cloned().collect();
        for name in gone {
            self.gone(&name, at, rules);
        }
    }

    /// Takes in a version of an Application; one that was not there before joins.
    pub fn see(&mut self, view: Box<View>, at: At, cause: Cause, rules: &Rules) {
        let name = view.name();
        let known = self.accounts.contains_key(&name);
        let account = self.accounts.entry(name.clone()).or_insert_with(|| Box::new(Account::new(name.clone())));
        if !known && let Err(unfit) = rules.wanted.sources(&view) {
            let end = unfit_end(&name, &unfit, !self.members.names.is_empty());
            account.view = Some(view);
            account.stop(at, end);
            return;
        }
        account.see(view, at, cause, rules);
        if self.begun {
            account.begin(at, rules);
        }
        self.settle(&name, rules);
    }

    /// An Application is no longer there.
    pub fn gone(&mut self, name: &AppName, at: At, rules: &Rules) {
        if let Some(account) = self.accounts.get_mut(name) {
            account.gone(at, rules);
            self.settle(name, rules);
        }
    }

    /// The commit is known and the first look is over.
    pub fn begin(&mut self, now: At, rules: &Rules) {
        self.begun = true;
        self.each(self.open.clone(), rules, |account| account.begin(now, rules));
    }

    /// Whether [`Group::begin`] was called.
    pub fn has_begun(&self) -> bool {
        self.begun
    }

    /// Lets time pass.
    pub fn tick(&mut self, now: At, rules: &Rules) {
        self.each(self.wakes.due(now.elapsed), rules, |account| account.tick(now, rules));
    }

    /// When [`Group::tick`] will have something to say.
    pub fn wake(&self) -> Option<Duration> {
        self.wakes.first()
    }

    /// When stillness will have lasted long enough for one of them: then they have to be looked at once more.
    pub fn proof_due(&self) -> Option<Duration> {
        self.proofs.first()
    }

    /// Ends what the deadline cut off.
    pub fn give_up(&mut self, now: At, rules: &Rules) {
        self.each(self.open.clone(), rules, |account| account.give_up(now, rules));
    }

    /// Ends all that is open with what happened outside.
    pub fn stop(&mut self, now: At, end: &End, rules: &Rules) {
        self.each(self.open.clone(), rules, |account| account.stop(now, end.clone()));
    }

    /// Whether the whole is decided.
    pub fn is_decided(&self, rules: &Rules) -> bool {
        let ended = || self.accounts.values().filter_map(|account| account.end.as_ref().map(|(end, _)| end));
        if rules.hold.is_some() && ended().any(|end| end.exit != Exit::Done) {
            return true;
        }
        if self.members.any && ended().any(|end| end.exit == Exit::Done && end.outcome != Outcome::Skipped) {
            return true;
        }
        self.begun && self.open.is_empty() && self.is_complete()
    }

    /// Whether there are as many Applications as the user expects.
    pub fn is_complete(&self) -> bool {
        self.members.expected.is_none_or(|expected| expected == self.count())
    }

    /// How many Applications there are that can show the commit.
    pub fn count(&self) -> usize {
        let there = |account: &Account| {
            !matches!(account.end, Some((End { outcome: Outcome::Deleted | Outcome::Skipped, .. }, _)))
        };
        self.accounts.values().filter(|account| there(account)).count()
    }

    /// How the whole ended: the exit code, and the error behind it.
    pub fn verdict(&self) -> (Exit, Option<Error>) {
        let ends = || self.accounts.values().filter_map(|account| account.end.as_ref().map(|(end, _)| end));
        let yes = |end: &End| end.exit == Exit::Done && end.outcome != Outcome::Skipped;
        if let (false, Some(expected)) = (self.is_complete(), self.members.expected) {
            let message = format!("{} Applications where {expected} are expected", self.count());
            let error = Error::new(Exit::Deadline, "count", message)
                .hint("check the selector, the namespace and --expect-count");
            let worse =
                ends().max_by_key(|end| badness(end.exit)).filter(|end| badness(end.exit) > badness(Exit::Deadline));
            return worse.map_or((Exit::Deadline, Some(error)), |end| (end.exit, end.error.clone()));
        }
        if self.members.any && ends().any(yes) {
            return (Exit::Done, None);
        }
        if !self.accounts.is_empty()
            && ends().count() == self.accounts.len()
            && ends().all(|end| end.outcome == Outcome::Skipped)
        {
            let message =
                format!("none of the {} Applications has a source that can show the commit", self.accounts.len());
            let error = Error::usage("no-source", message)
                .hint("check the selector and the record's `repo_url`; --source chooses a source");
            return (error.exit, Some(error));
        }
        match ends().max_by_key(|end| badness(end.exit)) {
            // A yes is one of all of them.
            Some(end) if end.exit != Exit::Done || self.open.is_empty() => (end.exit, end.error.clone()),
            _ => (Exit::Deadline, Some(Error::new(Exit::Deadline, "deadline", "the time was up before all was known"))),
        }
    }

    /// The outcome of the whole in one word: that of the one Application that decided it.
    pub fn outcome(&self) -> Outcome {
        let ends = self.accounts.values().filter_map(|account| account.end.as_ref().map(|(end, at)| (end, at)));
        if self.members.any {
            let first_yes = ends
                .clone()
                .filter(|(end, _)| end.exit == Exit::Done && end.outcome != Outcome::Skipped)
                .min_by_key(|(_, at)| at.elapsed);
            if let Some((end, _)) = first_yes {
                return end.outcome;
            }
        }
        // Of those that got there, the one that came last.
        ends.max_by_key(|(end, at)| (badness(end.exit), end.outcome != Outcome::Skipped, at.elapsed))
            .map_or(Outcome::Deadline, |(end, _)| end.outcome)
    }

    /// One line about where all of them stand.
    pub fn describe(&self, rules: &Rules) -> String {
        let mut accounts = self.accounts.values();
        match (accounts.next(), accounts.next()) {
            (None, _) => "no Application yet".into(),
            (Some(account), None) => format!("{}: {}", account.name, account.describe(rules)),
            _ => format!("{} of {} Applications to go", self.open.len(), self.accounts.len()),
        }
    }

    fn each(&mut self, names: BTreeSet<AppName>, rules: &Rules, change: impl Fn(&mut Account)) {
        for name in names {
            if let Some(account) = self.accounts.get_mut(&name) {
                change(account);
            }
            self.settle(&name, rules);
        }
    }

    fn settle(&mut self, name: &AppName, rules: &Rules) {
        let Some(account) = self.accounts.get(name) else { return };
        if account.end.is_none() {
            self.open.insert(name.clone());
        } else {
            self.open.remove(name);
        }
        self.wakes.set(name, account.wake(rules));
        self.proofs.set(name, account.proof_due(rules));
    }
}

/// A named Application that cannot show the commit is a wrong call; a selected one is left out.
fn unfit_end(name: &AppName, unfit: &Unfit, named: bool) -> End {
    let (message, hint) = match unfit {
        Unfit::NoGitSource => (
            format!("{name} has no Git source: the revision of a chart or an image is no commit"),
            "wait for an Application with a Git source",
        ),
        Unfit::OtherRepository(urls) => (
            format!("{name} does not read the repository of the commit, but {}", urls.join(" and ")),
            "check the record's `repo_url`; --source N compares that source all the same",
        ),
        Unfit::NoSuchSource(count) => (
            format!("{name} has no such source; it has {count}"),
            "--source takes a position from 1 on, a name or a URL",
        ),
        Unfit::NotGit(url) => {
            (format!("that source of {name} is not in Git, but at {url}"), "choose another with --source")
        }
        Unfit::NotHydrated => (format!("{name} has no source hydrator"), "leave out --dry"),
    };
    if named {
        End::new(Exit::Usage, Outcome::Error, message, Some(hint.into()))
    } else {
        End { outcome: Outcome::Skipped, exit: Exit::Done, error: None }
    }
}
