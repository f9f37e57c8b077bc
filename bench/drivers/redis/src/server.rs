//! The server and the way to it.

use bench_harness::spec::Call;
use bench_harness::{Broker, Error, Net, Result};
use redis::io::tcp::TcpSettings;
use redis::{Client, ConnectionAddr, IntoConnectionInfo};
use std::path::Path;
use std::process::Command;

const PROGRAM: &str = "redis-server";
const LOCK: &str = include_str!("../../../Cargo.lock");

/// The server's settings, for the report.
pub const SETTINGS: [&str; 3] = [
    "server: save \"\" and appendonly no: nothing is written to disk (the bucket of NATS KV is in memory too)",
    "durable: appendonly yes and appendfsync always, its folder on the real disk (redis.io, Persistence: a write is on disk before it is answered; commands that are there at the same time share an fsync)",
    "server: the rest as it comes, io-threads 1 included (its redis.conf suggests more only from 4 cores on)",
];

/// redis-server on 127.0.0.1 and on a Unix socket in `dir`. With `disk` each write is in a log in
/// that folder before it is answered.
pub fn broker(dir: &Path, disk: Option<&Path>, port: u16) -> Broker {
    let files = disk.unwrap_or(dir).display();
    let log = if disk.is_some() { "yes --appendfsync always" } else { "no" };
    let dir = dir.display();
    let args = [
        format!("--port {port} --bind 127.0.0.1 --unixsocket {dir}/redis.sock --dir {files}"),
        format!("--appendonly {log} --loglevel warning"),
        // Never cuts off a subscriber that is behind. redis.conf's default, pubsub 32mb 8mb 60, drops
        // its connection, and messages, at 32 MB.
        "--client-output-buffer-limit pubsub 0 0 0".into(),
    ];
    let words = args.iter().flat_map(|line| line.split(' ')).map(str::to_owned);
    let no_snapshots = ["--save".to_owned(), String::new()];
    Broker { program: PROGRAM.into(), args: words.chain(no_snapshots).collect(), files: Vec::new() }
}

/// Purpose of the clients with many requests in flight.
pub fn get_and_set_only(call: Call) -> Result<()> {
    match call {
        Call::Set | Call::Get | Call::Rest => Ok(()),
        _ => Err(Error::new("this client is for get and set; the synchronous one counts")),
    }
}

/// The versions of the server and of the crate.
pub fn version() -> Result<String> {
    let tools = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.tools/bin/", "redis-server");
    let output = [tools, PROGRAM]
        .iter()
        .find_map(|program| Command::new(program).arg("--version").output().ok())
        .ok_or_else(|| Error::new("redis-server is missing: apt-get install redis-server"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let server = text.split(' ').find_map(|word| word.strip_prefix("v=")).unwrap_or("?");
    Ok(format!("redis-server {server}, crate redis {}", crate_version()))
}

fn crate_version() -> &'static str {
    let entry = LOCK.split("[[package]]").find(|entry| entry.contains("\nname = \"redis\"\n"));
    entry.and_then(|entry| entry.split('"').nth(3)).unwrap_or("?")
}

/// A client by TCP.
pub fn tcp(net: &Net) -> Result<Client> {
    let info =
        ConnectionAddr::Tcp("127.0.0.1".into(), net.broker_port()?).into_connection_info()?;
    // The crate enables Nagle's algorithm by default.
    Ok(Client::open(info.set_tcp_settings(TcpSettings::default().set_nodelay(true)))?)
}

/// A client by the Unix socket or by TCP.
pub fn client(net: &Net, by_unix: bool) -> Result<Client> {
    if by_unix { unix(net) } else { tcp(net) }
}

/// A client over the Unix socket, whose path the server reports.
fn unix(net: &Net) -> Result<Client> {
    let mut by_tcp = tcp(net)?.get_connection()?;
    let asked: (String, String) =
        redis::cmd("CONFIG").arg("GET").arg("unixsocket").query(&mut by_tcp)?;
    Ok(Client::open(ConnectionAddr::Unix(asked.1.into()))?)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_version_of_the_crate_is_found() {
        assert!(super::crate_version().starts_with("1."), "{}", super::crate_version());
    }
}
