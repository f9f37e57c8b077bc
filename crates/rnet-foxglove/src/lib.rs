//! A server of the Foxglove WebSocket protocol: Foxglove, Lichtblick and other viewers look at a robot-net domain, or at
//! a recording.
//!
//! Clients see topics with their types, the graph, services, parameters and the simulated time, and may publish, call and set. The server
//! looks at the domain from outside, so publishers do not feel it, and is bounded in each direction: a slow client loses messages that are
//! counted, a hostile one is told so, and then cut off. What goes over the wire stands in docs/design/foxglove.md.
//!
//! ```no_run
//! let location = rnet::inspect::Location::new(None, None, None)?;
//! let server = rnet_foxglove::serve(rnet_foxglove::Options::new(location))?;
//! println!("{}", server.addr());
//! # std::thread::park();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod backend;
mod door;
mod error;
mod hub;
mod live;
mod played;
mod queue;
mod say;
mod server;
mod session;
mod shape;
mod tls;
mod wire;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

use rnet::inspect::Location;
use rnet_record::read::Recording;
use tokio::runtime::Runtime;

pub use error::{FoxgloveError, Result};
pub use server::{MAX_CLIENTS, Tell};
pub use tls::Tls;

use backend::Backend;
use hub::Hub;
use live::{Live, LiveOptions};
use played::Played;
use server::Server;

/// The port that clients of the protocol look for.
pub const DEFAULT_PORT: u16 = 8765;
/// Shortest token, in bytes: one that is shorter is guessed.
pub const MIN_TOKEN_LEN_BYTES: usize = 16;
/// Threads that send and read; messages are copied by one of their own.
const WORKERS: usize = 2;

/// What a server shows, and to whom.
#[derive(Clone)]
#[non_exhaustive]
pub struct Options {
    /// Where it listens. Beyond this machine it needs a token and TLS.
    pub listen: SocketAddr,
    /// The domain.
    pub location: Location,
    /// Show this recording instead of the domain.
    pub recording: Option<PathBuf>,
    /// Begin with the recording stopped.
    pub paused: bool,
    /// Origins of pages that may connect: `https://app.foxglove.dev`. Programs have none, and need not be named.
    pub origins: Vec<String>,
    /// What clients have to show: as `?token=` of the address, or as a bearer token.
    pub token: Option<String>,
    /// The certificate.
    pub tls: Option<Tls>,
    /// Clients may neither publish nor call nor set.
    pub read_only: bool,
    /// Show topics of robot-net itself, too.
    pub all: bool,
    /// Told in words: who comes and goes, who was refused.
    pub tell: Tell,
}

impl Options {
    /// A domain, on the usual port of this machine.
    pub fn new(location: Location) -> Options {
        Options {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, DEFAULT_PORT)),
            location,
            recording: None,
            paused: false,
            origins: Vec::new(),
            token: None,
            tls: None,
            read_only: false,
            all: false,
            tell: Arc::new(|_| {}),
        }
    }
}

/// What a server has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Clients that are there.
    pub clients: usize,
    /// Connections that were not let in.
    pub refused: u64,
    /// Messages that were left out because a client was too slow.
    pub dropped: u64,
}

/// A server that runs. It ends when this is dropped.
#[must_use = "the server ends when this is dropped"]
pub struct Handle {
    addr: SocketAddr,
    hub: Arc<Hub>,
    server: Arc<Server>,
    runtime: Option<Runtime>,
    thread: Option<JoinHandle<()>>,
}

/// Begins to serve, in threads of its own.
///
/// # Errors
/// [`FoxgloveError`]: the port, the certificate, the recording, or an address beyond this machine without a token and TLS.
pub fn serve(options: Options) -> Result<Handle> {
    let Options { listen, .. } = options;
    check_access(&options)?;
    let is_origin = |origin: &&String| origin.contains("://") && !origin.ends_with('/');
    if let Some(origin) = options.origins.iter().find(|origin| !is_origin(origin)) {
        return Err(FoxgloveError::Origin(origin.clone()));
    }
    let tls = options.tls.as_ref().map(Tls::acceptor).transpose()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .thread_name("rnet-foxglove-io")
        .enable_all()
        .build()
        .map_err(FoxgloveError::Thread)?;
    let bind = |source| FoxgloveError::Bind { listen, source };
    let listener = runtime.block_on(tokio::net::TcpListener::bind(listen)).map_err(bind)?;
    let addr = listener.local_addr().map_err(bind)?;
    let hub = Arc::new(Hub::default());
    let (backend, thread) = begin(&options, &hub)?;
    let server = Arc::new(Server {
        hub: hub.clone(),
        backend,
        door: door::Door { listen: addr, origins: options.origins, token: options.token },
        tls,
        tell: options.tell,
        refused: AtomicU64::new(0),
        next_client: AtomicU64::new(1),
    });
    runtime.spawn(server.clone().accept(listener));
    Ok(Handle { addr, hub, server, runtime: Some(runtime), thread: Some(thread) })
}

/// Whether who has to be kept out is kept out: by the same rules as of the dashboard.
fn check_access(options: &Options) -> Result<()> {
    let refused = |why: String| Err(FoxgloveError::Access(why));
    if let Some(token) = &options.token {
        // Viewers write it into an address, and some write these in another way there.
        let is_plain = token.bytes().all(|b| b.is_ascii_graphic() && !b"\"';,\\&#<>".contains(&b));
        if token.len() < MIN_TOKEN_LEN_BYTES || !is_plain {
            return refused(format!(
                "the token has {} characters and needs at least {MIN_TOKEN_LEN_BYTES}, printable ones without blanks, \
                 quotes, commas, semicolons, backslashes, &, #, < and >; make one: openssl rand -hex 24",
                token.len()
            ));
        }
    }
    let missing: Vec<&str> = [
        options.token.is_none().then_some("a token (--token-file)"),
        options.tls.is_none().then_some("TLS (--tls-cert and --tls-key)"),
    ]
    .into_iter()
    .flatten()
    .collect();
    let listen = options.listen;
    if listen.ip().is_loopback() || missing.is_empty() {
        return Ok(());
    }
    refused(format!(
        "{listen} is reachable from other computers, and who reaches the server moves the robot: it needs {}; without \
         them use 127.0.0.1, and from elsewhere ssh -L {port}:127.0.0.1:{port} ROBOT",
        missing.join(" and "),
        port = listen.port(),
    ))
}

/// What is shown, and the thread that follows it.
fn begin(options: &Options, hub: &Arc<Hub>) -> Result<(Arc<dyn Backend>, JoinHandle<()>)> {
    let builder = std::thread::Builder::new().name("rnet-foxglove".to_owned());
    // Clients tell by it whether they have come back to the same server.
    let session = format!("{}-{}", std::process::id(), rnet::boot_ns());
    if let Some(path) = &options.recording {
        let wrong = |source| FoxgloveError::Recording { path: path.clone(), source };
        let recording = Recording::open(path).map_err(wrong)?;
        let played = Arc::new(Played::new(recording, hub.clone(), options.paused));
        let plays = played.clone();
        let thread = builder.spawn(move || plays.run(&session)).map_err(FoxgloveError::Thread)?;
        return Ok((played, thread));
    }
    let shown = LiveOptions {
        location: options.location.clone(),
        read_only: options.read_only,
        all: options.all,
    };
    let live = Arc::new(Live::new(shown, hub.clone()).map_err(FoxgloveError::Thread)?);
    let (follows, tell) = (live.clone(), options.tell.clone());
    let follow = move || follows.run(&session, &tell);
    let thread = builder.spawn(follow).map_err(FoxgloveError::Thread)?;
    Ok((live, thread))
}

impl Handle {
    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// What it has done so far.
    pub fn stats(&self) -> Stats {
        Stats {
            clients: self.hub.clients(),
            refused: self.server.refused.load(Ordering::Relaxed),
            dropped: self.hub.dropped(),
        }
    }

    /// Whether it shows nothing new any more: its thread has panicked. A domain that cannot be read does not end it.
    pub fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.hub.end();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        // Also where this is dropped inside of another runtime; a call that waits for its server does not hold it up.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beyond_loopback_both_token_and_tls_are_needed() {
        let location = Location::new(Some("foxglove"), Some(std::env::temp_dir()), None).unwrap();
        let mut options = Options::new(location);
        options.listen = SocketAddr::from(([0, 0, 0, 0], 0));
        let why = |options: &Options| serve(options.clone()).err().unwrap().to_string();
        let said = why(&options);
        assert!(said.contains("a token") && said.contains("TLS"), "{said}");
        options.token = Some("0123456789abcdef".into());
        let said = why(&options);
        assert!(!said.contains("a token") && said.contains("TLS"), "{said}");
        options.tls = Some(Tls { cert_pem: b"none".to_vec(), key_pem: b"none".to_vec() });
        assert!(why(&options).contains("certificate"));
        for bad in ["short", "with a blank in it", "with&ampersands&in&it", "<0123456789abcdef>"] {
            options.token = Some(bad.into());
            assert!(why(&options).contains("the token has"), "{bad}");
        }
        let options = Options { token: None, origins: vec!["foxglove.dev".into()], ..options };
        let options = Options { listen: SocketAddr::from(([127, 0, 0, 1], 0)), ..options };
        assert!(why(&options).contains("no origin"));
    }
}
