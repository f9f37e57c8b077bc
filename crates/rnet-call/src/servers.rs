//! The servers of a service, as a client sees them.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use rnet_core::{Error, Meta, OnFull, Result};
use rnet_node::sync::lock;
use rnet_shm::ring::fail_point;

use super::CallTopics;
use crate::msgs::{CallControl, call_control::Action};
use rnet_node::{Endpoint, MessageType, NodeHandle, Publisher};

struct ServerPublishers {
    request: Publisher<[u8]>,
    control: Publisher<CallControl>,
}

pub struct Server {
    /// The id of its subscription of requests.
    pub id: u64,
    pub node: String,
    pub host: String,
    /// Whether it was found to be matched; remains set until the server is gone.
    ready: AtomicBool,
    /// Whether it has reported that it closes.
    closing: AtomicBool,
    publishers: Mutex<ServerPublishers>,
}

impl Server {
    pub fn open(
        node: &NodeHandle,
        endpoint: &Endpoint,
        topics: &CallTopics,
        request: &MessageType,
    ) -> Result<Server> {
        // Calls do not wait for capacity: if the log is full, the server does not read.
        let request_type = request.clone();
        let request = node.publisher::<[u8]>(&topics.request()).reliable(OnFull::Refuse);
        let request = request.message_type(request_type).open()?;
        fail_point!("call.server_half_open");
        let control = node.publisher(&topics.control()).reliable(OnFull::Refuse).open()?;
        let host = endpoint.proxy.as_ref().map_or_else(this_host, |proxy| proxy.host().to_owned());
        let publishers = Mutex::new(ServerPublishers { request, control });
        let (id, node) = (endpoint.id, endpoint.node.clone());
        let (ready, closing) = Default::default();
        Ok(Server { id, node, host, ready, closing, publishers })
    }

    /// Calls `callback` when it may have become ready.
    pub fn on_match(&self, callback: impl Fn() + Clone + Send + 'static) {
        let publishers = lock(&self.publishers);
        let other = callback.clone();
        publishers.request.on_match(move |_| callback()).detach();
        publishers.control.on_match(move |_| other()).detach();
    }

    /// Whether it receives what is sent to it.
    ///
    /// # Errors
    /// Why it never will.
    pub fn is_ready(&self) -> Result<bool> {
        if self.ready.load(Ordering::Relaxed) {
            return Ok(true);
        }
        if self.is_closing() {
            return Ok(false);
        }
        let publishers = lock(&self.publishers);
        let ready =
            publishers.request.subscriber_count() > 0 && publishers.control.subscriber_count() > 0;
        // A server that could not be served at first, for example for lack of file descriptors, may be served
        // now.
        if !ready && let Some(error) = publishers.request.incompatible().into_iter().next() {
            return Err(error);
        }
        self.ready.store(ready, Ordering::Relaxed);
        Ok(ready)
    }

    /// It closes, and might not read further requests.
    pub fn set_closing(&self) {
        self.closing.store(true, Ordering::Relaxed);
        self.ready.store(false, Ordering::Relaxed);
    }

    pub fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    pub fn request(&self, encoded: &[u8], correlation: u64) -> Result<()> {
        let meta = Meta::default().with_correlation(correlation);
        let sent = lock(&self.publishers).request.send_with(encoded, meta);
        fail_point!("call.requested");
        sent
    }

    /// Notifies it that a call was cancelled by its caller or has timed out.
    ///
    /// # Errors
    /// `Full` if it does not read; it is then not notified.
    pub fn cancel(&self, correlation: u64, action: Action) -> Result<()> {
        let mut cancel = CallControl::default();
        cancel.set_action(action);
        let meta = Meta::default().with_correlation(correlation);
        fail_point!("call.cancelling");
        lock(&self.publishers).control.send_with(&cancel, meta)
    }

    pub fn lost(&self, service: &str) -> Error {
        let (topic, node, host) = (service.to_owned(), self.node.clone(), self.host.clone());
        Error::ServerLost { topic, node, host }
    }
}

fn this_host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname");
    name.map_or_else(|_| "this host".to_owned(), |name| name.trim().to_owned())
}

/// The hash for choosing a server by key.
pub fn hash_of(what: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}
