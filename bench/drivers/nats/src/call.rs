//! Request and reply on a subject.

use crate::server;
use async_nats::Client;
use bench_harness::{About, Broker, Calls, Error, Handler, Net, Result, Subscription, Topic};
use bytes::Bytes;
use futures_util::StreamExt;
use std::thread;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

/// `Client::request`.
pub struct Request;

impl Calls for Request {
    fn id(&self) -> &'static str {
        "nats-request"
    }

    fn about(&self) -> About {
        let settings = [
            "Client::request; the server subscribes, publishes to the request's reply subject, and flushes",
            "tokio's current_thread runtime at both ends: the connection's task runs where the calls are made",
        ];
        About {
            label: "NATS request".into(),
            client: "crate async-nats on tokio (Rust)".into(),
            settings: settings.map(str::to_owned).into(),
        }
    }

    fn version(&self) -> Result<String> {
        server::version()
    }

    fn broker(&self, net: &Net, port: u16) -> Option<Broker> {
        Some(server::broker(net, port))
    }

    fn serve(&self, net: &Net, topic: &Topic, mut handler: Handler) -> Result<Subscription> {
        let runtime = server::runtime()?;
        let client = server::connect(&runtime, net)?;
        let mut requests = runtime.block_on(client.subscribe(topic.name.clone()))?;
        runtime.block_on(client.flush())?;
        let (stop, mut stopped) = oneshot::channel::<()>();
        let thread = thread::Builder::new().name("replies".into()).spawn(move || {
            runtime.block_on(async {
                loop {
                    let request = tokio::select! {
                        request = requests.next() => request,
                        _ = &mut stopped => None,
                    };
                    let Some(request) = request else { return };
                    let Some(to) = request.reply else { continue };
                    let reply = Bytes::from(handler(&request.payload));
                    let sent = match client.publish(to, reply).await {
                        Ok(()) => client.flush().await.map_err(|e| e.to_string()),
                        Err(error) => Err(error.to_string()),
                    };
                    if let Err(error) = sent {
                        eprintln!("nats: replying ended: {error}");
                        return;
                    }
                }
            });
        })?;
        Ok(Subscription::new(move || {
            let _ = stop.send(());
            let _ = thread.join();
        }))
    }

    fn client(&self, net: &Net, topic: &Topic) -> Result<Box<dyn bench_harness::Client>> {
        let runtime = server::runtime()?;
        let client = server::connect(&runtime, net)?;
        Ok(Box::new(Caller { client, subject: topic.name.clone(), runtime }))
    }
}

struct Caller {
    client: Client,
    subject: String,
    runtime: Runtime,
}

impl bench_harness::Client for Caller {
    fn call(&mut self, request: &[u8], seen: &mut dyn FnMut(&[u8])) -> Result<()> {
        let request = Bytes::copy_from_slice(request);
        match self.runtime.block_on(self.client.request(self.subject.clone(), request)) {
            Ok(reply) => {
                seen(&reply.payload);
                Ok(())
            }
            // The server has not subscribed yet.
            Err(error) if error.kind() == async_nats::RequestErrorKind::NoResponders => Ok(()),
            Err(error) => Err(Error::new(error.to_string())),
        }
    }
}
