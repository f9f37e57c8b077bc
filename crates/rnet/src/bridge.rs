//! The interface for programs that connect robot-net to something else: the link between hosts, the player of
//! recordings, viewers, and bridges to other systems.
//!
//! It adds to the endpoints of bytes and to their builders, by traits, what such a program needs: proxies for
//! endpoints that exist elsewhere, forwarding with origin, number, time of sending and known losses, and
//! control of which publishers and subscriptions match. The rest is the interface of every program:
//! [`Node::on_endpoint`] reports which topics are wanted, [`Publisher::on_match`](crate::Publisher::on_match)
//! the matches, [`MessageType`](crate::MessageType) and [`Endpoint::schema`](crate::Endpoint::schema) describe
//! types, [`Publisher::send_with`](crate::Publisher::send_with) takes metadata.
//!
//! ```
//! # fn main() -> rnet::Result<()> {
//! # let (dir, pid) = (std::env::temp_dir(), std::process::id());
//! # let here = rnet::Node::builder("bridge").dir(&dir).domain(&format!("here{pid}")).open()?;
//! # let there = rnet::Node::builder("bridge").dir(&dir).domain(&format!("there{pid}")).open()?;
//! use rnet::bridge::{BridgePublisher, BridgePublisherBuilder};
//! use rnet::{Meta, Origin, Proxy};
//!
//! # let mut sends = there.publisher::<[u8]>("/scan").open()?;
//! let mut reader = there.subscriber::<[u8]>("/scan").keep_all().open()?;
//! # reader.wait_for_publishers(1)?;
//! # sends.send(b"1.5")?;
//! let sample = reader.recv()?;
//! let origin = Origin { host: 7, publisher: sample.publisher(), seq: sample.seq() };
//! // Tools show it as the publisher of the node /lidar on host `base`.
//! let proxy = Proxy::new("base", "/lidar", sample.publisher())?;
//! let mut publisher = here.publisher::<[u8]>("/scan").proxy(proxy).open()?;
//! publisher.forward(&sample, Meta::default().with_origin(origin), sample.sent_ns())?;
//! # drop(sample);
//! # let paths = [here.domain_path().to_owned(), there.domain_path().to_owned()];
//! # drop((publisher, reader, sends, here, there));
//! # paths.map(|path| std::fs::remove_dir_all(path).ok());
//! # Ok(()) }
//! ```

use rnet_core::Result;

use crate::Node;

pub use rnet_call::{command_of_authority, command_of_report};
pub use rnet_node::bridge::{
    BridgeLoan, BridgePublisher, BridgePublisherBuilder, BridgeSubscriber, BridgeSubscriberBuilder,
    ProxyPublisher, ProxySubscription, PublisherStatus, ReadState,
};
pub use rnet_node::remote_nodes::NODES_TOPIC;
pub use rnet_shm::channel::word_file::{Checkpoint, WordFile};
pub use rnet_shm::domain::role::{HeldRole, Role};
pub use rnet_shm::os::cpu::keep_short_slices;
pub use rnet_state::{Home, StateAccess, StateNeed, StateTopic};

/// Answers other hosts for the keys of this host, as [`rnet_state::serve`]. `access` decides about each request
/// of another host; without it, all are allowed.
///
/// # Errors
/// As [`ServiceBuilder::serve`](crate::ServiceBuilder::serve).
pub fn serve_state(node: &Node, host: &str, access: Option<StateAccess>) -> Result<Home> {
    let owner = node.clone();
    rnet_state::serve(&node.handle, move || owner.state(), host, access)
}
