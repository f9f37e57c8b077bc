//! Measures how long after its deadline a command receiver falls back when its driver is killed, stopped,
//! or cut off on another host. It runs the given number of trials of the three in turn, with a driver
//! process for each. It fails if a fallback is late or missing, or if a trial does not finish.
//!
//!     cargo run --release --package rnet-net --example command_trials -- 1000
//!
//! The cable is in memory, which does not affect the result: the receiver counts its deadline by its own
//! clock and detects the cut by silence.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use rnet::msgs::Twist;
use rnet::{FallbackReason, Node};
use rnet_net::config::Config;
use rnet_net::in_memory_transport::MemoryNet;
use rnet_net::link::{Link, LinkOptions};
use rnet_net::{HostId, Presence};

const DEADLINE: Duration = Duration::from_millis(50);
const PERIOD: Duration = Duration::from_millis(5);
/// A fallback this long after the deadline is still in time.
const IN_TIME: Duration = Duration::from_millis(5);
/// The time-out for the first commands, for the fallback, and for the end of the driver's authority.
const PATIENCE: Duration = Duration::from_secs(10);
const DIR: &str = "RNET_TRIALS_DIR";
const TOPIC: &str = "/cmd_vel";

#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Killed,
    Stopped,
    CutOff,
}

const ENDS: [End; 3] = [End::Killed, End::Stopped, End::CutOff];

fn node(dir: &Path, name: &str) -> rnet::Result<Node> {
    Node::builder(name).dir(dir).state_dir(dir).domain("trials").open()
}

/// Drives until it is killed.
fn drive(dir: &Path) -> rnet::Result<()> {
    let name = format!("driver_{}", std::process::id());
    let mut driver = node(dir, &name)?.drive::<Twist>(TOPIC).take()?;
    loop {
        // A driver that is cut off gets the error that it is not in force any more.
        let _ = driver.send(&Twist::default());
        std::thread::sleep(PERIOD); // sleep: the period of the commands
    }
}

enum Said {
    Applied(Instant),
    Fallback(FallbackReason, Instant),
}

/// The two hosts, and the cable between them.
struct Hosts {
    dirs: [PathBuf; 2],
    net: Arc<MemoryNet>,
    _links: [Link; 2],
}

impl Hosts {
    fn new(base: &Path) -> Hosts {
        let net = MemoryNet::new();
        let dirs = ["here", "there"].map(|name| base.join(name));
        let links = [0, 1].map(|at| {
            std::fs::create_dir_all(&dirs[at]).expect("cannot create the directory");
            // So that a cut is detected sooner; the deadline does not depend on it.
            let text = "[network]\nlost_after_ms = 500";
            let read = Config::from_toml(text, Path::new("robot.toml"));
            let mut config = read.expect("a configuration");
            config.host = format!("host{at}");
            let dir = &dirs[at];
            let node = Node::builder("/_rnet/link").domain("trials").dir(dir).state_dir(dir);
            let presence = Presence { host: HostId(at as u64 + 1), term: 1 };
            let options = LinkOptions { node, presence, config, holds_role: Arc::new(|| true) };
            Link::open(options, |own, sink| Ok(net.join(own, sink))).expect("a link")
        });
        Hosts { dirs, net, _links: links }
    }

    /// Starts a driver, on the host that its kind of end needs.
    fn driver(&self, end: End) -> Child {
        Command::new(std::env::current_exe().expect("this program has a path"))
            .env(DIR, &self.dirs[usize::from(end == End::CutOff)])
            .stdout(Stdio::null())
            .spawn()
            .expect("cannot start a driver")
    }

    fn end(&self, end: End, driver: &Child) {
        let signal = |signal| {
            // SAFETY: it is a child of this process, which has not been waited for.
            unsafe { libc::kill(driver.id() as i32, signal) };
        };
        match end {
            End::Killed => signal(libc::SIGKILL),
            End::Stopped => signal(libc::SIGSTOP),
            End::CutOff => self.net.cut(HostId(1), HostId(2)),
        }
    }
}

/// The results of trials of one kind.
#[derive(Default)]
struct Results {
    /// Trials that fell back at once, because the driver was known to be gone.
    gone: usize,
    /// How late the others were, after the deadline.
    late: Vec<Duration>,
    in_time: usize,
    missing: usize,
}

impl Results {
    fn add(&mut self, fallback: Option<(FallbackReason, Duration)>) {
        let Some((why, late)) = fallback else {
            self.missing += 1;
            return;
        };
        self.in_time += usize::from(late <= IN_TIME);
        match why {
            FallbackReason::Deadline => self.late.push(late),
            // The exit of a killed driver is known at once, and ends its authority.
            _ => self.gone += 1,
        }
    }

    fn trials(&self) -> usize {
        self.gone + self.late.len() + self.missing
    }

    fn print(&mut self, name: &str) {
        self.late.sort_unstable();
        let last = self.late.len().saturating_sub(1);
        let at = |q: f64| {
            let late = self.late.get((last as f64 * q).ceil() as usize).copied();
            late.unwrap_or_default().as_nanos() as f64 / 1e3
        };
        println!(
            "{name}: {} trials, {} fell back at once, {} by the deadline, us after it: median {:.0}, p99 {:.0}, max \
             {:.0}; {} within {} ms, {} missing",
            self.trials(),
            self.gone,
            self.late.len(),
            at(0.5),
            at(0.99),
            at(1.0),
            self.in_time,
            IN_TIME.as_millis(),
            self.missing
        );
    }
}

/// Ends a driver after some commands; returns why the receiver fell back, and how late.
///
/// # Errors
/// The event that did not happen.
fn after(
    hosts: &Hosts,
    (end, driver): (End, &Child),
    events: &mpsc::Receiver<Said>,
    commands: usize,
) -> Result<(FallbackReason, Duration), &'static str> {
    // Some time after the first command, whenever that arrives.
    let (mut applied, mut last) = (0, Instant::now());
    let until = last + PATIENCE;
    while applied < commands {
        let left = until.saturating_duration_since(Instant::now());
        if let Said::Applied(at) = events.recv_timeout(left).map_err(|_| "a command")? {
            (applied, last) = (applied + 1, at);
        }
    }
    hosts.end(end, driver);
    let until = Instant::now() + PATIENCE;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        match events.recv_timeout(left).map_err(|_| "the fallback")? {
            Said::Applied(at) => last = at,
            Said::Fallback(why, at) => {
                return Ok((why, at.saturating_duration_since(last + DEADLINE)));
            }
        }
    }
}

/// Whether the end of a driver's authority becomes known.
fn is_free(command: &rnet::Command) -> bool {
    let until = Instant::now() + PATIENCE;
    while !command.status().holder.is_empty() {
        if Instant::now() >= until {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1)); // sleep: between two checks
    }
    true
}

fn main() -> rnet::Result<ExitCode> {
    if let Some(dir) = std::env::var_os(DIR) {
        return drive(dir.as_ref()).map(|()| ExitCode::SUCCESS);
    }
    let given = std::env::args().nth(1);
    let trials = given.as_ref().map_or(Ok(99), |n| n.parse::<usize>());
    let Some(trials) = trials.ok().filter(|trials| *trials > 0) else {
        let given = given.unwrap_or_default();
        eprintln!("TRIALS is {given:?}, and must be a number of 1 or more");
        return Ok(ExitCode::from(2));
    };
    let base = PathBuf::from(format!("/dev/shm/command-trials-{}", std::process::id()));
    let hosts = Hosts::new(&base);
    let (tell, events) = mpsc::channel();
    let said = tell.clone();
    let node = node(&hosts.dirs[0], "base")?;
    let command = node
        .command::<Twist>(TOPIC)
        .deadline(DEADLINE)
        .fallback_handler(move |why| said.send(Said::Fallback(why, Instant::now())).expect("heard"))
        .apply(move |_| tell.send(Said::Applied(Instant::now())).expect("heard"))?;
    let mut results = ENDS.map(|end| (end, Results::default()));
    for trial in 0..trials {
        let (end, results) = &mut results[trial % ENDS.len()];
        let mut child = hosts.driver(*end);
        let fallback = after(&hosts, (*end, &child), &events, 3 + trial % 5);
        let _ = child.kill();
        child.wait().expect("it is a child");
        let is_free = is_free(&command);
        hosts.net.heal(HostId(1), HostId(2));
        while events.try_recv().is_ok() {}
        let missing = match &fallback {
            Err(missing) => Some(*missing),
            Ok(_) if !is_free => Some("the end of its driver's authority"),
            Ok(_) => None,
        };
        if let Some(missing) = missing {
            eprintln!("trial {trial}, {end:?}: {missing} has not come within {PATIENCE:?}");
        }
        results.add(fallback.ok().filter(|_| is_free));
    }
    let mut all = Results::default();
    for (end, results) in &mut results {
        results.print(&format!("{end:?}"));
        all.gone += results.gone;
        all.in_time += results.in_time;
        all.missing += results.missing;
        all.late.append(&mut results.late);
    }
    all.print("all");
    drop((command, node, hosts));
    let _ = std::fs::remove_dir_all(base);
    let good = all.in_time == all.trials();
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
