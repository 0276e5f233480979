//! `POST /api/webhook`.

pub mod event;
pub mod matching;
