//! `POST /api/webhook`.

mod answer;
pub mod event;
mod handle;
pub mod matching;
mod secrets;
mod types;

pub use answer::{Answer, Payload, Request, answer, limits_size};
pub(crate) use handle::{Handler, handle};
pub use secrets::Secrets;
