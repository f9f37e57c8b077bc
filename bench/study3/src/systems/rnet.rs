//! robot-net: two nodes of one process.
//!
//! Its default, best effort, never waits and writes over what a slow subscriber has not read, which would be
//! the fastest here. It is set to reliable, so that its figure counts delivered messages.

use super::System;
use crate::function::Publish;
use crate::{Arrivals, TestMessage, message::TOPIC};
use bench_harness::Result;
use rnet::{Node, OnFull, Publisher};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

pub(super) const SYSTEM: System = System {
    function: "rnet",
    name: "robot-net",
    setup: "reliable (the publisher waits for the subscriber; the default would lose messages); \
            shared memory, adaptive waiting (the default)",
    open,
};

/// How long the publisher waits for a stalled subscriber.
const WAIT_LIMIT: Duration = Duration::from_secs(5);

struct Rnet {
    // In this order: the nodes are closed after what they opened.
    publisher: Option<Publisher<[u8]>>,
    node: Option<Node>,
    stop: Arc<AtomicBool>,
    subscriber: Option<JoinHandle<()>>,
    domain: PathBuf,
}

fn open(arrivals: Arc<Arrivals>) -> Result<Box<dyn Publish>> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let domain = format!("study3_{}_{number}", std::process::id());
    let node = Node::builder("publisher").domain(&domain).open()?;
    let receiving = Node::builder("subscriber").domain(&domain).open()?;
    let mut incoming = receiving.subscriber::<[u8]>(&format!("/{TOPIC}")).reliable().open()?;
    let publisher =
        node.publisher::<[u8]>(&format!("/{TOPIC}")).reliable(OnFull::Wait(WAIT_LIMIT)).open()?;
    let stop = Arc::new(AtomicBool::new(false));
    let seen = stop.clone();
    let subscriber = std::thread::Builder::new().name("subscriber".into()).spawn(move || {
        let _node = receiving;
        while !seen.load(Ordering::Relaxed) {
            // A message or a time-out; what else goes wrong shows as messages that are missing.
            if incoming.recv_timeout(Duration::from_millis(200)).is_ok() {
                arrivals.add();
            }
        }
    })?;
    let domain = node.domain_path().to_owned();
    Ok(Box::new(Rnet {
        publisher: Some(publisher),
        node: Some(node),
        stop,
        subscriber: Some(subscriber),
        domain,
    }))
}

impl Publish for Rnet {
    fn publish(&mut self, count: u64) -> Result<()> {
        if let Some(publisher) = &mut self.publisher {
            for _ in 0..count {
                publisher.send(&TestMessage::new().encode_to_vec())?;
            }
        }
        Ok(())
    }
}

impl Drop for Rnet {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(subscriber) = self.subscriber.take() {
            let _ = subscriber.join();
        }
        drop(self.publisher.take());
        drop(self.node.take());
        // No other node is in this domain.
        let _ = std::fs::remove_dir_all(&self.domain);
    }
}
