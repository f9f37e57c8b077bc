//! Messages of other hosts cross the network only while somebody here subscribes, and an observer does not.
//!
//! So a command that listens to a topic with publishers of other hosts takes part after all: as the node of a tool, with
//! a best_effort subscription of bytes, for as long as it listens.

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
            // Its reads are the subscription's own; what is shown is what the observer sees.
            Ok((node.subscriber::<[u8]>(topic)?.on(|_| {}), node))
        });
        match subscribed {
            Ok(subscription) => self.subscription = Some(subscription),
            Err(failure) => context
                .note(&format!("messages from other hosts may not arrive: {}", failure.message())),
        }
    }

    /// Whether a node is that of the subscription.
    pub fn is_own(&self, node: &str) -> bool {
        self.subscription.as_ref().is_some_and(|(_, own)| own.name() == node)
    }
}
