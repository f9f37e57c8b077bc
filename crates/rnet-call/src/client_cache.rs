//! The clients that a node keeps for `Node::call`: opening a client takes longer than a call.

use std::any::{Any, TypeId};
use std::sync::Mutex;

use rnet_core::Result;
use rnet_node::sync::lock;

/// Maximum number of clients that a node keeps. If there are more, the least recently used one is closed.
const MAX_CACHED_CLIENTS: usize = 64;

struct CachedClient {
    service: String,
    /// The types of the client's requests and replies.
    types: TypeId,
    client: Box<dyn Any + Send>,
}

/// The most recently used client is at the end.
#[derive(Default)]
pub struct ClientCache(Mutex<Vec<CachedClient>>);

impl ClientCache {
    /// The client of a service, opened if there is none. Other threads that need it wait meanwhile and get
    /// the same client.
    pub fn get<C: Clone + Send + 'static>(
        &self,
        service: String,
        open: impl FnOnce() -> Result<C>,
    ) -> Result<C> {
        let mut all = lock(&self.0);
        let types = TypeId::of::<C>();
        let at = all.iter().position(|kept| kept.service == service && kept.types == types);
        if let Some(at) = at
            && let Some(client) = all[at].client.downcast_ref::<C>().cloned()
        {
            let used = all.remove(at);
            all.push(used);
            return Ok(client);
        }
        let client = open()?;
        let oldest = (all.len() >= MAX_CACHED_CLIENTS).then(|| all.remove(0));
        all.push(CachedClient { service, types, client: Box::new(client.clone()) });
        drop(all);
        drop(oldest);
        Ok(client)
    }
}
