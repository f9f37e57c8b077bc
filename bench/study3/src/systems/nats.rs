//! NATS: async-nats and a nats-server that is started for it.
//!
//! The study's client, options included; but its benchmark has no subscriber, and here a second
//! connection subscribes.

use super::System;
use crate::function::Publish;
use crate::nats_server::NatsServer;
use crate::{Arrivals, TestMessage, message::TOPIC};
use async_nats::{Client, ConnectOptions};
use bench_harness::Result;
use futures_util::StreamExt;
use std::sync::Arc;
use tokio::runtime::Runtime;

pub(super) const SYSTEM: System = System {
    function: "nats",
    name: "NATS",
    setup: "async-nats and nats-server at their defaults (no_echo, as in the study); \
            publisher and subscriber on connections of their own",
    open,
};

struct Nats {
    client: Client,
    // After the client: its tasks run on the runtime, and both need the server.
    runtime: Runtime,
    _server: NatsServer,
}

fn open(arrivals: Arc<Arrivals>) -> Result<Box<dyn Publish>> {
    let server = NatsServer::start()?;
    let runtime = Runtime::new()?;
    let client = runtime.block_on(async {
        let subscribing = async_nats::connect(&server.url).await?;
        let mut subscription = subscribing.subscribe(TOPIC).await?;
        tokio::spawn(async move {
            let _connection = subscribing;
            while subscription.next().await.is_some() {
                arrivals.add();
            }
        });
        let options = ConnectOptions::new().no_echo().name("nats_pubsub");
        bench_harness::Result::Ok(options.connect(&server.url).await?)
    })?;
    Ok(Box::new(Nats { client, runtime, _server: server }))
}

impl Publish for Nats {
    fn publish(&mut self, count: u64) -> Result<()> {
        let client = self.client.clone();
        self.runtime.block_on(async {
            for _ in 0..count {
                let message = TestMessage::new().encode_to_vec();
                client.publish(TOPIC.to_string(), message.into()).await?;
            }
            Ok(())
        })
    }
}
