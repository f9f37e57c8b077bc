//! Accepts connections on one thread, each with a time limit until it becomes a WebSocket.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rnet_access::{Access, network_of};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::timeout;

use crate::app_state::lock;
use crate::http::{AccessGuard, MAX_DOWNLOADS, Progress, Shared, respond};
use crate::hub::{Hub, MAX_JOBS, MAX_STOPS};
use crate::options::{DashboardError, Options};
use crate::socket::PageSlots;

/// Maximum number of connections, including those of pages. Further ones wait.
const MAX_CONNECTIONS: usize = 128;
/// Maximum number of connections of one address, without those of pages. Further ones are closed, so that no
/// address occupies all of them.
const MAX_CONNECTIONS_PER_PEER: usize = MAX_CONNECTIONS / 2;
/// Timeout of the headers of a request.
const HEADERS_TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout of the TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit of a connection that does not become a WebSocket: browsers open another one. A download may
/// take longer while it makes progress.
const CONNECTION_IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum length of a request's headers, in bytes.
const MAX_HEADERS_LEN_BYTES: usize = 16 << 10;
/// Timeouts of the shutdown: for pages to be notified, and for running jobs.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(200);
const JOBS_TIMEOUT: Duration = Duration::from_millis(500);

/// A running dashboard. Dropping it stops it.
pub struct Dashboard {
    hub: Arc<Hub>,
    access: Arc<Access>,
    address: SocketAddr,
    url: String,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Dashboard {
    /// Listens, and starts serving. The domain need not exist.
    ///
    /// # Errors
    /// `Access` if access is not sufficiently protected, or its files are unusable; `Listen`, `System`;
    /// errors of the domain's name.
    pub fn start(options: Options) -> crate::Result<Dashboard> {
        let access = Access::new(options.access.clone(), options.on_event.clone())?;
        let access = Arc::new(access);
        let runtime = Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .max_blocking_threads(MAX_JOBS + MAX_STOPS + MAX_DOWNLOADS)
            .thread_name("rnet-dash-job")
            .build()?;
        let asked = options.access.address;
        let failed = |source| DashboardError::Listen { address: asked, source };
        let listener = runtime.block_on(TcpListener::bind(asked)).map_err(failed)?;
        let address = listener.local_addr()?;
        let guard = AccessGuard::new(access.clone(), &options.names, address.port());
        let url = guard.url(address);
        let hub = Hub::start(options)?;
        let pages = Arc::new(PageSlots::default());
        let downloads = Arc::new(Semaphore::new(MAX_DOWNLOADS));
        let shared = Shared { hub: hub.clone(), guard, pages: pages.clone(), downloads };
        let (end, ended) = oneshot::channel();
        let serving = ServerThread { runtime, listener, shared: Arc::new(shared), pages };
        let of_thread = hub.clone();
        let thread = std::thread::Builder::new().name("rnet-dashboard".to_owned());
        let thread = thread.spawn(move || {
            serving.run(ended);
            // Releases authority while the process is alive, and not when its death is detected.
            of_thread.operations.close();
        });
        match thread {
            Ok(thread) => {
                Ok(Dashboard { hub, access, address, url, end: Some(end), thread: Some(thread) })
            }
            Err(error) => {
                hub.stop();
                Err(error.into())
            }
        }
    }

    /// Listen address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// URL for a browser, without the token.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Whether browsers need a token.
    pub fn requires_token(&self) -> bool {
        self.access.requires_token()
    }

    /// Stops it: notifies pages, releases authority, closes a recording.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.hub.stop();
        if let Some(end) = self.end.take() {
            let _ = end.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Dashboard {
    fn drop(&mut self) {
        self.end();
    }
}

impl std::fmt::Debug for Dashboard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dashboard").field("url", &self.url).finish_non_exhaustive()
    }
}

/// State of the server's thread.
struct ServerThread {
    runtime: Runtime,
    listener: TcpListener,
    shared: Arc<Shared>,
    pages: Arc<PageSlots>,
}

impl ServerThread {
    fn run(self, ended: oneshot::Receiver<()>) {
        let ServerThread { runtime, listener, shared, pages } = self;
        runtime.block_on(async {
            tokio::select! {
                _ = ended => {}
                () = accept(listener, shared) => {}
            }
            pages.end();
            tokio::time::sleep(CLOSE_TIMEOUT).await;
        });
        // This closes connections; jobs check whether the dashboard has stopped.
        runtime.shutdown_timeout(JOBS_TIMEOUT);
    }
}

/// Number of connections by remote address.
#[derive(Default)]
struct Peers(Mutex<HashMap<IpAddr, usize>>);

/// A connection of an address, which is counted until it is dropped.
struct PeerConnection(Arc<Peers>, IpAddr);

impl Peers {
    fn take(self: &Arc<Peers>, peer: IpAddr) -> Option<PeerConnection> {
        let peer = network_of(peer);
        let mut all = lock(&self.0);
        let count = all.entry(peer).or_default();
        if *count >= MAX_CONNECTIONS_PER_PEER {
            return None;
        }
        *count += 1;
        Some(PeerConnection(self.clone(), peer))
    }
}

impl Drop for PeerConnection {
    fn drop(&mut self) {
        let mut all = lock(&self.0.0);
        if let Some(count) = all.get_mut(&self.1) {
            *count -= 1;
            if *count == 0 {
                all.remove(&self.1);
            }
        }
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let peers = Arc::new(Peers::default());
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            // For example, no free descriptors: other connections may close.
            Err(_) => {
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let Some(peer_connection) = peers.take(peer.ip()) else { continue };
        let shared = shared.clone();
        tokio::spawn(async move {
            // A page is served by its own task with its own permit.
            let _places = (place, peer_connection);
            let _ = stream.set_nodelay(true);
            let _ = connection(stream, peer.ip(), &shared).await;
        });
    }
}

async fn connection(stream: TcpStream, peer: IpAddr, shared: &Arc<Shared>) -> io::Result<()> {
    match shared.guard.access.acceptor() {
        None => serve(stream, peer, shared).await,
        Some(acceptor) => {
            let stream = timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream)).await??;
            serve(stream, peer, shared).await
        }
    }
}

async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: IpAddr,
    shared: &Arc<Shared>,
) -> io::Result<()> {
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEADERS_TIMEOUT);
    builder.max_buf_size(MAX_HEADERS_LEN_BYTES).max_headers(64);
    let progress = Progress::default();
    let service = service_fn(async |request| {
        Ok::<_, Infallible>(respond(shared, &progress, peer, request).await)
    });
    let serving = builder.serve_connection(TokioIo::new(stream), service).with_upgrades();
    let mut serving = std::pin::pin!(serving);
    loop {
        let chunks = progress.chunks();
        match timeout(CONNECTION_IDLE_TIMEOUT, &mut serving).await {
            Ok(served) => return served.map_err(io::Error::other),
            Err(late) if progress.chunks() == chunks => return Err(late.into()),
            Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_connections_per_address() {
        let peers = Arc::new(Peers::default());
        let [one, same, other] = ["fd00::1", "fd00::2", "10.0.0.1"].map(|of| of.parse().unwrap());
        let mut places: Vec<_> = std::iter::from_fn(|| peers.take(one)).collect();
        assert_eq!(places.len(), MAX_CONNECTIONS_PER_PEER);
        assert!(peers.take(same).is_none() && peers.take(other).is_some());
        places.pop();
        assert!(peers.take(same).is_some());
        drop(places);
        assert!(lock(&peers.0).is_empty());
    }
}
