//! Hosts on this machine: network namespaces on one bridge, each with its own directory and monotonic
//! clock.
//!
//! The bridge is in a namespace too, so that this machine's own network is not touched. A killed test
//! leaves its namespaces; the next one removes them. A lock shows which are in use, because a test in
//! another process namespace cannot check process ids.

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

/// The prefix of all test namespaces of this machine; a name without a dash follows, which no other net
/// has.
const PREFIX: &str = "rnet-hosts-";
/// The offset of each host's clock from the previous host's, in seconds.
const CLOCK_STEP_S: u32 = 5000;

static NEXT: AtomicU32 = AtomicU32::new(0);

/// The lock of [`Net::alone`].
static MACHINE: RwLock<()> = RwLock::new(());

/// A net's share of the machine.
#[expect(dead_code, reason = "held and never read")]
enum Share {
    Some(RwLockReadGuard<'static, ()>),
    All(RwLockWriteGuard<'static, ()>),
}

/// A bridge that joins hosts. Dropping it kills their processes and removes them.
pub struct Net {
    /// Held until everything is removed.
    _in_use: File,
    _share: Share,
    name: String,
    hosts: u8,
}

/// One host. It must not outlive its net.
pub struct Host {
    namespace: String,
    switch: String,
    index: u8,
    address: Ipv4Addr,
    dir: PathBuf,
    /// The offset of its monotonic clock from this machine's, in seconds.
    ahead_s: u32,
    /// The domain of its programs, if not the default.
    domain: Option<String>,
    /// Set while its cable delays packets.
    disorder: Mutex<Option<Disorder>>,
}

/// The direction in which a host loses packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    In,
    Out,
    Both,
}

/// The handling of packets of hosts that are cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// They are lost.
    Drop,
    /// Each is answered by a packet that ends its connection.
    Reset,
}

impl Net {
    /// A net without hosts, or `None` if this machine does not allow one, which is reported.
    pub fn new(test: &str) -> Option<Self> {
        let share = MACHINE.read().unwrap_or_else(PoisonError::into_inner);
        Self::with(test, Share::Some(share))
    }

    /// The same for a test that keeps a machine with few cores busy by itself: no other net exists
    /// meanwhile.
    pub fn alone(test: &str) -> Option<Self> {
        let share = MACHINE.write().unwrap_or_else(PoisonError::into_inner);
        Self::with(test, Share::All(share))
    }

    fn with(test: &str, share: Share) -> Option<Self> {
        if let Some(why) = missing() {
            // Bypasses the test harness, which captures the output of passing tests.
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

    /// Adds another host, with the address 10.77.0.1, .2 and so on.
    pub fn host(&mut self) -> Host {
        let host = self.apart(77);
        let (switch, port) = (&host.switch, format!("port{}", host.index));
        cable(switch, &port, &host);
        ip(&["-n", switch, "link", "set", &port, "master", "bridge"]);
        ip(&["-n", switch, "link", "set", &port, "up"]);
        host.set_up();
        host
    }

    /// Adds another host, joined by a cable to the interface `eth1` of this one and not to the bridge: its
    /// address is 10.78.0.2 or higher. On that interface the kernel sends nothing by itself.
    pub fn host_behind(&mut self, other: &Host) -> Host {
        let host = self.apart(78);
        cable(&other.namespace, "eth1", &host);
        // Otherwise it would search for routers and neighbors.
        other.run(&["sh", "-c", "echo 1 >/proc/sys/net/ipv6/conf/eth1/disable_ipv6"]);
        ip(&["-n", &other.namespace, "address", "add", "10.78.0.1/24", "dev", "eth1"]);
        ip(&["-n", &other.namespace, "link", "set", "eth1", "up"]);
        host.set_up();
        host
    }

    /// A host without a cable, with an address of this network.
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
    /// Its address.
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// A command that runs on this host, with its directory and its clock. Kill it with [`Host::kill_all`]:
    /// the spawned process only waits for it.
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

    /// Sets the domain of programs that are started from now on.
    pub fn set_domain(&mut self, domain: &str) {
        self.domain = Some(domain.to_owned());
    }

    /// Sets the clock offset of programs that are started from now on. Earlier programs must have exited.
    pub fn set_clock(&mut self, ahead_s: u32) {
        self.ahead_s = ahead_s;
    }

    /// Sets its address, and its interface up.
    fn set_up(&self) {
        let namespace = &self.namespace;
        ip(&["-n", namespace, "address", "add", &format!("{}/24", self.address), "dev", "eth0"]);
        ip(&["-n", namespace, "link", "set", "lo", "up"]);
        self.set_interface("up");
    }

    /// Sets its interface `up` or `down`. When it is down, the kernel removes the routes.
    pub fn set_interface(&self, to: &str) {
        ip(&["-n", &self.namespace, "link", "set", "eth0", to]);
        if to == "up" {
            // For multicast.
            ip(&["-n", &self.namespace, "route", "replace", "default", "dev", "eth0"]);
        }
    }

    /// Limits its outbound rate, in the notation of `tc`, such as `20mbit`; `None` for no limit.
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

    /// Blocks packets from the hosts with these addresses; [`Host::heal`] ends it.
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

    /// Blocks packets that match this expression of nftables, such as `tcp dport 7450`; [`Host::heal`] ends
    /// it.
    pub fn refuse(&self, what: &str) {
        self.nft(&format!(
            "table inet loss {{}}\nflush table inet loss\ndelete table inet loss\ntable inet loss {{\nchain input {{ \
             type filter hook input priority 0; iifname eth0 {what} drop; }}\n}}\n"
        ));
    }

    /// Unplugs its cable; [`Host::heal`] plugs it in again.
    pub fn unplug(&self) {
        self.set_port("down");
    }

    fn set_port(&self, to: &str) {
        ip(&["-n", &self.switch, "link", "set", &format!("port{}", self.index), to]);
    }

    /// Delays each packet on its cable by a random number of ms, in both directions, so that packets
    /// overtake each other. [`Host::heal`] ends it.
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

    /// Ends losses and delays of packets.
    pub fn heal(&self) {
        self.nft("table inet loss {}\ndelete table inet loss\n");
        self.end_delay();
        self.set_port("up");
    }

    /// Allows packets from or to this port only with the urgent mark, and those of the next port only
    /// without it.
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

    /// Replaces its address by 10.77.0.`last`.
    pub fn set_address(&mut self, last: u8) {
        // First, because the kernel removes later addresses of the same network with it.
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

    /// Its processes of this name, the oldest first.
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
            // It may have exited by itself.
            let _ = kill_process(pid, signal);
        }
    }

    /// Kills all its processes and empties its directory, like a power failure: no connection is closed
    /// properly. The kernel of this machine still closes them, so that has to finish before the cable is
    /// plugged in again.
    pub fn reboot(&self) {
        self.unplug();
        // It gives up after one retransmission.
        self.run(&["sh", "-c", "echo 1 >/proc/sys/net/ipv4/tcp_orphan_retries"]);
        self.kill_all();
        fs::remove_dir_all(&self.dir).unwrap();
        fs::create_dir_all(&self.dir).unwrap();
        while self.has_connections() {
            std::thread::sleep(Duration::from_millis(10)); // sleep: interval between two checks
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

    /// How many bytes it has received over the bridge, with the Ethernet headers.
    pub fn received_bytes(&self) -> u64 {
        let path = format!("/sys/class/net/port{}/statistics/tx_bytes", self.index);
        let output = Command::new("ip")
            .args(["netns", "exec", &self.switch, "cat", &path])
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).trim().parse().unwrap()
    }

    /// How many packets have left on an interface (`tx`), or arrived (`rx`).
    pub fn packets(&self, interface: &str, way: &str) -> u64 {
        let path = format!("/sys/class/net/{interface}/statistics/{way}_packets");
        self.run(&["cat", &path]).trim().parse().unwrap()
    }

    /// Runs a program and returns its output.
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

/// Why this machine cannot have hosts.
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

/// Adds a cable from a new interface of the namespace to `eth0` of the host.
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

/// The ids, as this machine sees them, of the processes in a namespace.
fn pids(namespace: &str) -> Vec<i32> {
    let output = Command::new("ip").args(["netns", "pids", namespace]).output().unwrap();
    String::from_utf8_lossy(&output.stdout)
        .split_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .collect()
}

fn kill(pids: &[i32]) {
    for pid in pids.iter().filter_map(|pid| Pid::from_raw(*pid)) {
        // It may have exited by itself.
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// Kills until no process is left: a killed process may just have started another.
fn kill_in(namespace: &str) {
    loop {
        let found = pids(namespace);
        if found.is_empty() {
            return;
        }
        kill(&found);
    }
}

/// Removes the namespaces and directories with this prefix.
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

/// The file that a net has locked while it exists.
fn lock_of(name: &str) -> PathBuf {
    PathBuf::from(format!("/dev/shm/{name}.lock"))
}

/// Removes the remains of killed tests.
fn sweep() {
    let listed = Command::new("ip").args(["netns", "list"]).output().unwrap();
    for line in String::from_utf8_lossy(&listed.stdout).lines() {
        let name = line.strip_prefix(PREFIX).and_then(|rest| rest.split(['-', ' ']).next());
        let Some(name) = name.map(|name| format!("{PREFIX}{name}")) else { continue };
        let lock = File::open(lock_of(&name));
        // The lock of a net that was just removed, or that is older than the locks.
        if lock.is_err() || lock.is_ok_and(|lock| lock.try_lock().is_ok()) {
            remove(&name);
            let _ = fs::remove_file(lock_of(&name));
        }
    }
}
