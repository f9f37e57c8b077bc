//! Cyclone DDS, the middleware of ROS 2, through a thin shim around its C library.

mod call;
#[cfg(has_cyclone)]
mod domain;
#[cfg(has_cyclone)]
mod endpoint;
#[cfg(not(has_cyclone))]
#[path = "absent.rs"]
mod endpoint;
#[cfg(has_cyclone)]
mod ffi;

use bench_harness::{About, AsSystem, Net, Publisher, Result, Sink, Subscription, System, Topic};

/// The systems of this crate.
pub fn systems() -> Vec<Box<dyn System>> {
    vec![Box::new(CycloneDds)]
}

/// Request and reply.
pub fn calls() -> Vec<Box<dyn System>> {
    vec![Box::new(AsSystem::new(call::TwoTopics))]
}

/// Cyclone DDS carrying a ROS 2 type on a ROS 2 topic name.
struct CycloneDds;

impl System for CycloneDds {
    fn id(&self) -> &'static str {
        "cyclonedds"
    }

    fn about(&self) -> About {
        About {
            label: "Cyclone DDS, ROS 2 types".into(),
            client: "libddsc, the C library, from Rust; not rcl and no claim to be".into(),
            settings: SETTINGS.iter().map(|text| (*text).into()).collect(),
        }
    }

    fn version(&self) -> Result<String> {
        endpoint::version()
    }

    fn spans_hosts(&self) -> bool {
        true
    }

    fn publisher(&self, net: &Net, topic: &Topic) -> Result<Box<dyn Publisher>> {
        endpoint::publisher(net, topic)
    }

    fn subscribe(&self, net: &Net, topic: &Topic, sink: Sink) -> Result<Subscription> {
        endpoint::subscribe(net, topic, sink)
    }
}

const SETTINGS: &[&str] = &[
    "type std_msgs::msg::dds_::UInt8MultiArray_, compiled by idlc; topic rt/<name>",
    "QoS reliable, max_blocking_time 30 s, keep_all: lossless, the writer waits for its readers \
     (ROS 2's default is keep_last 10, which overwrites)",
    "listener on_data_available, as ddsperf does by default: runs on the receive thread, no wake-up \
     of another; dds_take into message objects that are used again",
    "General/MaxMessageSize 65500B, General/FragmentSize 65000B: loopback has an MTU of 65536 \
     (Cyclone's own examples/perfscript/quick-microbenchmark sets both)",
    "Internal/SocketReceiveBufferSize max 10MB, or what net.core.rmem_max allows (ROS 2 \
     documentation, DDS tuning, Cyclone DDS: large messages)",
    "throughput: Internal/WriteBatch true, with dds_write_flush (options manual; the writer batching \
     QoS came after 0.10); latency: batching off, which is the default",
    "throughput: Internal/Watermarks at their defaults (WhcHigh 500kB, adaptive); latency: WhcHigh \
     and WhcHighInit 64MB, WhcAdaptive false, as a listener that answers runs on the thread that \
     takes the acknowledgements and must not wait for them",
    "between two hosts: the interface of the cable; General/MaxMessageSize and FragmentSize at their \
     defaults, as its MTU is 1500",
    "Interfaces: lo only, with multicast=true, as lo carries multicast though its flag does not say \
     so: one send reaches all readers where there are several",
    "urgent topics: a second Cyclone domain in the process with ports of its own, hence own sockets \
     and an own receive thread (options manual, Discovery/ExternalDomainId); network channels, the \
     other means, are not in this build",
    "shared memory (iceoryx 1) is off, which is the default: it needs the daemon iox-roudi, one \
     for the whole machine",
];
