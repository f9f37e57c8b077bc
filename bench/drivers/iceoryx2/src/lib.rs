//! iceoryx2: shared memory without copies, woken by events or polling.

mod publisher;
mod run_files;
mod service;
mod subscriber;

use bench_harness::{About, Net, Publisher, Result, Sink, Subscription, System, Topic};
use iceoryx2_bb_elementary::package_version::PackageVersion;

/// Both ways of waiting.
pub fn systems() -> Vec<Box<dyn System>> {
    vec![Box::new(Iceoryx2 { wake: Wake::Event }), Box::new(Iceoryx2 { wake: Wake::Poll })]
}

/// How a subscriber learns of a message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wake {
    /// The publisher notifies an event service, on which the subscriber sleeps.
    Event,
    /// The subscriber asks without end.
    Poll,
}

struct Iceoryx2 {
    wake: Wake,
}

impl System for Iceoryx2 {
    fn id(&self) -> &'static str {
        match self.wake {
            Wake::Event => "iceoryx2-event",
            Wake::Poll => "iceoryx2-poll",
        }
    }

    fn about(&self) -> About {
        let (label, wake) = match self.wake {
            Wake::Event => (
                "iceoryx2 event wake-up",
                "a listener that waits, for a second at most, and then takes all samples \
                 (examples/rust/event_based_communication); latency: a notification, which is a \
                 system call, after each send; throughput: after every 128 messages or as many as \
                 an eighth of the subscriber's buffer holds, and at the end of a burst, as the \
                 other systems batch (16, 32 and 128 were tried)",
            ),
            Wake::Poll => (
                "iceoryx2 polling",
                "the subscriber calls receive without end, on a core of its own \
                 (benchmarks/publish-subscribe)",
            ),
        };
        let settings = [
            wake,
            "enable_safe_overflow false and BackpressureStrategy::RetryUntilDelivered: a full \
             subscriber holds the publisher back (docs of BackpressureStrategy)",
            "subscriber_max_buffer_size 1024 messages, or as many as 32 MiB hold, at least 8: the \
             default of 2 would stop the publisher at each turn",
            "initial_max_slice_len is the topic's longest message (docs of PortFactoryPublisher)",
            "max_publishers, max_subscribers, max_nodes, max_notifiers, max_listeners: the topic's \
             number of each",
            "ipc::Service rather than ipc_threadsafe: no port is used by two threads at a time",
            "SignalHandlingMode::Disabled: the process ends on a signal as others do",
            "root path in the run's directory, a prefix for the run: runs never meet",
        ];
        About {
            label: label.into(),
            client: "crate iceoryx2 (Rust)".into(),
            settings: settings.map(Into::into).into(),
        }
    }

    fn version(&self) -> Result<String> {
        Ok(PackageVersion::get().to_string())
    }

    fn publisher(&self, net: &Net, topic: &Topic) -> Result<Box<dyn Publisher>> {
        publisher::open(net, topic, self.wake)
    }

    fn subscribe(&self, net: &Net, topic: &Topic, sink: Sink) -> Result<Subscription> {
        subscriber::open(net, topic, self.wake, sink)
    }
}
