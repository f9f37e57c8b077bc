//! What a client's object, the calls or goals that it has begun, and its node share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use rnet::Error;

use crate::held::Held;
use crate::lock::lock;
use crate::members::Member;

/// A call or a goal. It holds its client, which knows where it is.
pub(crate) trait Begun: Send + Sync {
    /// Ends it; whoever waits for it gets `error`. Call it without the GIL.
    fn close(&self, error: Error);
}

/// The client of a service or of an action; `codecs` are those of what it hears.
pub(crate) struct Caller<Client: Send + 'static, Codecs> {
    pub(super) name: String,
    pub(super) codecs: Codecs,
    pub(super) held: Held<Client>,
    /// What is open, by its address: it holds the node, and ends with the client.
    begun: Mutex<HashMap<usize, Weak<dyn Begun>>>,
}

impl<Client: Send, Codecs> Caller<Client, Codecs> {
    pub(super) fn new(name: String, client: Client, codecs: Codecs) -> Caller<Client, Codecs> {
        let held = Held::new(format!("the client of {name}"), client);
        Caller { name, codecs, held, begun: Mutex::default() }
    }

    pub(super) fn enter<B: Begun + 'static>(&self, begun: &Arc<B>) {
        let open: Weak<B> = Arc::downgrade(begun);
        lock(&self.begun).insert(Arc::as_ptr(begun).addr(), open);
        // It may have been closed since this began.
        if self.held.is_closed() {
            begun.close(self.held.closed_error());
        }
    }

    pub(super) fn leave<B>(&self, begun: &B) {
        if !self.held.is_from_parent() {
            lock(&self.begun).remove(&std::ptr::from_ref(begun).addr());
        }
    }
}

impl<Client: Send, Codecs: Send + Sync> Member for Caller<Client, Codecs> {
    fn close(&self) {
        if self.held.is_from_parent() {
            return;
        }
        self.held.close();
        let begun = std::mem::take(&mut *lock(&self.begun));
        let open = begun.values().filter_map(Weak::upgrade);
        open.for_each(|begun| begun.close(self.held.closed_error()));
    }
}
