//! Zenoh in peer mode: over TCP, and with its shared memory between the processes of one host.
//!
//! Each endpoint is a session of its own. One session per process is what an application would rather have,
//! but an open session (1.10) cannot connect to another address, and which topics a process has is known here
//! only one after the other. The sessions of a process share Zenoh's threads, and data is routed by
//! subscription, so this costs a TCP connection per topic and nothing per message.

mod call;
mod publisher;
mod session;

use bench_harness::{
    About, AsSystem, Error, Net, Profile, Publisher, Result, Sink, Subscription, System, Topic,
};
use session::Memory;
use std::sync::Mutex;
use zenoh::Wait;

/// Both configurations.
pub fn systems() -> Vec<Box<dyn System>> {
    vec![Box::new(Zenoh { memory: Memory::Private }), Box::new(Zenoh { memory: Memory::Shared })]
}

/// Queries.
pub fn calls() -> Vec<Box<dyn System>> {
    vec![Box::new(AsSystem::new(call::Query))]
}

struct Zenoh {
    memory: Memory,
}

impl System for Zenoh {
    fn id(&self) -> &'static str {
        match self.memory {
            Memory::Private => "zenoh-tcp",
            Memory::Shared => "zenoh-shm",
        }
    }

    fn about(&self) -> About {
        let (label, memory) = match self.memory {
            Memory::Private => (
                "Zenoh peer tcp",
                vec!["transport/shared_memory/enabled false: zenoh-shm is the row with it"],
            ),
            Memory::Shared => (
                "Zenoh peer, Unix socket + shared memory",
                vec![
                    "endpoints unixsock-stream in the run's directory rather than tcp: 44 against 62 \
                     µs at 1 kHz here",
                    "transport/shared_memory/mode \"init\": the first message does not wait for the \
                     set-up of shared memory (DEFAULT_CONFIG.json5)",
                    "messages from 3072 bytes on (Zenoh's own message_size_threshold) are written \
                     into a PosixShmProvider's buffer, smaller ones go by value; allocation waits \
                     when the pool is full: BlockOn<Defragment<GarbageCollect>> (examples/z_alloc_shm)",
                    "pool of 16 MiB (Zenoh's own pool_size) or eight of the longest messages",
                ],
            ),
        };
        let common = [
            "mode peer; publishers listen, each subscriber connects to each publisher; \
             multicast and gossip scouting off: nobody outside the run joins",
            "CongestionControl::Block, as examples/z_pub_thr and z_ping: nothing is dropped",
            "queue/congestion_control/block/wait_before_close 60 s, as rmw_zenoh: a slow subscriber \
             holds the publisher back and is not cut off after 5 s",
            "latency, topics with messages up to 32 KiB: transport/unicast/lowlatency with qos off, at both ends \
             (DEFAULT_CONFIG.json5); 36 against 44 µs by Unix socket, 39 against 62 by tcp, at 1 kHz \
             here",
            "latency: express(true): not batched (docs of QoSBuilderTrait::express)",
            "urgent: a session, and so a connection, of its own, and Priority::RealTime (Priority's documentation; the low-latency transport has none and needs none there)",
            "a callback, on the thread that receives (docs of SubscriberBuilder::callback)",
        ];
        About {
            label: label.into(),
            client: "crate zenoh (Rust)".into(),
            settings: common.into_iter().chain(memory).map(Into::into).collect(),
        }
    }

    fn version(&self) -> Result<String> {
        Ok(version())
    }

    fn spans_hosts(&self) -> bool {
        self.memory == Memory::Private
    }

    fn publisher(&self, net: &Net, topic: &Topic) -> Result<Box<dyn Publisher>> {
        let session = session::listening(self.memory, net, topic)?;
        let address = session::address(&session)?;
        let publisher = publisher::open(session, self.memory, topic)?;
        net.announce(topic, &address)?;
        Ok(publisher)
    }

    fn subscribe(&self, net: &Net, topic: &Topic, sink: Sink) -> Result<Subscription> {
        let addresses = (0..topic.publishers)
            .map(|publisher| net.find(topic, publisher))
            .collect::<Result<Vec<_>>>()?;
        let session = session::connecting(self.memory, &addresses, topic)?;
        // Zenoh calls back from one thread per publisher's connection.
        let sink = Mutex::new(sink);
        let subscriber = session
            .declare_subscriber(topic.name.clone())
            .callback(move |sample| {
                // Borrowed, unless the message came in fragments: then joined here.
                let message = sample.payload().to_bytes();
                if let Ok(mut sink) = sink.lock() {
                    sink(&message);
                }
            })
            .wait()
            .map_err(failed)?;
        Ok(Subscription::holding((subscriber, session)))
    }
}

fn version() -> String {
    zenoh::GIT_VERSION.trim_start_matches('v').trim_end_matches('-').into()
}

/// Zenoh's error is a box, and so converts into no other error by itself.
fn failed(error: zenoh::Error) -> Error {
    Error::new(error.to_string())
}

/// Whether messages of this topic are to leave one by one.
fn is_express(topic: &Topic) -> bool {
    topic.profile == Profile::Latency
}
