//! Following `/clock`: the thread `rnet-clock` of a node with simulated time.
//!
//! It is a separate thread, so that a callback that waits for a later time does not stop the clock.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use crate::dispatch::Dispatcher;
use crate::message::MessageCodec;
use crate::node_time::NodeTime;
use crate::receiver::Receiver;
use crate::sync::{join, lock};
use rnet_shm::os::thread::spawn;

use crate::{Extension, Interrupter, NodeCore};
use rnet_core::{Result, TopicName, Wait};
use rnet_shm::state::FileStatus;

use crate::SubscriberBuilder;
use crate::msgs::Clock;
use crate::typed::Decode;

/// The topic of the simulated time.
const TOPIC: &str = "/clock";

/// Takes the time from `/clock` until the node is closed.
pub(crate) struct SimClock {
    stop: AtomicBool,
    interrupter: Interrupter,
    time: NodeTime,
    /// `None` once the thread has taken it.
    reader: Mutex<Option<Reader>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Reader {
    receiver: Receiver,
    buffer: <Clock as MessageCodec>::DecodeBuffer,
}

impl SimClock {
    /// Makes the time of a node follow `/clock`.
    pub(crate) fn start(core: &Arc<NodeCore>) -> Result<()> {
        let clock = core.state.extension(|_| {
            let clock = SubscriberBuilder::<Clock>::at(core, TopicName::new(TOPIC)?);
            let clock = clock.keep_last(1).wait(Wait::Block).open()?;
            let (receiver, _, buffer) = clock.into_parts();
            Ok(Arc::new(SimClock {
                stop: AtomicBool::new(false),
                time: core.state.time.clone(),
                interrupter: Interrupter::from(&receiver.state.waiting),
                reader: Mutex::new(Some(Reader { receiver, buffer })),
                thread: Mutex::default(),
            }))
        })?;
        if !clock.start_threads() {
            // The control thread then retries once per second.
            core.state.own.ring_self();
        }
        Ok(())
    }

    fn run(&self, Reader { mut receiver, mut buffer }: Reader) {
        let mut leader = None;
        while !self.stop.load(Ordering::Acquire) && !receiver.is_from_parent() {
            // Errors of a publisher are counted, and shown by the tools.
            let Ok(Some(at)) = receiver.receive(None) else { continue };
            // Two publishers would make time jump back and forth: the first one is followed while it is
            // connected.
            let publisher = receiver.channels[at].publisher();
            if leader.is_some_and(|now| now != publisher && receiver.channel_of(now).is_some()) {
                continue;
            }
            let time_ns = receiver.sample::<Clock>(at, &mut buffer).map(|sample| sample.time_ns);
            let Some(now_ns) = time_ns.ok().and_then(|ns| u64::try_from(ns).ok()) else { continue };
            leader = Some(publisher);
            self.time.set(now_ns);
            // Timers may be due.
            receiver.node.dispatchers().for_each(Dispatcher::wake);
        }
    }
}

impl Extension for SimClock {
    fn start_threads(self: Arc<Self>) -> bool {
        let mut thread = lock(&self.thread);
        if thread.is_some() || self.stop.load(Ordering::Acquire) {
            return true;
        }
        let clock = self.clone();
        let started = spawn("rnet-clock", move || {
            let reader = lock(&clock.reader).take();
            reader.into_iter().for_each(|reader| clock.run(reader));
        });
        *thread = started.ok();
        thread.is_some()
    }

    fn nodes_ended(self: Arc<Self>) -> bool {
        true
    }

    fn has_unknown_nodes(&self, _is_known: &dyn Fn(u64) -> bool) -> bool {
        false
    }

    fn put_back(&self) -> Result<FileStatus> {
        Ok(FileStatus::InPlace)
    }

    fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.interrupter.interrupt();
        let (thread, reader) = (lock(&self.thread).take(), lock(&self.reader).take());
        // A reader that no thread has taken holds the node.
        drop(reader);
        join(thread);
    }
}
