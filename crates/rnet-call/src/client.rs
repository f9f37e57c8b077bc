//! The public client of a service.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use rnet_core::{Error, Result, TopicName};
use rnet_node::types::choose_type;
use rnet_shm::os::random::next_id;

use super::client_core::{ClientCore, ServerFilter};
use super::open_call::OpenCall;
use super::pending::Pending;
use super::pending_calls::ClientStats;
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
    /// The defaults: 10 s, any server.
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
    #[doc(hidden)]
    pub fn open(
        node: &NodeHandle,
        name: &str,
        types: (Option<MessageType>, Option<MessageType>),
        feedback: Option<MessageType>,
    ) -> Result<Self> {
        Client::at(node, service_name(node, name)?, types, feedback, ServerFilter::All)
    }

    /// The same for a name that is already the domain's, and for the servers that a filter selects.
    #[doc(hidden)]
    pub fn at(
        node: &NodeHandle,
        name: TopicName,
        (request, reply): (Option<MessageType>, Option<MessageType>),
        feedback: Option<MessageType>,
        filter: ServerFilter,
    ) -> Result<Self> {
        node.core.state.check_fork()?;
        let name = String::from(name);
        let (request, reply) = (choose_type::<Q>(&name, request)?, choose_type::<R>(&name, reply)?);
        let types = (request.clone(), reply.clone());
        let core = ClientCore::open(node, &name, next_id(), types, feedback, filter)?;
        let watch = core.watch()?;
        Ok(Client {
            shared: Arc::new(ClientShared { core, watch, name, request, reply }),
            _types: PhantomData,
        })
    }

    /// Whether it knows a server now.
    #[doc(hidden)]
    pub fn has_server(&self) -> bool {
        self.shared.core.has_server()
    }

    /// The name of the service.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Calls and waits for the reply, including the wait for a server. `None` means a limit of 10 s.
    ///
    /// # Errors
    /// `Timeout`; `ServerLost` if the server is lost before it answers; `CallFailed` with the error of its
    /// handler; `Refused` if the backlogs of all servers are full; `Full` if the server does not read;
    /// `IncompatibleType`; `BadValue` for a request of another type; `Malformed`.
    pub fn call(&self, request: &Q, timeout: Option<Duration>) -> Result<Received<R>> {
        let shared = &*self.shared;
        shared.core.check_fork()?;
        let after = timeout.unwrap_or(DEFAULT_TIMEOUT);
        let mut encoded = Vec::new();
        let bytes = Bytes::of(request, &shared.request, &mut encoded)
            .map_err(|why| shared.bad_request(why))?;
        let reply = shared.core.call(&shared.watch, bytes, after)?;
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
        let after = options.timeout.unwrap_or(DEFAULT_TIMEOUT);
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

    /// How many servers would accept a call now.
    pub fn server_count(&self) -> usize {
        self.shared.core.server_count()
    }

    /// Counters of the calls so far.
    pub fn stats(&self) -> ClientStats {
        self.shared.core.stats()
    }
}
