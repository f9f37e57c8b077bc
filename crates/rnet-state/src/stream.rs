//! Changes for async code.

use rnet_node::ReceiveStream;

use super::watch::Watch;

/// A watch for async code.
pub type ChangeStream = ReceiveStream<Watch>;

impl Watch {
    /// Turns the watch into a stream, for any executor.
    pub fn into_stream(self) -> ChangeStream {
        ReceiveStream::new(self.core.clone(), self.watch.lane, self)
    }
}
