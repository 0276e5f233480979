//! Delivers an event: attempts, and what to print about them.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use kit::{
    command::{Interrupt, interrupted},
    error::Error,
    exit::Exit,
    talk::Talk,
};

use crate::{
    answer::Meaning,
    route::{Answer, Attempt, Route, Trouble},
};

/// The longest that a server may ask to be left alone.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// A finished delivery.
pub struct Delivery {
    /// How many attempts were made.
    pub attempts: u32,
    /// The last of them.
    pub last: Attempt,
}

/// What is sent.
pub struct Parcel {
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// Whether the body was made here, so that it is known to do no harm when it comes twice.
    pub ours: bool,
}

/// Posts until there is an answer that will not change. An event only says "read now", so one that comes twice does
/// no harm; a body from a file may be what made the server drop the connection, and goes out once.
///
/// # Errors
/// When it is interrupted; with the number of attempts begun.
pub async fn deliver(
    route: &Route,
    parcel: &Parcel,
    limit: Duration,
    retries: u32,
    talk: &Talk,
    interrupt: &Interrupt,
) -> Result<Delivery, (u32, Error)> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        talk.detail(format!("POST {} ({} bytes, {})", route.url(), parcel.body.len(), route.name()));
        let last = tokio::select! {
            last = route.post(&parcel.headers, &parcel.body, limit) => last,
            exit = interrupt.wait() => return Err((attempts, interrupted(exit))),
        };
        let Some(why) = passing(&last.result, parcel.ours).filter(|_| attempts <= retries) else {
            return Ok(Delivery { attempts, last });
        };
        let pause = pause(&last.result, attempts);
        talk.say(format!("attempt {attempts} of {}: {why}; again in {pause:?}", retries + 1));
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            exit = interrupt.wait() => return Err((attempts, interrupted(exit))),
        }
    }
}

/// Why another attempt may fare better; `None` when it would not.
fn passing(result: &Result<Answer, Trouble>, ours: bool) -> Option<String> {
    match result {
        Ok(answer) if matches!(answer.status, 429 | 502 | 503 | 504) => Some(format!("answered {}", answer.status)),
        Err(Trouble::NotConnected(why)) => Some(format!("no connection: {why}")),
        Err(Trouble::Dropped(why)) if ours => Some(format!("the connection was dropped: {why}")),
        Ok(_) | Err(Trouble::Dropped(_) | Trouble::TimedOut(_) | Trouble::Tls(_) | Trouble::Fatal(_)) => None,
    }
}

/// What the server asks for, else half a second, doubled each time.
fn pause(result: &Result<Answer, Trouble>, attempts: u32) -> Duration {
    let asked = result.as_ref().ok().and_then(|answer| answer.header("retry-after").parse().ok());
    asked.map_or(Duration::from_millis(500 << (attempts - 1).min(6)), Duration::from_secs).min(LONGEST_PAUSE)
}

/// How a delivery ends that got no answer.
pub fn unanswered(trouble: &Trouble, route: &Route) -> Error {
    let url = route.url();
    match trouble {
        Trouble::Fatal(error) => error.clone(),
        Trouble::NotConnected(why) => Error::unknown("unreachable", format!("cannot connect to {url}: {why}"))
            .hint("is argocd-server running, and is the address right? --via names another way"),
        Trouble::Dropped(why) => {
            Error::unknown("dropped", format!("the connection to {url} ended without an answer: {why}")).hint(
                "the server may have restarted (it does after a change of argocd-secret), or the event made it fail: \
                 a signature shorter than 7 characters or a body without repository does",
            )
        }
        Trouble::TimedOut(limit) => Error::unknown("timeout", format!("no answer from {url} within {limit:?}"))
            .hint("--request-timeout sets the limit; before v2.13 the server answers only after it looked at all Applications"),
        Trouble::Tls(why) => Error::unknown("tls", format!("no TLS with {url}: {why}")).hint(
            "is this argocd-server (its certificate is that in argocd-server-tls or argocd-secret)? --ca-file FILE trusts \
             another; a server with server.insecure speaks plain HTTP",
        ),
    }
}

/// How a delivery ends that was answered.
pub fn answered(status: u16, meaning: &Meaning, expected: &[u16]) -> Result<(), Error> {
    if expected.is_empty() {
        return if meaning.exit == Exit::Done { Ok(()) } else { Err(meaning.error(status)) };
    }
    if expected.contains(&status) {
        return Ok(());
    }
    let list = expected.iter().map(u16::to_string).collect::<Vec<_>>().join(" or ");
    Err(Error::no("unexpected-status", format!("the event was answered {status}, not {list}: {}", meaning.cause))
        .hint(meaning.next.clone()))
}

/// Makes headers; a value that is a secret is marked as one.
///
/// # Errors
/// When a value cannot stand in a header; exit code 2. The value is not in the message.
pub fn headers(plain: &[(&'static str, String)], proof: &[(&'static str, String)]) -> Result<HeaderMap, Error> {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    for (secret, (name, value)) in plain.iter().map(|header| (false, header)).chain(proof.iter().map(|h| (true, h))) {
        let mut parsed = HeaderValue::from_str(value).map_err(|_| {
            Error::usage("bad-key", format!("the key holds a character that cannot stand in the header {name}"))
                .hint("a line break or another control character: no sender could ever send it")
        })?;
        parsed.set_sensitive(secret);
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| Error::usage("bad-header", *name))?;
        headers.insert(name, parsed);
    }
    Ok(headers)
}
