//! Tokens of the keys file with their roles, over TLS with its certificate: what each role may do, tokens that
//! are removed or expire while a page is open, wrong tokens, and a renewed certificate.

use crate::util;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rnet_dashboard::Dashboard;
use rnet_keys::{Authority, HostRequest, Rights, Role, add_token, remove_token};
use serde_json::{Value as Json, json};
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tungstenite::client::IntoClientRequest;
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::{Message, WebSocket};
use util::{Answer, TestDomain, connect, parse};

type TlsStream = StreamOwned<ClientConnection, TcpStream>;

/// A dashboard that other hosts can reach, with the keys file of the host `robot`.
struct Secured {
    place: TestDomain,
    keys: PathBuf,
    dashboard: Dashboard,
}

impl Secured {
    fn start() -> Secured {
        let place = TestDomain::new();
        let keys = place.dir.join("keys.pem");
        issue(&place);
        add_token(&keys, "first", Role::Look, None).unwrap();
        let mut options = place.options();
        options.access.address = SocketAddr::from(([0, 0, 0, 0], 0));
        options.access.keys = Some(keys.clone());
        let dashboard = Dashboard::start(options).unwrap();
        Secured { place, keys, dashboard }
    }

    fn token(&self, name: &str, role: Role) -> String {
        add_token(&self.keys, name, role, None).unwrap()
    }

    fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.dashboard.address().port()))
    }

    /// A connection of a client that trusts the authority in a folder.
    fn connect_trusting(&self, authority: &str) -> std::io::Result<TlsStream> {
        let pem = std::fs::read(self.place.dir.join(authority).join("authority.pem")).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(&pem).unwrap()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = "localhost".try_into().unwrap();
        let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
        let mut stream = connect(self.address());
        while client.is_handshaking() {
            client.complete_io(&mut stream)?;
        }
        Ok(StreamOwned::new(client, stream))
    }

    fn send(&self, request: &str) -> Answer {
        let mut stream = self.connect_trusting("authority").unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        parse(&bytes)
    }

    fn get(&self, path: &str, headers: &str) -> Answer {
        self.send(&format!(
            "GET {path} HTTP/1.1\r\nHost: robot\r\nConnection: close\r\n{headers}\r\n"
        ))
    }

    fn page(&self, token: &str) -> TlsPage {
        let url = format!("wss://robot.local:{}/ws", self.address().port());
        let mut request = url.into_client_request().unwrap();
        let value = format!("Bearer {token}").parse().unwrap();
        request.headers_mut().insert("authorization", value);
        let stream = self.connect_trusting("authority").unwrap();
        let (socket, _) = tungstenite::client(request, stream).unwrap();
        let mut page = TlsPage { socket, next: 0, hello: Json::Null };
        page.hello = page.receive(|json| json["hello"].is_object())["hello"].clone();
        page
    }
}

/// Issues the certificate of `robot`, or renews it.
fn issue(place: &TestDomain) {
    let (mut authority, _) = Authority::init(&place.dir.join("authority")).unwrap();
    let addresses = vec![[127, 0, 0, 1].into()];
    let request = HostRequest { name: "robot".into(), rights: Rights::all(), days: 1, addresses };
    authority.add_host(&request, &place.dir.join("keys.pem")).unwrap();
}

fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}\r\n")
}

struct TlsPage {
    socket: WebSocket<TlsStream>,
    next: u64,
    hello: Json,
}

impl TlsPage {
    fn receive(&mut self, fits: impl Fn(&Json) -> bool) -> Json {
        loop {
            if let Message::Text(text) = self.socket.read().unwrap() {
                let json: Json = serde_json::from_str(&text).unwrap();
                if fits(&json) {
                    return json;
                }
            }
        }
    }

    fn ask(&mut self, mut request: Json) -> Json {
        self.next += 1;
        request["id"] = self.next.into();
        self.socket.send(Message::text(request.to_string())).unwrap();
        let id = self.next;
        self.receive(|json| json["re"] == id && json["more"] != true)
    }

    /// Waits until the server closes the connection, and returns why.
    fn closing(&mut self) -> (CloseCode, String) {
        loop {
            if let Message::Close(Some(frame)) = self.socket.read().unwrap() {
                return (frame.code, frame.reason.to_string());
            }
        }
    }
}

const SHOWS: [&str; 2] = ["type", "launch.logs"];
const OPERATES: [&str; 14] = [
    "state.set",
    "state.delete",
    "param.set",
    "param.reset",
    "call",
    "record.start",
    "record.stop",
    "play.start",
    "play.pause",
    "play.stop",
    "blackbox.trigger",
    "launch.stop",
    "launch.restart",
    "launch.kill",
];
const DRIVES: [&str; 4] =
    ["command.take", "command.take_all", "command.release", "command.release_all"];

#[test]
fn each_role_may_do_what_it_includes() {
    let secured = Secured::start();
    let node = secured.place.node("arm");
    node.state().unwrap().set("/a", 1).unwrap();
    let speed = node.param::<f64>("speed").default(1.0).declare().unwrap();
    for role in Role::ALL {
        let token = secured.token("tablet", role);
        let mut page = secured.page(&token);
        assert_eq!(page.hello["token"], "tablet");
        assert_eq!(page.hello["role"], role.as_str());
        let needed = SHOWS.map(|op| (op, Role::Look)).into_iter();
        let needed = needed.chain(OPERATES.map(|op| (op, Role::Operate)));
        for (op, needed) in needed.chain(DRIVES.map(|op| (op, Role::Drive))) {
            // Invalid if it is allowed: only the right to ask for it is tested here.
            let answer = page.ask(json!({"op": op, "name": "missing/x", "node": "/missing"}));
            let is_refused = answer["error"]["code"] == "role";
            assert_eq!(is_refused, role < needed, "{role} {op}: {answer}");
            if is_refused {
                let why = format!(
                    "the token \"tablet\" has the role {role}; {op} needs the role {needed}"
                );
                assert_eq!(answer["error"]["message"], why);
            }
        }
        // Authority over a command is given by a service.
        let call = json!({"op": "call", "service": "/_rnet/command/cmd_vel", "timeout_s": 0.1});
        let answer = page.ask(call);
        assert_eq!(answer["error"]["code"] == "role", role < Role::Drive, "{role}: {answer}");
        let answer = page.ask(json!({"op": "sub", "what": "state"}));
        assert_eq!(answer["ok"], true, "{answer}");
        let set = json!({"op": "param.set", "node": "/arm", "name": "/speed", "value": 2.0});
        let answer = page.ask(set);
        assert_eq!(answer["ok"], role >= Role::Operate, "{role}: {answer}");
        assert_eq!(speed.get().unwrap(), if role == Role::Look { 1.0 } else { 2.0 });
        for path in ["/", "/metrics", "/healthz"] {
            let status = secured.get(path, &bearer(&token)).status;
            assert!([200, 503].contains(&status), "{role} {path}: {status}");
        }
    }
}

#[test]
fn removed_or_replaced_token_ends_open_pages_and_others_stay() {
    let secured = Secured::start();
    let (gone, stays) = (secured.token("gone", Role::Drive), secured.token("stays", Role::Operate));
    let (mut first, mut other) = (secured.page(&gone), secured.page(&stays));
    remove_token(&secured.keys, "gone").unwrap();
    let (code, why) = first.closing();
    assert_eq!((code, why.as_str()), (CloseCode::Policy, "token: it was removed or has expired"));
    assert_eq!(secured.get("/metrics", &bearer(&gone)).status, 401);
    assert_eq!(other.ask(json!({"op": "record.stop"}))["error"]["code"], "refused");
    // The same name and role, with another secret: the old one may have leaked.
    let new = secured.token("stays", Role::Operate);
    assert_eq!(other.closing().0, CloseCode::Policy);
    assert_eq!(secured.page(&new).hello["token"], "stays");
}

#[test]
fn expired_token_ends_an_open_page() {
    let secured = Secured::start();
    let expires = SystemTime::now() + Duration::from_secs(2);
    let token = add_token(&secured.keys, "guest", Role::Operate, Some(expires)).unwrap();
    let mut page = secured.page(&token);
    assert_eq!(page.closing().0, CloseCode::Policy);
    let answer = secured.get("/metrics", &bearer(&token));
    assert_eq!(answer.status, 401);
    assert!(answer.text().contains("has expired"), "{answer:?}");
}

#[test]
fn login_takes_each_token_until_it_is_removed() {
    let secured = Secured::start();
    let [look, drive] =
        [("tv", Role::Look), ("pilot", Role::Drive)].map(|(name, role)| secured.token(name, role));
    let mut sessions = Vec::new();
    for token in [&look, &drive] {
        let body = format!("token={token}");
        let answer = secured.send(&format!(
            "POST /login HTTP/1.1\r\nHost: robot\r\nConnection: close\r\nContent-Type: \
             application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ));
        assert_eq!((answer.status, answer.header("location")), (303, Some("/")), "{answer:?}");
        let cookie = answer.header("set-cookie").unwrap().to_owned();
        assert!(cookie.contains("; Secure"), "{cookie}");
        sessions.push(format!("Cookie: {}\r\n", cookie.split(';').next().unwrap()));
    }
    for session in &sessions {
        assert_eq!(secured.get("/", session).status, 200);
    }
    // A link signs in with its own token, also if another one is signed in.
    let link = secured.get(&format!("/?token={drive}"), &sessions[0]);
    assert_eq!(link.status, 303);
    assert!(link.header("set-cookie").unwrap().contains(&drive));
    assert_eq!(secured.get("/login", &sessions[0]).status, 200);
    remove_token(&secured.keys, "tv").unwrap();
    // The files are checked at intervals.
    while secured.get("/", &sessions[0]).status != 401 {}
    assert_eq!(secured.get("/", &sessions[1]).status, 200);
}

#[test]
fn wrong_tokens_are_limited_and_never_repeated() {
    let secured = Secured::start();
    let token = secured.token("tablet", Role::Look);
    let mut page = secured.page(&token);
    for number in 0.. {
        let (path, wrong) = (["/metrics", "/ws", "/"][number % 3], format!("wrong-{number}-token"));
        let answer = secured.get(path, &bearer(&wrong));
        assert!(!answer.text().contains(&wrong) && !answer.head.contains(&wrong), "{answer:?}");
        if answer.status == 429 {
            assert!(answer.text().contains("too many wrong tokens"), "{answer:?}");
            assert!(answer.header("retry-after").unwrap().parse::<u32>().unwrap() > 0);
            break;
        }
        assert_eq!(answer.status, 401);
    }
    // An open page goes on.
    assert_eq!(page.ask(json!({"op": "sub", "what": "state"}))["ok"], true);
}

#[test]
fn certificate_of_the_keys_file_is_trusted_and_renewed_without_a_restart() {
    let secured = Secured::start();
    let port = secured.dashboard.address().port();
    assert_eq!(secured.dashboard.url(), format!("https://robot.local:{port}/"));
    let token = secured.token("tablet", Role::Look);
    let mut page = secured.page(&token);
    let certificate = || {
        let stream = secured.connect_trusting("authority").unwrap();
        stream.conn.peer_certificates().unwrap()[0].to_vec()
    };
    let first = certificate();
    issue(&secured.place);
    // The file is checked at intervals.
    while certificate() == first {}
    // Open pages go on, and tokens stay.
    assert_eq!(page.ask(json!({"op": "sub", "what": "state"}))["ok"], true);
    assert_eq!(secured.get("/metrics", &bearer(&token)).status, 200);
    drop(Authority::init(&secured.place.dir.join("other")).unwrap());
    assert!(secured.connect_trusting("other").is_err());
}

#[test]
fn unusable_keys_file_is_refused_and_named() {
    let place = TestDomain::new();
    let keys = place.dir.join("keys.pem");
    issue(&place);
    let mut options = place.options();
    options.access.address = SocketAddr::from(([0, 0, 0, 0], 0));
    options.access.keys = Some(keys.clone());
    let why = Dashboard::start(options).unwrap_err().to_string();
    assert!(why.contains("it needs a token"), "{why}");
    let mut options = place.options();
    options.access.keys = Some(keys.clone());
    let public = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    std::fs::set_permissions(&keys, public).unwrap();
    let why = Dashboard::start(options).unwrap_err().to_string();
    assert!(why.contains("keys.pem") && why.contains("chmod 600"), "{why}");
}
