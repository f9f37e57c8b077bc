//! A server of the Foxglove WebSocket protocol: Foxglove, Lichtblick and other viewers show a robot-net
//! domain or a recording.
//!
//! Clients see topics with their types, the graph, services, parameters and the simulated time, and may
//! publish, call services and set parameters. The server observes the domain without slowing publishers. It
//! is bounded in each direction: a slow client loses messages, which are counted; a hostile client gets an
//! error and is then disconnected. docs/design/foxglove.md describes the wire format.
//!
//! ```no_run
//! let location = rnet::inspect::Location::new(None, None, None)?;
//! let server = rnet_foxglove::serve(rnet_foxglove::Options::new(location))?;
//! println!("{}", server.addr());
//! # std::thread::park();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod acceptor;
mod backend;
mod channel_format;
mod error;
mod hub;
mod incoming;
mod live;
mod outgoing;
mod playback;
mod queue;
mod server;
mod session;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

use rnet::inspect::Location;
use rnet_access::Access;
use rnet_record::read::Recording;
use tokio::runtime::Runtime;

pub use error::{FoxgloveError, Result};
pub use rnet_access::{AccessError, AccessOptions, EventCallback, TlsFiles};
pub use server::MAX_CLIENTS;

use backend::Backend;
use hub::Hub;
use live::{LiveBackend, LiveOptions};
use playback::PlaybackBackend;
use server::Server;

/// Default port of the protocol.
pub const DEFAULT_PORT: u16 = 8765;
/// Threads for sending and receiving; another thread copies the messages.
const WORKER_THREADS: usize = 2;

/// Options of a server.
#[derive(Clone)]
#[non_exhaustive]
pub struct Options {
    /// Listen address, tokens and TLS. A client sends its token as `?token=` in the address, or as a bearer
    /// token.
    pub access: AccessOptions,
    /// The domain.
    pub location: Location,
    /// Recording to show instead of the domain.
    pub recording: Option<PathBuf>,
    /// Start the recording paused.
    pub paused: bool,
    /// Origins of pages that may connect, such as `https://app.foxglove.dev`. Programs have no origin, and
    /// need not be listed.
    pub origins: Vec<String>,
    /// Also show topics of robot-net itself.
    pub include_internal: bool,
    /// Receives messages about connected, disconnected and rejected clients.
    pub on_event: EventCallback,
}

impl Options {
    /// Serves a domain on the default port of this machine.
    pub fn new(location: Location) -> Options {
        Options {
            access: AccessOptions::local(DEFAULT_PORT),
            location,
            recording: None,
            paused: false,
            origins: Vec::new(),
            include_internal: false,
            on_event: Arc::new(|_| {}),
        }
    }
}

/// Counters of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Connected clients.
    pub clients: usize,
    /// Rejected connections.
    pub refused: u64,
    /// Messages dropped because a client was too slow.
    pub dropped: u64,
}

/// A running server. Dropping it stops the server.
#[must_use = "dropping this stops the server"]
pub struct ServerHandle {
    addr: SocketAddr,
    hub: Arc<Hub>,
    server: Arc<Server>,
    runtime: Option<Runtime>,
    thread: Option<JoinHandle<()>>,
}

/// Starts a server in its own threads.
///
/// # Errors
/// [`FoxgloveError`]: the port, the certificate or the recording is unusable, or the address is beyond this
/// machine without a token and TLS.
pub fn serve(options: Options) -> Result<ServerHandle> {
    let listen = options.access.address;
    let access = Access::new(options.access.clone(), options.on_event.clone())?;
    let is_origin = |origin: &&String| origin.contains("://") && !origin.ends_with('/');
    if let Some(origin) = options.origins.iter().find(|origin| !is_origin(origin)) {
        return Err(FoxgloveError::Origin(origin.clone()));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKER_THREADS)
        .thread_name("rnet-foxglove-io")
        .enable_all()
        .build()
        .map_err(FoxgloveError::Thread)?;
    let bind = |source| FoxgloveError::Bind { listen, source };
    let listener = runtime.block_on(tokio::net::TcpListener::bind(listen)).map_err(bind)?;
    let addr = listener.local_addr().map_err(bind)?;
    let hub = Arc::new(Hub::default());
    let (backend, thread) = start_backend(&options, &hub)?;
    let server = Arc::new(Server {
        hub: hub.clone(),
        backend,
        acceptor: acceptor::Acceptor { listen: addr, origins: options.origins, access },
        on_event: options.on_event,
        refused: AtomicU64::new(0),
        next_client: AtomicU64::new(1),
    });
    runtime.spawn(server.clone().accept(listener));
    Ok(ServerHandle { addr, hub, server, runtime: Some(runtime), thread: Some(thread) })
}

/// Starts the data source and its thread.
fn start_backend(options: &Options, hub: &Arc<Hub>) -> Result<(Arc<dyn Backend>, JoinHandle<()>)> {
    let builder = std::thread::Builder::new().name("rnet-foxglove".to_owned());
    // Lets clients detect whether they have reconnected to the same server.
    let session = format!("{}-{}", std::process::id(), rnet::boot_ns());
    if let Some(path) = &options.recording {
        let wrong = |source| FoxgloveError::Recording { path: path.clone(), source };
        let recording = Recording::open(path).map_err(wrong)?;
        let playback = Arc::new(PlaybackBackend::new(recording, hub.clone(), options.paused));
        let plays = playback.clone();
        let thread = builder.spawn(move || plays.run(&session)).map_err(FoxgloveError::Thread)?;
        return Ok((playback, thread));
    }
    let shown = LiveOptions {
        location: options.location.clone(),
        include_internal: options.include_internal,
    };
    let live = Arc::new(LiveBackend::new(shown, hub.clone()).map_err(FoxgloveError::Thread)?);
    let (follows, on_event) = (live.clone(), options.on_event.clone());
    let follow = move || follows.run(&session, &on_event);
    let thread = builder.spawn(follow).map_err(FoxgloveError::Thread)?;
    Ok((live, thread))
}

impl ServerHandle {
    /// Listen address.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// URL for viewers, without a token.
    pub fn url(&self) -> String {
        let scheme = if self.server.acceptor.access.has_tls() { "wss" } else { "ws" };
        format!("{scheme}://{}", self.addr)
    }

    /// Current counters.
    pub fn stats(&self) -> Stats {
        Stats {
            clients: self.hub.client_count(),
            refused: self.server.refused.load(Ordering::Relaxed),
            dropped: self.hub.dropped(),
        }
    }

    /// Whether the server no longer shows new data, because its thread has panicked. An unreadable domain
    /// does not stop it.
    pub fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for ServerHandle {
    fn drop(&mut self) {
        self.hub.shut_down();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        // Does not block, even if this is dropped within another runtime or while a call waits for its
        // server.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_unsafe_options() {
        let location = Location::new(Some("foxglove"), Some(std::env::temp_dir()), None).unwrap();
        let mut options = Options::new(location);
        options.access.address = SocketAddr::from(([0, 0, 0, 0], 0));
        let why = |options: &Options| serve(options.clone()).err().unwrap().to_string();
        assert!(why(&options).contains("a token"));
        options.access.token = Some("0123456789abcdef".into());
        options.access.tls = Some(TlsFiles { cert: "/dev/null".into(), key: "/dev/null".into() });
        assert!(why(&options).contains("certificate"));
        let (access, origins) = (AccessOptions::local(0), vec!["foxglove.dev".into()]);
        let options = Options { access, origins, ..options };
        assert!(why(&options).contains("not an origin"));
    }
}
