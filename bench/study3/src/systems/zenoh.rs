//! Zenoh: two peer sessions of one process, `Session::put` for each message, as in the study.
//!
//! The study's sessions find each other by multicast. Here the subscriber listens on a port of its
//! own and the publisher is told so: other sessions on this machine stay out, and a machine without
//! multicast can run it. Once they have met, nothing differs.

use super::System;
use crate::function::Publish;
use crate::{Arrivals, TestMessage, message::TOPIC};
use bench_harness::{Error, Result};
use std::net::TcpListener;
use std::sync::Arc;
use tokio::runtime::Runtime;
use zenoh::{Config, Session};

pub(super) const SYSTEM: System = System {
    function: "zenoh",
    name: "Zenoh",
    setup: "defaults (peer, tcp, congestion control Drop, batching); two sessions, joined by \
            address instead of multicast",
    open,
};

struct Zenoh {
    session: Session,
    runtime: Runtime,
}

fn open(arrivals: Arc<Arrivals>) -> Result<Box<dyn Publish>> {
    let runtime = Runtime::new()?;
    let session = runtime.block_on(async {
        let endpoint = free_endpoint()?;
        let subscribing = zenoh::open(config("listen/endpoints", &endpoint)?).await.map_err(own)?;
        let subscriber = subscribing.declare_subscriber(TOPIC).await.map_err(own)?;
        tokio::spawn(async move {
            let _session = subscribing;
            while subscriber.recv_async().await.is_ok() {
                arrivals.add();
            }
        });
        zenoh::open(config("connect/endpoints", &endpoint)?).await.map_err(own)
    })?;
    Ok(Box::new(Zenoh { session, runtime }))
}

/// The default configuration, meeting at one endpoint only.
fn config(key: &str, endpoint: &str) -> Result<Config> {
    let mut config = Config::default();
    for (key, value) in [
        ("scouting/multicast/enabled", "false"),
        // A peer listens by default, too; the publisher need not.
        ("listen/endpoints", "[]"),
        (key, &format!("[{endpoint:?}]")),
    ] {
        config.insert_json5(key, value).map_err(own)?;
    }
    Ok(config)
}

/// A port that is free now. Zenoh does not report the port that it got for port 0 on 127.0.0.1.
fn free_endpoint() -> Result<String> {
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    Ok(format!("tcp/{address}"))
}

/// Zenoh's error is not a `std` error by itself.
fn own(error: zenoh::Error) -> Error {
    Error::new(error.to_string())
}

impl Publish for Zenoh {
    fn publish(&mut self, count: u64) -> Result<()> {
        let session = self.session.clone();
        self.runtime.block_on(async {
            for _ in 0..count {
                let message = TestMessage::new().encode_to_vec();
                session.put(TOPIC.to_string(), message).await.map_err(own)?;
            }
            Ok(())
        })
    }
}
