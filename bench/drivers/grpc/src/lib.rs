//! gRPC: unary calls by tonic, over HTTP/2 on the loopback.

mod server;

use bench_harness::{
    About, AsSystem, Calls, Client, Error, Handler, Net, Result, Subscription, System, Topic,
};
use server::Codec;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request};

const LOCK: &str = include_str!("../../../Cargo.lock");
const TIMEOUT: Duration = Duration::from_secs(2);
const PATH: &str = "/bench.Calls/Call";

/// Request and reply.
pub fn calls() -> Vec<Box<dyn System>> {
    vec![Box::new(AsSystem::new(Unary))]
}

/// A unary method whose request and reply are `google.protobuf.BytesValue`.
struct Unary;

fn runtime() -> Result<Runtime> {
    Ok(Builder::new_current_thread().enable_all().build()?)
}

impl Calls for Unary {
    fn id(&self) -> &'static str {
        "grpc"
    }

    fn about(&self) -> About {
        let settings = [
            "unary; request and reply are google.protobuf.BytesValue",
            "http://127.0.0.1, no TLS; TCP_NODELAY is tonic's default",
            "tokio's current_thread runtime at both ends: the connection's tasks run where the calls are made",
        ];
        About {
            label: "gRPC unary, tcp".into(),
            client: "crate tonic (Rust)".into(),
            settings: settings.map(str::to_owned).into(),
        }
    }

    fn version(&self) -> Result<String> {
        let entry = LOCK.split("[[package]]").find(|entry| entry.contains("\nname = \"tonic\"\n"));
        let version = entry.and_then(|entry| entry.split('"').nth(3)).unwrap_or("?");
        Ok(format!("crate tonic {version}"))
    }

    fn serve(&self, net: &Net, topic: &Topic, handler: Handler) -> Result<Subscription> {
        server::serve(runtime()?, net, topic, handler)
    }

    fn client(&self, net: &Net, topic: &Topic) -> Result<Box<dyn Client>> {
        let runtime = runtime()?;
        let endpoint = Endpoint::from_shared(net.find(topic, 0)?)?.timeout(TIMEOUT);
        let channel = runtime.block_on(endpoint.connect())?;
        Ok(Box::new(Caller { grpc: Grpc::new(channel), runtime }))
    }
}

struct Caller {
    // Closed ahead of its runtime.
    grpc: Grpc<Channel>,
    runtime: Runtime,
}

impl Client for Caller {
    fn call(&mut self, request: &[u8], seen: &mut dyn FnMut(&[u8])) -> Result<()> {
        let Caller { grpc, runtime } = self;
        let request = Request::new(request.to_vec());
        let reply = runtime.block_on(async {
            grpc.ready().await.map_err(|error| Error::new(error.to_string()))?;
            match grpc.unary(request, PathAndQuery::from_static(PATH), Codec::default()).await {
                Ok(reply) => Ok(Some(reply.into_inner())),
                Err(status) if status.code() == Code::Unavailable => Ok(None),
                Err(status) => Err(Error::new(status.to_string())),
            }
        })?;
        reply.iter().for_each(|reply: &Vec<u8>| seen(reply));
        Ok(())
    }
}
