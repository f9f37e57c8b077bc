//! Two hosts: network namespaces joined by a cable, which need root.

use crate::leftovers::is_left_behind;
use crate::process::find_program;
use bench_harness::{Error, Host, Net, Result, System};
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

const INTERFACE: &str = "cable";
const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 78, 0, 1), Ipv4Addr::new(10, 78, 0, 2)];

/// The network between two hosts.
#[derive(Clone, Copy, Default)]
pub struct Cable {
    /// Rate of each direction; `None` is unlimited.
    pub mbit_per_s: Option<u32>,
}

/// Two namespaces, removed when dropped: by then their processes have ended.
pub struct Hosts {
    /// The hosts `a` and `b`.
    pub ends: [Host; 2],
}

impl Hosts {
    /// Makes two hosts whose namespaces' names begin with `tag`.
    ///
    /// # Errors
    /// If it is not possible here, with the error of `ip` or `tc`.
    pub fn join(tag: &str, cable: Cable) -> Result<Self> {
        let end = |name: &str, own: usize| Host {
            namespace: format!("{tag}-{name}"),
            name: name.into(),
            address: ADDRESSES[own],
            other: ADDRESSES[1 - own],
            interface: INTERFACE.into(),
        };
        let hosts = Self { ends: [end("a", 0), end("b", 1)] };
        let [a, b] = hosts.ends.each_ref().map(|end| end.namespace.as_str());
        call("ip", &format!("netns add {a}"))?;
        call("ip", &format!("netns add {b}"))?;
        let ends = format!("name {INTERFACE} netns {a} type veth peer name {INTERFACE} netns {b}");
        call("ip", &format!("link add {ends}"))?;
        for Host { namespace, address, .. } in &hosts.ends {
            call("ip", &format!("-n {namespace} addr add {address}/24 dev {INTERFACE}"))?;
            // Without IPv6 and its messages.
            call("ip", &format!("-n {namespace} link set {INTERFACE} addrgenmode none up"))?;
            call("ip", &format!("-n {namespace} link set lo up"))?;
            if let Some(rate) = cable.mbit_per_s {
                // What leaves at once is what the cable carries in a millisecond, or some frames.
                let burst = (rate * 1000 / 8).max(16_000);
                let shape = format!("tbf rate {rate}mbit burst {burst} latency 50ms");
                call("tc", &format!("-n {namespace} qdisc add dev {INTERFACE} root {shape}"))?;
            }
        }
        Ok(hosts)
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        // The namespace may not exist.
        self.ends.iter().for_each(|end| drop(remove(&end.namespace)));
    }
}

/// Removes the namespaces of comparisons that were killed.
pub fn sweep() {
    for entry in std::fs::read_dir("/run/netns").into_iter().flatten().flatten() {
        if is_left_behind(&entry.file_name()) {
            // A namespace that cannot be removed does no harm.
            let _ = remove(&entry.file_name().to_string_lossy());
        }
    }
}

/// Whether a system can carry from one host to another here.
///
/// # Errors
/// The reason.
pub fn can_carry(system: &dyn System, bench: &Path) -> Result<()> {
    static POSSIBLE: OnceLock<Result<()>> = OnceLock::new();
    if !system.spans_hosts() {
        return Err(Error::new("its driver knows one host only"));
    }
    let probe = || {
        let tag = format!("rnet-bench-{}-probe", std::process::id());
        Hosts::join(&tag, Cable { mbit_per_s: Some(20) }).map(drop).map_err(|why| {
            Error::new(format!("two hosts are network namespaces, which need root: {why}"))
        })
    };
    POSSIBLE.get_or_init(probe).clone()?;
    let [a, b] = ["a", "b"].map(|name| Host {
        namespace: String::new(),
        name: name.into(),
        address: ADDRESSES[0],
        other: ADDRESSES[1],
        interface: INTERFACE.into(),
    });
    [a, b].into_iter().try_for_each(|host| {
        let dir = Path::new("/dev/shm").to_owned();
        let net = Net { dir, disk: None, number: 1, broker_port: None, host: Some(host) };
        let link = system.link(&net);
        link.map_or(Ok(()), |link| find_program(&link.program, bench).map(drop))
    })
}

/// Bytes that the cable of the host on which a process runs has carried so far, both ways.
///
/// # Errors
/// When the process has ended.
pub fn wire_bytes(pid: u32) -> Result<u64> {
    let table = std::fs::read_to_string(format!("/proc/{pid}/net/dev"))?;
    let of_cable = |line: &str| {
        let counts = line.trim().strip_prefix(INTERFACE)?.strip_prefix(':')?.to_owned();
        let counts: Vec<u64> =
            counts.split_ascii_whitespace().filter_map(|n| n.parse().ok()).collect();
        // Eight receive counters, the first in bytes, then eight send counters.
        Some(counts.first()? + counts.get(8)?)
    };
    let counted = table.lines().find_map(of_cable);
    counted.ok_or_else(|| Error::new(format!("process {pid} has no interface {INTERFACE}")))
}

fn remove(namespace: &str) -> Result<()> {
    call("ip", &format!("netns del {namespace}"))
}

fn call(program: &str, args: &str) -> Result<()> {
    let output = Command::new(program)
        .args(args.split(' '))
        .stdin(Stdio::null())
        .output()
        .map_err(|e| Error::new(format!("{program} (of iproute2) does not start: {e}")))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Error::new(format!("{program} {args}: {}", said.trim())))
}
