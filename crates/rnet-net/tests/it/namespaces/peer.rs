//! A process on a host that runs this test's binary once more, as one of the actors below.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rnet::{DomainId, Lane};
use rnet_net::zenoh::{ZenohNet, ZenohOptions};
use rnet_net::{HostId, Presence, Sink, Transport};
use rustix::time::{ClockId, clock_gettime};

use super::net::Host;
use super::relay::relay;

/// The time-out for events that must happen: a busy machine may take a minute for anything.
pub const LIMIT: Duration = Duration::from_secs(300);
/// The same for an actor, which reports its failure before the waiting test gives up.
pub const ACTOR_LIMIT: Duration = Duration::from_secs(240);
pub const PORT: u16 = 7450;
/// Lines of a process that are shown when one is missing.
const MAX_SHOWN: usize = 40;

/// A line of output, and when it was read.
type Line = (String, Instant);

/// The output of a process.
#[derive(Default)]
struct OutputLines {
    lines: Vec<Line>,
    /// It has closed its output: no more lines will come.
    is_over: bool,
}

impl OutputLines {
    /// The last lines, which show what has happened.
    fn last(&self) -> &[Line] {
        &self.lines[self.lines.len().saturating_sub(MAX_SHOWN)..]
    }
}

/// A process of a host, and its output.
pub struct Peer {
    child: Child,
    written: Arc<(Mutex<OutputLines>, Condvar)>,
}

impl Peer {
    /// The network of host `id`, which listens and connects to others; it prints its events and the
    /// received frames.
    pub fn network(host: &Host, id: u64, connect: &[Ipv4Addr]) -> Self {
        let connect: Vec<String> =
            connect.iter().map(|address| format!("tcp/{address}:{PORT}")).collect();
        Self::spawn(host, &format!("network {id} {}", connect.join(" ")))
    }

    /// The network of host `id` in mode `lan`, on the interface of its host.
    pub fn lan(host: &Host, id: u64) -> Self {
        Self::spawn(host, &format!("lan {id}"))
    }

    /// A relay on the ports of both lanes to another host.
    pub fn relay(host: &Host, to: Ipv4Addr, delay: Duration) -> Self {
        Self::spawn(host, &format!("relay {to} {}", delay.as_millis()))
    }

    /// An actor of `nodes.rs`.
    pub fn actor(host: &Host, words: &str) -> Self {
        Self::spawn(host, words)
    }

    /// The program `rnet`, as users run it; its error output is among its lines.
    pub fn program(host: &Host, arguments: &[&str]) -> Self {
        let mut command = host.command("sh");
        command.args(["-c", "exec \"$0\" \"$@\" 2>&1"]).arg(program());
        Self::of(command.args(arguments))
    }

    fn spawn(host: &Host, words: &str) -> Self {
        let mut command: Command = host.command(env::current_exe().unwrap());
        command
            .args(["--exact", "namespaces::peer::actor", "--ignored", "--nocapture"])
            .env("ACTOR", words);
        let peer = Self::of(&mut command);
        peer.wait("ready", 1);
        peer
    }

    fn of(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let written = Arc::new((Mutex::<OutputLines>::default(), Condvar::new()));
        let shared = Arc::clone(&written);
        let output = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || {
            let add = |line: Option<String>| {
                let mut written = shared.0.lock().unwrap_or_else(PoisonError::into_inner);
                written.is_over = line.is_none();
                written.lines.extend(line.map(|line| (line, Instant::now())));
                shared.1.notify_all();
            };
            output.lines().map_while(Result::ok).for_each(|line| add(Some(line)));
            add(None);
        });
        Self { child, written }
    }

    /// Makes the network send `count` frames on each lane to a host.
    pub fn send(&mut self, to: u64, count: u64) {
        self.tell(&format!("{to} {count}"));
    }

    /// Writes a line to the process.
    pub fn tell(&mut self, line: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Ends the input of the process.
    pub fn end_input(&mut self) {
        self.child.stdin = None;
    }

    /// Waits for the `nth` line with this prefix, and returns its rest and when it came.
    pub fn wait(&self, begin: &str, nth: usize) -> (String, Instant) {
        self.find(begin, nth, LIMIT).unwrap_or_else(|| {
            let written = self.written.0.lock().unwrap_or_else(PoisonError::into_inner);
            panic!("no {nth}. line {begin:?} within {LIMIT:?}: {:?}", written.last())
        })
    }

    /// Whether the `nth` line with this prefix comes within this time.
    pub fn says_within(&self, begin: &str, nth: usize, limit: Duration) -> bool {
        self.find(begin, nth, limit).is_some()
    }

    fn find(&self, begin: &str, nth: usize, limit: Duration) -> Option<(String, Instant)> {
        let end = Instant::now() + limit;
        let mut written = self.written.0.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let lines = written.lines.iter();
            let mut found = lines.filter_map(|(line, at)| Some((line.strip_prefix(begin)?, at)));
            if let Some((rest, at)) = found.nth(nth - 1) {
                return Some((rest.trim().to_owned(), *at));
            }
            let last = written.last();
            assert!(!written.is_over, "it has ended without a {nth}. line {begin:?}: {last:?}");
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            let waited = self.written.1.wait_timeout(written, left);
            written = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits until the process has exited, and returns all its output.
    pub fn wait_end(&self) -> String {
        let end = Instant::now() + LIMIT;
        let mut written = self.written.0.lock().unwrap_or_else(PoisonError::into_inner);
        while !written.is_over {
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "it has not ended within {LIMIT:?}: {:?}", written.last());
            let waited = self.written.1.wait_timeout(written, left);
            written = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        written.lines.iter().map(|line| format!("{}\n", line.0)).collect()
    }

    /// How many lines have this prefix by now.
    pub fn count(&self, begin: &str) -> usize {
        let written = self.written.0.lock().unwrap_or_else(PoisonError::into_inner);
        written.lines.iter().filter(|(line, _)| line.starts_with(begin)).count()
    }
}

/// The program `rnet`, which cargo has put beside this test.
fn program() -> PathBuf {
    let test = env::current_exe().unwrap();
    let program = test.ancestors().nth(2).unwrap().join("rnet");
    assert!(program.is_file(), "needs the program rnet: cargo build --package rnet-cli");
    program
}

/// A command that runs it on a host.
pub fn rnet(host: &Host) -> Command {
    let mut command = host.command(program());
    command.env("RNET_LINK", env!("CARGO_BIN_EXE_rnet-link"));
    command
}

impl Drop for Peer {
    fn drop(&mut self) {
        // The end of its input ends the actor; a process that is stopped or hangs is killed with its host.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
#[ignore = "run by the other tests, on their own hosts"]
fn actor() {
    let Ok(words) = env::var("ACTOR") else { return };
    let words: Vec<&str> = words.split_whitespace().collect();
    match words[..] {
        ["relay", to, delay] => {
            let delay = Duration::from_millis(delay.parse().unwrap());
            for port in [PORT, PORT + 1] {
                let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).unwrap();
                let to = SocketAddr::new(to.parse().unwrap(), port);
                thread::spawn(move || relay(&listener, to, delay));
            }
            say("ready");
            let _ = std::io::read_to_string(std::io::stdin());
        }
        ["link", id, ref connect @ ..] => super::nodes::link(id, connect),
        ["crowd", host] => super::crowd::actor(host),
        ["partitions", host, seed] => super::partitions::actor(host, seed),
        ["send", to] => super::reordered::send(to),
        ["receive"] => super::reordered::receive(),
        ["stamp"] => super::delay::stamp(),
        ["measure"] => super::delay::measure(),
        ["talk"] => super::nodes::talk(None),
        ["talk", log_len_bytes] => super::nodes::talk(Some(log_len_bytes.parse().unwrap())),
        ["serve", name] => super::servers::serve(name),
        ["call"] => super::servers::call(),
        ["wheels"] => super::wheels::wheels(),
        ["receive_commands"] => super::drivers::receive(),
        ["drive", host, seed] => super::drivers::drive(host, seed),
        ["listen"] => super::nodes::listen(),
        ["watch"] => super::nodes::watch(),
        ["lan", id] => {
            network(id, ZenohOptions { lan: Some(vec!["eth0".into()]), ..ZenohOptions::default() })
        }
        ["network", id, ref connect @ ..] => {
            let listen = vec![format!("tcp/0.0.0.0:{PORT}").parse().unwrap()];
            let connect =
                connect.iter().map(|endpoint| FromStr::from_str(endpoint).unwrap()).collect();
            network(id, ZenohOptions { listen, connect, ..Default::default() });
        }
        _ => panic!("unknown actor: {words:?}"),
    }
}

fn network(id: &str, options: ZenohOptions) {
    let own = Presence { host: HostId(id.parse().unwrap()), term: 1 };
    let net =
        ZenohNet::open(&options, own, &DomainId::default(), Arc::new(Speaker::default())).unwrap();
    say(&format!("ready {}", clock_gettime(ClockId::Monotonic).tv_sec));
    for line in std::io::stdin().lines().map_while(Result::ok) {
        let (to, count) = line.split_once(' ').unwrap();
        let (to, count) = (HostId(to.parse().unwrap()), count.parse::<u64>().unwrap());
        for number in 0..count {
            for lane in [Lane::Urgent, Lane::Bulk] {
                let frame = [number.to_le_bytes(), count.to_le_bytes()].concat();
                net.send(lane, to, frame.into()).unwrap();
            }
        }
    }
}

/// Prints the received data: for frames, whether a whole series came in order.
#[derive(Default)]
struct Speaker {
    series: Mutex<[Series; 2]>,
}

/// The received part of a series.
#[derive(Default)]
struct Series {
    next: u64,
    is_whole: bool,
}

impl Series {
    /// Whether this number may follow: earlier ones may be lost, and a series may restart.
    fn take(&mut self, number: u64) -> bool {
        let in_order = number == 0 || number >= self.next;
        self.is_whole = number == 0 || (self.is_whole && number == self.next);
        self.next = number + 1;
        in_order
    }
}

impl Sink for Speaker {
    fn on_frame(&self, lane: Lane, from: HostId, frame: &[u8]) {
        let word = |at: usize| u64::from_le_bytes(frame[at..at + 8].try_into().unwrap());
        let (number, count) = (word(0), word(8));
        let mut series = self.series.lock().unwrap_or_else(PoisonError::into_inner);
        let series = &mut series[usize::from(lane == Lane::Bulk)];
        if !series.take(number) {
            say(&format!("disorder {lane:?} {number} from {}", from.0));
        } else if series.is_whole && number + 1 == count {
            say(&format!("series {lane:?} {count} from {}", from.0));
        }
    }

    fn on_up(&self, presence: Presence) {
        say(&format!("up {}", presence.host.0));
    }

    fn on_down(&self, presence: Presence) {
        say(&format!("down {}", presence.host.0));
    }
}

pub fn say(line: &str) {
    let mut output = std::io::stdout().lock();
    // The test that would read it may have ended.
    let _ = writeln!(output, "\n{line}").and_then(|()| output.flush());
}
