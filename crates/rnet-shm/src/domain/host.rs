//! The number of this host: random, made by the first who asks, the same for all processes of the domain.
//!
//! It stands as text in the file `host` of the domain's directory, which is on tmpfs: a host that has booted
//! anew is another one.

use std::os::fd::AsFd;
use std::path::Path;

use rnet_core::{Error, Result};
use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::domain::directory::DomainDir;
use crate::os::fork::UnsharedFd;
use crate::os::ofd::{self, WHOLE};
use crate::os::random::random_u64;
use crate::os::temp_file::TempFile;
use crate::os::{files, unlinked_files};

/// 16 hexadecimal digits and a line feed.
const LEN_BYTES: usize = 17;
/// How often it is read again because another was about to write it, with a pause of 1 ms.
const MAX_TRIES: u32 = 1000;

/// The number of this host.
///
/// # Errors
/// Those of the system, naming the file.
pub fn host_id(dir: &DomainDir) -> Result<u64> {
    let path = dir.path().join("host");
    for _ in 0..MAX_TRIES {
        let file =
            match UnsharedFd::open(|| unlinked_files::open(&path, OFlags::RDWR | OFlags::NOFOLLOW))
            {
                Ok(file) => file,
                Err(Errno::NOENT) => {
                    // Whoever is first has made it; the next look finds it.
                    make(dir, |temp_file| temp_file.persist_new(&path).map(drop))
                        .map_err(|e| files::io_error("cannot create", &path, e))?;
                    continue;
                }
                Err(errno) => return Err(files::io_error("cannot open", &path, errno)),
            };
        if let Some(id) = read(&file) {
            return Ok(id);
        }
        // One of those who find it broken makes it anew: who has the lock on the file that is there.
        if ofd::take(&file, WHOLE).is_ok_and(|taken| taken) && unlinked_files::is_at(&path, &file) {
            make(dir, |temp_file| temp_file.persist(&path))
                .map_err(|e| files::io_error("cannot replace", &path, e))?;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    Err(broken(&path))
}

fn read(file: impl AsFd) -> Option<u64> {
    let mut bytes = [0; LEN_BYTES + 1];
    let len = rustix::io::pread(file, &mut bytes, 0).ok()?;
    let digits = bytes[..len].strip_suffix(b"\n").filter(|digits| digits.len() == LEN_BYTES - 1)?;
    let text = std::str::from_utf8(digits).ok()?;
    let are_digits = text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    are_digits.then(|| u64::from_str_radix(text, 16).ok()).flatten().filter(|id| *id != 0)
}

fn make(
    dir: &DomainDir,
    put: impl FnOnce(&TempFile) -> rustix::io::Result<()>,
) -> rustix::io::Result<()> {
    let (file, temp_file) = TempFile::create(dir.path(), dir.file_mode())?;
    files::write_all_at(&file, format!("{:016x}\n", random_u64().max(1)).as_bytes(), 0)?;
    match put(&temp_file) {
        // A sweeper took the temp_file for a left-over.
        Err(Errno::NOENT) => Ok(()),
        done => done,
    }
}

fn broken(path: &Path) -> Error {
    files::io_error("cannot recreate", path, Errno::BUSY)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::domain::directory::DomainConfig;

    #[test]
    fn all_who_ask_at_once_get_one_number_and_a_broken_file_is_made_anew() {
        let base = std::env::temp_dir().join(format!("rnet-host-{:x}", random_u64()));
        std::fs::create_dir(&base).unwrap();
        let config = DomainConfig { base: Some(base.clone()), ..DomainConfig::default() };
        let dir = DomainDir::open_or_create(&config).unwrap();
        let path = dir.path().join("host");
        let ask_all = || -> BTreeSet<u64> {
            std::thread::scope(|scope| {
                let asks: Vec<_> =
                    (0..16).map(|_| scope.spawn(|| host_id(&dir).unwrap())).collect();
                asks.into_iter().map(|ask| ask.join().unwrap()).collect()
            })
        };
        let mut seen = BTreeSet::new();
        let long = format!("{:064}\n", 1);
        let broken =
            ["", "\n", "0000000000000000\n", "00000000000000zz\n", "+000000000000001\n", &long];
        for text in [None].into_iter().chain(broken.map(Some)) {
            if let Some(text) = text {
                std::fs::write(&path, text).unwrap();
            }
            let given = ask_all();
            assert_eq!(given.len(), 1, "{text:?}: {given:?}");
            assert_eq!(ask_all(), given);
            assert!(seen.insert(given), "{text:?}: not made anew");
        }
        // A place that cannot be used is told.
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert!(host_id(&dir).unwrap_err().to_string().contains("host"));
        std::fs::remove_dir_all(&base).unwrap();
    }
}
