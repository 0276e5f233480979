//! The feed: one look and one watch that survive what networks and API servers do.
//!
//! A watch that breaks is resumed from the last version it told of, which loses nothing; where the server no longer
//! knows that version (410), a fresh list closes the gap. There is never more than one request in flight.

use std::time::Duration;

use kit::{
    cluster::{Cluster, ClusterArgs},
    error::Error,
    talk::Talk,
};
use tokio::{
    sync::{Notify, mpsc},
    time::{Instant, sleep},
};

use crate::{
    account::Cause,
    api::{self, Failure, Listed, Told},
    backoff::Backoff,
    clock::{At, Clock},
    missing,
    scope::Scope,
    view::View,
};

/// How often Applications are looked at where they cannot be watched.
const POLL: Duration = Duration::from_secs(1);

/// How often in a row what had been allowed may be forbidden before that is believed.
const DENIALS: u32 = 4;

/// A watch that ends sooner did not end as agreed.
const FULL_WATCH: Duration = Duration::from_secs(15);

/// What the feed tells.
#[derive(Debug)]
pub enum Event {
    /// All Applications: at the first look, after a gap, or when asked.
    Listed {
        /// The Applications.
        views: Vec<Box<View>>,
        /// Whether it is the first look, and when it was asked for otherwise.
        cause: Cause,
        /// Whether changes may have been missed before it.
        gap: bool,
        /// When the answer arrived.
        at: At,
    },
    /// An Application that is new or changed.
    Changed(Box<View>, At),
    /// An Application that is gone.
    Gone(Box<View>, At),
    /// The watch ended other than agreed.
    Broken,
    /// Nothing can be found out at the moment.
    Trouble(Error),
    /// What could not be found out can be again.
    Working,
    /// Watching is not allowed.
    Polling,
}

/// The feed of one scope.
pub struct Feed<'a> {
    args: &'a ClusterArgs,
    talk: &'a Talk,
    scope: &'a Scope,
    clock: Clock,
    events: mpsc::Sender<Event>,
    /// Asks for a fresh list.
    look: &'a Notify,
    cluster: Cluster,
    backoff: Backoff,
    /// The version to watch from; `None` when a list is needed.
    version: Option<String>,
    looked: bool,
    /// The next list closes a gap.
    gap: bool,
    polling: bool,
    by_get: bool,
    in_trouble: bool,
    renewed: bool,
    /// A watch was open once.
    watched: bool,
    /// How often in a row what had been allowed was forbidden.
    denials: u32,
}

impl<'a> Feed<'a> {
    /// A feed that sends no request before [`Feed::run`].
    pub fn new(
        (args, cluster): (&'a ClusterArgs, Cluster),
        talk: &'a Talk,
        scope: &'a Scope,
        clock: Clock,
        events: mpsc::Sender<Event>,
        look: &'a Notify,
    ) -> Self {
        Feed {
            args,
            talk,
            scope,
            clock,
            events,
            look,
            cluster,
            backoff: Backoff::default(),
            version: None,
            looked: false,
            gap: false,
            polling: false,
            by_get: false,
            in_trouble: false,
            renewed: false,
            watched: false,
            denials: 0,
        }
    }

    /// Runs until something happens that trying again does not help against.
    pub async fn run(mut self) -> Error {
        loop {
            if let Err(error) = self.step().await {
                return error;
            }
        }
    }

    async fn step(&mut self) -> Result<(), Error> {
        let Some(version) = self.version.clone() else {
            let asked = self.clock.now().elapsed;
            return match self.look().await {
                Ok(listed) => self.listed(listed, asked).await,
                Err(failure) => self.look_failed(failure).await,
            };
        };
        if self.polling {
            tokio::select! {
                () = sleep(POLL) => {}
                () = self.look.notified() => {}
            }
            self.version = None;
            self.gap = true;
            return Ok(());
        }
        let began = Instant::now();
        let result = self.watch(&version).await;
        let full = began.elapsed() >= FULL_WATCH;
        if full {
            self.backoff.reset();
        }
        match result {
            // Asked to look; the watch goes on from there.
            Ok(Ended::Look) => {
                self.version = None;
                Ok(())
            }
            Ok(Ended::Agreed) if full => Ok(()),
            Ok(Ended::Agreed) => {
                self.tell(Event::Broken).await;
                self.pause(None).await;
                Ok(())
            }
            Err((failure, was_open)) => self.watch_failed(failure, was_open).await,
        }
    }

    async fn look(&self) -> Result<Listed, Failure> {
        if !self.by_get {
            return api::list(&self.cluster, self.scope, !self.looked).await;
        }
        let mut listed = Listed { views: Vec::new(), version: String::new() };
        for name in self.scope.names() {
            match api::get(&self.cluster, name).await {
                Ok(view) => {
                    listed.version.clone_from(&view.metadata.resource_version);
                    listed.views.push(view);
                }
                Err(failure) if failure.is_missing(name) => {}
                Err(failure) => return Err(failure),
            }
        }
        Ok(listed)
    }

    async fn listed(&mut self, Listed { views, version }: Listed, asked: Duration) -> Result<(), Error> {
        let at = self.clock.now();
        if !self.looked {
            missing::check(&self.cluster, self.scope, &views).await?;
        }
        self.works().await;
        // The versions of several objects say nothing about each other, so there is none to watch all of them from.
        if self.by_get && (self.scope.names().len() > 1 || version.is_empty()) && !self.polling {
            self.polling = true;
            self.tell(Event::Polling).await;
        }
        let cause = if self.looked { Cause::LookAgain { asked } } else { Cause::FirstLook };
        self.tell(Event::Listed { views, cause, gap: self.gap, at }).await;
        self.looked = true;
        self.gap = false;
        self.version = Some(version);
        Ok(())
    }

    async fn look_failed(&mut self, failure: Failure) -> Result<(), Error> {
        if failure.status() == Some(403) && !self.looked && !self.by_get && !self.scope.names().is_empty() {
            self.talk.detail(format!("{}; trying get", failure.refused.error));
            self.by_get = true;
            return Ok(());
        }
        self.survive(failure).await
    }

    async fn watch_failed(&mut self, failure: Failure, was_open: bool) -> Result<(), Error> {
        if was_open {
            self.tell(Event::Broken).await;
        }
        match failure.status() {
            Some(403) if !self.watched || self.denials >= DENIALS => {
                self.polling = true;
                self.tell(Event::Polling).await;
                Ok(())
            }
            Some(410) => {
                if !was_open {
                    self.tell(Event::Broken).await;
                }
                self.version = None;
                self.gap = true;
                self.pause(failure.retry_after).await;
                Ok(())
            }
            _ => self.survive(failure).await,
        }
    }

    /// Decides whether trying again can help, and waits until it is time to.
    async fn survive(&mut self, failure: Failure) -> Result<(), Error> {
        let error = failure.refused.error;
        match failure.refused.status {
            Some(401) if !self.renewed => {
                // A token that ran out is renewed when the kubeconfig is read again.
                self.cluster = self.args.connect_without_retries(self.talk).await?;
                self.renewed = true;
                return Ok(());
            }
            Some(0 | 410 | 429 | 500..) => {}
            // A server that has just started does not know all resources and roles yet.
            Some(404) if self.looked => {}
            Some(403) if self.looked && self.denials < DENIALS => self.denials += 1,
            None if self.looked && error.code != "unreadable" => {}
            _ => return Err(error),
        }
        self.talk.detail(format!("{error}; trying again"));
        self.in_trouble = true;
        self.tell(Event::Trouble(error)).await;
        self.pause(failure.retry_after).await;
        Ok(())
    }

    /// Watches until the server ends it; the failure says whether the watch had been open.
    async fn watch(&mut self, version: &str) -> Result<Ended, (Failure, bool)> {
        let cluster = self.cluster.clone();
        let mut watch = api::watch(&cluster, self.scope, version).await.map_err(|failure| (failure, false))?;
        self.works().await;
        self.watched = true;
        loop {
            let told = tokio::select! {
                told = watch.next() => told.map_err(|failure| (failure, true))?,
                () = self.look.notified() => return Ok(Ended::Look),
            };
            let at = self.clock.now();
            let (view, gone) = match told {
                None => return Ok(Ended::Agreed),
                Some(Told::Error(status)) => return Err((api::told(&cluster, self.scope, status), true)),
                Some(Told::Bookmark(view)) => {
                    self.version = Some(view.metadata.resource_version);
                    continue;
                }
                Some(Told::Added(view) | Told::Modified(view)) => (view, false),
                Some(Told::Deleted(view)) => (view, true),
            };
            self.version = Some(view.metadata.resource_version.clone());
            self.backoff.reset();
            if self.scope.contains(&view.name()) {
                self.tell(if gone { Event::Gone(view, at) } else { Event::Changed(view, at) }).await;
            }
        }
    }

    async fn works(&mut self) {
        self.renewed = false;
        self.denials = 0;
        if std::mem::take(&mut self.in_trouble) {
            self.tell(Event::Working).await;
        }
    }

    async fn pause(&mut self, retry_after: Option<Duration>) {
        sleep(self.backoff.next(retry_after, fastrand::f64())).await;
    }

    /// Nobody listens any more when the run is over.
    async fn tell(&self, event: Event) {
        let _ = self.events.send(event).await;
    }
}

/// How a watch ended without a failure.
enum Ended {
    /// By the server, at the time agreed.
    Agreed,
    /// Because a fresh list was asked for.
    Look,
}
