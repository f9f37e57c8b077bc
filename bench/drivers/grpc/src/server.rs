//! The end that answers.

use bench_harness::{Handler, Net, Result, Subscription, Topic};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Service, http};
use tonic::server::{Grpc, NamedService, UnaryService};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

/// Bytes as `google.protobuf.BytesValue`.
pub type Codec = tonic_prost::ProstCodec<Vec<u8>, Vec<u8>>;

/// Serves on a free port, on a thread of its own.
pub fn serve(runtime: Runtime, net: &Net, topic: &Topic, handler: Handler) -> Result<Subscription> {
    let listener = runtime.block_on(TcpListener::bind((net.address(), 0)))?;
    net.announce(topic, &format!("http://{}", listener.local_addr()?))?;
    let (stop, stopped) = oneshot::channel::<()>();
    let calls = Answers(Arc::new(Mutex::new(handler)));
    let thread = std::thread::Builder::new().name("grpc-server".into()).spawn(move || {
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        // A graceful end would wait for clients that stay connected.
        let ended = runtime.block_on(async {
            tokio::select! {
                ended = Server::builder().add_service(calls).serve_with_incoming(incoming) => ended,
                _ = stopped => Ok(()),
            }
        });
        if let Err(error) = ended {
            eprintln!("grpc: serving ended: {error}");
        }
    })?;
    Ok(Subscription::new(move || {
        let _ = stop.send(());
        let _ = thread.join();
    }))
}

/// The one method.
#[derive(Clone)]
struct Answers(Arc<Mutex<Handler>>);

impl NamedService for Answers {
    const NAME: &'static str = "bench.Calls";
}

impl Service<http::Request<Body>> for Answers {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<std::result::Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let answers = self.clone();
        Box::pin(async move { Ok(Grpc::new(Codec::default()).unary(answers, request).await) })
    }
}

impl UnaryService<Vec<u8>> for Answers {
    type Response = Vec<u8>;
    type Future = std::future::Ready<std::result::Result<Response<Vec<u8>>, Status>>;

    fn call(&mut self, request: Request<Vec<u8>>) -> Self::Future {
        let mut handler = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::future::ready(Ok(Response::new(handler(request.get_ref()))))
    }
}
