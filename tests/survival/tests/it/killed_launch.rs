//! Kills the launcher and keepers at each of their fail points; the next launch adopts the node or restarts
//! it.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rnet_survival::launching::{FILE, RUNS};
use rnet_survival::{LONG, points};
use rustix::process::{Pid, Signal, kill_process};

/// Passed by the launcher as a node starts, and by the keeper.
const STARTS: [&str; 3] = ["launch.spawned", "launch.requested", "launch.answered"];
const KEEPS: [&str; 5] = [
    "launch.locked",
    "launch.record_drafted",
    "launch.recorded",
    "launch.started",
    "launch.process_recorded",
];
/// Passed by the launcher that adopts a node.
const ADOPTS: [&str; 2] = ["launch.adopting", "launch.adopted"];
/// Passed by the launcher that stops a node, and by the keeper.
const STOPS: [&str; 2] = ["launch.stopping", "launch.signalled"];
const IS_STOPPED: [&str; 4] =
    ["launch.stop_recorded", "launch.terminated", "launch.reaped", "launch.end_recorded"];
/// Passed by the launcher whose node has exited.
const ENDS: [&str; 1] = ["launch.ended"];

/// A directory with a file of one node, which records its starts.
struct RunDir(PathBuf);

impl RunDir {
    fn new(point: &str) -> RunDir {
        let dir = PathBuf::from(format!("/dev/shm/rnet-launches-{}-{point}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let text = "[blackbox]\nenabled = false\n[node.a]\n\
             command = [\"sh\", \"-c\", \"echo $$$$ >> pids; exec sleep 600\"]\n\
             restart = \"always\"\nbackoff_s = 0.05\n";
        std::fs::write(dir.join(FILE), text).unwrap();
        RunDir(dir)
    }

    /// A launcher that dies at the point, as do its keepers.
    fn launch(&self, point: Option<&str>) -> Launch {
        let mut command = Command::new(Path::new(env!("CARGO_BIN_EXE_survival")));
        command.arg("launch").arg(&self.0).stdin(Stdio::null()).stdout(Stdio::piped());
        if let Some(point) = point {
            command.env("RNET_FAIL_POINT", point);
        }
        let mut child = command.spawn().unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        Launch { child, said }
    }

    /// The starts of the node.
    fn starts(&self) -> Vec<i32> {
        let text = std::fs::read_to_string(self.0.join("pids")).unwrap_or_default();
        text.lines().map(|line| line.parse().unwrap()).collect()
    }

    /// Live processes of the node.
    fn living(&self) -> Vec<i32> {
        let lives = |pid: &i32| {
            let proc = PathBuf::from(format!("/proc/{pid}"));
            let is_ours = std::fs::read_link(proc.join("cwd")).is_ok_and(|cwd| cwd == self.0);
            is_ours && std::fs::read(proc.join("cmdline")).is_ok_and(|text| !text.is_empty())
        };
        self.starts().into_iter().filter(lives).collect()
    }
}

impl Drop for RunDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

struct Launch {
    child: Child,
    said: BufReader<ChildStdout>,
}

impl Launch {
    /// Reads up to a line that contains this.
    #[track_caller]
    fn until(&mut self, words: &str) {
        let mut output = String::new();
        loop {
            let begin = output.len();
            assert_ne!(self.said.read_line(&mut output).unwrap(), 0, "no {words:?} in {output}");
            if output[begin..].contains(words) {
                return;
            }
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits until the fail point has killed it.
    #[track_caller]
    fn was_killed(mut self, point: &str) {
        let status = self.child.wait().unwrap();
        assert_eq!(status.signal(), Some(libc::SIGKILL), "{point}: it exited by itself: {status}");
    }

    /// Kills it, whatever it does.
    fn kill(mut self) {
        let _ = self.child.kill();
        self.child.wait().unwrap();
    }
}

#[track_caller]
fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let until = Instant::now() + LONG;
    while !condition() {
        assert!(Instant::now() < until, "not within {LONG:?}: {what}");
        std::thread::sleep(Duration::from_millis(1)); // sleep: interval between two checks
    }
}

/// A launch without a fail point has the node, once, and stops it.
#[track_caller]
fn the_next_has_it(place: &RunDir, point: &str) {
    let mut next = place.launch(None);
    next.until("now running");
    // The kernel is still killing the processes of a killed keeper.
    eventually(point, || place.living().len() == 1);
    next.signal(Signal::TERM);
    let status = next.child.wait().unwrap();
    assert!(status.success(), "{point}: {status}");
    assert_eq!(place.living(), [0; 0], "{point}: no process is left");
    let runs = std::fs::read_dir(place.0.join(RUNS)).unwrap().flatten();
    let files: Vec<_> = runs.map(|entry| entry.file_name().into_string().unwrap()).collect();
    // One draft, whose memory the next record of the node uses; none of a request.
    let drafts = files.iter().filter(|name| name.ends_with(".draft")).count();
    let is_request =
        |name: &String| name.rsplit_once('.').is_some_and(|(_, end)| end.contains('-'));
    assert!(drafts <= 1 && !files.iter().any(is_request), "{point}: {files:?}");
}

#[test]
fn every_fail_point_is_passed() {
    let all = points::all().into_iter().filter(|point| points::is_of_launch(point));
    let named = [&STARTS[..], &KEEPS, &ADOPTS, &STOPS, &IS_STOPPED, &ENDS].concat();
    let named: BTreeSet<String> = named.into_iter().map(str::to_owned).collect();
    assert_eq!(all.collect::<BTreeSet<_>>(), named);
}

#[test]
fn a_launcher_may_be_killed_as_it_starts_a_node() {
    for point in STARTS {
        let place = RunDir::new(point);
        place.launch(Some(point)).was_killed(point);
        the_next_has_it(&place, point);
        assert_eq!(place.starts().len(), 1, "{point}: the started node was adopted");
    }
}

#[test]
fn a_keeper_may_be_killed_as_it_starts_its_node() {
    for point in KEEPS {
        for pass in 1..=if point == "launch.record_drafted" { 2 } else { 1 } {
            let point = format!("{point}@{pass}");
            let place = RunDir::new(&point);
            let mut launch = place.launch(Some(&point));
            // It retries, with a keeper that dies, too.
            launch.until("/a failed");
            launch.until("/a failed");
            launch.kill();
            the_next_has_it(&place, &point);
        }
    }
}

#[test]
fn a_launcher_may_be_killed_as_it_adopts_a_node() {
    for point in ADOPTS {
        let place = RunDir::new(point);
        let mut first = place.launch(None);
        first.until("now running");
        eventually("the node has started", || place.starts().len() == 1);
        first.kill();
        place.launch(Some(point)).was_killed(point);
        the_next_has_it(&place, point);
        assert_eq!(place.starts().len(), 1, "{point}: it was not restarted");
    }
}

#[test]
fn a_launcher_may_be_killed_as_it_stops_a_node() {
    for point in STOPS {
        let place = RunDir::new(point);
        let mut launch = place.launch(Some(point));
        launch.until("now running");
        launch.signal(Signal::TERM);
        launch.was_killed(point);
        the_next_has_it(&place, point);
    }
}

#[test]
fn a_keeper_may_be_killed_as_it_stops_its_node() {
    for point in IS_STOPPED {
        let place = RunDir::new(point);
        let mut launch = place.launch(Some(point));
        launch.until("now running");
        eventually("the node has started", || place.living().len() == 1);
        launch.signal(Signal::TERM);
        // By its record: it contains how the node has ended when the last point is passed.
        let closed = point == "launch.end_recorded";
        launch.until(if closed {
            "/a stopped terminated by SIGINT"
        } else {
            "/a stopped killed together with its keeper"
        });
        let status = launch.child.wait().unwrap();
        assert_eq!(status.signal(), None, "{point}: the launcher runs to its end: {status}");
        eventually(point, || place.living().is_empty());
        the_next_has_it(&place, point);
        assert_eq!(place.starts().len(), 2, "{point}");
    }
}

#[test]
fn a_launcher_may_be_killed_as_its_node_ends() {
    for point in ENDS {
        let place = RunDir::new(point);
        let mut launch = place.launch(Some(point));
        launch.until("now running");
        eventually("the node has started", || place.living().len() == 1);
        kill_process(Pid::from_raw(place.starts()[0]).unwrap(), Signal::KILL).unwrap();
        launch.was_killed(point);
        the_next_has_it(&place, point);
        assert_eq!(place.starts().len(), 2, "{point}");
    }
}
