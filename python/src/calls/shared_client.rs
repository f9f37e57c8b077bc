//! State shared by a client's object, the calls or goals that it has begun, and its node.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use rnet::Error;

use crate::lock::lock;
use crate::members::Member;
use crate::resource::Resource;

/// A call or a goal. It holds its client, which keeps a weak reference to it.
pub(crate) trait OpenCall: Send + Sync {
    /// Ends it; its waiters get `error`. Call it without the GIL.
    fn close(&self, error: Error);
}

/// The client of a service or of an action; `codecs` decode the messages that it receives.
pub(crate) struct SharedClient<Client: Send + 'static, Codecs> {
    pub(super) name: String,
    pub(super) codecs: Codecs,
    pub(super) resource: Resource<Client>,
    /// The open calls by address. Each holds the node, and is closed with the client.
    open_calls: Mutex<HashMap<usize, Weak<dyn OpenCall>>>,
}

impl<Client: Send, Codecs> SharedClient<Client, Codecs> {
    pub(super) fn new(
        name: String,
        client: Client,
        codecs: Codecs,
    ) -> SharedClient<Client, Codecs> {
        let resource = Resource::new(format!("the client of {name}"), client);
        SharedClient { name, codecs, resource, open_calls: Mutex::default() }
    }

    pub(super) fn register<B: OpenCall + 'static>(&self, begun: &Arc<B>) {
        let open: Weak<B> = Arc::downgrade(begun);
        lock(&self.open_calls).insert(Arc::as_ptr(begun).addr(), open);
        // The client may have been closed since this call began.
        if self.resource.is_closed() {
            begun.close(self.resource.closed_error());
        }
    }

    pub(super) fn unregister<B>(&self, begun: &B) {
        if !self.resource.is_from_parent() {
            lock(&self.open_calls).remove(&std::ptr::from_ref(begun).addr());
        }
    }
}

impl<Client: Send, Codecs: Send + Sync> Member for SharedClient<Client, Codecs> {
    fn close(&self) {
        if self.resource.is_from_parent() {
            return;
        }
        self.resource.close();
        let begun = std::mem::take(&mut *lock(&self.open_calls));
        let open = begun.values().filter_map(Weak::upgrade);
        open.for_each(|begun| begun.close(self.resource.closed_error()));
    }
}
