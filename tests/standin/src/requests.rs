//! What the API was asked for.

use std::{sync::Mutex, time::SystemTime};

use tokio::sync::watch;

/// One request to the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// `GET`.
    pub method: String,
    /// The path, as sent.
    pub path: String,
    /// What followed the `?`; empty when nothing did.
    pub query: String,
    /// The user that the token stands for; empty when it stands for nobody.
    pub user: String,
    /// The user in whose name it was made (`Impersonate-User`).
    pub as_user: Option<String>,
    /// When it arrived.
    pub at: SystemTime,
}

/// All requests since the start.
#[derive(Default)]
pub struct Requests {
    all: watch::Sender<Vec<Request>>,
    unknown: Mutex<Vec<String>>,
}

impl Requests {
    /// Everything that was asked, in the order of arrival.
    pub fn all(&self) -> Vec<Request> {
        self.all.borrow().clone()
    }

    /// `METHOD /path` of everything that was answered 501.
    pub fn unknown(&self) -> Vec<String> {
        self.unknown.lock().expect("no thread panics while it holds the requests").clone()
    }

    /// Changes with every request.
    pub fn changes(&self) -> watch::Receiver<Vec<Request>> {
        self.all.subscribe()
    }

    pub(crate) fn count(&self) -> usize {
        self.all.borrow().len()
    }

    pub(crate) fn add(&self, request: Request) {
        self.all.send_modify(|all| all.push(request));
    }

    /// Forgets what was answered 501: for a test that asks for it on purpose.
    pub fn forget_unknown(&self) {
        self.unknown.lock().expect("no thread panics while it holds the requests").clear();
    }

    pub(crate) fn add_unknown(&self, route: String) {
        self.unknown.lock().expect("no thread panics while it holds the requests").push(route);
    }
}
