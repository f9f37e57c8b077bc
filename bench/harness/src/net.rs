//! Shared addresses and directories of one run.

use crate::{Error, Result, Topic};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The surroundings of one run, the same for all of its processes.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Net {
    /// A fresh directory of this run in /dev/shm; its path is short enough for sockets.
    pub dir: PathBuf,
    /// A fresh directory of this run on a real disk, where values are to be durable. It is the
    /// workers' `XDG_STATE_HOME`.
    pub disk: Option<PathBuf>,
    /// 1 to 100: a DDS domain, a multicast port. Another comparison may use the same at the same
    /// time, so that names on it must hold [`tag`](Self::tag) as well.
    pub number: u16,
    /// The TCP port of the system's server, where it has one.
    pub broker_port: Option<u16>,
    /// The host of this process, where a run has two.
    #[serde(default)]
    pub host: Option<Host>,
}

/// One of the two hosts of a run: a network namespace.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Host {
    /// The namespace, for `ip netns exec`.
    pub namespace: String,
    /// `a`, which has the publishers and the server, or `b`.
    pub name: String,
    /// Its address on the cable.
    pub address: Ipv4Addr,
    /// The other's.
    pub other: Ipv4Addr,
    /// Its end of the cable.
    pub interface: String,
}

impl Net {
    /// Where a publisher of this process listens.
    pub fn address(&self) -> Ipv4Addr {
        self.host.as_ref().map_or(Ipv4Addr::LOCALHOST, |host| host.address)
    }

    /// Where the server listens: beside the publishers.
    pub fn broker_address(&self) -> Ipv4Addr {
        match &self.host {
            Some(host) if host.name != "a" => host.other,
            _ => self.address(),
        }
    }

    /// The network interface of this process.
    pub fn interface(&self) -> &str {
        self.host.as_ref().map_or("lo", |host| &host.interface)
    }

    /// A directory that only the processes of this host see. [`dir`](Self::dir) also has the notes, which
    /// stand for what discovery would say.
    pub fn host_dir(&self) -> PathBuf {
        self.host.as_ref().map_or_else(|| self.dir.clone(), |host| self.dir.join(&host.name))
    }

    /// A name that no other run has: letters, digits and `-`.
    pub fn tag(&self) -> String {
        self.dir.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// The server's port.
    ///
    /// # Errors
    /// When this run has no server.
    pub fn broker_port(&self) -> Result<u16> {
        self.broker_port.ok_or_else(|| Error::new("this run has started no server"))
    }

    /// Lets subscribers know where a publisher of `topic` listens (what a configuration file or
    /// discovery would say in a real robot). Done once per publisher, before the run starts.
    ///
    /// # Errors
    /// When the note cannot be written.
    pub fn announce(&self, topic: &Topic, address: &str) -> Result<()> {
        self.write_note(&note_name(&topic.name, topic.index), address)
    }

    /// Waits for the announcement of publisher `publisher` of the topic, at most ten seconds.
    ///
    /// # Errors
    /// When it has announced nothing.
    pub fn find(&self, topic: &Topic, publisher: usize) -> Result<String> {
        self.read_note(&note_name(&topic.name, publisher))
    }

    /// Whether a file of the directory is such a note, and so none of the system's.
    pub fn is_note(file_name: &str) -> bool {
        file_name.ends_with(NOTE)
    }

    fn write_note(&self, name: &str, text: &str) -> Result<()> {
        let hidden = self.dir.join(format!(".{name}.new"));
        std::fs::write(&hidden, text)?;
        std::fs::rename(&hidden, self.dir.join(name))?;
        Ok(())
    }

    fn read_note(&self, name: &str) -> Result<String> {
        let path: &Path = &self.dir.join(name);
        let start = Instant::now();
        loop {
            if let Ok(text) = std::fs::read_to_string(path) {
                return Ok(text);
            }
            if start.elapsed() > Duration::from_secs(10) {
                return Err(Error::new(format!("nobody announced {name} within 10 s")));
            }
            std::thread::sleep(Duration::from_millis(1)); // sleep: a file has no condition to wait on
        }
    }
}

/// Suffix of the names of notes.
const NOTE: &str = ".at";

fn note_name(topic: &str, publisher: usize) -> String {
    format!("{topic}.{publisher}{NOTE}")
}
