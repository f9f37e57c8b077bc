//! A key that is watched: SET, and keyspace notifications.

use crate::{server, subscribe};
use bench_harness::{
    About, Broker, Error, Net, Publisher, Result, Sink, Subscription, System, Topic,
};
use redis::{Commands, Connection};

/// Keyspace notifications.
pub struct Keyspace;

impl System for Keyspace {
    fn id(&self) -> &'static str {
        "redis-keyspace"
    }

    fn about(&self) -> About {
        let settings = [
            "Unix socket at both ends, the fastest way to a server on the same host",
            "server: notify-keyspace-events K$, the least that tells of SET (redis.io, Keyspace notifications; off by default)",
            "the notification has no value: the watcher GETs it, on a second connection, and shows each value once",
        ];
        About {
            label: "Redis SET and keyspace notification".into(),
            client: "crate redis, synchronous (Rust)".into(),
            settings: settings.iter().chain(&server::SETTINGS).map(|s| s.to_string()).collect(),
        }
    }

    fn version(&self) -> Result<String> {
        server::version()
    }

    fn broker(&self, net: &Net, port: u16) -> Option<Broker> {
        let mut broker = server::broker(&net.dir, None, port);
        broker.args.extend(["--notify-keyspace-events", "K$"].map(str::to_owned));
        Some(broker)
    }

    fn may_lose(&self) -> Option<&'static str> {
        Some("a watcher that is behind sees the newest value")
    }

    fn supports(&self, topic: &Topic) -> Result<()> {
        if topic.publishers == 1 { Ok(()) } else { Err(Error::new("one writer sets the key")) }
    }

    fn publisher(&self, net: &Net, topic: &Topic) -> Result<Box<dyn Publisher>> {
        let connection = server::client(net, true)?.get_connection()?;
        Ok(Box::new(Setter { connection, key: topic.name.clone() }))
    }

    fn subscribe(&self, net: &Net, topic: &Topic, mut sink: Sink) -> Result<Subscription> {
        let client = server::client(net, true)?;
        let mut getter = client.get_connection()?;
        let key = topic.name.clone();
        let mut seen = Vec::new();
        let notified = Box::new(move |_event: &[u8]| {
            let value: Option<Vec<u8>> = match getter.get(&key) {
                Ok(value) => value,
                // The server is gone, and so is the run.
                Err(_) => return,
            };
            // Two notifications may be followed by one value.
            if let Some(value) = value.filter(|value| *value != seen) {
                sink(&value);
                seen = value;
            }
        });
        subscribe::start(&client, &format!("__keyspace@0__:{}", topic.name), notified)
    }
}

struct Setter {
    connection: Connection,
    key: String,
}

impl Publisher for Setter {
    fn send(&mut self, message: &[u8]) -> Result<()> {
        Ok(self.connection.set(&self.key, message)?)
    }
}
