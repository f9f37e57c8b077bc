//! A key that is set, and watched.

use bench_harness::{About, Error, Net, Publisher, Result, Sink, Subscription, System, Topic};
use rnet::Node;
use rnet::state::State;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long the watcher waits before it checks for a stop request.
const LOOK: Duration = Duration::from_millis(200);

/// `State::set` and `State::watch`.
pub struct Watched;

impl Watched {
    fn state(net: &Net, topic: &Topic, end: &str) -> Result<(Node, State)> {
        let name = format!("{}_{end}_{}", topic.name, topic.index);
        let node = Node::builder(&name).dir(&net.dir).domain("bench").open()?;
        let state = node.state()?;
        Ok((node, state))
    }
}

impl System for Watched {
    fn id(&self) -> &'static str {
        "rnet-watch"
    }

    fn about(&self) -> About {
        let settings = [
            "State::set with bytes; State::watch of the one key, received one by one",
            "its directory on /dev/shm, as is its default",
        ];
        About {
            label: "robot-net state, set and watch".into(),
            client: "rnet (Rust)".into(),
            settings: settings.map(str::to_owned).into(),
        }
    }

    fn version(&self) -> Result<String> {
        Ok(rnet::VERSION.into())
    }

    fn may_lose(&self) -> Option<&'static str> {
        Some("a watcher that is behind sees the newest value, and how many it did not see")
    }

    fn supports(&self, topic: &Topic) -> Result<()> {
        if topic.publishers == 1 { Ok(()) } else { Err(Error::new("one writer sets the key")) }
    }

    fn publisher(&self, net: &Net, topic: &Topic) -> Result<Box<dyn Publisher>> {
        let (node, state) = Self::state(net, topic, "setter")?;
        Ok(Box::new(Setter { state, key: format!("/{}", topic.name), _node: node }))
    }

    fn subscribe(&self, net: &Net, topic: &Topic, mut sink: Sink) -> Result<Subscription> {
        let (node, state) = Self::state(net, topic, "watcher")?;
        let mut watch = state.watch(&format!("/{}", topic.name))?;
        Subscription::thread(self.id(), move |stop| {
            let _node = node;
            while !stop.load(Ordering::Relaxed) {
                // A change or a time-out; other errors appear as missing values.
                let Ok(change) = watch.recv_timeout(LOOK) else { continue };
                if let Some(bytes) = change.entry.as_ref().and_then(|e| e.value.as_bytes()) {
                    sink(bytes);
                }
            }
        })
    }
}

struct Setter {
    state: State,
    key: String,
    // Closed after its state.
    _node: Node,
}

impl Publisher for Setter {
    fn send(&mut self, message: &[u8]) -> Result<()> {
        self.state.set(&self.key, message)?;
        Ok(())
    }
}
