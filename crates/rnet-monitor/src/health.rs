//! Checks of a robot other than its connections: clocks, the launch, the black box, disks.

use std::path::Path;

use rnet::inspect::Snapshot;
use rnet::msgs::LinkStatus;
use rnet::msgs::duration_to_ns;
use rnet::msgs::link_status::{Peer, State};
use rnet_launch::Record;

use crate::findings::Findings;
use rnet_format::text::escape_controls;

/// Maximum uncertainty of a clock offset at which latencies across hosts are meaningful.
const MAX_UNCERTAINTY_NS: u64 = 5_000_000;
/// Maximum drift of a crystal, in parts per million.
const MAX_DRIFT_PPM: f64 = 200.0;
/// A disk with less free space is reported.
pub(crate) const MIN_FREE_BYTES: u64 = 256 << 20;
const OTHER_FOLDER_ADVICE: &str =
    "use another location: RNET_STATE_DIR for state and logs, --output for recordings";
/// The service of a running black box.
const BLACK_BOX: &str = "/blackbox/trigger";

/// Checks the clocks of other hosts, as measured by the link.
pub fn clocks(findings: &mut Findings, status: &LinkStatus) {
    for peer in status.peers.iter().filter(|peer| peer.state() == State::Connected) {
        clock(findings, peer);
    }
}

fn clock(findings: &mut Findings, peer: &Peer) {
    let host = escape_controls(&peer.host);
    let uncertain = peer.clock_offset_uncertainty.as_ref().and_then(duration_to_ns);
    let Some(uncertain_ns) = uncertain.map(i64::unsigned_abs) else {
        return findings.note_with(
            "clock",
            format!("the clock of host {host} is not measured yet"),
            "this takes a second after the hosts connect; if it persists, rnet link status shows whether \
             they receive each other",
        );
    };
    let ms = uncertain_ns as f64 / 1e6;
    let before = findings.0.len();
    if uncertain_ns > MAX_UNCERTAINTY_NS {
        findings.problem(
            "clock",
            format!("the clock of host {host} is known only to ± {ms:.1} ms: latencies between the hosts \
                     may be off by as much"),
            "the connection is slow or busy: rnet link status shows the round trip; use a cable, or send \
             less over the link",
        );
    }
    let ppm = peer.clock_drift * 1e6;
    if ppm.abs() - peer.clock_drift_uncertainty * 1e6 > MAX_DRIFT_PPM {
        findings.problem(
            "clock",
            format!("the clock of host {host} runs {:.0} ppm too {}", ppm.abs(), if ppm > 0.0 { "fast" } else { "slow" }),
            "crystals are more accurate than that: check its clock source (/sys/devices/system/clocksource) \
             and, for a virtual machine, its host",
        );
    }
    if let Some(step) = peer.clock_steps.last() {
        let when = step.timestamp.as_ref().map_or(0, |at| at.seconds);
        findings.note_with(
            "clock",
            format!(
                "the clock of host {host} has stepped, {} times, the last at {when} s UTC: the host was \
                 suspended or restarted",
                peer.clock_steps.len()
            ),
            "latencies of messages in transit at that time are wrong; prevent the robot from suspending \
             (systemctl mask suspend.target)",
        );
    }
    if findings.0.len() == before {
        findings.ok("clock", format!("the clock of host {host} is known to ± {ms:.3} ms"));
    }
}

/// Checks the launchers' records of their nodes.
pub fn launched(findings: &mut Findings, records: &[Record]) {
    let mut fine = 0;
    // Records of another boot are obsolete.
    for record in records.iter().filter(|record| record.keeper.is_of_this_boot()) {
        let (node, restarts) = (&record.node, record.restarts);
        match &record.end {
            Some(end) if end.is_failure() && !record.was_asked_to_stop() => findings.problem(
                "launch",
                format!(
                    "the launched node {node} is not running: {end}, after {restarts} restarts{}",
                    record.last_output.last().map_or_else(String::new, |line| format!(": {}", escape_controls(line)))
                ),
                format!("rnet node logs {node} shows its output; rnet node restart {node} restarts it, rnet \
                         node stop {node} leaves it stopped"),
            ),
            Some(_) => {}
            None if record.keeper().is_none() && record.was_asked_to_stop() => {}
            // A keeper in another container cannot be checked.
            None if !record.keeper.is_in_this_namespace() => {}
            None if record.keeper().is_none() => findings.problem(
                "launch",
                format!("the keeper of the launched node {node} was killed, and the node with it"),
                "rnet launch restarts it",
            ),
            None if restarts > 0 => findings.note_with(
                "launch",
                format!("the launched node {node} was restarted {restarts} times"),
                format!("rnet node logs {node} shows why it exited"),
            ),
            None => fine += 1,
        }
    }
    if fine > 0 {
        findings.ok("launch", format!("{fine} launched nodes run and were not restarted"));
    }
}

/// Checks whether a black box runs. Its absence is reported only for launched robots.
pub fn black_box(findings: &mut Findings, snapshot: &Snapshot, is_launched: bool) {
    if snapshot.servers().iter().any(|server| server.service == BLACK_BOX) {
        findings.ok("black_box", "a black box runs");
    } else if is_launched {
        let what = "no black box runs: a failure now would leave no recording";
        findings.note_with("black_box", what, "rnet blackbox run keeps the last seconds");
    }
}

/// Checks the free space at this path, or at its nearest existing parent folder.
pub fn disk(findings: &mut Findings, what: &str, path: &Path) {
    let Some(there) = path.ancestors().find(|path| path.is_dir()) else { return };
    let stat = match rustix::fs::statvfs(there) {
        Ok(stat) => stat,
        Err(errno) => {
            let text = format!(
                "cannot determine the free space for {what} at {}: {errno}",
                there.display()
            );
            return findings.note_with(
                "disk",
                text,
                "check that the file system is mounted and responds",
            );
        }
    };
    if rustix::fs::access(there, rustix::fs::Access::WRITE_OK).is_err() {
        let text = format!("{} is not writable: {what} cannot be stored", there.display());
        return findings.note_with("disk", text, OTHER_FOLDER_ADVICE);
    }
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    let text = format!("{} MiB are free for {what} at {}", free >> 20, there.display());
    if free < MIN_FREE_BYTES {
        let advice = format!(
            "delete unneeded files there (rnet record --max-disk limits recordings), or {OTHER_FOLDER_ADVICE}"
        );
        findings.problem("disk", text, advice);
    } else {
        findings.ok("disk", text);
    }
}

#[cfg(test)]
mod tests {
    use rnet::NodeName;
    use rnet::msgs::Duration;
    use rnet::msgs::link_status::ClockStep;
    use rnet_launch::{End, Limits, LogLimits, Process};
    use serde_json::{Value, json};

    use super::*;
    use crate::findings::Level;
    use crate::matching;

    /// Severity and text of each finding. Checks that every note and problem has advice.
    fn levels_and_texts(findings: Findings) -> Vec<(Level, String)> {
        let texts = findings.0.into_iter().map(|finding| {
            assert!(finding.level == Level::Ok || finding.advice.is_some(), "{finding:?}");
            (finding.level, finding.what)
        });
        texts.collect()
    }

    fn found(peer: Peer) -> Vec<(Level, String)> {
        let mut findings = Findings::default();
        let peer = Peer { host: "robot".to_owned(), state: State::Connected.into(), ..peer };
        clocks(&mut findings, &LinkStatus { peers: vec![peer], ..LinkStatus::default() });
        levels_and_texts(findings)
    }

    fn known_to(ns: i32) -> Peer {
        let duration = Duration { seconds: 0, nanos: ns };
        Peer { clock_offset_uncertainty: Some(duration), ..Peer::default() }
    }

    #[test]
    fn checks_clocks_by_their_uncertainty() {
        assert_eq!(found(known_to(40_000))[0].0, Level::Ok);
        assert_eq!(found(Peer::default())[0].0, Level::Note);
        let vague = found(known_to(6_000_000));
        assert!(vague[0].0 == Level::Problem && vague[0].1.contains("± 6.0 ms"), "{vague:?}");
        let drift = Peer { clock_drift: -3e-4, clock_drift_uncertainty: 5e-5, ..known_to(1) };
        let drift = found(drift);
        assert!(drift[0].1.contains("300 ppm too slow"), "{drift:?}");
        // A drift within its uncertainty is not reported.
        let unsure = Peer { clock_drift: 3e-4, clock_drift_uncertainty: 2e-4, ..known_to(1) };
        assert_eq!(found(unsure)[0].0, Level::Ok);
        let stepped = Peer { clock_steps: vec![ClockStep::default()], ..known_to(1) };
        let stepped = found(stepped);
        assert!(stepped[0].0 == Level::Note && stepped[0].1.contains("has stepped"), "{stepped:?}");
    }

    /// The process of this test as the launcher records it; with a different start time, it is another
    /// process.
    fn this_process(older_ticks: u64) -> Value {
        let read = |path: &str| std::fs::read_to_string(path).unwrap();
        let stat = read("/proc/self/stat");
        let start = stat.rsplit_once(") ").unwrap().1.split(' ').nth(19).unwrap();
        json!({
            "pid": std::process::id(),
            "start_ticks": start.parse::<u64>().unwrap() - older_ticks,
            "pid_namespace": rnet::inspect::pid_namespace(),
            "boot_id": read("/proc/sys/kernel/random/boot_id").trim(),
        })
    }

    fn record(keeper: Value, restarts: u32, end: Option<End>) -> Record {
        let process = Process {
            command: Vec::new(),
            dir: "/".into(),
            env: Default::default(),
            params: Default::default(),
            limits: Limits::default(),
            interrupt_timeout_ms: 0,
            stop_timeout_ms: 0,
            die_with_launcher: false,
            log: LogLimits { max_len_bytes: 0, files: 1 },
        };
        Record {
            node: NodeName::new("arm").unwrap(),
            file: "robot.toml".into(),
            process,
            keeper: serde_json::from_value(keeper).unwrap(),
            main: None,
            started_boot_ns: 0,
            is_ready: true,
            restarts,
            end,
            last_output: Vec::new(),
            stopped_keepers: Vec::new(),
        }
    }

    #[test]
    fn reports_failed_and_restarted_nodes() {
        let found = |records: &[Record]| {
            let mut findings = Findings::default();
            launched(&mut findings, records);
            levels_and_texts(findings)
        };
        let living = |restarts, end| record(this_process(0), restarts, end);
        let fine = "1 launched nodes run and were not restarted";
        assert_eq!(found(&[living(0, None)]), [(Level::Ok, fine.to_owned())]);
        let again = "the launched node /arm was restarted 3 times";
        assert_eq!(found(&[living(3, None)]), [(Level::Note, again.to_owned())]);
        let failed = "the launched node /arm is not running: exit code 7, after 2 restarts";
        assert_eq!(found(&[living(2, Some(End::Code(7)))]), [(Level::Problem, failed.to_owned())]);
        let gone = "the keeper of the launched node /arm was killed, and the node with it";
        assert_eq!(found(&[record(this_process(1), 0, None)]), [(Level::Problem, gone.to_owned())]);
        assert_eq!(found(&[living(0, Some(End::Code(0)))]), [], "it has exited normally");
        let mut stopped = living(0, Some(End::Signal(15)));
        stopped.stopped_keepers.push(stopped.keeper.pid);
        assert_eq!(found(&[stopped]), [], "it was stopped");
        let mut keeper = this_process(0);
        keeper["boot_id"] = "another".into();
        assert_eq!(found(&[record(keeper, 0, Some(End::Code(7)))]), [], "of another boot");
    }

    #[test]
    fn reports_missing_black_box_of_launched_robot() {
        let found = |snapshot: &Snapshot, is_launched| {
            let mut findings = Findings::default();
            black_box(&mut findings, snapshot, is_launched);
            levels_and_texts(findings).into_iter().map(|(level, _)| level).collect::<Vec<_>>()
        };
        let mut snapshot = matching::tests::matched();
        assert_eq!(found(&snapshot, false), []);
        assert_eq!(found(&snapshot, true), [Level::Note]);
        snapshot.subscriptions[0].topic =
            "/_rnet/call/blackbox/trigger/s0123abcd/request".to_owned();
        assert_eq!(found(&snapshot, true), [Level::Ok]);
    }

    #[test]
    fn checks_disk_of_missing_folder() {
        let mut findings = Findings::default();
        disk(&mut findings, "state", &std::env::temp_dir().join("not/there/yet"));
        assert_eq!((findings.0.len(), findings.0[0].check), (1, "disk"));
        assert!(findings.0[0].what.contains(&std::env::temp_dir().display().to_string()));
    }
}
