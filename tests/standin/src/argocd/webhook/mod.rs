//! `POST /api/webhook`.

mod answer;
pub mod event;
mod handle;
pub mod matching;
pub mod namespaces;
mod parsers;
mod secrets;
mod types;

pub use answer::{Answer, answer, limits_size};
pub(crate) use handle::{Handler, handle};
pub use parsers::{Payload, Request};
pub use secrets::Secrets;
