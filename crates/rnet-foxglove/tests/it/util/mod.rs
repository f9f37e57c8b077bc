//! A private domain, a server for it, and a minimal WebSocket client.

// Each test program uses only a part of this.
#![allow(dead_code)]

use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rnet::Node;
use rnet::inspect::Location;
use rnet_foxglove::{Options, ServerHandle, serve};
use serde_json::Value;
use tungstenite::client::IntoClientRequest;
use tungstenite::{Message, WebSocket};

/// Timeout that only a hang exceeds; not a measurement.
pub const HANG: Duration = Duration::from_secs(300);
pub const LONG: Duration = HANG;
const DOMAIN: &str = "fox";

/// A private directory of domains; removed on drop.
pub struct TestDomain(pub PathBuf);

impl TestDomain {
    pub fn new() -> TestDomain {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("rnet-fox-{}-{n}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        TestDomain(dir)
    }

    pub fn node(&self, name: &str) -> Node {
        let durable = self.0.join("durable");
        Node::builder(name).dir(&self.0).domain(DOMAIN).state_dir(durable).open().unwrap()
    }

    pub fn location(&self) -> Location {
        Location::new(Some(DOMAIN), Some(self.0.clone()), None).unwrap()
    }

    pub fn options(&self) -> Options {
        let mut options = Options::new(self.location());
        options.access.address.set_port(0);
        options
    }

    pub fn server(&self) -> ServerHandle {
        serve(self.options()).unwrap()
    }
}

impl Drop for TestDomain {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A minimal client of the protocol.
pub struct Viewer(pub WebSocket<TcpStream>);

/// Connects with these headers in addition to the required ones.
pub fn connect(
    addr: SocketAddr,
    headers: &[(&'static str, &str)],
) -> Result<Viewer, tungstenite::Error> {
    let stream = TcpStream::connect(addr).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream.set_write_timeout(Some(LONG)).unwrap();
    let mut request = format!("ws://{addr}/").into_client_request().unwrap();
    let with_protocol = [("sec-websocket-protocol", "foxglove.sdk.v1")];
    for (name, value) in with_protocol.iter().chain(headers) {
        request.headers_mut().insert(*name, value.parse().unwrap());
    }
    match tungstenite::client(request, stream) {
        Ok((socket, _)) => Ok(Viewer(socket)),
        Err(tungstenite::HandshakeError::Failure(error)) => Err(error),
        Err(error) => panic!("{error}"),
    }
}

impl Viewer {
    pub fn of(server: &ServerHandle) -> Viewer {
        connect(server.addr(), &[]).unwrap()
    }

    pub fn send(&mut self, value: &Value) {
        self.0.send(Message::text(value.to_string())).unwrap();
    }

    pub fn binary(&mut self, parts: &[&[u8]]) {
        self.0.send(Message::binary(parts.concat())).unwrap();
    }

    /// The first `Some` result of `take` for the following messages.
    #[track_caller]
    pub fn until<T>(&mut self, mut take: impl FnMut(&Message) -> Option<T>) -> T {
        let begun = Instant::now();
        loop {
            assert!(begun.elapsed() < HANG, "the awaited message does not arrive");
            let message = self.0.read().unwrap();
            if let Some(taken) = take(&message) {
                return taken;
            }
        }
    }

    /// The next text frame of this operation that `wanted` accepts.
    #[track_caller]
    pub fn recv_text(&mut self, op: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        self.until(|message| {
            let Message::Text(text) = message else { return None };
            let value: Value = serde_json::from_str(text).unwrap();
            (value["op"] == op && wanted(&value)).then_some(value)
        })
    }

    /// The next binary frame of this operation, without the operation code.
    #[track_caller]
    pub fn frame(&mut self, op: u8) -> Vec<u8> {
        self.until(|message| match message {
            Message::Binary(bytes) if bytes[0] == op => Some(bytes[1..].to_vec()),
            _ => None,
        })
    }

    /// The channel of a topic, when it is advertised.
    #[track_caller]
    pub fn channel(&mut self, topic: &str) -> Value {
        self.until(|message| {
            let Message::Text(text) = message else { return None };
            let value: Value = serde_json::from_str(text).unwrap();
            let channels = value["channels"].as_array()?;
            channels.iter().find(|channel| channel["topic"] == topic).cloned()
        })
    }

    pub fn subscribe(&mut self, id: u32, channel: &Value) {
        let subscriptions = serde_json::json!([{"id": id, "channelId": channel["id"]}]);
        self.send(&serde_json::json!({"op": "subscribe", "subscriptions": subscriptions}));
    }

    /// The next topic message: its subscription id and its payload.
    #[track_caller]
    pub fn message(&mut self) -> (u32, Vec<u8>) {
        let frame = self.frame(1);
        (u32::from_le_bytes(frame[..4].try_into().unwrap()), frame[12..].to_vec())
    }

    /// Why the server has closed the connection.
    #[track_caller]
    pub fn close_reason(&mut self) -> String {
        let begun = Instant::now();
        loop {
            assert!(begun.elapsed() < HANG, "the connection is not closed");
            match self.0.read() {
                Ok(Message::Close(frame)) => {
                    return frame.map_or_else(String::new, |frame| format!("{frame}"));
                }
                Ok(_) => {}
                Err(error) => return error.to_string(),
            }
        }
    }
}

/// Waits for a condition.
#[track_caller]
pub fn wait(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < HANG, "{what} does not happen");
        std::thread::sleep(Duration::from_millis(5)); // sleep: between two checks of the condition.
    }
}
