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

/// What has come through a pipe of messages.
#[derive(Clone, Debug, Default)]
pub struct Words {
    heard: Vec<u8>,
    said: usize,
}

impl Words {
    /// Takes what has come, and says each line that is whole now. Of a line that is drawn over again and again, such as
    /// progress, only the last state is said.
    pub fn add(&mut self, bytes: &[u8], mut say: impl FnMut(&str)) {
        self.heard.extend(bytes);
        while let Some(length) = self.heard[self.said..].iter().position(|byte| *byte == b'\n') {
            let line = String::from_utf8_lossy(&self.heard[self.said..self.said + length]);
            if let Some(text) = line.rsplit('\r').find(|part| !part.trim().is_empty()) {
                say(text);
            }
            self.said += length + 1;
        }
    }

    /// All of it.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.heard).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_said_once_they_are_whole_and_progress_only_as_it_ended() {
        let mut words = Words::default();
        let mut said = Vec::new();
        for bytes in ["remote: he", "llo\n\nremote: 1%\rremote: 100%\r\nrest"] {
            words.add(bytes.as_bytes(), |line| said.push(line.to_owned()));
        }
        assert_eq!(said, ["remote: hello", "remote: 100%"]);
        assert!(words.text().ends_with("rest"));
    }
}
