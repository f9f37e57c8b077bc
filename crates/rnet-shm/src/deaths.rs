//! Deaths of nodes, kept for observers that look later: living nodes sweep what a dead one has left within milliseconds.
//!
//! A process that sweeps a node that has died writes `deaths/<name>`, with the time of the sweep. The file ends when
//! a node of that name starts or leaves, after [`DEATH_TIME`], and with `rnet domain clean`.

use std::path::Path;
use std::time::Duration;

use rnet_core::NodeName;
use rustix::fs::{Mode, OFlags};

use crate::clock::boot_ns;
use crate::domain::DomainDir;
use crate::node::PeerNode;
use crate::registry::TOOL;
use crate::{files, presence};

/// How long a death is known, unless a node of that name starts before.
pub const DEATH_TIME: Duration = Duration::from_secs(600);

/// Removes what a dead incarnation left, and notes its death if it has not left the domain before, and was not killed by
/// whoever stops it.
pub fn sweep(dir: &DomainDir, stem: &str, incarnation: u64) {
    if presence::is_alive(dir, stem, incarnation) {
        return;
    }
    // The folder says how the node has ended, so it is read first.
    if let Ok(Some(node)) = PeerNode::open(dir, stem, incarnation) {
        let has_died = !node.has_left() && !node.is_killed_on_request();
        let has_died = has_died && node.meta().language != TOOL;
        forget(dir, stem);
        if has_died {
            note(dir, stem);
        }
    }
    presence::sweep(dir, stem, incarnation);
}

/// Without a note, only nodes that live now are told of the death.
fn note(dir: &DomainDir, stem: &str) {
    let _ = dir.make_folder(&dir.deaths());
    let path = dir.death_note(stem);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let mode = Mode::from_raw_mode(dir.file_mode());
    if let Ok(file) = rustix::fs::open(&path, flags, mode) {
        // The umask has narrowed the mode.
        let _ = rustix::fs::fchmod(&file, mode);
        // Without a time it would stay for ever.
        if files::write_all_at(&file, format!("{}\n", boot_ns()).as_bytes(), 0).is_err() {
            forget(dir, stem);
        }
    }
    // A node of that name that has started meanwhile has looked for the note before it was there.
    if presence::is_held(&dir.names().join(stem)) {
        forget(dir, stem);
    }
    // Names that are never used again would fill the folder.
    known(dir);
}

/// Nodes that have died within [`DEATH_TIME`] and have not started again, by name. Notes that are older are removed.
pub fn known(dir: &DomainDir) -> Vec<NodeName> {
    let notes = notes(dir).filter(|stem| {
        // One without a time is being written.
        let then_ns = time_of(&dir.death_note(stem)).unwrap_or_else(boot_ns);
        // In a directory on disk one may be of an earlier boot, and later than now.
        let age = boot_ns().checked_sub(then_ns).map(Duration::from_nanos);
        let is_known = age.is_some_and(|age| age < DEATH_TIME);
        if !is_known {
            forget(dir, stem);
        }
        is_known
    });
    let mut found: Vec<_> = notes.filter_map(|stem| NodeName::from_file_stem(&stem).ok()).collect();
    found.sort_unstable();
    found
}

/// When the death was noted. Of what another has planted there, no more is read than a note has.
fn time_of(note: &Path) -> Option<u64> {
    let mut text = [0; 24];
    let len = rustix::io::pread(files::open_read(note).ok()?, &mut text, 0).ok()?;
    std::str::from_utf8(&text[..len]).ok()?.trim().parse().ok()
}

/// Forgets the death of the node with this name, as written in file names.
pub fn forget(dir: &DomainDir, stem: &str) {
    let _ = rustix::fs::unlink(dir.death_note(stem));
}

/// Forgets all deaths.
pub fn forget_all(dir: &DomainDir) {
    notes(dir).for_each(|stem| forget(dir, &stem));
}

fn notes(dir: &DomainDir) -> impl Iterator<Item = String> {
    let entries = std::fs::read_dir(dir.deaths()).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok())
}
