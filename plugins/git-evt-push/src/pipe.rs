//! What a program prints, as it comes, without ever waiting for more than the program itself.
//!
//! A program that git leaves behind, such as a hook's child or an ssh master connection, may hold a pipe open for hours
//! after git has ended. So a pipe is read to its end only as far as that comes soon.

use std::{
    io::{self, PipeWriter, Read},
    sync::mpsc::{self, Receiver},
    thread,
    time::Duration,
};

/// The reading end.
#[derive(Debug)]
pub struct Pipe(Receiver<Vec<u8>>);

impl Pipe {
    /// A pipe, and the end that a program writes to.
    ///
    /// # Errors
    /// When the system has no more.
    pub fn new() -> io::Result<(Self, PipeWriter)> {
        let (mut reader, writer) = io::pipe()?;
        let (sender, chunks) = mpsc::channel();
        thread::spawn(move || {
            let mut buffer = [0; 8192];
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                if sender.send(buffer[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        Ok((Pipe(chunks), writer))
    }

    /// What has come since the last call.
    pub fn ready(&self) -> Vec<u8> {
        self.0.try_iter().flatten().collect()
    }

    /// What still comes: until the end, or until nothing comes for as long as `patience`.
    pub fn rest(&self, patience: Duration) -> Vec<u8> {
        let mut bytes = Vec::new();
        while let Ok(chunk) = self.0.recv_timeout(patience) {
            bytes.extend(chunk);
        }
        bytes
    }
}
