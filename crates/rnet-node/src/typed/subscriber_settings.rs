//! Settings of a subscriber before it is opened.

use rnet_core::Proxy;
use rnet_shm::channel::subscription::LinkRole;

use crate::MessageType;

/// Settings of a subscriber other than its quality of service.
#[derive(Clone, Debug, Default)]
pub struct SubscriberSettings {
    /// The type of the messages; `None` for that of the Rust type.
    pub message_type: Option<MessageType>,
    /// The represented endpoint, and the number of endpoints.
    pub proxy: Option<(Proxy, u32)>,
    /// Its role for a link between hosts.
    pub link: Option<LinkRole>,
    /// The first message to forward.
    pub from: Option<u64>,
}
