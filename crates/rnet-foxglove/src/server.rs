//! The door and the connections: who listens, lets in, sends and reads.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tokio_tungstenite::{WebSocketStream, accept_hdr_async_with_config};

use crate::backend::Backend;
use crate::door::Door;
use crate::hub::{Client, Hub};
use crate::queue::{Next, Queue};
use crate::say::{self, Level};
use crate::session::Session;

/// Connections at a time, those that have not come in yet included.
pub const MAX_CLIENTS: usize = 32;
/// Longest frame and message of a client, in bytes.
const MAX_FRAME_LEN_BYTES: usize = 16 << 20;
/// How long a client may take to say what it wants, TLS included.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(5);
/// How often a client is asked whether it is there, and how long it may say nothing, not even that it is.
const PING_INTERVAL: Duration = Duration::from_secs(10);
const SILENCE_LIMIT: Duration = Duration::from_secs(30);
/// How long a client may not take what it is sent.
const STALL_LIMIT: Duration = Duration::from_secs(30);
/// Between two words to a client that it is too slow.
const SLOW_INTERVAL: Duration = Duration::from_secs(1);
/// After an error of the listener: descriptors have run out, say.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Says something to who runs the server.
pub type Tell = Arc<dyn Fn(&str) + Send + Sync>;

pub struct Server {
    pub hub: Arc<Hub>,
    pub backend: Arc<dyn Backend>,
    pub door: Door,
    pub tls: Option<TlsAcceptor>,
    pub tell: Tell,
    pub refused: AtomicU64,
    pub next_client: AtomicU64,
}

impl Server {
    /// Lets clients in.
    pub async fn accept(self: Arc<Self>, listener: TcpListener) {
        let places = Arc::new(Semaphore::new(MAX_CLIENTS));
        loop {
            let (stream, addr) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    (self.tell)(&format!("cannot accept a connection: {error}"));
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let Ok(place) = places.clone().try_acquire_owned() else {
                self.refuse(addr, &format!("{MAX_CLIENTS} clients are connected, the limit"));
                continue;
            };
            let server = self.clone();
            tokio::spawn(async move {
                server.receive(stream, addr).await;
                drop(place);
            });
        }
    }

    /// Says that somebody was not let in; of many, few are told.
    fn refuse(&self, addr: SocketAddr, why: &str) {
        let refused = self.refused.fetch_add(1, Ordering::Relaxed) + 1;
        if refused.is_power_of_two() {
            (self.tell)(&format!("refused {addr}: {why} ({refused} refused so far)"));
        }
    }

    async fn receive(&self, stream: TcpStream, addr: SocketAddr) {
        // Messages are sent as they come.
        let _ = stream.set_nodelay(true);
        let Some(tls) = &self.tls else { return self.shake(stream, addr, HANDSHAKE_LIMIT).await };
        let begun = Instant::now();
        match timeout(HANDSHAKE_LIMIT, tls.accept(stream)).await {
            Ok(Ok(stream)) => {
                self.shake(stream, addr, HANDSHAKE_LIMIT.saturating_sub(begun.elapsed())).await;
            }
            Ok(Err(error)) => self.refuse(addr, &format!("TLS: {error}")),
            Err(_) => self.refuse(addr, "the TLS handshake took too long"),
        }
    }

    async fn shake<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
        addr: SocketAddr,
        limit: Duration,
    ) {
        let config = WebSocketConfig::default()
            .max_message_size(Some(MAX_FRAME_LEN_BYTES))
            .max_frame_size(Some(MAX_FRAME_LEN_BYTES));
        let mut counted = false;
        #[allow(clippy::result_large_err, reason = "the type is tungstenite's")]
        let answer = |request: &_, response| {
            let answered = self.door.answer(request, response);
            // Counted before it is sent, so that whoever has read the refusal finds it counted.
            if let Err(refusal) = &answered {
                self.refuse(addr, refusal.body().as_deref().unwrap_or("access denied"));
                counted = true;
            }
            answered
        };
        let shaken = timeout(limit, accept_hdr_async_with_config(stream, answer, Some(config)));
        match shaken.await {
            Ok(Ok(socket)) => self.serve(socket, addr).await,
            _ if counted => {}
            Ok(Err(error)) => self.refuse(addr, &error.to_string()),
            Err(_) => self.refuse(addr, "the WebSocket handshake took too long"),
        }
    }

    async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        socket: WebSocketStream<S>,
        addr: SocketAddr,
    ) {
        let id = self.next_client.fetch_add(1, Ordering::Relaxed);
        let client = Arc::new(Client { id, queue: Queue::default() });
        (self.tell)(&format!("{addr} connected"));
        let mut session = Session::new(self.hub.clone(), self.backend.clone(), client.clone());
        let why = converse(socket, &client, &mut session).await;
        drop(session);
        let dropped = client.queue.dropped();
        let dropped = match dropped {
            0 => String::new(),
            count => format!("; {count} messages were dropped because it was too slow"),
        };
        (self.tell)(&format!("{addr} disconnected: {why}{dropped}"));
    }
}

/// Sends and reads until one of both ends it, and says why it has ended.
async fn converse<S: AsyncRead + AsyncWrite + Unpin>(
    socket: WebSocketStream<S>,
    client: &Client,
    session: &mut Session,
) -> String {
    let (mut sink, mut stream) = socket.split();
    let heard = std::sync::Mutex::new(Instant::now());
    let reads = async {
        while let Some(message) = stream.next().await {
            let message = match message {
                Ok(message) => message,
                Err(error) => return (CloseCode::Protocol, error.to_string()),
            };
            *heard.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Instant::now();
            if let Err(why) = session.take(&message) {
                return (CloseCode::Policy, why.to_owned());
            }
        }
        (CloseCode::Normal, "the client closed the connection".to_owned())
    };
    let sends = async {
        let mut ping = interval(PING_INTERVAL);
        let mut look = interval(SLOW_INTERVAL);
        ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut told = 0;
        loop {
            let message = tokio::select! {
                next = client.queue.next() => match next {
                    Next::Message(message) => message,
                    Next::Closed(why) => return (CloseCode::Policy, why.to_owned()),
                },
                _ = ping.tick() => {
                    let heard = *heard.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    if heard.elapsed() > SILENCE_LIMIT {
                        return (CloseCode::Policy, "the client does not answer pings".to_owned());
                    }
                    Message::Ping(Vec::new().into())
                }
                _ = look.tick() => {
                    let dropped = client.queue.dropped();
                    if dropped == told {
                        continue;
                    }
                    let newly = dropped - std::mem::replace(&mut told, dropped);
                    let why = format!("{newly} messages were dropped because this client was too slow");
                    say::status(Level::Warning, &why)
                }
            };
            match timeout(STALL_LIMIT, sink.send(message)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => return (CloseCode::Abnormal, error.to_string()),
                Err(_) => return (CloseCode::Abnormal, "the client does not read".to_owned()),
            }
        }
    };
    let (code, why) = tokio::select! { ended = reads => ended, ended = sends => ended };
    if code != CloseCode::Abnormal {
        let reason = why.chars().take(100).collect::<String>().into();
        let close = Message::Close(Some(CloseFrame { code, reason }));
        // Who does not take this either is cut off all the same.
        let _ = timeout(Duration::from_secs(1), sink.send(close)).await;
    }
    why
}
