//! A process on a host that runs this test's binary once more, as one of the actors below.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rnet::{DomainId, Lane};
use rnet_net::zenoh::{ZenohNet, ZenohOptions};
use rnet_net::{HostId, Presence, Sink, Transport};
use rustix::time::{ClockId, clock_gettime};

use crate::net::Host;
use crate::relay::relay;

/// Generous: a loaded machine may take seconds for anything.
const LIMIT: Duration = Duration::from_secs(60);
pub const PORT: u16 = 7450;

/// What was written, and when it was read.
type Line = (String, Instant);

/// A process of a host, and what it has written.
pub struct Peer {
    child: Child,
    lines: Arc<(Mutex<Vec<Line>>, Condvar)>,
}

impl Peer {
    /// The network of host `id`, which listens and connects to others; it says who comes and goes, and what it hears.
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

    fn spawn(host: &Host, words: &str) -> Self {
        let mut command: Command = host.command(env::current_exe().unwrap());
        command.args(["--exact", "peer::actor", "--ignored", "--nocapture"]).env("ACTOR", words);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = Arc::new((Mutex::new(Vec::new()), Condvar::new()));
        let heard = Arc::clone(&lines);
        let output = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                heard.0.lock().unwrap_or_else(PoisonError::into_inner).push((line, Instant::now()));
                heard.1.notify_all();
            }
        });
        let peer = Self { child, lines };
        peer.wait("ready", 1);
        peer
    }

    /// Has the network send `count` frames on each lane to a host.
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

    /// Waits for the `nth` line that begins so, and returns its rest and when it came.
    pub fn wait(&self, begin: &str, nth: usize) -> (String, Instant) {
        let end = Instant::now() + LIMIT;
        let mut lines = self.lines.0.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let mut found =
                lines.iter().filter_map(|(line, at)| Some((line.strip_prefix(begin)?, at)));
            if let Some((rest, at)) = found.nth(nth - 1) {
                return (rest.trim().to_owned(), *at);
            }
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "no {nth}. line {begin:?} within {LIMIT:?}: {lines:?}");
            lines =
                self.lines.1.wait_timeout(lines, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// How many lines begin so, by now.
    pub fn count(&self, begin: &str) -> usize {
        let lines = self.lines.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().filter(|(line, _)| line.starts_with(begin)).count()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // The end of its input ends the actor; what is stopped or hangs is killed with its host.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
#[ignore = "run by the other tests, on hosts of their own"]
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
        ["link", id, ref connect @ ..] => crate::nodes::link(id, connect),
        ["crowd", host] => crate::crowd::actor(host),
        ["partitions", host, seed] => crate::partitions::actor(host, seed),
        ["stamp"] => crate::delay::stamp(),
        ["measure"] => crate::delay::measure(),
        ["talk"] => crate::nodes::talk(),
        ["listen"] => crate::nodes::listen(),
        ["watch"] => crate::nodes::watch(),
        ["lan", id] => {
            network(id, ZenohOptions { lan: Some(vec!["eth0".into()]), ..ZenohOptions::default() })
        }
        ["network", id, ref connect @ ..] => {
            let listen = vec![format!("tcp/0.0.0.0:{PORT}").parse().unwrap()];
            let connect =
                connect.iter().map(|endpoint| FromStr::from_str(endpoint).unwrap()).collect();
            network(id, ZenohOptions { listen, connect, ..Default::default() });
        }
        _ => panic!("an actor that does not exist: {words:?}"),
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

/// Writes what it hears: of frames, whether a whole series came in order.
#[derive(Default)]
struct Speaker {
    expected: Mutex<[u64; 2]>,
}

impl Sink for Speaker {
    fn frame(&self, lane: Lane, from: HostId, frame: &[u8]) {
        let word = |at: usize| u64::from_le_bytes(frame[at..at + 8].try_into().unwrap());
        let (number, count) = (word(0), word(8));
        let mut expected = self.expected.lock().unwrap_or_else(PoisonError::into_inner);
        let expected = &mut expected[usize::from(lane == Lane::Bulk)];
        let in_order = number == 0 || number == *expected;
        *expected = number + 1;
        if !in_order {
            say(&format!("disorder {lane:?} {number} from {}", from.0));
        } else if number + 1 == count {
            say(&format!("series {lane:?} {count} from {}", from.0));
        }
    }

    fn up(&self, presence: Presence) {
        say(&format!("up {}", presence.host.0));
    }

    fn down(&self, presence: Presence) {
        say(&format!("down {}", presence.host.0));
    }
}

pub fn say(line: &str) {
    let mut output = std::io::stdout().lock();
    // The test that would read it may have ended.
    let _ = writeln!(output, "\n{line}").and_then(|()| output.flush());
}
