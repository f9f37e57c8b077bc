//! Redis pub/sub as a system.

use crate::{publish, server, subscribe};
use bench_harness::{
    About, Broker, Net, Profile, Publisher, Result, Sink, Subscription, System, Topic,
};

/// Pub/sub.
pub struct PubSub {
    /// By the Unix socket, or by TCP as in the founding study.
    pub unix: bool,
}

impl System for PubSub {
    fn id(&self) -> &'static str {
        if self.unix { "redis-pubsub-unix" } else { "redis-pubsub" }
    }

    fn about(&self) -> About {
        let (label, way) = if self.unix {
            (
                "Redis pub/sub, Unix socket",
                "Unix socket at both ends, the fastest way to a server on the same host",
            )
        } else {
            (
                "Redis pub/sub",
                "TCP on 127.0.0.1, as in the founding study; TCP_NODELAY set (the crate's default is off)",
            )
        };
        let settings = [
            way,
            "throughput: PUBLISH in pipelines of up to 32 KiB, of which one is in flight while the next is collected (2 and 4 in flight are no faster); latency: each PUBLISH is written at once and its reply is read later",
            "subscriber: synchronous PubSub::get_message, blocking, RESP2 (both the crate's defaults; RESP3 costs the same, the asynchronous PubSub's stream was slower: 0.8 to 1.1 million messages/s of 22 bytes)",
            "server: client-output-buffer-limit pubsub 0 0 0: a subscriber that is behind is not cut off (redis.conf: default 32mb 8mb 60); Redis cannot hold the publisher back for it, the server's memory grows instead",
        ];
        About {
            label: label.into(),
            client: "crate redis, synchronous (Rust)".into(),
            settings: settings.iter().chain(&server::SETTINGS).map(|s| s.to_string()).collect(),
        }
    }

    fn version(&self) -> Result<String> {
        server::version()
    }

    fn broker(&self, net: &Net, port: u16) -> Option<Broker> {
        Some(server::broker(&net.dir, None, port))
    }

    fn publisher(&self, net: &Net, topic: &Topic) -> Result<Box<dyn Publisher>> {
        let connection = server::client(net, self.unix)?.get_connection()?;
        let channel = topic.name.clone();
        let batch = if topic.profile == Profile::Throughput { publish::BATCH } else { 1 };
        Ok(Box::new(publish::Pipelined::new(connection, channel, batch)))
    }

    fn subscribe(&self, net: &Net, topic: &Topic, sink: Sink) -> Result<Subscription> {
        subscribe::start(&server::client(net, self.unix)?, &topic.name, sink)
    }
}
