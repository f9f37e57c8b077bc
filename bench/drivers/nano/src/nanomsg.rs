//! nanomsg: PUB/SUB over TCP, and PAIR over Unix sockets.

#[cfg(has_nanomsg)]
mod ffi;
#[cfg(has_nanomsg)]
mod socket;
#[cfg(not(has_nanomsg))]
#[path = "nanomsg/absent.rs"]
mod socket;

use crate::Pattern;
use bench_harness::{About, Net, Publisher, Result, Sink, Subscription, System, Topic};

/// nanomsg with one of its patterns.
pub struct Nanomsg {
    pub pattern: Pattern,
}

impl System for Nanomsg {
    fn id(&self) -> &'static str {
        match self.pattern {
            Pattern::PubSub => "nanomsg",
            Pattern::Pair => "nanomsg-pair",
        }
    }

    fn may_lose(&self) -> Option<&'static str> {
        self.pattern.may_lose()
    }

    fn about(&self) -> About {
        let mut settings = vec![
            "NN_SNDBUF and NN_RCVBUF: 4 MiB, which the kernel cuts to its limits (nn_setsockopt(3); \
             default 128 KiB): they are the only queues"
                .into(),
            "NN_RCVMAXSIZE: -1, no limit (nn_setsockopt(3)): the default of 1 MiB refuses longer \
             messages"
                .into(),
        ];
        match self.pattern {
            Pattern::PubSub => settings.extend([
                "tcp; NN_TCP_NODELAY: 1 for latency; left at 0 for throughput, at whose expense it \
                 would be (nn_tcp(7))"
                    .into(),
                "PUB never waits and drops what a subscriber's connection cannot take at once, by \
                 design: there is no queue of messages to enlarge; nanomsg-pair is the lossless one"
                    .into(),
            ]),
            Pattern::Pair => settings.push(
                "the ipc transport, Unix sockets, nanomsg's own for one host (nn_ipc(7))".into(),
            ),
        }
        About {
            label: match self.pattern {
                Pattern::PubSub => "nanomsg PUB/SUB tcp".into(),
                Pattern::Pair => "nanomsg PAIR ipc".into(),
            },
            client: "libnanomsg (C), called from Rust".into(),
            settings,
        }
    }

    fn version(&self) -> Result<String> {
        socket::version()
    }

    fn supports(&self, topic: &Topic) -> Result<()> {
        self.pattern.supports(topic)
    }

    fn publisher(&self, net: &Net, topic: &Topic) -> Result<Box<dyn Publisher>> {
        socket::publisher(self.pattern, net, topic)
    }

    fn subscribe(&self, net: &Net, topic: &Topic, sink: Sink) -> Result<Subscription> {
        socket::subscribe(self.pattern, net, topic, sink)
    }
}
