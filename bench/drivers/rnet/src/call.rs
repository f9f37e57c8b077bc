//! A service, and its client.

use crate::node;
use bench_harness::{About, Calls, Client, Handler, Net, Result, Subscription, Topic};
use rnet::Node;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long a call takes at most.
const TIMEOUT: Duration = Duration::from_secs(2);

/// `Node::service` and `Client::call` as they come.
pub struct Service;

impl Calls for Service {
    fn id(&self) -> &'static str {
        "rnet-call"
    }

    fn about(&self) -> About {
        let settings = [
            "Node::service with one handler at once, and Client::call: both as they come",
            "waiting policy: adaptive (the default)",
            "its directory on /dev/shm, as is its default",
        ];
        About {
            label: "robot-net service".into(),
            client: "rnet (Rust)".into(),
            settings: settings.map(str::to_owned).into(),
        }
    }

    fn version(&self) -> Result<String> {
        Ok(rnet::VERSION.into())
    }

    fn serve(&self, net: &Net, topic: &Topic, handler: Handler) -> Result<Subscription> {
        let node = node(net)?;
        let handler = Mutex::new(handler);
        let service =
            node.service::<[u8], [u8]>(&format!("/{}", topic.name)).serve(move |request| {
                let mut handler = handler.lock().unwrap_or_else(PoisonError::into_inner);
                Ok(handler(request))
            })?;
        Ok(Subscription::holding((service, node)))
    }

    fn client(&self, net: &Net, topic: &Topic) -> Result<Box<dyn Client>> {
        let node = node(net)?;
        let client = node.client::<[u8], [u8]>(&format!("/{}", topic.name)).open()?;
        Ok(Box::new(Caller { client, _node: node }))
    }
}

struct Caller {
    client: rnet::Client<[u8], [u8]>,
    // Closed after its client.
    _node: Arc<Node>,
}

impl Client for Caller {
    fn call(&mut self, request: &[u8], seen: &mut dyn FnMut(&[u8])) -> Result<()> {
        seen(&self.client.call_timeout(request, TIMEOUT)?);
        Ok(())
    }
}
