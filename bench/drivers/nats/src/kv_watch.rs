//! A key that is watched: put, and the bucket's watch.

use crate::{kv, server};
use async_nats::jetstream::kv::Store;
use async_nats::jetstream::stream::StorageType;
use bench_harness::{
    About, Broker, Error, Net, Publisher, Result, Sink, Subscription, System, Topic,
};
use futures_util::StreamExt;
use std::thread;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

/// NATS KV's watch.
pub struct Watch;

impl System for Watch {
    fn id(&self) -> &'static str {
        "nats-kv-watch"
    }

    fn about(&self) -> About {
        let settings = [
            "JetStream bucket in memory, one replica, history 1 (its default)",
            "put waits for JetStream's acknowledgement; watch of the one key, with values",
            "tokio's current_thread runtime on the setting and on the watching thread: the connection's task runs where the calls are made",
            "server: JetStream with max_memory_store 1GB; max_payload 8MB; ping_interval 10m (default 2m), as a client that is idle does not answer",
        ];
        About {
            label: "NATS KV put and watch".into(),
            client: "crate async-nats on tokio (Rust)".into(),
            settings: settings.map(str::to_owned).into(),
        }
    }

    fn version(&self) -> Result<String> {
        server::version()
    }

    fn broker(&self, net: &Net, port: u16) -> Option<Broker> {
        Some(server::broker_with_jetstream(&net.dir, None, port))
    }

    fn may_lose(&self) -> Option<&'static str> {
        Some("with history 1 a watcher that is behind sees the newest value")
    }

    fn supports(&self, topic: &Topic) -> Result<()> {
        if topic.publishers == 1 { Ok(()) } else { Err(Error::new("one writer sets the key")) }
    }

    fn publisher(&self, net: &Net, topic: &Topic) -> Result<Box<dyn Publisher>> {
        let (store, runtime) = kv::bucket(net, StorageType::Memory)?;
        Ok(Box::new(Setter { store, key: topic.name.clone(), runtime }))
    }

    fn subscribe(&self, net: &Net, topic: &Topic, mut sink: Sink) -> Result<Subscription> {
        let (store, runtime) = kv::bucket(net, StorageType::Memory)?;
        let mut entries = runtime.block_on(store.watch(&topic.name))?;
        let (stop, mut stopped) = oneshot::channel::<()>();
        let thread = thread::Builder::new().name("watcher".into()).spawn(move || {
            loop {
                let next = runtime.block_on(async {
                    tokio::select! { entry = entries.next() => entry, _ = &mut stopped => None }
                });
                match next {
                    Some(Ok(entry)) => sink(&entry.value),
                    Some(Err(error)) => return eprintln!("nats: watch: {error}"),
                    None => return,
                }
            }
        })?;
        Ok(Subscription::new(move || {
            // Fails if the thread has already ended.
            let _ = stop.send(());
            let _ = thread.join();
        }))
    }
}

struct Setter {
    store: Store,
    key: String,
    runtime: Runtime,
}

impl Publisher for Setter {
    fn send(&mut self, message: &[u8]) -> Result<()> {
        self.runtime.block_on(self.store.put(&self.key, message.to_vec().into()))?;
        Ok(())
    }
}
