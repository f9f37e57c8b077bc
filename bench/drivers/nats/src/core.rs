//! Core NATS as a system.

use crate::{publish, server, subscribe};
use bench_harness::{
    About, Broker, Net, Profile, Publisher, Result, Sink, Subscription, System, Topic,
};

/// Core NATS by TCP.
pub struct Core;

impl System for Core {
    fn id(&self) -> &'static str {
        "nats"
    }

    fn about(&self) -> About {
        let settings = [
            "throughput: publish, and a flush after each 32 KiB; the publisher waits while the client writes",
            "latency: publish, then flush, which returns when the message is with the socket; TCP_NODELAY is the client's default",
            "tokio's current_thread runtime on the sending and on the receiving thread: the connection's task runs where the calls are made, which saves a change of threads",
            "subscriber: the message stream, emptied at each turn of the runtime; subscription_capacity 4 Mi: the client drops what exceeds it (default 64 Ki)",
            "server: max_pending 2GB, write_deadline 60s: a subscriber that is behind is not cut off (defaults 64MB, 10s; docs.nats.io, Slow Consumers, warns of such limits in production: the server's memory can grow)",
            "server: max_payload 8MB for messages above 1 MB; ping_interval 10m (default 2m), as a publisher that is idle does not answer",
        ];
        About {
            label: "NATS core".into(),
            client: "crate async-nats on tokio (Rust)".into(),
            settings: settings.map(str::to_owned).into(),
        }
    }

    fn version(&self) -> Result<String> {
        server::version()
    }

    fn broker(&self, net: &Net, port: u16) -> Option<Broker> {
        Some(server::broker(net, port))
    }

    fn spans_hosts(&self) -> bool {
        true
    }

    fn publisher(&self, net: &Net, topic: &Topic) -> Result<Box<dyn Publisher>> {
        let at_once = topic.profile == Profile::Latency;
        Ok(Box::new(publish::Core::open(net, &topic.name, at_once)?))
    }

    fn subscribe(&self, net: &Net, topic: &Topic, sink: Sink) -> Result<Subscription> {
        subscribe::start(net, &topic.name, sink)
    }
}
