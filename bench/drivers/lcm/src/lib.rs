//! LCM, Lightweight Communications and Marshalling, by its C library.

#[cfg(has_lcm)]
mod endpoint;
#[cfg(not(has_lcm))]
#[path = "absent.rs"]
mod endpoint;
#[cfg(has_lcm)]
mod ffi;
#[cfg(has_lcm)]
mod node;

use bench_harness::{About, Net, Publisher, Result, Sink, Subscription, System, Topic};

/// The systems of this crate.
pub fn systems() -> Vec<Box<dyn System>> {
    vec![Box::new(Lcm)]
}

/// LCM over UDP multicast.
struct Lcm;

impl System for Lcm {
    fn id(&self) -> &'static str {
        "lcm"
    }

    fn may_lose(&self) -> Option<&'static str> {
        Some("UDP multicast: what the socket's buffer has no room for is gone")
    }

    fn about(&self) -> About {
        About {
            label: "LCM udpm".into(),
            client: "liblcm, the C library, from Rust; raw bytes, no marshalling".into(),
            settings: vec![
                "lossy by design: UDP multicast, no acknowledgement, nothing holds the sender back; \
                 what it loses is counted"
                    .into(),
                "ttl=0, its default: packets stay on this machine".into(),
                format!(
                    "recv_buf_size=8388608, of which the kernel's net.core.rmem_max allows {} \
                     (manual, UDP Multicast Setup, Kernel UDP receive buffer sizing)",
                    endpoint::receive_buffer()
                ),
                "lcm_subscription_set_queue_capacity(0), no limit; the default drops beyond 30 \
                 messages (lcm.h)"
                    .into(),
                "one LCM instance and one lcm_handle thread for all channels of a process".into(),
                "urgent topics: an instance with a port, sockets and threads of its own".into(),
            ],
        }
    }

    fn version(&self) -> Result<String> {
        endpoint::version()
    }

    fn publisher(&self, net: &Net, topic: &Topic) -> Result<Box<dyn Publisher>> {
        endpoint::publisher(net, topic)
    }

    fn subscribe(&self, net: &Net, topic: &Topic, sink: Sink) -> Result<Subscription> {
        endpoint::subscribe(net, topic, sink)
    }
}
