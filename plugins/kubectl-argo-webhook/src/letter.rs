//! The body that goes out, and the record that it is reported in.

use kit::{error::Error, file, record::Record};

use crate::{
    args::{EventArgs, Kind},
    event::Push,
    payload,
};

/// A body with its record.
pub struct Letter {
    /// The record that was read, or the beginning of one.
    pub record: Record,
    /// The exact bytes of the body.
    pub body: Vec<u8>,
    /// Whether it tells of a tag.
    pub is_tag: bool,
}

/// Reads or makes the body that the flags describe.
///
/// # Errors
/// When there is nothing to read, or when it is not an event that the server could match; exit code 2.
pub async fn read(args: &EventArgs, kind: Kind) -> Result<Letter, Error> {
    let mut record = match &args.from {
        Some(path) => Record::read(path).await?,
        None => Record::default(),
    };
    if let Some(path) = &args.body_file {
        let body = file::read(path)?;
        if body.is_empty() {
            return Err(Error::usage("empty-body", format!("{} is empty", path.display()))
                .hint("the server refuses an event without a body"));
        }
        let is_tag = body.windows(10).take(4096).any(|part| part == b"refs/tags/");
        return Ok(Letter { record, body, is_tag });
    }
    if kind == Kind::Ping {
        let Some(body) = payload::ping(args.provider) else {
            return Err(Error::usage("no-ping", format!("Argo CD knows no ping of {}", args.provider.title()))
                .hint("github and bitbucket-server have one"));
        };
        return Ok(Letter { record, body, is_tag: false });
    }
    let push = match (&args.from, &args.repo_url) {
        (Some(_), _) => Push::of_record(&record)?,
        (None, Some(_)) => {
            let push = Push::of_flags(args)?;
            for (key, value) in [("commit", &push.after), ("ref", &push.reference), ("repo_url", &push.repo_url)] {
                record.0.insert(key.into(), value.clone().into());
            }
            push
        }
        (None, None) => {
            return Err(Error::usage("no-event", "nothing to send")
                .hint("-f RECORD (from `git evt-push`), --body-file FILE, or --repo-url URL --ref REF --after SHA"));
        }
    };
    Ok(Letter { record, body: payload::push(args.provider, &push), is_tag: push.is_tag() })
}
