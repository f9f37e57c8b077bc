//! A server in its own domain, a page as a client, and raw requests.

// Each test program uses only a part of this.
#![allow(dead_code)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rnet::Node;
use rnet::inspect::Location;
use rnet_dashboard::{Dashboard, Options};
use serde_json::{Value as Json, json};
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::{Message, WebSocket};

/// Timeout that only a hang exceeds; not a measurement.
pub const HANG: Duration = Duration::from_secs(300);
pub const DOMAIN: &str = "dash";

/// A private directory of domains; removed on drop.
pub struct TestDomain {
    pub dir: PathBuf,
}

impl TestDomain {
    pub fn new() -> TestDomain {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("rnet-dash-test-{}-{n}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        TestDomain { dir }
    }

    pub fn location(&self) -> Location {
        Location::new(Some(DOMAIN), Some(self.dir.clone()), None).unwrap()
    }

    pub fn node(&self, name: &str) -> Node {
        let builder = Node::builder(name).dir(&self.dir).domain(DOMAIN);
        builder.state_dir(self.dir.join("state")).open().unwrap()
    }

    pub fn options(&self) -> Options {
        Options::new(self.location(), 0)
    }

    pub fn start(&self) -> Dashboard {
        Dashboard::start(self.options()).unwrap()
    }
}

impl Drop for TestDomain {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// Whether the figures contain a node.
pub fn has_node(figures: &Json, name: &str) -> bool {
    figures["nodes"].as_array().is_some_and(|all| all.iter().any(|node| node["node"] == name))
}

/// An HTTP answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

pub fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(HANG)).unwrap();
    stream.set_write_timeout(Some(HANG)).unwrap();
    stream
}

/// Sends these bytes, and reads until the server closes the connection.
pub fn raw(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = connect(address);
    // A connection that is rejected at once may be reset.
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer
}

pub fn parse(bytes: &[u8]) -> Answer {
    let at = bytes.windows(4).position(|end| end == b"\r\n\r\n").unwrap_or(bytes.len());
    let head = String::from_utf8_lossy(&bytes[..at]).into_owned();
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
    Answer { status, head, body: bytes.get(at + 4..).unwrap_or_default().to_vec() }
}

/// `GET path` with additional headers, each terminated by a line break.
pub fn get_with(address: SocketAddr, path: &str, headers: &str) -> Answer {
    let text =
        format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{headers}\r\n");
    parse(&raw(address, text.as_bytes()))
}

pub fn get(address: SocketAddr, path: &str) -> Answer {
    get_with(address, path, "")
}

/// The status of the answer to an upgrade with these headers.
pub fn upgrade(address: SocketAddr, headers: &str) -> u16 {
    let text = format!(
        "GET /ws HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{headers}\r\n"
    );
    let mut stream = connect(address);
    stream.write_all(text.as_bytes()).unwrap();
    let mut head = [0; 12];
    stream.read_exact(&mut head).unwrap();
    std::str::from_utf8(&head[9..]).unwrap().parse().unwrap()
}

/// A page: a client that stores messages until they are awaited.
pub struct Page {
    pub socket: WebSocket<TcpStream>,
    next: u64,
    /// Messages that arrived while another one was awaited.
    received: Vec<Received>,
}

/// A message to a page.
#[derive(Clone, Debug)]
pub struct Received {
    pub json: Json,
    pub payload: Vec<u8>,
}

impl Page {
    pub fn open(dashboard: &Dashboard) -> Page {
        let stream = connect(dashboard.address());
        let url = format!("ws://{}/ws", dashboard.address());
        let (socket, _) = tungstenite::client(url, stream).unwrap();
        let mut page = Page { socket, next: 1, received: Vec::new() };
        let hello = page.receive();
        assert_eq!(hello.json["hello"]["protocol"], 1, "{hello:?}");
        page
    }

    /// The next message of any kind.
    pub fn receive(&mut self) -> Received {
        loop {
            match self.socket.read().unwrap() {
                Message::Text(text) => {
                    let json = serde_json::from_str(&text).unwrap();
                    return Received { json, payload: Vec::new() };
                }
                Message::Binary(bytes) => {
                    let len = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
                    let json = serde_json::from_slice(&bytes[4..4 + len]).unwrap();
                    return Received { json, payload: bytes[4 + len..].to_vec() };
                }
                Message::Close(frame) => panic!("closed: {frame:?}"),
                _ => {}
            }
        }
    }

    /// The close frame of the server, after any other messages.
    pub fn closing(&mut self) -> Option<(CloseCode, String)> {
        loop {
            match self.socket.read() {
                Ok(Message::Close(frame)) => {
                    return frame.map(|frame| (frame.code, frame.reason.to_string()));
                }
                Ok(_) => {}
                Err(_) => return None,
            }
        }
    }

    /// The first match among stored and further messages.
    pub fn until<T>(&mut self, mut fits: impl FnMut(&Received) -> Option<T>) -> T {
        let begun = Instant::now();
        let kept = self.received.iter().position(|received| fits(received).is_some());
        if let Some(at) = kept {
            return fits(&self.received.remove(at)).unwrap();
        }
        loop {
            let received = self.receive();
            if let Some(found) = fits(&received) {
                return found;
            }
            assert!(
                begun.elapsed() < HANG,
                "the awaited message does not arrive; the last one is {}",
                received.json
            );
            self.received.push(received);
            if self.received.len() > 1_000 {
                self.received.remove(0);
            }
        }
    }

    /// Sends a request with a new id, and returns the id.
    pub fn send(&mut self, mut request: Json) -> u64 {
        let id = self.next;
        self.next += 1;
        request["id"] = id.into();
        self.socket.send(Message::text(request.to_string())).unwrap();
        id
    }

    /// The final answer to a request; partial answers are skipped.
    pub fn answer(&mut self, id: u64) -> Json {
        self.until(|received| {
            let is_it = received.json["re"] == id && received.json["more"] != true;
            is_it.then(|| received.json.clone())
        })
    }

    pub fn ask(&mut self, request: Json) -> Json {
        let id = self.send(request);
        self.answer(id)
    }

    /// Opens a subscription, and returns its id.
    pub fn sub(&mut self, mut request: Json) -> u64 {
        request["op"] = "sub".into();
        let id = self.send(request);
        let answer = self.answer(id);
        assert_eq!(answer["ok"], true, "{answer}");
        id
    }

    /// The first matching data of a subscription.
    pub fn data<T>(&mut self, sub: u64, mut fits: impl FnMut(&Json) -> Option<T>) -> T {
        self.until(|received| {
            (received.json["sub"] == sub).then(|| fits(&received.json["data"])).flatten()
        })
    }

    /// Like `data`, but drops earlier data of the subscription, which is outdated.
    pub fn data_since<T>(&mut self, sub: u64, mut fits: impl FnMut(&Json) -> Option<T>) -> T {
        let all = std::mem::take(&mut self.received).into_iter();
        let (kept, others): (Vec<_>, _) = all.partition(|received| received.json["sub"] == sub);
        self.received = others;
        let mut kept = kept.into_iter();
        if let Some(found) = kept.by_ref().find_map(|received| fits(&received.json["data"])) {
            self.received.extend(kept);
            return found;
        }
        let found = self.data(sub, fits);
        self.received.retain(|received| received.json["sub"] != sub);
        found
    }

    /// The error code of the answer to a request.
    pub fn refused(&mut self, request: Json) -> String {
        let answer = self.ask(request);
        assert_eq!(answer["ok"], false, "{answer}");
        assert!(!answer["error"]["message"].as_str().unwrap().is_empty());
        answer["error"]["code"].as_str().unwrap().to_owned()
    }
}

/// `{"op": "sub", …}` without further fields.
pub fn what(name: &str) -> Json {
    json!({"what": name})
}
