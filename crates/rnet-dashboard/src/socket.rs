//! The WebSocket of a page: receives requests, and sends the outbox.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::app_state::lock;
use crate::outbox::{Frame, Outbox};
use crate::session::Session;

/// Maximum number of connected pages.
pub const MAX_PAGES: usize = 16;
/// Maximum requests per second, and maximum burst.
const REQUESTS_HZ: f64 = 100.0;
const REQUESTS_BURST: f64 = 200.0;
const PING_INTERVAL: Duration = Duration::from_secs(10);
/// A client that sends nothing for this long is disconnected.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// A client that does not read a frame for this long is disconnected.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);

const GOING_AWAY: u16 = 1001;
const UNSUPPORTED: u16 = 1003;
const POLICY_VIOLATION: u16 = 1008;

type WebSocket = WebSocketStream<TokioIo<Upgraded>>;

/// The permits of pages, and their shutdown.
pub struct PageSlots {
    places: Arc<Semaphore>,
    end: Notify,
}

impl Default for PageSlots {
    fn default() -> PageSlots {
        PageSlots { places: Arc::new(Semaphore::new(MAX_PAGES)), end: Notify::new() }
    }
}

impl PageSlots {
    pub fn take(&self) -> Option<OwnedSemaphorePermit> {
        self.places.clone().try_acquire_owned().ok()
    }

    /// Closes all pages.
    pub fn end(&self) {
        self.end.notify_waiters();
    }
}

/// A token bucket for requests.
struct RequestLimiter {
    left: f64,
    at: Instant,
}

impl RequestLimiter {
    fn take(&mut self) -> bool {
        let now = Instant::now();
        let filled = now.duration_since(self.at).as_secs_f64() * REQUESTS_HZ;
        (self.left, self.at) = ((self.left + filled).min(REQUESTS_BURST), now);
        self.left -= 1.0;
        self.left >= 0.0
    }
}

/// The WebSocket close code and reason.
struct CloseReason(u16, &'static str);

const ANSWERS_UNREAD: CloseReason =
    CloseReason(POLICY_VIOLATION, "slow: the client does not read the answers");

/// Serves a page until it leaves or is disconnected.
pub async fn serve(
    mut session: Session,
    pages: Arc<PageSlots>,
    socket: WebSocket,
    place: OwnedSemaphorePermit,
) {
    let outbox = session.outbox.clone();
    outbox.answer(session.hello());
    let (mut sink, stream) = socket.split();
    let cut = run(&mut session, &outbox, &pages, (&mut sink, stream)).await;
    outbox.close();
    // Its subscriptions and calls end before the page can reconnect.
    drop(session);
    if let Some(CloseReason(code, reason)) = cut {
        let close = Message::Close(Some(CloseFrame { code: code.into(), reason: reason.into() }));
        let _ = timeout(Duration::from_secs(1), sink.send(close)).await;
    }
    drop(place);
}

/// Receives and sends concurrently: a page that does not read, or whose network is slow, can still send
/// "stop".
async fn run(
    session: &mut Session,
    outbox: &Outbox,
    pages: &PageSlots,
    (sink, stream): (&mut SplitSink<WebSocket, Message>, SplitStream<WebSocket>),
) -> Option<CloseReason> {
    let end = pages.end.notified();
    tokio::pin!(end);
    end.as_mut().enable();
    if session.is_over() {
        return Some(CloseReason(GOING_AWAY, "the server is shutting down"));
    }
    let received_at = Mutex::new(Instant::now());
    let (access, user) = (session.access.clone(), session.user.clone());
    tokio::select! {
        biased;
        () = &mut end => Some(CloseReason(GOING_AWAY, "the server is shutting down")),
        () = access.until_ended(&user) => {
            Some(CloseReason(POLICY_VIOLATION, "token: it was removed or has expired"))
        }
        cut = read(stream, session, outbox, &received_at) => cut,
        cut = send(sink, outbox, &received_at) => cut,
    }
}

async fn read(
    mut stream: SplitStream<WebSocket>,
    session: &mut Session,
    outbox: &Outbox,
    received_at: &Mutex<Instant>,
) -> Option<CloseReason> {
    let mut rate = RequestLimiter { left: REQUESTS_BURST, at: Instant::now() };
    loop {
        let message = stream.next().await;
        *lock(received_at) = Instant::now();
        match message {
            // One per sent data item, so it does not count as a request.
            Some(Ok(Message::Text(text))) if session.acknowledge(&text) => {}
            Some(Ok(Message::Text(text))) if rate.take() => session.request(&text),
            Some(Ok(Message::Text(_) | Message::Binary(_))) if rate.left < 0.0 => {
                return Some(CloseReason(POLICY_VIOLATION, "rate: too many requests"));
            }
            Some(Ok(Message::Text(_) | Message::Binary(_))) => {
                return Some(CloseReason(UNSUPPORTED, "requests must be text"));
            }
            // Pings count as requests, because they are answered. `Frame` is never received.
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {
                if !rate.take() {
                    return Some(CloseReason(POLICY_VIOLATION, "rate: too many frames"));
                }
            }
            Some(Ok(Message::Close(_))) | None => return None,
            Some(Err(error)) => return too_large(&error),
        }
        if outbox.answers_overflow() {
            return Some(ANSWERS_UNREAD);
        }
    }
}

async fn send(
    sink: &mut SplitSink<WebSocket, Message>,
    outbox: &Outbox,
    received_at: &Mutex<Instant>,
) -> Option<CloseReason> {
    let mut pings = interval(PING_INTERVAL);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let message = tokio::select! {
            biased;
            _ = pings.tick() => {
                let received_at = *lock(received_at);
                if received_at.elapsed() > IDLE_TIMEOUT {
                    return Some(CloseReason(POLICY_VIOLATION, "slow: the client does not answer pings"));
                }
                Message::Ping(Vec::new().into())
            }
            frame = next(outbox) => match frame {
                Some(Frame::Text(text)) => Message::Text(text.into()),
                Some(Frame::Binary(bytes)) => Message::Binary(bytes.into()),
                None => return Some(ANSWERS_UNREAD),
            },
        };
        match timeout(SEND_TIMEOUT, sink.send(message)).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return None,
            Err(_) => return Some(CloseReason(POLICY_VIOLATION, "slow: the client does not read")),
        }
    }
}

/// The next frame for the page; `None` if an answer did not fit.
async fn next(outbox: &Outbox) -> Option<Frame> {
    loop {
        if outbox.answers_overflow() {
            return None;
        }
        if let Some(frame) = outbox.take() {
            return Some(frame);
        }
        outbox.wait().await;
    }
}

/// A frame that is too large gets a close reason; a broken connection cannot get one.
fn too_large(error: &Error) -> Option<CloseReason> {
    matches!(error, Error::Capacity(_)).then_some(CloseReason(1009, "too large"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_burst_and_limits_flood() {
        let mut rate = RequestLimiter { left: REQUESTS_BURST, at: Instant::now() };
        let passed = (0..10_000).take_while(|_| rate.take()).count();
        assert!(passed >= REQUESTS_BURST as usize && passed < 10_000, "{passed}");
    }
}
