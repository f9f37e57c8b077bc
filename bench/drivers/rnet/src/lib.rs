//! robot-net itself: messages in its three ways of waiting, its services, its state as a store, and a watched key.

mod call;
mod state;
mod watched;

use bench_harness::{
    About, AsSystem, Broker, KeyValue, Lane, Net, Publisher, Result, Sink, Subscription, System,
    Topic,
};
use rnet::{Node, OnFull, Wait};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

/// How long a sender waits for a stalled reader.
const WAIT_LIMIT: Duration = Duration::from_secs(20);

/// robot-net in each way of waiting.
pub fn systems() -> Vec<Box<dyn System>> {
    vec![
        Box::new(Rnet { id: "rnet-spin", wait: Wait::Spin }),
        Box::new(Rnet { id: "rnet-adaptive", wait: Wait::Adaptive }),
        Box::new(Rnet { id: "rnet-block", wait: Wait::Block }),
    ]
}

/// robot-net's state: by `State`, and by `Cell`.
pub fn stores() -> Vec<Box<dyn KeyValue>> {
    vec![Box::new(state::Generic), Box::new(state::Kept)]
}

/// Services.
pub fn calls() -> Vec<Box<dyn System>> {
    vec![Box::new(AsSystem::new(call::Service))]
}

/// A key that is watched.
pub fn watches() -> Vec<Box<dyn System>> {
    vec![Box::new(watched::Watched)]
}

struct Rnet {
    id: &'static str,
    wait: Wait,
}

/// The node of this process, one for all of its endpoints as in an application; the last of them
/// closes it.
fn node(net: &Net) -> Result<Arc<Node>> {
    static OPEN: Mutex<Weak<Node>> = Mutex::new(Weak::new());
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(node) = open.upgrade() {
        return Ok(node);
    }
    let name = format!("process_{}", std::process::id());
    let node = Arc::new(Node::builder(&name).dir(net.host_dir()).domain("bench").open()?);
    *open = Arc::downgrade(&node);
    Ok(node)
}

impl System for Rnet {
    fn id(&self) -> &'static str {
        self.id
    }

    fn about(&self) -> About {
        let wait = self.id.trim_start_matches("rnet-");
        let default = if self.wait == Wait::Adaptive { " (the default)" } else { "" };
        About {
            label: format!("robot-net, {wait}"),
            client: "rnet (Rust)".into(),
            settings: vec![
                format!("waiting policy of the subscriber: {wait}{default}"),
                "reliable, the writer waits for room: the same promise as the others give".into(),
                "one node per process".into(),
                "its directory on /dev/shm, as is its default".into(),
                "between two hosts: an rnet-link process on each, the settings as they come".into(),
            ],
        }
    }

    fn version(&self) -> Result<String> {
        Ok(rnet::VERSION.into())
    }

    fn spans_hosts(&self) -> bool {
        true
    }

    fn link(&self, net: &Net) -> Option<Broker> {
        let host = net.host.as_ref()?;
        let (way, address) =
            if host.name == "a" { ("--listen", host.address) } else { ("--connect", host.other) };
        let endpoint = format!("tcp/{address}:7450");
        let dir = net.host_dir().display().to_string();
        // The link asks for it: a network namespace is beyond loopback, and the competitors do not encrypt
        // either.
        let config = net.host_dir().join("link.toml");
        let path = config.display().to_string();
        let args = ["run", "--domain", "bench", "--dir", &dir, "--config", &path];
        let joined = ["--network", "peers", "--host", &host.name, way, &endpoint];
        let args = args.into_iter().chain(joined).map(str::to_owned).collect();
        let files = vec![(config, "[network]\ninsecure = true\n".to_owned())];
        Some(Broker { program: "rnet-link".into(), args, files })
    }

    fn publisher(&self, net: &Net, topic: &Topic) -> Result<Box<dyn Publisher>> {
        let node = node(net)?;
        let publisher = node.publisher::<[u8]>(&format!("/{}", topic.name));
        let mut publisher = publisher.reliable(OnFull::Wait(WAIT_LIMIT));
        if topic.lane == Lane::Urgent {
            publisher = publisher.urgent();
        }
        let publisher = publisher.open()?;
        Ok(Box::new(Sender { publisher, _node: node }))
    }

    fn subscribe(&self, net: &Net, topic: &Topic, mut sink: Sink) -> Result<Subscription> {
        let node = node(net)?;
        let subscriber = node.subscriber::<[u8]>(&format!("/{}", topic.name));
        let mut subscriber = subscriber.reliable().wait(self.wait);
        if topic.lane == Lane::Urgent {
            subscriber = subscriber.lane(rnet::Lane::Urgent);
        }
        let mut subscriber = subscriber.open()?;
        Subscription::thread(self.id, move |stop| {
            let _node = node;
            while !stop.load(Ordering::Relaxed) {
                // A message or a time-out; other errors appear as missing messages.
                if let Ok(sample) = subscriber.recv_timeout(Duration::from_millis(200)) {
                    sink(&sample);
                }
            }
        })
    }
}

struct Sender {
    publisher: rnet::Publisher<[u8]>,
    // Closed after the publisher.
    _node: Arc<Node>,
}

impl Publisher for Sender {
    fn send(&mut self, message: &[u8]) -> Result<()> {
        Ok(self.publisher.send(message)?)
    }

    fn send_in_place(&mut self, len: usize, fill: &mut dyn FnMut(&mut [u8])) -> Result<()> {
        let mut loan = self.publisher.loan(len)?;
        fill(&mut loan);
        loan.send().map_err(|(_, error)| error)?;
        Ok(())
    }
}
