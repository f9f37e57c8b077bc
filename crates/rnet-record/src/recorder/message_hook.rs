//! A hook that sees messages while they are recorded.

use std::fmt::Debug;
use std::sync::Arc;

use super::item::Publisher;

/// Called on the reader thread; must return quickly.
pub trait MessageHook: Debug + Send + Sync {
    /// A message was received.
    fn on_message(&self, publisher: &Arc<Publisher>, sent_ns: u64, bytes: &[u8]);

    /// A publisher is gone.
    fn on_publisher_gone(&self, publisher: u64);
}
