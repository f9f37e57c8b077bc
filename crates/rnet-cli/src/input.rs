//! Reads files and standard input up to a size limit, completely or not at all.
//!
//! `producer | rnet state set /fw --file -` must not write half of the producer's output. Ctrl-C goes to the
//! whole process group: the producer exits, and `rnet` reads an ordinary end of file. A pipe does not show
//! why it ended, so `read` checks for a signal after the end. [`signal::await_group_signals`] explains why
//! that check is late enough. A producer that fails on its own is not detected here; `set -o pipefail`
//! reports it.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::AsFd;
use std::path::Path;

use rnet::Error;

use crate::failure::{Failure, Outcome};
use crate::signal;

/// Bytes per read.
const CHUNK_LEN_BYTES: usize = 64 << 10;

/// The size limit of an input.
#[derive(Clone, Copy)]
pub struct InputLimit {
    /// Maximum length in bytes.
    pub bytes: usize,
    /// The limited object, in words: "a value of the state".
    pub subject: &'static str,
    /// The name of the limit, for searching.
    pub name: &'static str,
    /// Maximum length of the first line in bytes, for input that begins with a header.
    pub first_line: Option<usize>,
}

impl InputLimit {
    /// A limit for input without a header line.
    pub const fn new(bytes: usize, subject: &'static str, name: &'static str) -> InputLimit {
        InputLimit { bytes, subject, name, first_line: None }
    }

    fn check(&self, path: &Path, read: &[u8]) -> Outcome {
        if read.len() > self.bytes {
            return Err(self.exceeded_error(path));
        }
        let head = self.first_line.filter(|most| read.len() > *most);
        if head.is_some_and(|most| !read[..=most].contains(&b'\n')) {
            return Err(Failure::Failed(format!(
                "{} is not {}: its first line has more than {} bytes",
                display_name(path),
                self.subject,
                head.unwrap_or_default()
            )));
        }
        Ok(())
    }

    fn exceeded_error(&self, path: &Path) -> Failure {
        Failure::Failed(format!(
            "{} exceeds {} bytes, the maximum length of {} ({})",
            display_name(path),
            self.bytes,
            self.subject,
            self.name
        ))
    }
}

/// Reads a file to its end, or stdin for `-`.
///
/// # Errors
/// `Interrupted` if a signal arrived before everything was read, in either order; the limit, by name; read
/// errors.
pub fn read(path: &Path, limit: &InputLimit) -> Outcome<Vec<u8>> {
    let failed =
        |e: std::io::Error| Failure::Rnet(Error::io("cannot read", path.to_path_buf(), &e));
    if is_stdin(path) {
        // Unbuffered: the library's buffer would take the bytes that `wait_readable` waits for.
        let stdin = std::io::stdin().as_fd().try_clone_to_owned().map_err(failed)?;
        return read_to_end(File::from(stdin), path, limit);
    }
    let file = File::open(path).map_err(failed)?;
    let len = file.metadata().map_err(failed)?.len();
    // A file whose length exceeds the limit is not read at all.
    if len > limit.bytes as u64 && limit.first_line.is_none() {
        return Err(limit.exceeded_error(path));
    }
    read_to_end(file, path, limit)
}

fn read_to_end(mut file: File, path: &Path, limit: &InputLimit) -> Outcome<Vec<u8>> {
    let failed =
        |e: std::io::Error| Failure::Rnet(Error::io("cannot read", path.to_path_buf(), &e));
    let mut bytes = Vec::new();
    let mut chunk = vec![0; CHUNK_LEN_BYTES];
    loop {
        signal::wait_readable(file.as_fd()).map_err(failed)?;
        signal::check()?;
        match file.read(&mut chunk) {
            Ok(0) => break,
            Ok(len) => bytes.extend_from_slice(&chunk[..len]),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(failed(e)),
        }
        limit.check(path, &bytes)?;
    }
    signal::await_group_signals();
    signal::check()?;
    Ok(bytes)
}

fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// The display name of a path in messages.
pub fn display_name(path: &Path) -> String {
    if is_stdin(path) { "stdin".to_owned() } else { path.display().to_string() }
}
