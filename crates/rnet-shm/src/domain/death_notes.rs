//! Death notes: records of node deaths for observers that start later. Living nodes sweep a dead node within
//! milliseconds.
//!
//! A process that sweeps a dead node writes `deaths/<name>` with the time and the boot of the sweep. The file
//! is removed when a node of that name starts or leaves, after [`DEATH_RETENTION`], and by `rnet domain
//! clean`.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use rnet_core::NodeName;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::domain::directory::DomainDir;
use crate::domain::node::PeerNode;
use crate::domain::presence;
use crate::domain::registry::TOOL_LANGUAGE;
use crate::os::clock::{boot_id, boot_ns};
use crate::os::files;

/// How long a death is kept, unless a node of that name starts earlier.
pub const DEATH_RETENTION: Duration = Duration::from_secs(600);

/// Removes what a dead incarnation left. Records its death unless it left the domain first or was killed by
/// the process that stops it.
pub fn sweep(dir: &DomainDir, stem: &str, incarnation: u64) {
    if presence::is_alive(dir, stem, incarnation) {
        return;
    }
    // The folder records how the node exited, so it is read first.
    let mut is_unnoted = false;
    if let Ok(Some(node)) = PeerNode::open(dir, stem, incarnation) {
        let has_died = !node.has_left() && !node.is_killed_on_request();
        let has_died = has_died && node.meta().language != TOOL_LANGUAGE;
        forget(dir, stem);
        is_unnoted = has_died && !note(dir, stem);
    }
    presence::sweep(dir, stem, incarnation);
    // Retried after the sweep: the dead node's files may have used the space that the note needs.
    if is_unnoted {
        note(dir, stem);
    }
}

/// Whether the death is recorded. Without a note, only nodes that are alive now learn of it.
fn note(dir: &DomainDir, stem: &str) -> bool {
    let _ = dir.make_folder(&dir.deaths());
    let mut is_noted = true;
    let path = dir.death_note(stem);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let mode = Mode::from_raw_mode(dir.file_mode());
    // Read before the note takes what may be the last descriptor.
    let boot = boot_id();
    match rustix::fs::open(&path, flags, mode) {
        Ok(file) => {
            // The umask restricted the mode.
            let _ = rustix::fs::fchmod(&file, mode);
            let text = format!("{} {boot:x}\n", boot_ns());
            // A note without a time would never expire.
            if files::write_all_at(&file, text.as_bytes(), 0).is_err() {
                forget(dir, stem);
                is_noted = false;
            }
        }
        // Another process recorded it first.
        Err(Errno::EXIST) => {}
        Err(_) => is_noted = false,
    }
    // A node of that name that started meanwhile checked for the note before it existed.
    if presence::is_held(&dir.names().join(stem)) {
        forget(dir, stem);
    }
    // Removes expired notes: names that are never reused would fill the folder.
    known(dir);
    is_noted
}

/// Nodes that died within [`DEATH_RETENTION`] and have not restarted, by name. Removes older notes.
pub fn known(dir: &DomainDir) -> Vec<NodeName> {
    let notes = notes(dir).filter(|stem| {
        let is_known = is_known(&dir.death_note(stem));
        if !is_known {
            forget(dir, stem);
        }
        is_known
    });
    let mut found: Vec<_> = notes.filter_map(|stem| NodeName::from_file_stem(&stem).ok()).collect();
    found.sort_unstable();
    found
}

/// Whether a note is of this boot and not older than [`DEATH_RETENTION`]. An unreadable note counts: it may
/// become readable.
fn is_known(note: &Path) -> bool {
    // Reads no more than the length of a note, because another process may have planted the file.
    let mut text = [0; 40];
    let Ok(file) = files::open_read(note) else { return true };
    match rustix::io::pread(&file, &mut text, 0) {
        // The note is being written, or its writer was killed.
        Ok(0) => is_fresh(file),
        Err(_) => true,
        Ok(len) => time_of(&text[..len]).is_some_and(|then_ns| {
            let age = boot_ns().checked_sub(then_ns).map(Duration::from_nanos);
            age.is_some_and(|age| age < DEATH_RETENTION)
        }),
    }
}

/// Whether a file was changed within [`DEATH_RETENTION`]. This uses the wall clock, which may be set, so it
/// applies only to notes without text.
fn is_fresh(file: OwnedFd) -> bool {
    let changed = std::fs::File::from(file).metadata().and_then(|metadata| metadata.modified());
    changed.is_ok_and(|changed| changed.elapsed().is_ok_and(|age| age < DEATH_RETENTION))
}

/// Returns when a death of this boot was recorded. A directory on disk also holds notes of earlier boots. A
/// process that cannot read its boot id writes 0 and compares only the time.
fn time_of(text: &[u8]) -> Option<u64> {
    let (then_ns, boot) = std::str::from_utf8(text).ok()?.trim_end().split_once(' ')?;
    let (noted, own) = (u64::from_str_radix(boot, 16).ok()?, boot_id());
    then_ns.parse().ok().filter(|_| noted == own || noted == 0 || own == 0)
}

/// Removes the death note of the node with this name, as written in file names.
pub fn forget(dir: &DomainDir, stem: &str) {
    let _ = rustix::fs::unlink(dir.death_note(stem));
}

/// Removes all death notes.
pub fn forget_all(dir: &DomainDir) {
    notes(dir).for_each(|stem| forget(dir, &stem));
}

fn notes(dir: &DomainDir) -> impl Iterator<Item = String> {
    let entries = std::fs::read_dir(dir.deaths()).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::directory::DomainConfig;
    use crate::os::random::random_u64;

    #[test]
    fn ignores_notes_of_earlier_boots() {
        let base = std::env::temp_dir().join(format!("rnet-deaths-{:x}", random_u64()));
        std::fs::create_dir(&base).unwrap();
        let config = DomainConfig { base: Some(base.clone()), ..DomainConfig::default() };
        let dir = DomainDir::open_or_create(&config).unwrap();
        assert!(note(&dir, "now"));
        let (now_ns, limit_ns) = (boot_ns(), DEATH_RETENTION.as_nanos() as u64);
        let (this, other) = (boot_id(), !boot_id());
        // A machine that booted less than ten minutes ago has no old notes.
        let old_ns = now_ns.checked_sub(limit_ns).unwrap_or(u64::MAX);
        for (stem, text) in [
            ("old", format!("{old_ns} {this:x}\n")),
            // The earlier boot lasted longer than this one, shorter, and equally long.
            ("later", format!("{} {this:x}\n", now_ns + limit_ns)),
            ("earlier", format!("{} {other:x}\n", now_ns - 1)),
            ("before", format!("{now_ns} {other:x}\n")),
            ("planted", "x".repeat(100)),
            ("without", format!("{now_ns}\n")),
            // Of a process that could not read its boot id.
            ("no_boot", format!("{now_ns} 0\n")),
            ("old_no_boot", format!("{old_ns} 0\n")),
            // A process is about to write the first; the writer of the second was killed.
            ("begun", String::new()),
            ("old_begun", String::new()),
        ] {
            std::fs::write(dir.death_note(stem), text).unwrap();
        }
        let old_begun = std::fs::File::options().write(true).open(dir.death_note("old_begun"));
        let changed = std::time::SystemTime::now() - DEATH_RETENTION;
        old_begun.unwrap().set_modified(changed).unwrap();
        let names = || known(&dir).into_iter().map(String::from).collect::<Vec<_>>();
        assert_eq!(names(), ["/begun", "/no_boot", "/now"]);
        assert_eq!(notes(&dir).count(), 3, "the others are removed");
        std::fs::remove_dir_all(&base).unwrap();
    }
}
