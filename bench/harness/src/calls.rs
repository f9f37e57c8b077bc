//! Calls: requests that wait for the reply. A [`Calls`] takes part in the round trips as any [`System`] does.

use crate::{About, Broker, Error, Net, Publisher, Result, Sink, Subscription, System, Topic};
use std::sync::{Arc, Mutex, PoisonError};

/// Makes the reply to a request.
pub type Handler = Box<dyn FnMut(&[u8]) -> Vec<u8> + Send>;

/// Request and reply of one system.
pub trait Calls: Sync + Send + 'static {
    /// The name on the command line and in raw data: lower-case letters, digits and `-`.
    fn id(&self) -> &'static str;

    /// How the report describes it.
    fn about(&self) -> About;

    /// The version of the library in use.
    ///
    /// # Errors
    /// If the system cannot run here; the text names the missing part and how to install it.
    fn version(&self) -> Result<String>;

    /// The server that it needs beside the one that answers; as [`System::broker`].
    fn broker(&self, _net: &Net, _port: u16) -> Option<Broker> {
        None
    }

    /// Answers each request on `topic` by what `handler` returns, until the subscription is dropped.
    ///
    /// # Errors
    /// The library's own.
    fn serve(&self, net: &Net, topic: &Topic, handler: Handler) -> Result<Subscription>;

    /// A client that calls the one server of `topic`.
    ///
    /// # Errors
    /// The library's own.
    fn client(&self, net: &Net, topic: &Topic) -> Result<Box<dyn Client>>;
}

/// The calling end.
pub trait Client: Send {
    /// Sends a request, waits for its reply and shows it to `seen`; without one where no server was there to take it.
    ///
    /// # Errors
    /// The library's own, a time-out that is longer than a second among them.
    fn call(&mut self, request: &[u8], seen: &mut dyn FnMut(&[u8])) -> Result<()>;
}

/// Calls as a system that carries messages from the pinger to the echo and back: to send is to call, and what
/// the subscription of the other topic gets is the reply.
pub struct AsSystem<C> {
    calls: C,
    /// Where the pinger's replies go, and what the echo has answered: each process has one of them.
    replies: Arc<Mutex<Option<Sink>>>,
    answer: Arc<Mutex<Vec<u8>>>,
}

impl<C: Calls> AsSystem<C> {
    /// Round trips by these calls.
    pub fn new(calls: C) -> Self {
        Self { calls, replies: Arc::default(), answer: Arc::default() }
    }
}

/// The topic whose messages are requests; those of any other are replies.
const REQUESTS: &str = "there";

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<C: Calls> System for AsSystem<C> {
    fn id(&self) -> &'static str {
        self.calls.id()
    }

    fn about(&self) -> About {
        self.calls.about()
    }

    fn version(&self) -> Result<String> {
        self.calls.version()
    }

    fn broker(&self, net: &Net, port: u16) -> Option<Broker> {
        self.calls.broker(net, port)
    }

    fn supports(&self, topic: &Topic) -> Result<()> {
        match (topic.publishers, topic.subscribers) {
            (1, 1) => Ok(()),
            _ => Err(Error::new("one client calls one server")),
        }
    }

    fn publisher(&self, net: &Net, topic: &Topic) -> Result<Box<dyn Publisher>> {
        if topic.name == REQUESTS {
            let client = self.calls.client(net, topic)?;
            return Ok(Box::new(Caller { client, replies: self.replies.clone() }));
        }
        Ok(Box::new(Answer(self.answer.clone())))
    }

    fn subscribe(&self, net: &Net, topic: &Topic, mut sink: Sink) -> Result<Subscription> {
        if topic.name == REQUESTS {
            let answer = self.answer.clone();
            return self.calls.serve(
                net,
                topic,
                Box::new(move |request| {
                    // The echo publishes its answer before it returns.
                    sink(request);
                    std::mem::take(&mut *lock(&answer))
                }),
            );
        }
        *lock(&self.replies) = Some(sink);
        let replies = self.replies.clone();
        Ok(Subscription::new(move || *lock(&replies) = None))
    }
}

struct Caller {
    client: Box<dyn Client>,
    replies: Arc<Mutex<Option<Sink>>>,
}

impl Publisher for Caller {
    fn send(&mut self, message: &[u8]) -> Result<()> {
        let mut replies = lock(&self.replies);
        self.client.call(message, &mut |reply| {
            if let Some(sink) = replies.as_mut() {
                sink(reply);
            }
        })
    }
}

struct Answer(Arc<Mutex<Vec<u8>>>);

impl Publisher for Answer {
    fn send(&mut self, message: &[u8]) -> Result<()> {
        let mut answer = lock(&self.0);
        answer.clear();
        answer.extend_from_slice(message);
        Ok(())
    }
}
