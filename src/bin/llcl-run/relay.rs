//! `--tag-output`: passes the ranks' output on in whole lines, each with its rank in front. It is a
//! thread of its own, so that a reader that does not read stops the output and nothing else.

use llcl::util::socket::{self, Wake, interest};
use llcl::util::status::Result;
use llcl::util::thread::spawn_quiet;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, OnceLock};

/// A line longer than this is passed on in pieces.
const LONGEST: usize = 1 << 20;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Target {
    Out,
    Err,
}

struct Stream {
    rank: u32,
    target: Target,
    file: File,
    partial: Vec<u8>,
    lost: Arc<OnceLock<io::Error>>,
}

#[derive(Default)]
pub struct Relay {
    streams: Vec<Stream>,
    lost: Arc<OnceLock<io::Error>>,
}

/// The running thread.
pub struct Running {
    /// To be woken when no process writes any more: the thread passes the rest on and ends.
    pub finish: Arc<Wake>,
    /// Readable when the thread has ended.
    pub done: Arc<Wake>,
    /// Why output could not be passed on. It stays empty if the reader has gone.
    pub lost: Arc<OnceLock<io::Error>>,
}

impl Relay {
    pub fn add(&mut self, rank: u32, target: Target, pipe: OwnedFd) -> io::Result<()> {
        socket::set_nonblocking(pipe.as_fd())?;
        let (file, lost) = (pipe.into(), self.lost.clone());
        self.streams.push(Stream { rank, target, file, partial: Vec::new(), lost });
        Ok(())
    }

    /// Starts the thread, if there are streams to pass on.
    pub fn start(mut self) -> Result<Option<Running>> {
        if self.streams.is_empty() {
            return Ok(None);
        }
        let (finish, done) = (Arc::new(Wake::new()?), Arc::new(Wake::new()?));
        let running = Running { finish, done, lost: self.lost.clone() };
        let (finish, done) = (running.finish.clone(), running.done.clone());
        spawn_quiet("llcl-relay", 256 << 10, move || {
            self.run(&finish);
            done.wake();
        })?;
        Ok(Some(running))
    }

    fn run(&mut self, finish: &Wake) {
        let mut buffer = vec![0; 64 << 10];
        while !self.streams.is_empty() {
            let mut waits: Vec<_> =
                self.streams.iter().map(|s| interest(s.file.as_fd(), libc::POLLIN)).collect();
            waits.push(interest(finish.as_fd(), libc::POLLIN));
            if socket::poll(&mut waits, -1).is_err() {
                break;
            }
            let finishing = waits.pop().is_some_and(|w| w.revents != 0);
            let mut ready = waits.iter().map(|w| w.revents != 0);
            let mut progress = false;
            self.streams.retain_mut(|stream| {
                let is_ready = ready.next().unwrap_or(false);
                progress |= is_ready;
                !is_ready || stream.pass_on(&mut buffer)
            });
            // The thread was asked to finish, and after that the pipes were empty, so all output is
            // passed on. (A process that still holds a pipe open has left the job.)
            if finishing && !progress {
                break;
            }
        }
        for stream in &mut self.streams {
            stream.flush_partial();
        }
    }
}

impl Stream {
    /// Passes on the output that is there. False: the stream has ended, or its reader has gone.
    fn pass_on(&mut self, buffer: &mut [u8]) -> bool {
        let size = match self.file.read(buffer) {
            Ok(0) => {
                self.flush_partial();
                return false;
            }
            Ok(size) => size,
            Err(e) => {
                return [io::ErrorKind::WouldBlock, io::ErrorKind::Interrupted].contains(&e.kind());
            }
        };
        let mut lines = Vec::with_capacity(size + 64);
        for piece in buffer[..size].split_inclusive(|b| *b == b'\n') {
            self.partial.extend_from_slice(piece);
            if piece.ends_with(b"\n") || self.partial.len() >= LONGEST {
                self.append_line(&mut lines);
            }
        }
        // If the reader has gone, our end is closed, and the rank notices that as it would without
        // a relay.
        self.write(&lines)
    }

    fn flush_partial(&mut self) {
        if !self.partial.is_empty() {
            let mut line = Vec::new();
            self.append_line(&mut line);
            self.write(&line);
        }
    }

    fn append_line(&mut self, lines: &mut Vec<u8>) {
        lines.extend_from_slice(format!("[{}] ", self.rank).as_bytes());
        lines.append(&mut self.partial);
        if !lines.ends_with(b"\n") {
            lines.push(b'\n');
        }
    }

    /// False: the bytes could not be written.
    fn write(&self, lines: &[u8]) -> bool {
        let written = match self.target {
            Target::Out => write_whole(io::stdout().lock(), lines),
            Target::Err => write_whole(io::stderr().lock(), lines),
        };
        match written {
            Ok(()) => true,
            Err(e) => {
                if e.kind() != io::ErrorKind::BrokenPipe {
                    let _ = self.lost.set(e);
                }
                false
            }
        }
    }
}

/// Writes all bytes. The program that has started this one may have made the file non-blocking;
/// this thread then sleeps until there is room.
fn write_whole(mut to: impl Write + AsFd, mut bytes: &[u8]) -> io::Result<()> {
    loop {
        let step = if bytes.is_empty() { to.flush().map(|()| 0) } else { to.write(bytes) };
        match step {
            Ok(0) if bytes.is_empty() => return Ok(()),
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(size) => bytes = &bytes[size..],
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                if socket::poll(&mut [interest(to.as_fd(), libc::POLLOUT)], -1).is_err() {
                    return Err(e);
                }
            }
            Err(e) => return Err(e),
        }
    }
}
