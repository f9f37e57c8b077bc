//! nng: PUB/SUB version 0 over TCP, and PAIR version 0 over Unix sockets.

#[cfg(has_nng)]
mod ffi;
#[cfg(has_nng)]
mod socket;
#[cfg(not(has_nng))]
#[path = "nng/absent.rs"]
mod socket;

use crate::Pattern;
use bench_harness::{About, Net, Publisher, Result, Sink, Subscription, System, Topic};

/// nng with one of its patterns.
pub struct Nng {
    pub pattern: Pattern,
}

impl System for Nng {
    fn id(&self) -> &'static str {
        match self.pattern {
            Pattern::PubSub => "nng",
            Pattern::Pair => "nng-pair",
        }
    }

    fn may_lose(&self) -> Option<&'static str> {
        self.pattern.may_lose()
    }

    fn about(&self) -> About {
        let mut settings = vec![
            "NNG_OPT_SENDBUF and NNG_OPT_RECVBUF: 8192 messages, the most there may be, fewer where \
             they would exceed 1 GiB (nng_options(5))"
                .into(),
            "NNG_OPT_RECVMAXSZ: 0, no limit (nng_options(5)): the default of 1 MiB refuses longer \
             messages"
                .into(),
        ];
        match self.pattern {
            Pattern::PubSub => settings.extend([
                "tcp; NNG_OPT_TCP_NODELAY is left at true, its default (nng_tcp_options(5))".into(),
                "PUB never waits and drops the oldest where a subscriber's queue is full, by design \
                 (nng_pub(7)): best-effort delivery; nng-pair is the lossless one"
                    .into(),
            ]),
            Pattern::Pair => settings.extend([
                "the ipc transport, Unix sockets, nng's own for one host (nng_ipc(7))".into(),
                "version 0 of PAIR (nng_pair(7)): send waits while there is no room; version 1 adds \
                 only a hop count"
                    .into(),
            ]),
        }
        About {
            label: match self.pattern {
                Pattern::PubSub => "nng PUB/SUB tcp".into(),
                Pattern::Pair => "nng PAIR ipc".into(),
            },
            client: "libnng (C), called from Rust".into(),
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
