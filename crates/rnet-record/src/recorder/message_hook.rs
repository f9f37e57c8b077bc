//! Who is shown what is recorded, while it is recorded.

use std::fmt::Debug;
use std::sync::Arc;

use super::item::Publisher;

/// Is called on the thread that follows, and may do nothing that could take long.
pub trait MessageHook: Debug + Send + Sync {
    /// A message has come.
    fn on_message(&self, publisher: &Arc<Publisher>, sent_ns: u64, bytes: &[u8]);

    /// A publisher is gone.
    fn on_publisher_gone(&self, publisher: u64);
}
