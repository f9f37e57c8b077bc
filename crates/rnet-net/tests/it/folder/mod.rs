//! A host for `rnet-link`: its own directory of domains, and a `robot.toml` in it.

#![allow(dead_code, reason = "each test binary uses its part")]

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rnet::inspect::Location;
use rnet::{Node, NodeBuilder};

/// The time-out for any expected event.
pub const LONG: Duration = Duration::from_secs(60);

pub struct Folder {
    dir: PathBuf,
    domain: String,
}

impl Folder {
    /// A folder in which programs are in this domain.
    pub fn new(domain: &str) -> Folder {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir = PathBuf::from(format!("/dev/shm/rnet-{domain}-{}-{n}", std::process::id()));
        fs::create_dir(&dir).unwrap();
        Folder { dir, domain: domain.to_owned() }
    }

    /// Its `robot.toml`.
    pub fn file(&self) -> PathBuf {
        self.dir.join("robot.toml")
    }

    /// Writes its `robot.toml`.
    pub fn configure(&self, text: &str) {
        fs::write(self.file(), text).unwrap();
    }

    /// `rnet-link` with these arguments.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rnet-link"));
        for name in [
            "RNET_NETWORK",
            "RNET_CONFIG",
            "RNET_LISTEN",
            "RNET_CONNECT",
            "RNET_INTERFACES",
            "RNET_LOST_AFTER_MS",
            "RNET_INSECURE",
            "RNET_HOST",
            "RNET_GROUP",
            "RNET_KEYS",
        ] {
            command.env_remove(name);
        }
        command.args(words).env("RNET_DOMAIN", &self.domain).env("RNET_DIR", &self.dir);
        // Without the keys of the user.
        command.env("XDG_CONFIG_HOME", &self.dir);
        command.current_dir(&self.dir).stdin(Stdio::null());
        command
    }

    /// A node's builder. The node starts no link itself: the test does.
    pub fn builder(&self, name: &str) -> NodeBuilder {
        Node::builder(name).domain(&self.domain).dir(&self.dir)
    }

    pub fn node(&self) -> Node {
        self.builder("robot").open().unwrap()
    }

    pub fn location(&self) -> Location {
        Location::new(Some(&self.domain), Some(self.dir.clone()), None).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// A free port whose next port is free too.
pub fn free_port() -> u16 {
    loop {
        let first = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = first.local_addr().unwrap().port();
        if port < u16::MAX && TcpListener::bind(("127.0.0.1", port + 1)).is_ok() {
            return port;
        }
    }
}

#[track_caller]
pub fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < LONG, "time-out while waiting until {what}");
        std::thread::sleep(Duration::from_millis(10)); // sleep: interval between two checks
    }
}
