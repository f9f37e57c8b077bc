//! Running recorders: their status and problems. See docs/design/recording.md, "How it is going".

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rnet::inspect::observer_statuses;
use serde::{Deserialize, Serialize};

use crate::findings::Findings;
use crate::health::{MIN_FREE_BYTES, disk};
use rnet_format::text::{count_text, escape_controls};

/// A recorder without a status for this long is stuck: it publishes one per second.
const SILENT_NS: u64 = 5_000_000_000;
/// The supported format of the status.
const FORMAT: u32 = 1;

/// Causes of missing messages in a recording.
pub const CAUSES: [&str; 8] =
    ["overrun", "reused", "queue", "disk_full", "malformed", "no_counterpart", "removed", "write"];

/// The last status of a recorder.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Recorder {
    /// The format of the status.
    #[serde(rename = "recorder")]
    format: u32,
    /// Its process id, in its own pid namespace.
    pub pid: u32,
    /// A unique id as text.
    #[serde(skip)]
    pub(crate) id: String,
    /// Its command line.
    pub said: String,
    /// Start time, CLOCK_MONOTONIC.
    pub begun_ns: u64,
    /// Time of this status, CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// Publishers followed.
    pub publishers: u64,
    /// Messages recorded.
    pub messages: u64,
    /// Their total bytes.
    pub bytes: u64,
    /// Missing messages by cause.
    pub missing: BTreeMap<String, u64>,
    /// Publishers that it has seen but not read, or not to their end.
    pub unheard: u64,
    /// The current file.
    pub file: Option<String>,
    /// Total size of its files in bytes.
    pub file_bytes: u64,
    /// Free space at its location, in bytes.
    pub free_bytes: Option<u64>,
    /// Bytes in the queue.
    pub queued_bytes: u64,
    /// Memory of the queue in bytes.
    pub buffer_bytes: u64,
    /// Nothing is written because the disk is full.
    pub disk_is_full: bool,
    /// Nothing is recorded because the topic of `--while` has no publisher.
    pub is_waiting: bool,
    /// Other problems that prevent writing now: of the recording, and for a black box of its folder, window
    /// and file.
    pub problems: BTreeMap<String, String>,
}

/// The status of all recorders of the domain in this directory. Ignores other observers.
pub fn read_recorders(domain: &Path) -> Vec<Recorder> {
    let texts = observer_statuses(domain).into_iter();
    let read = texts.filter_map(|text| serde_json::from_str::<Recorder>(&text).ok());
    let mut found: Vec<Recorder> = read.filter(|recorder| recorder.format == FORMAT).collect();
    found.iter_mut().for_each(|recorder| recorder.id = recorder.pid.to_string());
    found.sort_by_key(|recorder| (recorder.pid, recorder.begun_ns));
    // Two recorders of one process, or of two pid namespaces.
    for at in 1..found.len() {
        if found[at].pid == found[at - 1].pid {
            found[at].id = format!("{}.{}", found[at].pid, found[at].begun_ns);
        }
    }
    found
}

impl Recorder {
    /// Whether both are from the same recorder.
    fn is_same(&self, other: &Recorder) -> bool {
        (self.pid, self.begun_ns) == (other.pid, other.begun_ns)
    }

    /// Description of the recorder.
    fn name(&self) -> String {
        let file = self.file.as_deref().map(|file| format!(" ({})", escape_controls(file)));
        format!("the recorder of process {}{}", self.pid, file.unwrap_or_default())
    }
}

/// Whether it is a visible process of this user.
fn is_ours(pid: u32) -> bool {
    let owner = |of: &str| fs::metadata(format!("/proc/{of}")).map(|process| process.uid());
    owner("self").is_ok_and(|me| owner(&pid.to_string()).is_ok_and(|its| its == me))
}

/// Checks each recorder: its losses so far, the size of its recording, and the free space.
pub fn check(findings: &mut Findings, domain: &Path) {
    let recorders = read_recorders(domain);
    diagnose(findings, None, &recorders, rnet::now_ns());
    for Recorder { pid, file, .. } in &recorders {
        let Some(file) = file.as_deref() else { continue };
        let what = format!("the recording that process {pid} writes, {}", escape_controls(file));
        match fs::metadata(file) {
            Ok(there) => {
                findings.ok("recorder", format!("{what}: {} MiB so far", there.len() >> 20));
            }
            Err(error) if error.kind() == ErrorKind::NotFound && is_ours(*pid) => findings.problem(
                "recorder",
                format!("{what}, no longer exists: {error}"),
                "it was removed or moved; stop the recorder, and start another recording",
            ),
            // The file belongs to another user, or is in another container.
            Err(_) => continue,
        }
        if let Some(folder) = Path::new(file).parent() {
            disk(findings, &format!("the recording of process {pid}"), folder);
        }
    }
}

/// Reports current problems of recorders. Losses are reported if they are new since `before`; without it, all
/// of them.
pub fn diagnose(
    findings: &mut Findings,
    before: Option<&[Recorder]>,
    now: &[Recorder],
    now_ns: u64,
) {
    for recorder in now {
        let name = recorder.name();
        let silent_ns = now_ns.saturating_sub(recorder.at_ns);
        if silent_ns > SILENT_NS {
            findings.problem(
                "recorder",
                format!("{name} has sent no status for {} s: it is stopped or starved of CPU time", silent_ns / 1_000_000_000),
                "it is stopped by a debugger or SIGSTOP, or other processes take its CPU time: resume it \
                 with SIGCONT; rnet top shows which processes use the CPU",
            );
        }
        let earlier = before.map(|all| all.iter().find(|earlier| earlier.is_same(recorder)));
        for (cause, count) in &recorder.missing {
            let known = match &earlier {
                // A recorder that started since `before` has lost all of it since then.
                Some(earlier) => {
                    earlier.and_then(|earlier| earlier.missing.get(cause)).copied().unwrap_or(0)
                }
                None => 0,
            };
            report_missing(findings, &name, cause, count.saturating_sub(known), earlier.is_some());
        }
        let unheard_before = earlier.flatten().map_or(0, |earlier| earlier.unheard);
        let unheard = recorder.unheard.saturating_sub(unheard_before);
        if unheard > 0 {
            let what = format!(
                "{name} did not receive from {} that it found",
                count_text(unheard, "publisher")
            );
            let advice = "its stderr shows which and why; to be recorded, a publisher must stay open for at \
                          least 100 ms";
            match before {
                Some(_) => findings.problem("recorder", what, advice),
                // A past problem is only a note.
                None => findings.note_with("recorder", what, advice),
            }
        }
        for (of, why) in &recorder.problems {
            findings.problem(
                "recorder",
                format!(
                    "{name} cannot write its {}: {}",
                    escape_controls(of),
                    escape_controls(why)
                ),
                "until then that data is lost: make the location writable, or free space there",
            );
        }
        check_space(findings, recorder, &name);
    }
}

/// The cause of missing messages, as a continuation of "lost 3 messages: ".
fn cause_text(cause: &str) -> Cow<'_, str> {
    let words = match cause {
        "overrun" => "overwritten in the log before they were read",
        "reused" => "their memory was reused before they were copied",
        "queue" => "the memory for waiting messages was full",
        "disk_full" => "the disk was full",
        "removed" => "the file was removed",
        "write" => "the file could not be written",
        // A recorder of another version may have other causes.
        _ => return escape_controls(cause),
    };
    Cow::Borrowed(words)
}

/// Reports missing messages of a cause.
fn report_missing(findings: &mut Findings, name: &str, cause: &str, count: u64, is_new: bool) {
    let advice = match cause {
        "overrun" => {
            "it could not read fast enough: record fewer topics (--exclude), or start it with \
             RNET_TUNE_THREADS=0, so that it does not run at lower priority than the nodes"
        }
        "reused" => {
            "large messages arrive faster than they are copied: record fewer of them (--exclude), or give \
             their publishers a larger pool (pool_chunks)"
        }
        "queue" => {
            "the disk or the compression is too slow: --compress lz4 or none, a faster disk, more memory (--buffer), or \
             fewer topics"
        }
        "disk_full" => "free space where it writes; --max-disk limits recordings",
        "removed" => {
            "do not move or delete a file until its recorder has stopped; then rnet bag split divides it \
             into smaller files"
        }
        "write" => "check the stderr of the recorder",
        // Such messages cannot be recorded in the requested format.
        _ => return,
    };
    if count == 0 {
        return;
    }
    let what = |when: &str| {
        format!("{name} {when} {}: {}", count_text(count, "message"), cause_text(cause))
    };
    match is_new {
        true => findings.problem("recorder", what("has lost"), advice),
        // A past problem is only a note.
        false => findings.note_with("recorder", what("has lost so far"), advice),
    }
}

/// Checks the memory and the disk space that are left.
fn check_space(findings: &mut Findings, recorder: &Recorder, name: &str) {
    if recorder.buffer_bytes > 0 && recorder.queued_bytes > recorder.buffer_bytes / 2 {
        findings.problem(
            "recorder",
            format!(
                "{name} cannot keep up: {} of its {} MiB buffer wait to be written",
                recorder.queued_bytes >> 20,
                recorder.buffer_bytes >> 20
            ),
            "messages are lost when the buffer is full: --compress lz4 or none, a faster disk, more memory \
             (--buffer), or fewer topics",
        );
    }
    let advice = "delete unneeded files there, or limit recordings with --max-disk";
    if recorder.disk_is_full {
        findings.problem("recorder", format!("{name} writes nothing: its disk is full"), advice);
    } else if let Some(free) = recorder.free_bytes.filter(|free| *free < MIN_FREE_BYTES) {
        let what = format!("{name} has {} MiB left on its disk", free >> 20);
        findings.problem("recorder", what, advice);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::Level;

    fn recorder(missing: &[(&str, u64)]) -> Recorder {
        let missing = missing.iter().map(|(cause, count)| ((*cause).to_owned(), *count)).collect();
        let file = Some("/data/run.mcap".to_owned());
        Recorder {
            pid: 7,
            begun_ns: 1,
            at_ns: 10,
            missing,
            file,
            buffer_bytes: 100 << 20,
            ..Recorder::default()
        }
    }

    fn found(before: Option<&Recorder>, now: &Recorder) -> Vec<String> {
        let mut findings = Findings::default();
        let before = before.map(std::slice::from_ref);
        diagnose(&mut findings, before, std::slice::from_ref(now), 10);
        let texts = findings.0.into_iter().map(|finding| {
            assert!(finding.advice.is_some(), "{finding:?}");
            // A past problem is a note.
            let is_over = finding.what.contains("so far")
                || before.is_none() && finding.what.contains("did not receive from");
            assert_eq!(finding.level == Level::Note, is_over, "{finding:?}");
            finding.what
        });
        texts.collect()
    }

    #[test]
    fn new_losses_are_reported_and_old_ones_only_without_a_baseline() {
        let (first, second) =
            (recorder(&[("overrun", 3)]), recorder(&[("overrun", 5), ("queue", 2)]));
        let so_far = "the recorder of process 7 (/data/run.mcap) has lost so far 3 messages: overwritten in the log before they were read";
        assert_eq!(found(None, &first), [so_far]);
        assert_eq!(found(Some(&first), &first), [""; 0]);
        let new = found(Some(&first), &second);
        assert!(
            new[0].ends_with("has lost 2 messages: overwritten in the log before they were read")
                && new[1].ends_with("2 messages: the memory for waiting messages was full"),
            "{new:?}"
        );
        // Another recorder with the same process id has lost all of it since then.
        let other = Recorder { begun_ns: 2, ..first.clone() };
        assert!(
            found(Some(&first), &other)[0]
                .ends_with("has lost 3 messages: overwritten in the log before they were read")
        );
        // Messages that the format cannot contain are not reported.
        assert_eq!(
            found(None, &recorder(&[("no_counterpart", 9), ("malformed", 1), ("\u{1b}[", 2)])),
            [""; 0]
        );
    }

    #[test]
    fn publishers_that_were_not_received_are_reported_once() {
        let before = Recorder { unheard: 2, ..recorder(&[]) };
        let now = Recorder { unheard: 3, ..recorder(&[]) };
        assert!(
            found(None, &before)[0].ends_with("did not receive from 2 publishers that it found")
        );
        assert_eq!(found(Some(&before), &before), [""; 0]);
        assert!(found(Some(&before), &now)[0].contains("did not receive from 1 publisher that"));
    }

    #[test]
    fn reports_slow_full_and_stuck_recorders() {
        let slow = Recorder { queued_bytes: 51 << 20, ..recorder(&[]) };
        assert!(found(Some(&slow), &slow)[0].contains("51 of its 100 MiB"));
        let space = |free_bytes, disk_is_full| {
            let status = Recorder { free_bytes, disk_is_full, ..recorder(&[]) };
            found(Some(&status), &status)
        };
        assert_eq!((space(None, false), space(Some(1 << 30), false)), (vec![], vec![]));
        assert!(space(Some(1 << 20), false)[0].ends_with("has 1 MiB left on its disk"));
        assert!(space(Some(0), true)[0].ends_with("its disk is full"));
        let problems = [("folder".to_owned(), "cannot write to /data".to_owned())].into();
        let barred = Recorder { problems, ..recorder(&[]) };
        assert!(
            found(None, &barred)[0].ends_with("cannot write its folder: cannot write to /data")
        );
        let mut findings = Findings::default();
        diagnose(&mut findings, None, &[recorder(&[])], 10 + 6_000_000_000);
        assert!(findings.0[0].what.contains("no status for 6 s"), "{findings:?}");
    }
}
