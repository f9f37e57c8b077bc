//! The server and the way to it.

use async_nats::{Client, ConnectOptions};
use bench_harness::{Broker, Error, Net, Result};
use std::path::Path;
use std::process::Command;
use tokio::runtime::{Builder, Runtime};

const PROGRAM: &str = "nats-server";
const LOCK: &str = include_str!("../../../Cargo.lock");

/// Messages that a subscription holds for its reader; the client drops what comes beyond.
const SUBSCRIPTION_CAPACITY: usize = 1 << 22;

/// nats-server for core NATS. The limits are for subscribers that are behind, which the server else
/// cuts off (docs.nats.io, "Slow Consumers"), and for messages above 1 MB.
pub fn broker(net: &Net, port: u16) -> Broker {
    let address = net.broker_address();
    let text = format!(
        r#"listen: "{address}:{port}"
max_payload: 8MB
max_pending: 2GB
write_deadline: "60s"
ping_interval: "10m"
"#
    );
    with_config(&net.dir, text)
}

/// nats-server with JetStream, which the key-value store is built on. With `disk` its files are in that
/// folder, and each write is synced before it is acknowledged.
pub fn broker_with_jetstream(dir: &Path, disk: Option<&Path>, port: u16) -> Broker {
    let store = disk.unwrap_or(dir).display();
    let sync = if disk.is_some() { "\n  sync_interval: always" } else { "" };
    let text = format!(
        r#"listen: "127.0.0.1:{port}"
max_payload: 8MB
ping_interval: "10m"
jetstream {{
  store_dir: "{store}/jetstream"
  max_memory_store: 1GB{sync}
}}
"#
    );
    with_config(dir, text)
}

fn with_config(dir: &Path, text: String) -> Broker {
    let config = dir.join("nats.conf");
    let args = vec!["-c".into(), config.display().to_string()];
    Broker { program: PROGRAM.into(), args, files: vec![(config, text)] }
}

/// The versions of the server and of the crate.
pub fn version() -> Result<String> {
    let tools = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.tools/bin/", "nats-server");
    let output = [tools, PROGRAM]
        .iter()
        .find_map(|program| Command::new(program).arg("--version").output().ok())
        .ok_or_else(|| {
            Error::new(
                "nats-server is missing: GOBIN=bench/.tools/bin go install github.com/nats-io/nats-server/v2@v2.15.2",
            )
        })?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let server = text.trim().rsplit(' ').next().unwrap_or("?");
    Ok(format!("nats-server {server}, crate async-nats {}", crate_version()))
}

fn crate_version() -> &'static str {
    let entry = LOCK.split("[[package]]").find(|entry| entry.contains("\nname = \"async-nats\"\n"));
    entry.and_then(|entry| entry.split('"').nth(3)).unwrap_or("?")
}

/// A runtime that runs the connection's task on the thread that calls it. Between calls the server's PING is
/// not answered, hence its long `ping_interval`.
pub fn runtime() -> Result<Runtime> {
    Ok(Builder::new_current_thread().enable_all().build()?)
}

/// A connection of its own.
pub fn connect(runtime: &Runtime, net: &Net) -> Result<Client> {
    let options = ConnectOptions::new().subscription_capacity(SUBSCRIPTION_CAPACITY);
    let address = format!("{}:{}", net.broker_address(), net.broker_port()?);
    Ok(runtime.block_on(options.connect(address))?)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_version_of_the_crate_is_found() {
        assert!(super::crate_version().starts_with("0."), "{}", super::crate_version());
    }
}
