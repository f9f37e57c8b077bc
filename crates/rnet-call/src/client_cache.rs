//! The clients that a node keeps for `Node::call`: to open one takes longer than a call.

use std::any::{Any, TypeId};
use std::sync::Mutex;

use rnet_core::Result;
use rnet_node::sync::lock;

/// Clients that a node keeps. Of more, the one that was used longest ago is closed.
const MAX_CACHED_CLIENTS: usize = 64;

struct CachedClient {
    service: String,
    /// The types of requests and replies, as that of the client.
    types: TypeId,
    client: Box<dyn Any + Send>,
}

/// The one that was used last is at the end.
#[derive(Default)]
pub struct ClientCache(Mutex<Vec<CachedClient>>);

impl ClientCache {
    /// The client of a service, opened if there is none. Other threads that want one wait meanwhile: they get the same.
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
