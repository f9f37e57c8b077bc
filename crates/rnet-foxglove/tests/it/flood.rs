//! Ten thousand connections, and handshakes that do not end.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rnet::Publisher;

use crate::attack::{
    CONNECTIONS, descriptors, endless_headers, flood, percentiles, raise_limit, resident,
};
use crate::util::{LONG, TestDomain, Viewer, connect, wait};

/// The most descriptors and memory that a flood may take. The test's own connections take memory, too.
const MAX_DESCRIPTORS: usize = 128;
const MAX_GROWTH_BYTES: u64 = 64 << 20;
/// Messages of each measurement, one each 5 ms.
const MESSAGES: u32 = 500;

/// How long each message to a viewer took.
fn latencies(publisher: &mut Publisher<[u8]>, viewer: &mut Viewer) -> Vec<Duration> {
    let message = |number: u32| {
        std::thread::sleep(Duration::from_millis(5)); // sleep: the rate of the messages
        let begun = Instant::now();
        publisher.send(number.to_string().as_bytes()).unwrap();
        let message = String::from_utf8(viewer.message().1).unwrap();
        let took = begun.elapsed();
        assert!(message.contains(&format!("\"text\":\"{number}\"")), "{number}: {message}");
        took
    };
    (1..=MESSAGES).map(message).collect()
}

#[test]
fn ten_thousand_connections_leave_viewers_alone() {
    raise_limit();
    let test_domain = TestDomain::new();
    let node = test_domain.node("talker");
    let mut publisher = node.publisher::<[u8]>("/note").transient_local(1).open().unwrap();
    publisher.send(&[0]).unwrap();
    let server = test_domain.server();
    let address = server.addr();
    let mut viewer = Viewer::of(&server);
    let channel = viewer.channel("/note");
    viewer.subscribe(1, &channel);
    viewer.message();
    let [p50, p99] = percentiles(latencies(&mut publisher, &mut viewer));
    println!("without: p50 {p50} µs, p99 {p99} µs");
    let process = std::process::id();
    let (before, resident_before) = (descriptors(process), resident(process));
    let next = |number| endless_headers(address, number);
    let (is_over, mut most, mut grown) = (AtomicBool::new(false), 0, 0);
    let (opened, took) = std::thread::scope(|scope| {
        let measured = scope.spawn(|| {
            let took = latencies(&mut publisher, &mut viewer);
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
    wait("a place for another viewer", || connect(address, &[]).is_ok());
}

/// Headers that do not end, and with TLS a part of the first record.
#[test]
fn huge_headers_and_half_open_tls_handshakes_end() {
    let test_domain = TestDomain::new();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let [cert, key] = ["cert.pem", "key.pem"].map(|name| test_domain.0.join(name));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let tls = rnet_foxglove::TlsFiles { cert, key };
    let huge = ["GET / HTTP/1.1\r\nHost: localhost\r\nX-A: ", &"a".repeat(1 << 20)].concat();
    let many = ["GET / HTTP/1.1\r\n", &"X-A: a\r\n".repeat(1_000)].concat();
    for (tls, bytes) in [
        (None, huge.into_bytes()),
        (None, many.into_bytes()),
        (Some(tls), vec![0x16, 0x03, 0x01, 0x02, 0x00, 0x01]),
    ] {
        let mut options = test_domain.options();
        options.access.tls = tls;
        let server = rnet_foxglove::serve(options).unwrap();
        let mut stream = TcpStream::connect(server.addr()).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        // The server may close it meanwhile.
        let _ = stream.write_all(&bytes);
        // Without the limit, this waits until the test times out.
        let _ = stream.read_to_end(&mut Vec::new());
        wait("the count", || server.stats().refused == 1);
    }
}
