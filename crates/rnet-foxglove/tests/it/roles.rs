//! Tokens of the keys file with their roles, over TLS with its certificate.

use crate::util;

use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rnet_foxglove::{ServerHandle, serve};
use rnet_keys::{Authority, HostRequest, Rights, Role, add_token, remove_token};
use serde_json::{Value, json};
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tungstenite::client::IntoClientRequest;
use tungstenite::{Error, Message, WebSocket};
use util::{HANG, TestDomain};

/// A server that other hosts can reach, with the keys file of the host `robot`.
struct Secured {
    place: TestDomain,
    keys: PathBuf,
    server: ServerHandle,
}

struct TlsViewer(WebSocket<StreamOwned<ClientConnection, TcpStream>>);

impl Secured {
    fn start() -> Secured {
        let place = TestDomain::new();
        let keys = place.0.join("keys.pem");
        issue(&place);
        add_token(&keys, "first", Role::Look, None).unwrap();
        let mut options = place.options();
        options.access.address = SocketAddr::from(([0, 0, 0, 0], 0));
        options.access.keys = Some(keys.clone());
        let server = serve(options).unwrap();
        assert!(server.url().starts_with("wss://"), "{}", server.url());
        Secured { place, keys, server }
    }

    fn token(&self, name: &str, role: Role) -> String {
        add_token(&self.keys, name, role, None).unwrap()
    }

    fn tls(&self) -> StreamOwned<ClientConnection, TcpStream> {
        let pem = std::fs::read(self.place.0.join("authority/authority.pem")).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(&pem).unwrap()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = "robot.local".try_into().unwrap();
        let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
        let mut stream = TcpStream::connect(("127.0.0.1", self.server.addr().port())).unwrap();
        stream.set_read_timeout(Some(HANG)).unwrap();
        while client.is_handshaking() {
            client.complete_io(&mut stream).unwrap();
        }
        StreamOwned::new(client, stream)
    }

    /// Connects, or returns the status of the refusal with its text.
    fn viewer(&self, token: &str) -> Result<TlsViewer, (u16, String)> {
        let url = format!("wss://robot.local/?token={token}");
        let mut request = url.into_client_request().unwrap();
        let protocol = "foxglove.sdk.v1".parse().unwrap();
        request.headers_mut().insert("sec-websocket-protocol", protocol);
        match tungstenite::client(request, self.tls()) {
            Ok((socket, _)) => Ok(TlsViewer(socket)),
            Err(tungstenite::HandshakeError::Failure(Error::Http(answer))) => {
                let body = answer.body().clone().unwrap_or_default();
                Err((answer.status().as_u16(), String::from_utf8(body).unwrap()))
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// Issues the certificate of `robot`, or renews it.
fn issue(place: &TestDomain) {
    let (mut authority, _) = Authority::init(&place.0.join("authority")).unwrap();
    let (rights, addresses) = (Rights::all(), Vec::new());
    let request = HostRequest { name: "robot".into(), rights, days: 1, addresses };
    authority.add_host(&request, &place.0.join("keys.pem")).unwrap();
}

impl TlsViewer {
    fn send(&mut self, value: &Value) {
        self.0.send(Message::text(value.to_string())).unwrap();
    }

    fn until(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            if let Message::Text(text) = self.0.read().unwrap() {
                let value: Value = serde_json::from_str(&text).unwrap();
                if wanted(&value) {
                    return value;
                }
            }
        }
    }

    fn close_reason(&mut self) -> String {
        loop {
            if let Message::Close(Some(frame)) = self.0.read().unwrap() {
                return frame.reason.to_string();
            }
        }
    }
}

#[test]
fn viewers_may_do_what_their_role_includes() {
    let secured = Secured::start();
    let node = secured.place.node("arm");
    let speed = node.param::<f64>("speed").default(1.0).declare().unwrap();
    let _plan = node.service::<[u8], [u8]>("/plan").serve(|_| Ok(Vec::new())).unwrap();
    let changes = json!([
        {"op": "advertise", "channels": [
            {"id": 1, "topic": "/x", "encoding": "json", "schemaName": ""}]},
        {"op": "setParameters", "id": "set",
            "parameters": [{"name": "/arm/speed", "value": 2.0}]},
    ]);
    // First the roles that may change something: their viewer shows that services are advertised by now.
    for role in [Role::Drive, Role::Operate] {
        let mut viewer = secured.viewer(&secured.token("tablet", role)).unwrap();
        let info = viewer.until(|value| value["capabilities"].is_array());
        let capabilities = info["capabilities"].as_array().unwrap();
        assert!(capabilities.contains(&"clientPublish".into()), "{info}");
        assert!(capabilities.contains(&"services".into()), "{info}");
        viewer.until(|value| value["op"] == "advertiseServices");
        viewer.send(&changes[1]);
        viewer.until(|value| value["op"] == "parameterValues" && value["id"] == "set");
        assert_eq!(speed.get().unwrap(), 2.0);
        speed.set(1.0).unwrap();
    }
    let mut viewer = secured.viewer(&secured.token("tablet", Role::Look)).unwrap();
    let info = viewer.until(|value| value["capabilities"].is_array());
    for capability in ["clientPublish", "services"] {
        let capabilities = info["capabilities"].as_array().unwrap();
        assert!(!capabilities.contains(&capability.into()), "{info}");
    }
    for (request, action) in
        changes.as_array().unwrap().iter().zip(["publishing", "setting parameters"])
    {
        viewer.send(request);
        let status = viewer.until(|value| {
            assert_ne!(value["op"], "advertiseServices");
            value["op"] == "status"
        });
        let why =
            format!("the token \"tablet\" has the role look; {action} needs the role operate");
        assert_eq!(status["message"], why);
    }
    // Numbers of services can be guessed.
    let call = [&[2][..], &[1, 0, 0, 0], &[2, 0, 0, 0], &[4, 0, 0, 0], b"json", b"{}"].concat();
    viewer.0.send(Message::binary(call)).unwrap();
    let failure = viewer.until(|value| value["op"] == "serviceCallFailure");
    assert!(failure["message"].as_str().unwrap().contains("needs the role operate"), "{failure}");
    // Seeing is allowed.
    viewer.send(&json!({"op": "getParameters", "parameterNames": ["/arm/speed"], "id": "get"}));
    let values = viewer.until(|value| value["op"] == "parameterValues");
    assert_eq!(values["parameters"][0]["value"], 1.0);
    assert_eq!(speed.get().unwrap(), 1.0);
}

#[test]
fn removed_or_expired_token_disconnects_its_viewer_alone() {
    let secured = Secured::start();
    let (gone, stays) = (secured.token("gone", Role::Drive), secured.token("stays", Role::Look));
    let expires = SystemTime::now() + Duration::from_secs(2);
    let guest = add_token(&secured.keys, "guest", Role::Look, Some(expires)).unwrap();
    let [mut removed, mut other, mut expired] =
        [&gone, &stays, &guest].map(|token| secured.viewer(token).unwrap());
    remove_token(&secured.keys, "gone").unwrap();
    for viewer in [&mut removed, &mut expired] {
        let why = viewer.close_reason();
        assert!(why.contains("token was removed or has expired"), "{why}");
    }
    for token in [gone.as_str(), guest.as_str(), "wrong-0123456789abcdef"] {
        let (status, why) = secured.viewer(token).err().unwrap();
        assert!(status == 401 && !why.contains(token), "{status} {why}");
    }
    other.send(&json!({"op": "getParameters", "parameterNames": ["/x"], "id": "get"}));
    other.until(|value| value["op"] == "parameterValues");
}

#[test]
fn renewed_certificate_is_used_without_a_restart() {
    let secured = Secured::start();
    let mut viewer = secured.viewer(&secured.token("tablet", Role::Look)).unwrap();
    let certificate = || secured.tls().conn.peer_certificates().unwrap()[0].to_vec();
    let first = certificate();
    issue(&secured.place);
    // The file is checked at intervals.
    while certificate() == first {}
    viewer.send(&json!({"op": "getParameters", "parameterNames": ["/x"], "id": "get"}));
    viewer.until(|value| value["op"] == "parameterValues");
}
