//! The public client of a service.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use rnet_core::{Error, Result, TopicName};
use rnet_node::types::choose_type;
use rnet_shm::os::random::next_id;

use super::call_future::Pending;
use super::client_core::{ClientCore, ServerFilter};
use super::open_call::OpenCall;
use super::open_calls::ClientStats;
use super::{Bytes, Received, WANTS_ALL_REPLIES, WANTS_FEEDBACK, service_name};
use rnet_node::{EndpointWatch, Message, MessageType, NodeHandle};

/// Default time limit of a call.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// Options of a call.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct CallOptions {
    pub(super) timeout: Option<Duration>,
    key: Option<String>,
}

impl CallOptions {
    /// The defaults: the time limit of the client, any server.
    pub fn new() -> CallOptions {
        CallOptions::default()
    }

    /// Time limit of the call, from now until its last reply. After that it fails with `Timeout`, and its
    /// server is notified.
    pub fn timeout(mut self, timeout: Duration) -> CallOptions {
        self.timeout = Some(timeout);
        self
    }

    /// Calls with the same key go to one server while it is connected.
    pub fn key(mut self, key: &str) -> CallOptions {
        self.key = Some(key.to_owned());
        self
    }
}

/// The part of a client that its open calls share.
pub struct ClientShared {
    pub core: Arc<ClientCore>,
    pub watch: EndpointWatch,
    pub name: String,
    timeout: Duration,
    request: MessageType,
    pub reply: MessageType,
}

impl ClientShared {
    /// The error for a request of another type.
    #[cold]
    fn bad_request(&self, why: String) -> Error {
        Error::bad_value(format!("request of {}", self.name), why)
    }

    /// Decodes a reply.
    pub fn decode<R: Message + ?Sized>(&self, bytes: Bytes) -> Result<Received<R>> {
        Received::decode(bytes, &self.reply)
            .map_err(|why| Error::bad_value("a reply", format!("it is malformed: {why}")))
    }
}

/// The error for a call that ended without a reply.
pub fn no_reply_error() -> Error {
    Error::closed("a finished call")
}

impl Drop for ClientShared {
    fn drop(&mut self) {
        if !self.core.is_from_parent() {
            self.core.close();
        }
    }
}

/// A client of a service that is not open yet; made by `rnet::Node::client`.
#[must_use = "a builder does nothing until it is opened"]
pub struct ClientBuilder<Q: ?Sized, R: ?Sized> {
    node: NodeHandle,
    /// A name of the domain, or of the node.
    name: Result<TopicName>,
    request: Option<MessageType>,
    reply: Option<MessageType>,
    feedback: Option<MessageType>,
    servers: ServerFilter,
    timeout: Duration,
    _types: PhantomData<fn(&Q) -> Box<R>>,
}

impl<Q: Message + ?Sized, R: Message + ?Sized> ClientBuilder<Q, R> {
    /// A client of the service `name`, resolved by the rules of the node.
    #[doc(hidden)]
    pub fn new(node: &NodeHandle, name: &str) -> Self {
        ClientBuilder::of(node, service_name(node, name))
    }

    /// A client of a service by its name in the domain.
    #[doc(hidden)]
    pub fn at(node: &NodeHandle, name: TopicName) -> Self {
        ClientBuilder::of(node, Ok(name))
    }

    fn of(node: &NodeHandle, name: Result<TopicName>) -> Self {
        ClientBuilder {
            node: node.clone(),
            name,
            request: None,
            reply: None,
            feedback: None,
            servers: ServerFilter::All,
            timeout: DEFAULT_TIMEOUT,
            _types: PhantomData,
        }
    }

    /// Time limit of each call that sets none, 10 s by default: from the call until its last reply, including
    /// the wait for a server.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The types of requests and replies, for messages that leave them open: `[u8]`, which is sent as it is,
    /// and [`rnet_node::Dynamic`].
    pub fn message_types(mut self, request: MessageType, reply: MessageType) -> Self {
        (self.request, self.reply) = (Some(request), Some(reply));
        self
    }

    /// Calls only the servers that a filter selects.
    #[doc(hidden)]
    pub fn servers(mut self, servers: ServerFilter) -> Self {
        self.servers = servers;
        self
    }

    /// Receives feedback of this type.
    pub(crate) fn feedback(mut self, feedback: MessageType) -> Self {
        self.feedback = Some(feedback);
        self
    }

    /// Sets the types that are given.
    pub(crate) fn types(
        mut self,
        request: Option<MessageType>,
        reply: Option<MessageType>,
    ) -> Self {
        (self.request, self.reply) = (request, reply);
        self
    }

    /// Opens it; its servers may start later.
    ///
    /// # Errors
    /// `BadName`; `BadValue` for a type that does not match the messages; as a subscriber.
    pub fn open(self) -> Result<Client<Q, R>> {
        let ClientBuilder { node, name, request, reply, feedback, servers, timeout, .. } = self;
        node.core.state.check_fork()?;
        let name = String::from(name?);
        let (request, reply) = (choose_type::<Q>(&name, request)?, choose_type::<R>(&name, reply)?);
        let types = (request.clone(), reply.clone());
        let core = ClientCore::open(&node, &name, next_id(), types, feedback, servers)?;
        let watch = core.watch()?;
        Ok(Client {
            shared: Arc::new(ClientShared { core, watch, name, timeout, request, reply }),
            _types: PhantomData,
        })
    }
}

/// Calls one service, with any number of concurrent calls from any thread. Clones are handles to the same
/// client.
pub struct Client<Q: Message + ?Sized, R: Message + ?Sized> {
    pub(super) shared: Arc<ClientShared>,
    _types: PhantomData<fn(&Q) -> Box<R>>,
}

impl<Q: Message + ?Sized, R: Message + ?Sized> Clone for Client<Q, R> {
    fn clone(&self) -> Self {
        Client { shared: self.shared.clone(), _types: PhantomData }
    }
}

impl<Q: Message + ?Sized, R: Message + ?Sized> Client<Q, R> {
    /// Whether it knows a server now.
    #[doc(hidden)]
    pub fn has_server(&self) -> bool {
        self.shared.core.has_server()
    }

    /// The name of the service.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Calls and waits for the reply, including the wait for a server, for at most
    /// [`ClientBuilder::timeout`].
    ///
    /// # Errors
    /// `Timeout`; `ServerLost` if the server is lost before it answers; `CallFailed` with the error of its
    /// handler; `Refused` if the backlogs of all servers are full; `Full` if the server does not read;
    /// `IncompatibleType`; `BadValue` for a request of another type; `Malformed`.
    pub fn call(&self, request: &Q) -> Result<Received<R>> {
        self.call_timeout(request, self.shared.timeout)
    }

    /// As [`Client::call`], for at most `timeout`.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub fn call_timeout(&self, request: &Q, timeout: Duration) -> Result<Received<R>> {
        let shared = &*self.shared;
        shared.core.check_fork()?;
        let mut encoded = Vec::new();
        let bytes = Bytes::of(request, &shared.request, &mut encoded)
            .map_err(|why| shared.bad_request(why))?;
        let reply = shared.core.call(&shared.watch, bytes, timeout)?;
        shared.decode(reply.ok_or_else(no_reply_error)?)
    }

    /// Starts a call with one reply, without waiting. The result is also a future.
    ///
    /// # Errors
    /// `BadValue` for a request of another type; `Closed` in a forked child. The returned object reports
    /// other errors.
    pub fn start(&self, request: &Q, options: CallOptions) -> Result<Pending<R>> {
        self.begin(request, options, 0)
    }

    /// Starts a call that receives all replies of a stream.
    ///
    /// # Errors
    /// As [`Client::start`].
    pub fn stream(&self, request: &Q, options: CallOptions) -> Result<Pending<R>> {
        self.begin(request, options, WANTS_ALL_REPLIES)
    }

    /// `wants` are the flags of the call's number.
    pub(super) fn begin(
        &self,
        request: &Q,
        options: CallOptions,
        wants: u32,
    ) -> Result<Pending<R>> {
        let core = &self.shared.core;
        core.check_fork()?;
        let after = options.timeout.unwrap_or(self.shared.timeout);
        let goal = wants & WANTS_FEEDBACK != 0;
        let shared = &self.shared;
        let mut encoded = Vec::new();
        Bytes::encode(request, &shared.request, &mut encoded)
            .map_err(|why| shared.bad_request(why))?;
        let open = OpenCall::new(encoded, options.key.as_deref(), goal);
        let number = core.start(open, wants, Some(after));
        Ok(Pending::new(self.shared.clone(), number, after))
    }

    pub(super) fn shared(&self) -> &Arc<ClientShared> {
        &self.shared
    }

    /// Ends its calls with `Closed`, also those that other threads wait for or start later; for bindings.
    #[doc(hidden)]
    pub fn close(&self) {
        self.shared.core.end_all();
    }

    /// How many servers would accept a call now.
    pub fn server_count(&self) -> usize {
        self.shared.core.server_count()
    }

    /// Counters of the calls so far.
    pub fn stats(&self) -> ClientStats {
        self.shared.core.stats()
    }
}
