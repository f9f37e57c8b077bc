//! Ten thousand connections of one computer, and headers and handshakes that do not end.

use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rnet_dashboard::{Dashboard, TlsFiles};
use serde_json::json;

use crate::attack::{
    CONNECTIONS, descriptors, endless_headers, flood, percentiles, raise_limit, resident,
};
use crate::util::{Page, TestDomain, connect, get, parse, raw, what};

/// The most descriptors and memory that a flood may take. The test's own connections take memory, too.
const MAX_DESCRIPTORS: usize = 256;
const MAX_GROWTH_BYTES: u64 = 64 << 20;
/// Requests of each measurement. A page may send 100 a second.
const REQUESTS: usize = 300;

/// How long each request of a page took.
fn latencies(page: &mut Page) -> Vec<Duration> {
    let request = |_| {
        std::thread::sleep(Duration::from_millis(11)); // sleep: the rate of the requests
        let begun = Instant::now();
        assert_eq!(page.refused(json!({"op": "unsub", "sub": 99})), "not_found");
        begun.elapsed()
    };
    (0..REQUESTS).map(request).collect()
}

#[test]
fn ten_thousand_connections_leave_pages_and_metrics_alone() {
    raise_limit();
    let place = TestDomain::new();
    let dashboard = place.start();
    let address = dashboard.address();
    let mut page = Page::open(&dashboard);
    page.sub(what("figures"));
    let [p50, p99] = percentiles(latencies(&mut page));
    println!("without: p50 {p50} µs, p99 {p99} µs");
    let process = std::process::id();
    let (before, resident_before) = (descriptors(process), resident(process));
    let next = |number| endless_headers(address, number);
    let (is_over, mut most, mut grown) = (AtomicBool::new(false), 0, 0);
    let (opened, took) = std::thread::scope(|scope| {
        let measured = scope.spawn(|| {
            let took = latencies(&mut page);
            // Those of another computer are served.
            assert_eq!(get(address, "/metrics").status, 200);
            Page::open(&dashboard).sub(what("figures"));
            is_over.store(true, Ordering::Relaxed);
            took
        });
        let opened = flood(&is_over, next, |open| {
            most = most.max(descriptors(process).saturating_sub(before + open));
            grown = grown.max(resident(process).saturating_sub(resident_before));
        });
        (opened, measured.join().unwrap())
    });
    let [p50, p99] = percentiles(took);
    println!(
        "{opened} connections: p50 {p50} µs, p99 {p99} µs, {most} descriptors, {} KiB",
        grown >> 10
    );
    assert!(opened >= CONNECTIONS);
    assert!(most <= MAX_DESCRIPTORS, "{most} descriptors more");
    assert!(grown < MAX_GROWTH_BYTES, "{grown} bytes more");
    assert_eq!(get(address, "/metrics").status, 200);
}

#[test]
fn rejects_huge_headers() {
    let place = TestDomain::new();
    let dashboard = place.start();
    for headers in [format!("X-A: {}\r\n", "a".repeat(64 << 10)), "X-A: a\r\n".repeat(80)] {
        let request = format!("GET /metrics HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n");
        let status = parse(&raw(dashboard.address(), request.as_bytes())).status;
        // A reset may discard the answer, because the client kept sending.
        assert!([0, 431].contains(&status), "{status}");
    }
    assert_eq!(get(dashboard.address(), "/metrics").status, 200);
}

/// A client that sends a part of the first record of TLS, or none of it.
#[test]
fn half_open_tls_handshakes_time_out() {
    let place = TestDomain::new();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let mut options = place.options();
    let [cert, key] = ["cert.pem", "key.pem"].map(|name| place.dir.join(name));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    options.access.tls = Some(TlsFiles { cert, key });
    let dashboard = Dashboard::start(options).unwrap();
    for part in [&[][..], &[0x16, 0x03, 0x01, 0x02, 0x00, 0x01]] {
        let mut stream = connect(dashboard.address());
        stream.write_all(part).unwrap();
        // Without the limit, this waits until the test times out.
        assert_eq!(stream.read_to_end(&mut Vec::new()).unwrap(), 0);
    }
}
