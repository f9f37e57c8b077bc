//! Rejected requests: other sites, rebound names, missing tokens, path traversal, and frames that are too
//! large, too many, malformed or not read.

use crate::util;

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rnet_dashboard::{AccessError, Dashboard, DashboardError, TlsFiles};
use serde_json::json;
use tungstenite::Message;
use tungstenite::protocol::frame::coding::CloseCode;
use util::{Page, TestDomain, connect, get, get_with, parse, raw, upgrade, what};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

fn with_host(address: SocketAddr, host: &str) -> u16 {
    let text = format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    parse(&raw(address, text.as_bytes())).status
}

#[test]
fn rejects_rebound_host_names() {
    let place = TestDomain::new();
    let dashboard = place.start();
    let (address, port) = (dashboard.address(), dashboard.address().port());
    for host in [
        format!("127.0.0.1:{port}"),
        format!("localhost:{port}"),
        "localhost:9".into(),
        "[::1]".into(),
    ] {
        assert_eq!(with_host(address, &host), 200, "{host}");
    }
    for host in ["evil.example", "evil.example:8420", "127.0.0.1.evil.example", "192.168.0.7", ""] {
        assert_eq!(with_host(address, host), 421, "{host}");
        let headers = format!("Host: {host}\r\nOrigin: http://{host}\r\n");
        assert_eq!(upgrade(address, &headers), 421, "{host}");
    }
    let two =
        "GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n";
    assert!([400, 421].contains(&parse(&raw(address, two.as_bytes())).status));
    assert!(
        [400, 421]
            .contains(&parse(&raw(address, b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n")).status)
    );
}

#[test]
fn rejects_pages_of_other_sites() {
    let place = TestDomain::new();
    let dashboard = place.start();
    let address = dashboard.address();
    let own = format!("Host: {address}\r\nOrigin: http://{address}\r\n");
    assert_eq!(upgrade(address, &own), 101);
    // A program, which sends no origin.
    assert_eq!(upgrade(address, &format!("Host: {address}\r\n")), 101);
    for origin in [
        "http://evil.example".to_owned(),
        "null".into(),
        format!("https://{address}"),
        format!("http://{address}.evil.example"),
        "http://127.0.0.1:1".into(),
        "".into(),
    ] {
        let headers = format!("Host: {address}\r\nOrigin: {origin}\r\n");
        assert_eq!(upgrade(address, &headers), 403, "{origin}");
        let status = get_with(address, "/metrics", &format!("Origin: {origin}\r\n")).status;
        assert_eq!(status, 403, "{origin}");
    }
    let browser =
        format!("Host: {address}\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: websocket\r\n");
    assert_eq!(upgrade(address, &browser), 403);
    for site in ["cross-site", "same-site"] {
        let embedded = format!("Sec-Fetch-Site: {site}\r\nSec-Fetch-Mode: no-cors\r\n");
        assert_eq!(get_with(address, "/healthz", &embedded).status, 403);
    }
    let link = "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n";
    assert_eq!(get_with(address, "/", link).status, 200);
}

#[test]
fn answers_nothing_without_token() {
    let place = TestDomain::new();
    let mut options = place.options();
    options.access.token = Some(TOKEN.into());
    let dashboard = Dashboard::start(options).unwrap();
    let address = dashboard.address();
    let page = get(address, "/");
    assert_eq!(page.status, 401);
    assert!(page.text().contains("<form method=\"post\" action=\"/login\">"), "{page:?}");
    for path in ["/metrics", "/healthz", "/ws", "/assets/x.js", "/index.html"] {
        assert_eq!(get(address, path).status, 401, "{path}");
    }
    let half = &TOKEN[..16];
    for wrong in [
        "Bearer",
        "Bearer x",
        &format!("Bearer {half}"),
        &format!("Bearer {TOKEN}0"),
        &format!("Basic {TOKEN}"),
    ] {
        assert_eq!(
            get_with(address, "/healthz", &format!("Authorization: {wrong}\r\n")).status,
            401,
            "{wrong}"
        );
    }
    let bearer = format!("Authorization: Bearer {TOKEN}\r\n");
    assert_eq!(get_with(address, "/metrics", &bearer).status, 200);
    assert_eq!(upgrade(address, &format!("Host: {address}\r\n")), 401);
    assert_eq!(upgrade(address, &format!("Host: {address}\r\n{bearer}")), 101);
    assert_eq!(get(address, &format!("/?token={half}")).status, 401);
    // A token in other paths is rejected: it would appear in the logs of linked pages.
    assert_eq!(get(address, &format!("/metrics?token={TOKEN}")).status, 401);
    let link = get(address, &format!("/?token={TOKEN}"));
    assert_eq!((link.status, link.header("location")), (303, Some("/")));
    let cookie = link.header("set-cookie").unwrap().to_owned();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    let session = cookie.split(';').next().unwrap();
    assert_eq!(get_with(address, "/", &format!("Cookie: a=b; {session}\r\n")).status, 200);
    let form = |token: &str, origin: &str| {
        let body = format!("token={token}");
        let text = format!(
            "POST /login HTTP/1.1\r\nHost: {address}\r\nOrigin: {origin}\r\nConnection: close\r\n\
             Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        parse(&raw(address, text.as_bytes())).status
    };
    assert_eq!(form(TOKEN, &format!("http://{address}")), 303);
    assert_eq!(form(half, &format!("http://{address}")), 401);
    assert_eq!(form(TOKEN, "http://evil.example"), 403);
}

#[test]
fn requires_token_and_tls_beyond_loopback() {
    let place = TestDomain::new();
    let mut options = place.options();
    options.access.address = SocketAddr::from(([0, 0, 0, 0], 0));
    options.access.token = Some(TOKEN.into());
    let refused = Dashboard::start(options);
    assert!(
        matches!(&refused, Err(DashboardError::Access(AccessError::Unprotected(why))) if why.contains("TLS")),
        "{refused:?}"
    );
    let mut options = place.options();
    options.access.address = SocketAddr::from(([0, 0, 0, 0], 0));
    options.access.token = Some(TOKEN.into());
    let [cert, key] = ["cert.pem", "key.pem"].map(|name| place.dir.join(name));
    options.access.tls = Some(TlsFiles { cert: cert.clone(), key: key.clone() });
    let refused = Dashboard::start(options);
    assert!(
        matches!(&refused, Err(DashboardError::Access(AccessError::Files(why))) if why.contains("cert.pem")),
        "{refused:?}"
    );
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let mut options = place.options();
    options.access.address = SocketAddr::from(([0, 0, 0, 0], 0));
    options.access.token = Some(TOKEN.into());
    options.access.tls = Some(TlsFiles { cert, key });
    let dashboard = Dashboard::start(options).unwrap();
    assert!(dashboard.url().starts_with("https://"), "{}", dashboard.url());
    // Plain HTTP gets no answer.
    let address = SocketAddr::from(([127, 0, 0, 1], dashboard.address().port()));
    assert_ne!(parse(&raw(address, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")).status, 200);
}

#[test]
fn rejects_path_traversal() {
    let place = TestDomain::new();
    let dashboard = place.start();
    for path in [
        "/../Cargo.toml",
        "/assets/../../Cargo.toml",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/..%2f..%2fetc/passwd",
        "//etc/passwd",
        "/etc/passwd",
        "/assets/",
        "/assets",
        "/index.html/",
        "/\\..\\x",
        "/.git/config",
    ] {
        let answer = get(dashboard.address(), path);
        assert!([400, 404].contains(&answer.status), "{path}: {answer:?}");
        assert!(!answer.text().contains("[package]") && !answer.text().contains("root:"), "{path}");
    }
    for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
        let text = format!(
            "{method} / HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
            dashboard.address()
        );
        assert_eq!(parse(&raw(dashboard.address(), text.as_bytes())).status, 405, "{method}");
    }
}

#[test]
fn serves_page_with_type_etag_and_strict_policy() {
    let place = TestDomain::new();
    let dashboard = place.start();
    let page = get(dashboard.address(), "/");
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    let policy = page.header("content-security-policy").unwrap();
    assert!(
        policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"),
        "{policy}"
    );
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    let tag = page.header("etag").unwrap();
    let again = get_with(dashboard.address(), "/", &format!("If-None-Match: {tag}\r\n"));
    assert_eq!((again.status, again.body.len()), (304, 0));
    let text = page.text();
    let script = text.split("src=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
    let script = get(dashboard.address(), script.trim_start_matches('.'));
    assert_eq!(
        (script.status, script.header("content-type")),
        (200, Some("text/javascript; charset=utf-8"))
    );
    assert!(script.header("cache-control").unwrap().contains("immutable"));
}

#[test]
fn disconnects_slow_senders_and_serves_others() {
    let place = TestDomain::new();
    let dashboard = place.start();
    let mut slow = Vec::new();
    for _ in 0..32 {
        let mut stream = connect(dashboard.address());
        stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-").unwrap();
        slow.push(stream);
    }
    assert_eq!(get(dashboard.address(), "/metrics").status, 200);
    for mut stream in slow {
        let mut answer = Vec::new();
        // Without the limit, this waits until the test times out.
        let _ = stream.read_to_end(&mut answer);
        assert_ne!(parse(&answer).status, 200);
    }
}

#[test]
fn rejects_malformed_login() {
    let place = TestDomain::new();
    let dashboard = place.start();
    let address = dashboard.address();
    let login = |kind: &str, body: &str| {
        let text = format!(
            "POST /login HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: {kind}\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        parse(&raw(address, text.as_bytes())).status
    };
    let form = "application/x-www-form-urlencoded";
    assert_eq!(login("text/plain", "token=x"), 415);
    assert_eq!(login(form, "tokens=x"), 422);
    assert_eq!(login(form, &format!("token={}", "x".repeat(4 << 10))), 413);
    // Without a token, there is nothing to sign in to.
    assert_eq!(login(&format!("{form}; charset=utf-8"), "token=x"), 303);
}

#[test]
fn login_body_times_out() {
    let place = TestDomain::new();
    let dashboard = place.start();
    let address = dashboard.address();
    let head = format!(
        "POST /login HTTP/1.1\r\nHost: {address}\r\nContent-Length: 100\r\n\
         Content-Type: application/x-www-form-urlencoded\r\n\r\ntoken="
    );
    // Without the limit, the connection would end without an answer.
    assert_eq!(parse(&raw(address, head.as_bytes())).status, 408);
}

#[test]
fn rejects_malformed_requests_without_side_effects() {
    let place = TestDomain::new();
    let dashboard = place.start();
    let mut page = Page::open(&dashboard);
    for text in ["", "{", "[]", "null", "\"x\"", "{\"op\": 1}", "{\"id\": -1, \"op\": \"sub\"}"] {
        page.socket.send(Message::text(text)).unwrap();
        let received = page.receive();
        assert_eq!(received.json["error"]["code"], "bad_request", "{text}: {received:?}");
    }
    assert_eq!(page.refused(json!({"op": "nothing"})), "unknown_op");
    assert_eq!(page.refused(json!({"op": "sub", "what": "nothing"})), "bad_request");
    assert_eq!(page.refused(json!({"op": "sub", "what": "plot"})), "bad_request");
    assert_eq!(
        page.refused(json!({"op": "sub", "what": "plot", "topic": "no slash and blanks"})),
        "bad_request"
    );
    assert_eq!(
        page.refused(json!({"op": "sub", "what": "plot", "topic": "/a", "bucket_ms": 1e9})),
        "bad_request"
    );
    assert_eq!(
        page.refused(json!({"op": "sub", "what": "figures", "interval_ms": -1})),
        "bad_request"
    );
    assert_eq!(page.refused(json!({"op": "unsub", "sub": 99})), "not_found");
    assert_eq!(page.refused(json!({"op": "cancel", "call": 99})), "not_found");
    assert_eq!(
        page.refused(json!({"op": "call", "service": "/none", "timeout_s": -1})),
        "bad_request"
    );
    assert_eq!(page.refused(json!({"op": "launch.logs", "node": "/none"})), "not_found");
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    page.socket.send(Message::text(deep)).unwrap();
    assert_eq!(page.receive().json["error"]["code"], "bad_request");
    page.sub(what("figures"));
}

#[test]
fn disconnects_page_after_too_large_or_binary_frame() {
    let place = TestDomain::new();
    let dashboard = place.start();
    let mut page = Page::open(&dashboard);
    let _ = page.socket.send(Message::text("x".repeat(300 << 10)));
    assert!(page.closing().is_none_or(|(code, _)| code == CloseCode::Size));
    let mut page = Page::open(&dashboard);
    page.socket.send(Message::binary(vec![0; 8])).unwrap();
    assert_eq!(page.closing().map(|(code, _)| code), Some(CloseCode::Unsupported));
    // Not a WebSocket frame at all.
    let page = Page::open(&dashboard);
    let mut stream = page.socket.get_ref().try_clone().unwrap();
    stream.write_all(&[0xff; 64]).unwrap();
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    assert_eq!(get(dashboard.address(), "/metrics").status, 200);
}

#[test]
fn disconnects_flood_of_requests_with_reason() {
    let place = TestDomain::new();
    let dashboard = place.start();
    let mut page = Page::open(&dashboard);
    for _ in 0..2_000 {
        let request = json!({"id": 1, "op": "unsub", "sub": 99}).to_string();
        if page.socket.send(Message::text(request)).is_err() {
            break;
        }
    }
    let closing = page.closing();
    // A reset may discard the close frame, because the page kept sending.
    assert!(closing.is_none_or(|(code, why)| code == CloseCode::Policy && why.starts_with("rate")));
    Page::open(&dashboard).sub(what("figures"));
}

#[test]
fn limits_subscriptions_and_pages() {
    let place = TestDomain::new();
    let dashboard = place.start();
    let mut page = Page::open(&dashboard);
    let subs: Vec<u64> = (0..64).map(|_| page.sub(what("services"))).collect();
    assert_eq!(page.refused(json!({"op": "sub", "what": "services"})), "limit");
    assert_eq!(page.ask(json!({"op": "unsub", "sub": subs[0]}))["ok"], true);
    page.sub(what("services"));
    let pages: Vec<Page> = (1..16).map(|_| Page::open(&dashboard)).collect();
    assert_eq!(upgrade(dashboard.address(), &format!("Host: {}\r\n", dashboard.address())), 503);
    drop(pages);
    let begun = Instant::now();
    while upgrade(dashboard.address(), &format!("Host: {}\r\n", dashboard.address())) != 101 {
        assert!(begun.elapsed() < util::HANG, "no connection is freed");
        std::thread::sleep(Duration::from_millis(20)); // sleep: between two attempts
    }
}

#[test]
fn stops_promptly_with_open_pages_and_connections() {
    let place = TestDomain::new();
    let dashboard = place.start();
    let address = dashboard.address();
    let mut page = Page::open(&dashboard);
    page.sub(what("figures"));
    let idle = connect(address);
    dashboard.stop();
    assert_eq!(page.closing(), Some((CloseCode::Away, "the server is shutting down".to_owned())));
    drop(idle);
    assert!(std::net::TcpStream::connect(address).is_err());
}
