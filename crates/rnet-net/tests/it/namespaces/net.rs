//! Hosts on this machine: network namespaces on one bridge, each with a directory and a monotonic clock of its own.
//!
//! The bridge stands in a namespace too, so that nothing of this machine's own network is touched. What a test
//! has killed leaves its namespaces; the next one removes them. By a lock it knows which are in use: ids of processes say
//! nothing to a test in another namespace of these.

use std::fs::{self, File};
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::ops::Range;
use std::path::PathBuf;
use std::process::{self, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::process::{Pid, Signal, kill_process};

use super::disorder::Disorder;
use crate::random::Random;

/// All of this machine's namespaces of tests begin so; a name without a dash follows, which no other net has.
const PREFIX: &str = "rnet-hosts-";
/// By so much the clock of each host is ahead of the one before, in seconds.
const CLOCK_STEP_S: u32 = 5000;

static NEXT: AtomicU32 = AtomicU32::new(0);

/// What [`Net::alone`] keeps from the others.
static MACHINE: RwLock<()> = RwLock::new(());

/// What a net has of the machine.
#[expect(dead_code, reason = "held, and not looked at")]
enum Share {
    Some(RwLockReadGuard<'static, ()>),
    All(RwLockWriteGuard<'static, ()>),
}

/// A bridge to which hosts are joined. Dropped, it kills what runs in them and removes them.
pub struct Net {
    /// Held until all is removed.
    _in_use: File,
    _share: Share,
    name: String,
    hosts: u8,
}

/// One host. It lives no longer than its net.
pub struct Host {
    namespace: String,
    switch: String,
    index: u8,
    address: Ipv4Addr,
    dir: PathBuf,
    /// By so much its monotonic clock is ahead of this machine's, in seconds.
    ahead_s: u32,
    /// The domain of its programs, if it is not the one that they have by default.
    domain: Option<String>,
    /// While its cable delays packets.
    disorder: Mutex<Option<Disorder>>,
}

/// Which way a host loses packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    In,
    Out,
    Both,
}

/// What becomes of packets of hosts that are cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// They are lost.
    Drop,
    /// Each is answered by one that ends its connection.
    Reset,
}

impl Net {
    /// A net without hosts, or `None` where this cannot be had, which is said.
    pub fn new(test: &str) -> Option<Self> {
        let share = MACHINE.read().unwrap_or_else(PoisonError::into_inner);
        Self::with(test, Share::Some(share))
    }

    /// The same for a test that keeps a machine of few cores busy by itself: no other net is there meanwhile.
    pub fn alone(test: &str) -> Option<Self> {
        let share = MACHINE.write().unwrap_or_else(PoisonError::into_inner);
        Self::with(test, Share::All(share))
    }

    fn with(test: &str, share: Share) -> Option<Self> {
        if let Some(why) = missing() {
            // Past the test harness, which keeps what a test prints that passes.
            let _ = writeln!(io::stderr(), "NOT RUN: {test}: {why}");
            return None;
        }
        sweep();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PREFIX}{}n{number}t{now:x}", process::id());
        let in_use = File::create_new(lock_of(&name)).unwrap();
        in_use.lock().unwrap();
        let net = Self { _in_use: in_use, _share: share, name, hosts: 0 };
        let switch = net.switch();
        ip(&["netns", "add", &switch]);
        ip(&["-n", &switch, "link", "add", "bridge", "type", "bridge"]);
        ip(&["-n", &switch, "link", "set", "bridge", "up"]);
        Some(net)
    }

    fn switch(&self) -> String {
        format!("{}-s", self.name)
    }

    /// Joins another host, with the address 10.77.0.1, .2 and so on.
    pub fn host(&mut self) -> Host {
        let host = self.apart(77);
        let (switch, port) = (&host.switch, format!("port{}", host.index));
        cable(switch, &port, &host);
        ip(&["-n", switch, "link", "set", &port, "master", "bridge"]);
        ip(&["-n", switch, "link", "set", &port, "up"]);
        host.set_up();
        host
    }

    /// Another host, which a cable joins with the interface `eth1` of this one, and nothing with the bridge: its address
    /// is 10.78.0.2 or higher. On that interface the kernel sends nothing by itself.
    pub fn host_behind(&mut self, other: &Host) -> Host {
        let host = self.apart(78);
        cable(&other.namespace, "eth1", &host);
        // It would look for routers and neighbours.
        other.run(&["sh", "-c", "echo 1 >/proc/sys/net/ipv6/conf/eth1/disable_ipv6"]);
        ip(&["-n", &other.namespace, "address", "add", "10.78.0.1/24", "dev", "eth1"]);
        ip(&["-n", &other.namespace, "link", "set", "eth1", "up"]);
        host.set_up();
        host
    }

    /// A host with no cable yet, and with an address of this network.
    fn apart(&mut self, network: u8) -> Host {
        self.hosts += 1;
        let index = self.hosts;
        let host = Host {
            namespace: format!("{}-{index}", self.name),
            address: Ipv4Addr::new(10, network, 0, index),
            dir: PathBuf::from(format!("/dev/shm/{}-{index}", self.name)),
            switch: self.switch(),
            index,
            ahead_s: CLOCK_STEP_S * u32::from(index),
            domain: None,
            disorder: Mutex::default(),
        };
        ip(&["netns", "add", &host.namespace]);
        fs::create_dir_all(&host.dir).unwrap();
        host
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        remove(&self.name);
        let _ = fs::remove_file(lock_of(&self.name));
    }
}

impl Host {
    /// Where it is reached.
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// A command that runs on this host, with its directory and its clock. Kill it by [`Host::kill_all`]: the
    /// process that is spawned is one that waits for it.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("ip");
        let ahead = self.ahead_s.to_string();
        command.args(["netns", "exec", &self.namespace]);
        command
            .args(["unshare", "--time", "--fork", "--kill-child", "--monotonic", &ahead, "--"])
            .arg(program);
        command.env("RNET_DIR", &self.dir).env_remove("RNET_DOMAIN").env("RNET_INSECURE", "1");
        command.envs(self.domain.iter().map(|domain| ("RNET_DOMAIN", domain)));
        command
    }

    /// Programs that are started from now on are of this domain.
    pub fn set_domain(&mut self, domain: &str) {
        self.domain = Some(domain.to_owned());
    }

    /// Programs that are started from now on have a monotonic clock that is ahead of this machine's by so much. Those of
    /// before must have ended.
    pub fn set_clock(&mut self, ahead_s: u32) {
        self.ahead_s = ahead_s;
    }

    /// Its interface has an address, and is up.
    fn set_up(&self) {
        let namespace = &self.namespace;
        ip(&["-n", namespace, "address", "add", &format!("{}/24", self.address), "dev", "eth0"]);
        ip(&["-n", namespace, "link", "set", "lo", "up"]);
        self.set_interface("up");
    }

    /// Sets its interface `up` or `down`. With the latter the kernel forgets the routes.
    pub fn set_interface(&self, to: &str) {
        ip(&["-n", &self.namespace, "link", "set", "eth0", to]);
        if to == "up" {
            // For multicast.
            ip(&["-n", &self.namespace, "route", "replace", "default", "dev", "eth0"]);
        }
    }

    /// Limits what it sends: a rate as `tc` writes it, such as `20mbit`; `None` for no limit.
    pub fn shape(&self, rate: Option<&str>) {
        match rate {
            Some(rate) => self.run(&[
                "tc", "qdisc", "replace", "dev", "eth0", "root", "tbf", "rate", rate, "burst",
                "32kb", "latency", "50ms",
            ]),
            None => self.run(&["tc", "qdisc", "delete", "dev", "eth0", "root"]),
        };
    }

    /// Loses this share of its packets, at random. 100 is a cut cable; [`Host::heal`] ends it.
    pub fn lose(&self, percent: u8, way: Way) {
        let rule = if percent >= 100 {
            "drop".into()
        } else {
            format!("numgen random mod 100 < {percent} drop")
        };
        let mut rules =
            String::from("table inet loss {}\nflush table inet loss\ndelete table inet loss\n");
        rules += "table inet loss {\n";
        for (hook, other) in [("input", Way::Out), ("output", Way::In)] {
            if way != other {
                let device = if hook == "input" { "iifname" } else { "oifname" };
                rules += &format!(
                    "chain {hook} {{ type filter hook {hook} priority 0; {device} eth0 {rule}; }}\n"
                );
            }
        }
        rules += "}\n";
        self.nft(&rules);
    }

    /// Hears nothing of the hosts with these addresses; [`Host::heal`] ends it.
    pub fn cut(&self, from: &[Ipv4Addr], how: Cut) {
        let from: Vec<String> = from.iter().map(Ipv4Addr::to_string).collect();
        let verdict = match how {
            Cut::Drop => "drop",
            Cut::Reset => "meta l4proto tcp reject with tcp reset",
        };
        self.nft(&format!(
            "table inet loss {{}}\nflush table inet loss\ndelete table inet loss\ntable inet loss {{\nchain input {{ \
             type filter hook input priority 0; iifname eth0 ip saddr {{ {} }} {verdict}; }}\n}}\n",
            from.join(", ")
        ));
    }

    /// Hears nothing that fits this expression of nftables, as `tcp dport 7450`; [`Host::heal`] ends it.
    pub fn refuse(&self, what: &str) {
        self.nft(&format!(
            "table inet loss {{}}\nflush table inet loss\ndelete table inet loss\ntable inet loss {{\nchain input {{ \
             type filter hook input priority 0; iifname eth0 {what} drop; }}\n}}\n"
        ));
    }

    /// Pulls its cable; [`Host::heal`] plugs it in again.
    pub fn unplug(&self) {
        self.set_port("down");
    }

    fn set_port(&self, to: &str) {
        ip(&["-n", &self.switch, "link", "set", &format!("port{}", self.index), to]);
    }

    /// Has its cable delay each packet by so many ms, at random, in both directions: they overtake each other.
    /// [`Host::heal`] ends it.
    pub fn delay(&self, ms: Range<u64>, random: &mut Random) {
        let [port, inner, outer] =
            ["port", "inner", "outer"].map(|of| format!("{of}{}", self.index));
        let link = |words: &[&str]| ip(&[&["-n", &self.switch, "link"], words].concat());
        link(&["add", "name", &inner, "type", "veth", "peer", "name", &outer]);
        link(&["set", &inner, "up"]);
        link(&["set", &outer, "master", "bridge", "up"]);
        link(&["set", &port, "nomaster"]);
        let relay = Disorder::between(&self.switch, [&port, &inner], ms, random);
        *self.disorder.lock().unwrap_or_else(PoisonError::into_inner) = Some(relay);
    }

    fn end_delay(&self) {
        let relay = self.disorder.lock().unwrap_or_else(PoisonError::into_inner).take();
        if relay.is_none() {
            return;
        }
        drop(relay);
        let [port, inner] = ["port", "inner"].map(|of| format!("{of}{}", self.index));
        ip(&["-n", &self.switch, "link", "del", &inner]);
        ip(&["-n", &self.switch, "link", "set", &port, "master", "bridge"]);
    }

    /// Loses and delays no packets any more.
    pub fn heal(&self) {
        self.nft("table inet loss {}\ndelete table inet loss\n");
        self.end_delay();
        self.set_port("up");
    }

    /// Sends what is from or to this port only if it is marked as urgent, and what is of the port above only if not.
    pub fn keep_to_marks(&self, port: u16) {
        let rule =
            |end: &str, port: u16, mark: &str| format!("tcp {end} {port} ip dscp {mark} drop; ");
        let rules: String = ["sport", "dport"]
            .map(|end| rule(end, port, "!= ef") + &rule(end, port + 1, "ef"))
            .concat();
        self.nft(&format!(
            "table inet marks {{ chain output {{ type filter hook output priority 0; {rules} }}\n}}\n"
        ));
    }

    /// Takes another address, 10.77.0.`last`, in place of the one it has.
    pub fn set_address(&mut self, last: u8) {
        // First: with it, the kernel removes those of the same network that came later.
        ip(&["-n", &self.namespace, "address", "flush", "dev", "eth0"]);
        self.address = Ipv4Addr::new(10, 77, 0, last);
        ip(&[
            "-n",
            &self.namespace,
            "address",
            "add",
            &format!("{}/24", self.address),
            "dev",
            "eth0",
        ]);
        // The kernel removes it with the address.
        ip(&["-n", &self.namespace, "route", "replace", "default", "dev", "eth0"]);
    }

    /// Kills all its processes.
    pub fn kill_all(&self) {
        kill_in(&self.namespace);
    }

    /// Its processes of this name, the one that was started first before the others.
    pub fn processes(&self, name: &str) -> Vec<i32> {
        let mut found: Vec<(u64, i32)> = pids(&self.namespace)
            .into_iter()
            .filter_map(|pid| {
                let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
                let (begin, rest) = stat.rsplit_once(") ")?;
                let mut fields = rest.split(' ');
                let is_dead = fields.next()? == "Z";
                let started = fields.nth(18)?.parse().ok()?;
                (begin.ends_with(&format!("({name}")) && !is_dead).then_some((started, pid))
            })
            .collect();
        found.sort_unstable();
        found.into_iter().map(|(_, pid)| pid).collect()
    }

    /// Sends one of them a signal.
    pub fn signal(&self, pid: i32, signal: Signal) {
        if let Some(pid) = Pid::from_raw(pid) {
            // It may have ended by itself.
            let _ = kill_process(pid, signal);
        }
    }

    /// Kills all its processes and empties its directory, as the end of power does: no connection says goodbye. The
    /// kernel of this machine goes on and ends them for the dead, so that has to be over before the cable is plugged
    /// in again.
    pub fn reboot(&self) {
        self.unplug();
        // It gives up after one repetition.
        self.run(&["sh", "-c", "echo 1 >/proc/sys/net/ipv4/tcp_orphan_retries"]);
        self.kill_all();
        fs::remove_dir_all(&self.dir).unwrap();
        fs::create_dir_all(&self.dir).unwrap();
        while self.has_connections() {
            std::thread::sleep(Duration::from_millis(10)); // sleep: between two looks at a condition
        }
        self.set_port("up");
    }

    /// Whether its kernel may still send something for a connection.
    fn has_connections(&self) -> bool {
        const TIME_WAIT: &str = "06";
        let output = self.run(&["cat", "/proc/net/tcp"]);
        let mut rows = output.lines().skip(1);
        rows.any(|row| row.split_whitespace().nth(3).is_some_and(|state| state != TIME_WAIT))
    }

    /// How many bytes have come to it over the bridge, with the headers of Ethernet.
    pub fn received_bytes(&self) -> u64 {
        let path = format!("/sys/class/net/port{}/statistics/tx_bytes", self.index);
        let output = Command::new("ip")
            .args(["netns", "exec", &self.switch, "cat", &path])
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).trim().parse().unwrap()
    }

    /// How many packets have left on an interface (`tx`), or come (`rx`).
    pub fn packets(&self, interface: &str, way: &str) -> u64 {
        let path = format!("/sys/class/net/{interface}/statistics/{way}_packets");
        self.run(&["cat", &path]).trim().parse().unwrap()
    }

    /// What a program on it writes.
    fn run(&self, arguments: &[&str]) -> String {
        let output = Command::new("ip")
            .args(["netns", "exec", &self.namespace])
            .args(arguments)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn nft(&self, rules: &str) {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace, "nft", "-f", "-"]).stdin(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(rules.as_bytes()).unwrap();
        assert!(child.wait().unwrap().success(), "nft refuses:\n{rules}");
    }
}

/// Why there can be no hosts here.
fn missing() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("network namespaces need root".into());
    }
    for (tool, package) in
        [("ip", "iproute2"), ("tc", "iproute2"), ("nft", "nftables"), ("unshare", "util-linux")]
    {
        let found =
            Command::new(tool).arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status();
        if found.is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            return Some(format!("`{tool}` not found (Debian, Ubuntu: apt-get install {package})"));
        }
    }
    let tried = Command::new("unshare").args(["--net", "--time", "--fork", "true"]).output();
    let refused = tried.ok().filter(|output| !output.status.success())?;
    Some(format!(
        "no namespace can be made here: {}",
        String::from_utf8_lossy(&refused.stderr).trim()
    ))
}

/// A cable from a new interface of the namespace to `eth0` of the host.
fn cable(namespace: &str, interface: &str, host: &Host) {
    let end = ["-n", namespace, "link", "add", "name", interface];
    let other = ["type", "veth", "peer", "name", "eth0", "netns", &host.namespace];
    ip(&[&end[..], &other].concat());
}

fn ip(arguments: &[&str]) {
    let output = Command::new("ip").args(arguments).output().unwrap();
    assert!(
        output.status.success(),
        "ip {}: {}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// The ids, as this machine sees them, of what runs in a namespace.
fn pids(namespace: &str) -> Vec<i32> {
    let output = Command::new("ip").args(["netns", "pids", namespace]).output().unwrap();
    String::from_utf8_lossy(&output.stdout)
        .split_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .collect()
}

fn kill(pids: &[i32]) {
    for pid in pids.iter().filter_map(|pid| Pid::from_raw(*pid)) {
        // It may have ended by itself.
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// Kills until nobody is left: what is killed may just have started another.
fn kill_in(namespace: &str) {
    loop {
        let found = pids(namespace);
        if found.is_empty() {
            return;
        }
        kill(&found);
    }
}

/// Removes the namespaces and directories whose names begin so.
fn remove(prefix: &str) {
    let listed = Command::new("ip").args(["netns", "list"]).output().unwrap();
    for line in String::from_utf8_lossy(&listed.stdout).lines() {
        let namespace = line.split(' ').next().unwrap_or_default();
        if namespace.starts_with(&format!("{prefix}-")) {
            kill_in(namespace);
            // Another test may be removing it at this moment.
            let _ = Command::new("ip").args(["netns", "del", namespace]).output();
        }
    }
    for entry in fs::read_dir("/dev/shm").into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(&format!("{prefix}-")) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The file that a net has locked while it is there.
fn lock_of(name: &str) -> PathBuf {
    PathBuf::from(format!("/dev/shm/{name}.lock"))
}

/// Removes what tests have left that were killed.
fn sweep() {
    let listed = Command::new("ip").args(["netns", "list"]).output().unwrap();
    for line in String::from_utf8_lossy(&listed.stdout).lines() {
        let name = line.strip_prefix(PREFIX).and_then(|rest| rest.split(['-', ' ']).next());
        let Some(name) = name.map(|name| format!("{PREFIX}{name}")) else { continue };
        let lock = File::open(lock_of(&name));
        // Of one that has just been removed, or was before there were locks.
        if lock.is_err() || lock.is_ok_and(|lock| lock.try_lock().is_ok()) {
            remove(&name);
            let _ = fs::remove_file(lock_of(&name));
        }
    }
}
