//! The receiving end of pub/sub.

use bench_harness::{Result, Sink, Subscription};
use redis::Client;
use std::thread;

/// Subscribes on a connection of its own, read by a thread without a time-out.
pub fn start(client: &Client, channel: &str, mut sink: Sink) -> Result<Subscription> {
    let mut connection = client.get_connection()?;
    let id: u64 = redis::cmd("CLIENT").arg("ID").query(&mut connection)?;
    let (joined, has_joined) = std::sync::mpsc::channel();
    let name = channel.to_owned();
    let thread = thread::Builder::new().name("subscriber".into()).spawn(move || {
        let mut pubsub = connection.as_pubsub();
        if joined.send(pubsub.subscribe(name)).is_err() {
            return;
        }
        while let Ok(message) = pubsub.get_message() {
            sink(message.get_payload_bytes());
        }
    })?;
    has_joined.recv()??;
    let client = client.clone();
    Ok(Subscription::new(move || {
        // Ends the blocked read. Where the server is gone already, so is the connection.
        if let Ok(mut other) = client.get_connection() {
            let kill = redis::cmd("CLIENT").arg("KILL").arg("ID").arg(id).exec(&mut other);
            if let Err(error) = kill {
                eprintln!("redis: CLIENT KILL failed: {error}");
                return;
            }
        }
        let _ = thread.join();
    }))
}
