//! The endpoints of the domain that come and go, and who is called for them.
//!
//! Events are queued under the lock of the matching and handed out by the bulk dispatch thread, so that each
//! watcher sees them in the order in which they were found, whichever thread found them.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, TryLockError};

use rnet_core::{Proxy, PublisherQos, Result, SubscriberQos, TypeDesc};
use rnet_schema::Schema;

use crate::match_event::Callback;
use crate::sync::lock;
use crate::types::SchemaCache;

/// Events that may wait for one callback as they came. Of more than these only what they come to is kept: at
/// most two for each endpoint.
const MAX_QUEUED_EVENTS: usize = 1 << 16;

/// A publisher or a subscription of a node of the domain.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Endpoint {
    /// Its id, unique in the domain.
    pub id: u64,
    /// Its topic, with the leading slash.
    pub topic: String,
    /// Name of its node; for a proxy `@host/node`, the node that it represents.
    pub node: String,
    /// The type of its messages.
    pub type_desc: TypeDesc,
    /// Whether it publishes or subscribes, and its quality of service.
    pub qos: EndpointQos,
    /// For a proxy: the endpoint of another host that it represents.
    pub proxy: Option<Proxy>,
    /// Number of endpoints that it represents: 1, or more for a proxy of subscriptions.
    pub endpoint_count: u32,
    /// Whether it is a publisher that was opened with a last will.
    pub last_will: bool,
    /// Folder of its node.
    #[doc(hidden)]
    pub folder: PathBuf,
}

impl Endpoint {
    /// The protobuf type that it declares, read on each call; `None` for messages of another kind.
    ///
    /// # Errors
    /// `Io` once its node is gone; `Corrupt` if its file does not hold this type.
    pub fn schema(&self) -> Result<Option<Schema>> {
        SchemaCache::default().read_protobuf(&self.folder, &self.type_desc)
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
    /// It is there: it was when the watch began, or has been opened since.
    Opened(Arc<Endpoint>),
    /// A proxy stands for more or fewer endpoints than before.
    Changed(Arc<Endpoint>),
    /// It was closed, or its node has left.
    Closed(Arc<Endpoint>),
    /// The process of its node has died, or of a proxy the node for which it stood.
    Lost(Arc<Endpoint>),
}

impl EndpointEvent {
    /// The endpoint that came or went.
    pub fn endpoint(&self) -> &Arc<Endpoint> {
        match self {
            EndpointEvent::Opened(endpoint)
            | EndpointEvent::Changed(endpoint)
            | EndpointEvent::Closed(endpoint)
            | EndpointEvent::Lost(endpoint) => endpoint,
        }
    }
}

/// A callback and the events that wait for it.
pub struct EndpointWatcher {
    /// With their ids, which are looked through where many wait.
    events: Mutex<VecDeque<(u64, EndpointEvent)>>,
    /// Locked while it is called. `None` once it was cancelled or has panicked.
    callback: Mutex<Option<Callback<EndpointEvent>>>,
    cancelled: AtomicBool,
    /// Whether the dispatch thread was told of the events.
    scheduled: AtomicBool,
}

impl EndpointWatcher {
    pub fn new(callback: Callback<EndpointEvent>) -> EndpointWatcher {
        EndpointWatcher {
            events: Mutex::default(),
            callback: Mutex::new(Some(callback)),
            cancelled: AtomicBool::new(false),
            scheduled: AtomicBool::new(false),
        }
    }

    /// Queues an event; under the lock of the matching, which orders them.
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
                            // It goes unheard of.
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

    /// Whether [`EndpointWatcher::run`] is to be called, and nobody was told so.
    pub fn schedule(&self) -> bool {
        !lock(&self.events).is_empty() && !self.scheduled.swap(true, Ordering::AcqRel)
    }

    /// Calls the callback for each event; on the bulk dispatch thread. One that panics is not called again, and the
    /// panic goes on to that thread.
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

    /// No call begins any more. With `wait`, which is not for dispatch threads, none runs afterwards either.
    pub fn cancel(&self, wait: bool) {
        self.cancelled.store(true, Ordering::Release);
        let ended = match wait {
            true => lock(&self.callback).take(),
            false => match self.callback.try_lock() {
                Ok(mut callback) => callback.take(),
                Err(TryLockError::Poisoned(callback)) => callback.into_inner().take(),
                // The thread that is in it drops it.
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
    fn a_callback_that_is_too_slow_is_called_for_what_is_there() {
        let (tell, told) = mpsc::channel();
        let watcher = EndpointWatcher::new(Box::new(move |event: &EndpointEvent| {
            tell.send((event.endpoint().id, matches!(event, EndpointEvent::Opened(_)))).unwrap();
        }));
        let many = MAX_QUEUED_EVENTS as u64;
        watcher.push(EndpointEvent::Opened(endpoint(many)));
        watcher.run();
        assert_eq!(told.try_iter().collect::<Vec<_>>(), [(many, true)]);
        for id in 0..many {
            watcher.push(EndpointEvent::Opened(endpoint(id)));
        }
        for id in many + 1..3 * many {
            watcher.push(EndpointEvent::Opened(endpoint(id)));
            watcher.push(EndpointEvent::Closed(endpoint(id)));
        }
        // One that it was told of, and one that it was not.
        watcher.push(EndpointEvent::Closed(endpoint(many)));
        watcher.push(EndpointEvent::Lost(endpoint(0)));
        watcher.run();
        let expected: Vec<(u64, bool)> = (1..many).map(|id| (id, true)).collect();
        let told: Vec<(u64, bool)> = told.try_iter().collect();
        assert!(told[..told.len() - 1] == expected && told.last() == Some(&(many, false)));
    }

    #[test]
    fn a_callback_that_is_too_slow_is_told_of_the_last_change_alone() {
        let (tell, told) = mpsc::channel();
        let watcher = EndpointWatcher::new(Box::new(move |event: &EndpointEvent| {
            tell.send(event.clone()).unwrap()
        }));
        let many = MAX_QUEUED_EVENTS as u64;
        let [known, waits, goes, back] = [many, 0, 1, many + 1];
        for id in [known, back] {
            watcher.push(EndpointEvent::Opened(endpoint(id)));
        }
        watcher.run();
        assert_eq!(told.try_iter().count(), 2);
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
        let told: Vec<EndpointEvent> = told.try_iter().collect();
        assert_eq!(told[0], EndpointEvent::Opened(endpoint_of(waits, 99)));
        assert!(told.iter().all(|event| event.endpoint().id != goes));
        let last =
            [EndpointEvent::Changed(endpoint_of(known, 99)), EndpointEvent::Closed(endpoint(back))];
        assert_eq!(told[told.len() - 2..], last);
    }
}
