//! The endpoints of the domain as they open and close, and the watchers that are called for them.
//!
//! Events are queued under the matching lock and delivered by the bulk dispatch thread, so that each watcher
//! gets them in the order in which they were found, whichever thread found them.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, TryLockError};

use rnet_core::{Proxy, PublisherQos, Result, SubscriberQos, TypeDesc};
use rnet_schema::Schema;

use crate::MessageType;
use crate::callbacks::Callback;
use crate::sync::lock;
use crate::types::SchemaCache;

/// Maximum number of queued events per callback. If more are queued, only the net change of each endpoint is
/// kept: at most two events.
const MAX_QUEUED_EVENTS: usize = 1 << 16;

/// A publisher or a subscription of a node in the domain.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Endpoint {
    /// Id, unique in the domain.
    pub id: u64,
    /// Topic, with the leading slash.
    pub topic: String,
    /// Name of its node; for a proxy `@host/node`, the node that it represents.
    pub node: String,
    /// Type of the messages.
    pub type_desc: TypeDesc,
    /// Kind (publisher or subscription) and quality of service.
    pub qos: EndpointQos,
    /// For a proxy: the endpoint of another host that it represents.
    pub proxy: Option<Proxy>,
    /// Number of endpoints represented: 1, or more for a proxy of subscriptions.
    pub endpoint_count: u32,
    /// Whether it is a publisher with a last will.
    pub last_will: bool,
    /// Folder of its node.
    pub folder: PathBuf,
}

impl Endpoint {
    /// The declared protobuf type, read on each call; `None` for other kinds of messages.
    ///
    /// # Errors
    /// `Io` after its node has left; `Corrupt` if its file does not hold this type.
    pub fn schema(&self) -> Result<Option<Schema>> {
        SchemaCache::default().read_protobuf(&self.folder, &self.type_desc)
    }

    /// The type of its messages, to open an endpoint of bytes with the same type; read on each call.
    ///
    /// # Errors
    /// As [`Endpoint::schema`]; `BadValue` for a kind of type that this version does not know.
    pub fn message_type(&self) -> Result<MessageType> {
        match self.schema()? {
            Some(schema) => Ok(schema.into()),
            None => self.type_desc.clone().try_into(),
        }
    }
}

/// The quality of service of an [`Endpoint`], by its kind.
#[derive(Clone, Debug, PartialEq)]
pub enum EndpointQos {
    /// What a publisher offers.
    Publisher(PublisherQos),
    /// What a subscription asks for.
    Subscriber(SubscriberQos),
}

/// An endpoint was opened or closed.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum EndpointEvent {
    /// The endpoint exists: it existed when the watch started, or was opened since.
    Opened(Arc<Endpoint>),
    /// A proxy represents more or fewer endpoints than before.
    Changed(Arc<Endpoint>),
    /// It was closed, or its node has left.
    Closed(Arc<Endpoint>),
    /// The process of its node has died; for a proxy, the node that it represents.
    Lost(Arc<Endpoint>),
}

impl EndpointEvent {
    /// The endpoint that was opened, changed or closed.
    pub fn endpoint(&self) -> &Arc<Endpoint> {
        match self {
            EndpointEvent::Opened(endpoint)
            | EndpointEvent::Changed(endpoint)
            | EndpointEvent::Closed(endpoint)
            | EndpointEvent::Lost(endpoint) => endpoint,
        }
    }
}

/// A callback and its queued events.
pub struct EndpointWatcher {
    /// With the endpoint ids, which are searched when many events are queued.
    events: Mutex<VecDeque<(u64, EndpointEvent)>>,
    /// Locked during a call. `None` once cancelled or after a panic.
    callback: Mutex<Option<Callback<EndpointEvent>>>,
    cancelled: AtomicBool,
    /// Whether the dispatch thread was notified of the events.
    scheduled: AtomicBool,
}

impl EndpointWatcher {
    pub(crate) fn new(callback: Callback<EndpointEvent>) -> EndpointWatcher {
        EndpointWatcher {
            events: Mutex::default(),
            callback: Mutex::new(Some(callback)),
            cancelled: AtomicBool::new(false),
            scheduled: AtomicBool::new(false),
        }
    }

    /// Queues an event; called under the matching lock, which orders the events.
    pub fn push(&self, event: EndpointEvent) {
        let (mut events, id) = (lock(&self.events), event.endpoint().id);
        if events.len() >= MAX_QUEUED_EVENTS {
            match &event {
                EndpointEvent::Opened(_) => {}
                EndpointEvent::Changed(endpoint) => {
                    let last = events.iter_mut().rev().find(|(of, _)| *of == id);
                    if let Some((
                        _,
                        EndpointEvent::Opened(before) | EndpointEvent::Changed(before),
                    )) = last
                    {
                        *before = endpoint.clone();
                        return;
                    }
                }
                EndpointEvent::Closed(_) | EndpointEvent::Lost(_) => {
                    while let Some(at) = events.iter().rposition(|(of, _)| *of == id) {
                        match events[at].1 {
                            // The watcher never learns of the endpoint.
                            EndpointEvent::Opened(_) => drop(events.remove(at)),
                            EndpointEvent::Changed(_) => {
                                events.remove(at);
                                continue;
                            }
                            EndpointEvent::Closed(_) | EndpointEvent::Lost(_) => {}
                        }
                        return;
                    }
                }
            }
        }
        events.push_back((id, event));
    }

    /// Returns whether [`EndpointWatcher::run`] must be called and is not scheduled yet.
    pub fn schedule(&self) -> bool {
        !lock(&self.events).is_empty() && !self.scheduled.swap(true, Ordering::AcqRel)
    }

    /// Calls the callback for each event, on the bulk dispatch thread. A callback that panics is not called
    /// again, and the panic continues to that thread.
    pub fn run(&self) {
        self.scheduled.store(false, Ordering::Release);
        let mut panicked = None;
        let mut callback = lock(&self.callback);
        while !self.cancelled.load(Ordering::Acquire) {
            let Some((_, event)) = lock(&self.events).pop_front() else { return };
            let Some(call) = callback.as_mut() else { break };
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| call(&event))) {
                self.cancelled.store(true, Ordering::Release);
                panicked = Some(panic);
            }
        }
        let ended = callback.take();
        drop(callback);
        lock(&self.events).clear();
        drop(ended);
        if let Some(panic) = panicked {
            resume_unwind(panic);
        }
    }

    /// Prevents further calls. With `wait`, which callbacks must not use, no call runs after this returns.
    pub fn cancel(&self, wait: bool) {
        self.cancelled.store(true, Ordering::Release);
        let ended = match wait {
            true => lock(&self.callback).take(),
            false => match self.callback.try_lock() {
                Ok(mut callback) => callback.take(),
                Err(TryLockError::Poisoned(callback)) => callback.into_inner().take(),
                // The thread that runs the callback drops it.
                Err(TryLockError::WouldBlock) => None,
            },
        };
        lock(&self.events).clear();
        drop(ended);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    fn endpoint(id: u64) -> Arc<Endpoint> {
        endpoint_of(id, 1)
    }

    fn endpoint_of(id: u64, endpoint_count: u32) -> Arc<Endpoint> {
        let qos = EndpointQos::Subscriber(SubscriberQos::default());
        let (topic, node, folder) = ("/t".to_owned(), "/n".to_owned(), PathBuf::new());
        let (type_desc, proxy) = (TypeDesc::Raw, None);
        let last_will = false;
        Arc::new(Endpoint {
            id,
            topic,
            node,
            type_desc,
            qos,
            proxy,
            endpoint_count,
            last_will,
            folder,
        })
    }

    #[test]
    fn slow_callback_is_called_for_existing_endpoints() {
        let (sender, received) = mpsc::channel();
        let watcher = EndpointWatcher::new(Box::new(move |event: &EndpointEvent| {
            sender.send((event.endpoint().id, matches!(event, EndpointEvent::Opened(_)))).unwrap();
        }));
        let many = MAX_QUEUED_EVENTS as u64;
        watcher.push(EndpointEvent::Opened(endpoint(many)));
        watcher.run();
        assert_eq!(received.try_iter().collect::<Vec<_>>(), [(many, true)]);
        for id in 0..many {
            watcher.push(EndpointEvent::Opened(endpoint(id)));
        }
        for id in many + 1..3 * many {
            watcher.push(EndpointEvent::Opened(endpoint(id)));
            watcher.push(EndpointEvent::Closed(endpoint(id)));
        }
        // One endpoint that was delivered, and one that was not.
        watcher.push(EndpointEvent::Closed(endpoint(many)));
        watcher.push(EndpointEvent::Lost(endpoint(0)));
        watcher.run();
        let expected: Vec<(u64, bool)> = (1..many).map(|id| (id, true)).collect();
        let received: Vec<(u64, bool)> = received.try_iter().collect();
        assert!(
            received[..received.len() - 1] == expected && received.last() == Some(&(many, false))
        );
    }

    #[test]
    fn slow_callback_gets_only_the_last_change() {
        let (sender, received) = mpsc::channel();
        let watcher = EndpointWatcher::new(Box::new(move |event: &EndpointEvent| {
            sender.send(event.clone()).unwrap()
        }));
        let many = MAX_QUEUED_EVENTS as u64;
        let [known, waits, goes, back] = [many, 0, 1, many + 1];
        for id in [known, back] {
            watcher.push(EndpointEvent::Opened(endpoint(id)));
        }
        watcher.run();
        assert_eq!(received.try_iter().count(), 2);
        for id in 0..many {
            watcher.push(EndpointEvent::Opened(endpoint(id)));
        }
        for endpoint_count in 2..100 {
            for id in [known, waits, goes] {
                watcher.push(EndpointEvent::Changed(endpoint_of(id, endpoint_count)));
            }
            watcher.push(EndpointEvent::Closed(endpoint(back)));
            watcher.push(EndpointEvent::Opened(endpoint(back)));
        }
        watcher.push(EndpointEvent::Closed(endpoint_of(goes, 99)));
        watcher.push(EndpointEvent::Lost(endpoint(back)));
        assert_eq!(lock(&watcher.events).len(), MAX_QUEUED_EVENTS + 1);
        watcher.run();
        let received: Vec<EndpointEvent> = received.try_iter().collect();
        assert_eq!(received[0], EndpointEvent::Opened(endpoint_of(waits, 99)));
        assert!(received.iter().all(|event| event.endpoint().id != goes));
        let last =
            [EndpointEvent::Changed(endpoint_of(known, 99)), EndpointEvent::Closed(endpoint(back))];
        assert_eq!(received[received.len() - 2..], last);
    }
}
