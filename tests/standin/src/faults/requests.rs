//! Faults of single requests to the API server.

use std::{sync::Mutex, time::Duration};

/// Which requests fail.
#[derive(Clone, Debug, Default)]
pub struct Matcher {
    method: Option<String>,
    path: String,
    watch: Option<bool>,
}

impl Matcher {
    /// Every request.
    pub fn any() -> Matcher {
        Matcher::default()
    }

    /// Only this method.
    #[must_use]
    pub fn method(mut self, method: &str) -> Matcher {
        self.method = Some(method.into());
        self
    }

    /// Only paths that contain a text.
    #[must_use]
    pub fn path(mut self, part: &str) -> Matcher {
        self.path = part.into();
        self
    }

    /// Only watches, or only what is no watch.
    #[must_use]
    pub fn watch(mut self, watch: bool) -> Matcher {
        self.watch = Some(watch);
        self
    }

    fn matches(&self, method: &str, path: &str, watch: bool) -> bool {
        self.method.as_deref().is_none_or(|wanted| wanted == method)
            && path.contains(&self.path)
            && self.watch.is_none_or(|wanted| wanted == watch)
    }
}

/// What happens to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is answered with this HTTP status and a `Status` object in the API server's words.
    Refused {
        /// 403, 409, 410, 429, 500, 503, …
        code: u16,
        /// `Retry-After`, whole seconds.
        retry_after_s: Option<u64>,
    },
    /// It is answered later.
    Delayed(Duration),
    /// It is never answered; the connection stays open.
    Hung,
    /// It takes effect and is never answered; the connection stays open.
    HungAfterwards,
    /// The connection is cut without an answer.
    Cut,
    /// It takes effect, and then the connection is cut without an answer.
    CutAfterwards,
}

/// The rules, the newest first.
#[derive(Default)]
pub(super) struct Rules(Mutex<Vec<(Matcher, usize, Outcome)>>);

impl Rules {
    pub(super) fn add(&self, matcher: Matcher, times: usize, outcome: Outcome) {
        self.0.lock().expect(super::HELD).insert(0, (matcher, times, outcome));
    }

    pub(super) fn clear(&self) {
        self.0.lock().expect(super::HELD).clear();
    }

    /// What becomes of a request; counts it.
    pub(super) fn take(&self, method: &str, path: &str, watch: bool) -> Option<Outcome> {
        let mut rules = self.0.lock().expect(super::HELD);
        let (_, times, outcome) =
            rules.iter_mut().find(|(matcher, times, _)| *times > 0 && matcher.matches(method, path, watch))?;
        *times -= 1;
        Some(outcome.clone())
    }
}
