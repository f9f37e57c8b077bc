//! Subscribes to topics of other hosts: their messages cross the network only while a subscription exists
//! here, and an observer has none.
//!
//! So a command that listens to a topic with publishers of other hosts takes part: as a tool node with a
//! best_effort subscription of bytes, while it listens.

use rnet::{Node, Subscription};

use crate::context::Context;
use crate::shared_args::NodeArg;
use rnet_monitor::link::host_of;

#[derive(Default)]
pub struct RemoteInterest {
    subscription: Option<(Subscription, Node)>,
    is_attempted: bool,
}

impl RemoteInterest {
    /// Subscribes to the topic if one of its publishers' nodes is of another host.
    pub fn subscribe_if_remote<'n>(
        &mut self,
        context: &Context,
        topic: &str,
        mut publishers: impl Iterator<Item = &'n str>,
    ) {
        if self.is_attempted || !publishers.any(|node| host_of(node).0.is_some()) {
            return;
        }
        self.is_attempted = true;
        let subscribed = context.node("topic", &NodeArg::default()).and_then(|node| {
            // The subscription discards its messages; the observer's are shown.
            Ok((node.subscriber::<[u8]>(topic).open()?.on(|_| {}), node))
        });
        match subscribed {
            Ok(subscription) => self.subscription = Some(subscription),
            Err(failure) => {
                context.note(&format!("messages from other hosts may not arrive: {}", failure))
            }
        }
    }

    /// Whether a node is that of the subscription.
    pub fn is_own(&self, node: &str) -> bool {
        self.subscription.as_ref().is_some_and(|(_, own)| own.name() == node)
    }
}
