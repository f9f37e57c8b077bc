//! Accepts connections, performs handshakes, and sends and receives frames.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::{SinkExt, StreamExt};
use rnet_access::{Access, EventCallback, User};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tokio_tungstenite::{WebSocketStream, accept_hdr_async_with_config};

use crate::acceptor::Acceptor;
use crate::backend::Backend;
use crate::hub::{Client, Hub};
use crate::outgoing::{self, Level};
use crate::queue::{Queue, QueueItem};
use crate::session::Session;

/// Maximum number of connections, including those in a handshake.
pub const MAX_CLIENTS: usize = 32;
/// Maximum length of a client's frame and message, in bytes.
const MAX_FRAME_LEN_BYTES: usize = 16 << 20;
/// Timeout of the handshake, including TLS.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval of pings, and timeout without any frame from the client.
const PING_INTERVAL: Duration = Duration::from_secs(10);
const PONG_TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout of sending a frame.
const SEND_TIMEOUT: Duration = Duration::from_secs(30);
/// Interval between two reports of dropped messages to a client.
const DROP_REPORT_INTERVAL: Duration = Duration::from_secs(1);
/// Delay after an error of the listener, for example without free descriptors.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

pub struct Server {
    pub hub: Arc<Hub>,
    pub backend: Arc<dyn Backend>,
    pub acceptor: Acceptor,
    pub on_event: EventCallback,
    pub refused: AtomicU64,
    pub next_client: AtomicU64,
}

impl Server {
    /// Accepts connections.
    pub async fn accept(self: Arc<Self>, listener: TcpListener) {
        let permits = Arc::new(Semaphore::new(MAX_CLIENTS));
        loop {
            let (stream, addr) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    (self.on_event)(&format!("cannot accept a connection: {error}"));
                    tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                    continue;
                }
            };
            let Ok(permit) = permits.clone().try_acquire_owned() else {
                self.refuse(addr, &format!("{MAX_CLIENTS} clients are connected, the limit"));
                continue;
            };
            let server = self.clone();
            tokio::spawn(async move {
                server.handle_connection(stream, addr).await;
                drop(permit);
            });
        }
    }

    /// Counts a rejection, and reports some of them.
    fn refuse(&self, addr: SocketAddr, why: &str) {
        let refused = self.refused.fetch_add(1, Ordering::Relaxed) + 1;
        if refused.is_power_of_two() {
            (self.on_event)(&format!("refused {addr}: {why} ({refused} refused so far)"));
        }
    }

    async fn handle_connection(&self, stream: TcpStream, addr: SocketAddr) {
        // Sends messages without delay.
        let _ = stream.set_nodelay(true);
        let Some(tls) = self.acceptor.access.acceptor() else {
            return self.handshake(stream, addr, HANDSHAKE_TIMEOUT).await;
        };
        let begun = Instant::now();
        match timeout(HANDSHAKE_TIMEOUT, tls.accept(stream)).await {
            Ok(Ok(stream)) => {
                self.handshake(stream, addr, HANDSHAKE_TIMEOUT.saturating_sub(begun.elapsed()))
                    .await;
            }
            Ok(Err(error)) => self.refuse(addr, &format!("TLS: {error}")),
            Err(_) => self.refuse(addr, "the TLS handshake took too long"),
        }
    }

    async fn handshake<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
        addr: SocketAddr,
        limit: Duration,
    ) {
        let config = WebSocketConfig::default()
            .max_message_size(Some(MAX_FRAME_LEN_BYTES))
            .max_frame_size(Some(MAX_FRAME_LEN_BYTES));
        let (mut counted, mut user) = (false, None);
        #[allow(clippy::result_large_err, reason = "the type is tungstenite's")]
        let answer = |request: &_, response| {
            match self.acceptor.answer(addr.ip(), request, response) {
                Ok((response, of_client)) => {
                    user = Some(of_client);
                    Ok(response)
                }
                // Counted before it is sent, so that a client that reads the rejection finds it counted.
                Err(refusal) => {
                    self.refuse(addr, refusal.body().as_deref().unwrap_or("access denied"));
                    counted = true;
                    Err(refusal)
                }
            }
        };
        let handshake = timeout(limit, accept_hdr_async_with_config(stream, answer, Some(config)));
        match (handshake.await, user) {
            (Ok(Ok(socket)), Some(user)) => self.serve(socket, addr, user).await,
            _ if counted => {}
            (Ok(Err(error)), _) => self.refuse(addr, &error.to_string()),
            _ => self.refuse(addr, "the WebSocket handshake took too long"),
        }
    }

    async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        socket: WebSocketStream<S>,
        addr: SocketAddr,
        user: User,
    ) {
        let id = self.next_client.fetch_add(1, Ordering::Relaxed);
        let client = Arc::new(Client { id, user, queue: Queue::default() });
        (self.on_event)(&format!("{addr} connected"));
        let mut session = Session::new(self.hub.clone(), self.backend.clone(), client.clone());
        let why = run_connection(socket, &self.acceptor.access, &client, &mut session).await;
        drop(session);
        let dropped = client.queue.dropped();
        let dropped = match dropped {
            0 => String::new(),
            count => format!("; {count} messages were dropped because it was too slow"),
        };
        (self.on_event)(&format!("{addr} disconnected: {why}{dropped}"));
    }
}

/// Sends and receives until one side closes the connection; returns the reason.
async fn run_connection<S: AsyncRead + AsyncWrite + Unpin>(
    socket: WebSocketStream<S>,
    access: &Access,
    client: &Client,
    session: &mut Session,
) -> String {
    let (mut sink, mut stream) = socket.split();
    let last_received = std::sync::Mutex::new(Instant::now());
    let reads = async {
        while let Some(message) = stream.next().await {
            let message = match message {
                Ok(message) => message,
                Err(error) => return (CloseCode::Protocol, error.to_string()),
            };
            *last_received.lock().unwrap_or_else(std::sync::PoisonError::into_inner) =
                Instant::now();
            if let Err(why) = session.handle_frame(&message) {
                return (CloseCode::Policy, why.to_owned());
            }
        }
        (CloseCode::Normal, "the client closed the connection".to_owned())
    };
    let sends = async {
        let mut ping = interval(PING_INTERVAL);
        let mut drop_report = interval(DROP_REPORT_INTERVAL);
        ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        drop_report.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut reported = 0;
        loop {
            let message = tokio::select! {
                next = client.queue.next() => match next {
                    QueueItem::Message(message) => message,
                    QueueItem::Closed(why) => return (CloseCode::Policy, why.to_owned()),
                },
                _ = ping.tick() => {
                    let last_received = *last_received.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    if last_received.elapsed() > PONG_TIMEOUT {
                        return (CloseCode::Policy, "the client does not answer pings".to_owned());
                    }
                    Message::Ping(Vec::new().into())
                }
                _ = drop_report.tick() => {
                    let dropped = client.queue.dropped();
                    if dropped == reported {
                        continue;
                    }
                    let newly = dropped - std::mem::replace(&mut reported, dropped);
                    let why = format!("{newly} messages were dropped because this client was too slow");
                    outgoing::status(Level::Warning, &why)
                }
            };
            match timeout(SEND_TIMEOUT, sink.send(message)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => return (CloseCode::Abnormal, error.to_string()),
                Err(_) => return (CloseCode::Abnormal, "the client does not read".to_owned()),
            }
        }
    };
    let (code, why) = tokio::select! {
        ended = reads => ended,
        ended = sends => ended,
        () = access.until_ended(&client.user) => {
            (CloseCode::Policy, "its token was removed or has expired".to_owned())
        }
    };
    if code != CloseCode::Abnormal {
        let reason = why.chars().take(100).collect::<String>().into();
        let close = Message::Close(Some(CloseFrame { code, reason }));
        // A client that does not read this either is disconnected anyway.
        let _ = timeout(Duration::from_secs(1), sink.send(close)).await;
    }
    why
}
