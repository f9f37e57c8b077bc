//! All systems: those in this program, and those that Python workers speak to.

use bench_harness::{About, Broker, KeyValue, Net, Result, System};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The systems and stores built into this program.
pub struct Builtin {
    /// Publish and subscribe.
    pub systems: Vec<Box<dyn System>>,
    /// A key that is set, and watched.
    pub watches: Vec<Box<dyn System>>,
    /// Request and reply.
    pub calls: Vec<Box<dyn System>>,
    /// Key and value.
    pub stores: Vec<Box<dyn KeyValue>>,
}

impl Builtin {
    /// All that were built.
    pub fn new() -> Self {
        let mut systems = bench_raw::systems();
        #[allow(unused_mut, reason = "without the features of the stores it stays empty")]
        let mut stores: Vec<Box<dyn KeyValue>> = Vec::new();
        #[allow(unused_mut, reason = "without the features of the stores it stays empty")]
        let mut watches: Vec<Box<dyn System>> = Vec::new();
        #[allow(unused_mut, reason = "without the features of the systems it stays empty")]
        let mut calls: Vec<Box<dyn System>> = Vec::new();
        #[cfg(feature = "rnet")]
        systems.extend(bench_rnet::systems());
        #[cfg(feature = "iceoryx2")]
        systems.extend(bench_iceoryx2::systems());
        #[cfg(feature = "zmq")]
        systems.extend(bench_zmq::systems());
        #[cfg(feature = "zeromq-rs")]
        systems.extend(bench_zeromq_rs::systems());
        #[cfg(feature = "nano")]
        systems.extend(bench_nano::systems());
        #[cfg(feature = "zenoh")]
        systems.extend(bench_zenoh::systems());
        #[cfg(feature = "cyclone")]
        systems.extend(bench_cyclone::systems());
        #[cfg(feature = "redis")]
        systems.extend(bench_redis::systems());
        #[cfg(feature = "nats")]
        systems.extend(bench_nats::systems());
        #[cfg(feature = "lcm")]
        systems.extend(bench_lcm::systems());
        #[cfg(feature = "cpp")]
        systems.extend(bench_cpp::systems());
        #[cfg(feature = "rnet")]
        stores.extend(bench_rnet::stores());
        #[cfg(feature = "redis")]
        stores.extend(bench_redis::stores());
        #[cfg(feature = "nats")]
        stores.extend(bench_nats::stores());
        #[cfg(feature = "rnet")]
        watches.extend(bench_rnet::watches());
        #[cfg(feature = "redis")]
        watches.extend(bench_redis::watches());
        #[cfg(feature = "nats")]
        watches.extend(bench_nats::watches());
        #[cfg(feature = "rnet")]
        calls.extend(bench_rnet::calls());
        #[cfg(feature = "zmq")]
        calls.extend(bench_zmq::calls());
        #[cfg(feature = "zenoh")]
        calls.extend(bench_zenoh::calls());
        #[cfg(feature = "cyclone")]
        calls.extend(bench_cyclone::calls());
        #[cfg(feature = "nats")]
        calls.extend(bench_nats::calls());
        #[cfg(feature = "grpc")]
        calls.extend(bench_grpc::calls());
        Self { systems, watches, calls, stores }
    }

    /// All systems that carry messages: publish/subscribe, watches, and calls.
    pub fn carriers(&self) -> impl Iterator<Item = &dyn System> {
        self.systems.iter().chain(&self.watches).chain(&self.calls).map(|s| &**s)
    }
}

/// Kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Publish and subscribe.
    Pubsub,
    /// Key and value.
    KeyValue,
    /// A key that is set, and watched.
    Watch,
    /// Request and reply.
    Call,
}

/// One system, as the raw data describes it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// Label, client and settings.
    #[serde(flatten)]
    pub about: About,
    /// "rust", "c++" or "python".
    pub language: String,
    /// The library's version.
    pub version: Option<String>,
    /// Why it cannot run here.
    pub unavailable: Option<String>,
    /// Why it may lose messages by design if they arrive too fast.
    pub may_lose: Option<String>,
    /// Its kind.
    pub kind: Kind,
    /// The Rust system whose server a Python system uses.
    #[serde(skip)]
    server_of: Option<&'static str>,
    /// The interpreter of a Python system.
    #[serde(skip)]
    pub python: Option<PathBuf>,
}

impl Entry {
    fn built_in(about: About, version: Result<String>, kind: Kind) -> Self {
        let (version, unavailable) = match version {
            Ok(version) => (Some(version), None),
            Err(why) => (None, Some(why.to_string())),
        };
        Self {
            about,
            language: "rust".into(),
            version,
            unavailable,
            may_lose: None,
            kind,
            server_of: None,
            python: None,
        }
    }
}

/// All systems by id.
pub struct Registry {
    builtin: Builtin,
    /// In the order of the report.
    pub order: Vec<String>,
    /// Their descriptions.
    pub entries: BTreeMap<String, Entry>,
}

impl Registry {
    /// Asks every system whether it can run here. `bench` is the folder of the comparison.
    pub fn new(bench: &Path) -> Self {
        let builtin = Builtin::new();
        let mut registry = Self { builtin, order: Vec::new(), entries: BTreeMap::new() };
        let mut found = Vec::new();
        let systems = registry.builtin.systems.iter().map(|s| (s, Kind::Pubsub));
        let watches = registry.builtin.watches.iter().map(|s| (s, Kind::Watch));
        let calls = registry.builtin.calls.iter().map(|s| (s, Kind::Call));
        for (system, kind) in systems.chain(watches).chain(calls) {
            let may_lose = system.may_lose().map(str::to_owned);
            let entry = Entry::built_in(system.about(), system.version(), kind);
            let language = system.language().into();
            found.push((system.id(), Entry { may_lose, language, ..entry }));
        }
        for store in &registry.builtin.stores {
            let entry = Entry::built_in(store.about(), store.version(), Kind::KeyValue);
            found.push((store.id(), entry));
        }
        found.into_iter().for_each(|(id, entry)| registry.add(id, entry));
        for venv in [".venv", ".venv-ecal"] {
            registry.add_python(bench, venv);
        }
        registry
    }

    fn add(&mut self, id: &str, entry: Entry) {
        self.order.push(id.into());
        self.entries.insert(id.into(), entry);
    }

    fn add_python(&mut self, bench: &Path, venv: &str) {
        let python = bench.join(venv).join("bin/python");
        let worker = bench.join("python/worker.py");
        let Ok(output) = Command::new(&python).arg(&worker).arg("--describe").output() else {
            return;
        };
        let described: BTreeMap<String, PythonSystem> = match serde_json::from_slice(&output.stdout)
        {
            Ok(described) => described,
            Err(error) => {
                let said = String::from_utf8_lossy(&output.stderr);
                eprintln!("compare: {} --describe: {error}\n{said}", worker.display());
                return;
            }
        };
        for (id, system) in described {
            let known = self.entries.get(&id).is_some_and(|e| e.unavailable.is_none());
            if known {
                continue;
            }
            self.order.retain(|other| *other != id);
            let server_of = match system.broker.as_deref() {
                Some("redis") => Some("redis-pubsub"),
                Some("nats") => Some("nats"),
                _ => None,
            };
            let about =
                About { label: system.label, client: system.client, settings: system.settings };
            self.add(
                &id,
                Entry {
                    about,
                    language: "python".into(),
                    version: system.version,
                    unavailable: system.unavailable,
                    may_lose: system.may_lose,
                    kind: Kind::Pubsub,
                    server_of,
                    python: Some(python.clone()),
                },
            );
        }
    }

    /// All in Rust and C++ of the same kinds as these, in the order of the report.
    pub fn like(&self, ids: &[String]) -> Vec<String> {
        let kinds: Vec<Kind> = ids.iter().map(|id| self.entries[id].kind).collect();
        let fits = |id: &&String| {
            let entry = &self.entries[*id];
            kinds.contains(&entry.kind) && entry.language != "python"
        };
        self.order.iter().filter(fits).cloned().collect()
    }

    /// The built-in system of this id.
    pub fn system(&self, id: &str) -> Option<&dyn System> {
        self.builtin.carriers().find(|s| s.id() == id)
    }

    /// The built-in store of this id.
    pub fn store(&self, id: &str) -> Option<&dyn KeyValue> {
        self.builtin.stores.iter().find(|s| s.id() == id).map(|s| &**s)
    }

    /// The server that a run of this system needs.
    pub fn broker(&self, id: &str, net: &Net, port: u16) -> Option<Broker> {
        let id = self.entries.get(id).and_then(|e| e.server_of).unwrap_or(id);
        let system = self.system(id).and_then(|s| s.broker(net, port));
        system
            .or_else(|| self.store(id).and_then(|s| s.broker(&net.dir, net.disk.as_deref(), port)))
    }
}

/// Description of a system by `worker.py --describe`.
#[derive(Deserialize)]
struct PythonSystem {
    label: String,
    client: String,
    settings: Vec<String>,
    version: Option<String>,
    unavailable: Option<String>,
    broker: Option<String>,
    #[serde(default)]
    may_lose: Option<String>,
}
