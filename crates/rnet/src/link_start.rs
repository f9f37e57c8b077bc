//! Starts the link between hosts from the first node that needs it.
//!
//! The link is a separate program, `rnet-link`. `rnet-link start` reads the configuration, and starts a link
//! in the background if one is configured. This module only decides whether that is worth a process: each
//! node checks when it opens, and when a link was killed and none has taken over. Without a configuration,
//! this only reads the environment and checks for a `robot.toml`. Nodes of tools start nothing.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rnet_node::core::NodeCore;
use rnet_node::node_event::NodeEvent;
use rnet_shm::os::thread::spawn;
use rustix::fs::Access;

const LINK_PROGRAM: &str = "rnet-link";
const CONFIG_FILE: &str = "robot.toml";

/// Prefix of the names of link nodes; the process id follows.
const LINK_NODE: &str = "/_rnet/link_";
/// Time for a standby process to take over from a killed link.
const TAKEOVER_TIMEOUT: Duration = Duration::from_millis(300);
/// After that, nodes start another link, spread over this time: the first one saves the others a process
/// each.
const RESTART_JITTER: Duration = Duration::from_millis(400);

/// A longer file is not read; `rnet-link` reports that it is too long.
const MAX_FILE_LEN_BYTES: u64 = 1 << 20;

/// Whether this process has reported the missing program, which is reported once.
static ERROR_REPORTED: AtomicBool = AtomicBool::new(false);

/// The node's settings of its domain, besides the environment.
pub(crate) struct LinkStarter {
    pub domain: Option<String>,
    pub dir: Option<PathBuf>,
    pub group: Option<String>,
    /// The folder of a binding's programs.
    pub programs: Option<PathBuf>,
}

impl LinkStarter {
    /// Starts the link if one seems to be configured, and again if it was killed.
    pub fn keep_link_running(self, core: &Arc<NodeCore>) {
        let Some(configured_by) = configured_by() else { return };
        let node = &core.state;
        self.start_link(&configured_by);
        let share = f64::from(rnet_core::fnv1a_64(node.own.name().to_string().as_bytes()) as u32);
        let pause = TAKEOVER_TIMEOUT + RESTART_JITTER.mul_f64(share / f64::from(u32::MAX));
        let (starter, weak) = (Arc::new(self), Arc::downgrade(node));
        let restarts = node.watchers.add(
            node,
            Box::new(move |event| {
                if !matches!(event, NodeEvent::Died(name) if name.starts_with(LINK_NODE)) {
                    return;
                }
                let (starter, weak, by) = (starter.clone(), weak.clone(), configured_by.clone());
                // The calling thread is the one of the user's callbacks.
                let _ = spawn("rnet-link", move || {
                    std::thread::sleep(pause);
                    let Some(node) = weak.upgrade() else { return };
                    let is_linked = {
                        let matching = node.matching();
                        let mut peers = matching.registry().peers().values();
                        peers.any(|peer| peer.node.meta().name.starts_with(LINK_NODE))
                    };
                    if !is_linked {
                        starter.start_link(&by);
                    }
                });
            }),
        );
        restarts.detach();
    }

    /// A node opens without the link, so errors are printed on stderr.
    fn start_link(&self, configured_by: &str) {
        let started = find_program(self.programs.as_deref()).and_then(|program| self.run(&program));
        // Ignores a closed stderr.
        if let Err(why) = started
            && !ERROR_REPORTED.swap(true, Ordering::Relaxed)
        {
            let _ = io::Write::write_fmt(
                &mut io::stderr(),
                format_args!(
                    "rnet: a network is configured ({configured_by}), but this host cannot reach others: {why}\n"
                ),
            );
        }
    }

    fn run(&self, program: &Path) -> Result<(), String> {
        let mut command = Command::new(program);
        command.arg("start").stdin(Stdio::null()).stdout(Stdio::null());
        let domain = self.domain.as_ref().map(OsString::from);
        let dir = self.dir.as_ref().map(OsString::from);
        let group = self.group.as_ref().map(OsString::from);
        for (option, value) in [("--domain", domain), ("--dir", dir), ("--group", group)] {
            if let Some(value) = value {
                command.arg(option).arg(value);
            }
        }
        // Ctrl-C in the terminal of the node must not reach the link.
        command.process_group(0);
        let failed = |e: io::Error| format!("cannot start {}: {e}", program.display());
        let mut child = command.spawn().map_err(failed)?;
        // The process exits at once and prints its errors on stderr. It must be waited for, or it becomes a
        // zombie.
        spawn("rnet-link", move || drop(child.wait())).map(drop).map_err(|e| e.to_string())
    }
}

/// The setting that configures a network, as far as known without reading the configuration. A wrong guess
/// only starts a process that exits at once.
pub fn configured_by() -> Option<String> {
    if let Some(network) = env("RNET_NETWORK") {
        return (network != "off").then(|| format!("RNET_NETWORK={}", network.display()));
    }
    let by_variable = ["RNET_LISTEN", "RNET_CONNECT"].into_iter().find(|name| env(name).is_some());
    if let Some(name) = by_variable {
        return Some(name.to_owned());
    }
    let (file, named) = match env("RNET_CONFIG") {
        Some(file) => (PathBuf::from(file), true),
        None => (PathBuf::from(CONFIG_FILE), false),
    };
    // `rnet-link` reports a named file that cannot be read.
    configures_network(&file).unwrap_or(named).then(|| file.display().to_string())
}

fn configures_network(file: &Path) -> io::Result<bool> {
    let found = fs::metadata(file)?;
    if !found.is_file() || found.len() > MAX_FILE_LEN_BYTES {
        return Ok(true);
    }
    Ok(fs::read_to_string(file).map_or(true, |text| enables_network(&text)))
}

/// Whether the text of a file seems to configure a network that is not off.
fn enables_network(text: &str) -> bool {
    let (mut table, mut speaks) = (String::new(), false);
    for line in text.lines() {
        let line: String = line.split('#').next().unwrap_or_default().split_whitespace().collect();
        if line.starts_with('[') {
            table = line.clone();
        }
        let is_off = match table.as_str() {
            "" => ["network=\"off\"", "network='off'", "network.mode=\"off\""].contains(&&*line),
            "[network]" => ["mode=\"off\"", "mode='off'"].contains(&&*line),
            _ => false,
        };
        if is_off {
            return false;
        }
        speaks |= line.contains("network");
    }
    speaks
}

/// Finds the link program: named by the environment, next to this program, next to the binding's programs, or
/// in the path.
///
/// # Errors
/// A text with the reason.
pub fn find_program(programs: Option<&Path>) -> Result<PathBuf, String> {
    let can_run =
        |file: &PathBuf| file.is_file() && rustix::fs::access(file, Access::EXEC_OK).is_ok();
    if let Some(named) = env("RNET_LINK").map(PathBuf::from) {
        let missing =
            || format!("RNET_LINK names {}, which is not an executable program", named.display());
        return Some(named.clone()).filter(can_run).ok_or_else(missing);
    }
    let own = std::env::current_exe().ok();
    let beside = [own.as_deref().and_then(Path::parent), programs].into_iter().flatten();
    let in_path = env("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&in_path).filter(|dir| !dir.as_os_str().is_empty());
    let mut files = beside.map(Path::to_owned).chain(in_path).map(|dir| dir.join(LINK_PROGRAM));
    files.find(can_run).ok_or_else(|| {
        format!(
            "{LINK_PROGRAM} is not installed. Install the robot-net package (docs/guide/two-computers.md), or \
             set RNET_LINK to its path, or set RNET_NETWORK=off to run without it"
        )
    })
}

fn env(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::enables_network;

    #[test]
    fn detects_network_in_config_text() {
        for (text, wants) in [
            ("", false),
            ("[camera]\nmode = \"off\"", false),
            ("# network = \"lan\"", false),
            ("network = \"lan\"", true),
            ("network = \"off\" # for now", false),
            ("network='off'", false),
            ("network.mode = \"off\"", false),
            ("[network]\nmode = \"lan\"", true),
            ("[ network ]\nhost = \"a\"\n mode=\"off\"", false),
            ("[network]\nmode = \"peers\"\n[camera]\nmode = \"off\"", true),
            ("[network]\nconnect = [\"tcp/a:1\"]", true),
            ("network = { mode = \"off\" }", true),
            ("not toml network", true),
        ] {
            assert_eq!(enables_network(text), wants, "{text}");
        }
    }
}
