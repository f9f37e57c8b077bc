//! Hostile, broken or slow clients are rejected or get errors, and are then disconnected; other clients are
//! unaffected.

use crate::util;

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::json;
use tungstenite::{Error, Message};
use util::{LONG, TestDomain, Viewer, connect, wait};

/// Runs a test with a server of one topic, then checks that a well-behaved client is still served.
fn with_server(test: impl FnOnce(&TestDomain, &rnet_foxglove::ServerHandle)) {
    let test_domain = TestDomain::new();
    let node = test_domain.node("talker");
    let mut publisher = node.publisher::<[u8]>("/note").transient_local(1).open().unwrap();
    publisher.send(b"hello").unwrap();
    let server = test_domain.server();
    test(&test_domain, &server);
    let mut viewer = Viewer::of(&server);
    let channel = viewer.channel("/note");
    viewer.subscribe(7, &channel);
    assert_eq!(viewer.message().0, 7);
}

fn refused(server: &rnet_foxglove::ServerHandle, headers: &[(&'static str, &str)]) -> u16 {
    match connect(server.addr(), headers).map(drop) {
        Err(Error::Http(response)) => response.status().as_u16(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn rejects_other_origins_names_and_protocols() {
    with_server(|_, server| {
        assert_eq!(refused(server, &[("origin", "https://evil.example")]), 403);
        assert_eq!(refused(server, &[("host", "evil.example")]), 421);
        assert_eq!(refused(server, &[("sec-websocket-protocol", "foxglove.sdk.v2")]), 400);
        let old = [("sec-websocket-protocol", "foxglove.websocket.v1")];
        drop(connect(server.addr(), &old).unwrap());
        wait("the count", || server.stats().refused == 3);
    });
}

#[test]
fn accepts_allowed_origin_and_token() {
    let test_domain = TestDomain::new();
    let mut options = test_domain.options();
    options.origins = vec!["https://app.foxglove.dev".to_owned()];
    options.access.token = Some("0123456789abcdef".to_owned());
    let server = rnet_foxglove::serve(options).unwrap();
    let origin = ("origin", "https://app.foxglove.dev");
    let shown = ("authorization", "Bearer 0123456789abcdef");
    assert_eq!(refused(&server, &[origin]), 401);
    assert_eq!(refused(&server, &[origin, ("authorization", "Bearer 0123456789abcdeg")]), 401);
    assert_eq!(refused(&server, &[shown, ("origin", "https://foxglove.dev")]), 403);
    let mut viewer = connect(server.addr(), &[origin, shown]).unwrap();
    viewer.recv_text("serverInfo", |_| true);
}

#[test]
fn tls_server_rejects_plain_connections() {
    let test_domain = TestDomain::new();
    let mut options = test_domain.options();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let [cert, key] = ["cert.pem", "key.pem"].map(|name| test_domain.0.join(name));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    options.access.tls = Some(rnet_foxglove::TlsFiles { cert, key });
    let server = rnet_foxglove::serve(options).unwrap();
    assert!(connect(server.addr(), &[]).is_err());
    wait("the count", || server.stats().refused == 1);
}

#[test]
fn invalid_frames_are_reported_and_too_many_disconnect() {
    with_server(|_, server| {
        let mut viewer = Viewer::of(server);
        let expect_error = |viewer: &mut Viewer, why: &str| {
            let said = viewer.recv_text("status", |_| true);
            let text = said["message"].as_str().unwrap();
            assert!(said["level"] == 2 && text.contains(why), "{text} instead of {why}");
        };
        for (text, why) in [
            ("{", "JSON object"),
            (r#"{"op":"selfDestruct"}"#, "selfDestruct"),
            (
                r#"{"op":"subscribe","subscriptions":[{"id":1,"channelId":4294967295}]}"#,
                "does not exist",
            ),
            (r#"{"op":"unsubscribe","subscriptionIds":[77]}"#, "subscription 77 does not exist"),
            (r#"{"op":"unadvertise","channelIds":[5]}"#, "not advertised"),
        ] {
            viewer.0.send(Message::text(text)).unwrap();
            expect_error(&mut viewer, why);
        }
        for (bytes, why) in [
            (&[0x77][..], "unknown binary operation 119"),
            (&[1, 9, 0, 0, 0, 1, 2], "channel 9 was not advertised"),
            (&[2, 1, 0], "too short"),
            (&[2, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 1], "too short"),
            (
                &[3, 0, 0, 0, 128, 63, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
                "playback is not available",
            ),
        ] {
            viewer.binary(&[bytes]);
            expect_error(&mut viewer, why);
        }
        let long =
            format!(r#"{{"op":"getParameters","parameterNames":["{}"]}}"#, "x".repeat(1 << 20));
        viewer.0.send(Message::text(long)).unwrap();
        expect_error(&mut viewer, "at most 1048576");
        // Valid requests that are rejected are reported without a limit.
        for _ in 0..64 {
            viewer
                .send(&json!({"op": "setParameters", "parameters": [{"name": "/x", "value": 1}]}));
            expect_error(&mut viewer, "/x was not set");
        }
        let _ = (0..64).try_for_each(|_| viewer.0.send(Message::binary(vec![0x77])));
        assert!(viewer.close_reason().contains("too many invalid frames"));
    });
}

#[test]
fn disconnects_after_too_long_frame() {
    with_server(|_, server| {
        let mut viewer = Viewer::of(server);
        // Nothing is read of an announced gigabyte.
        let stream = viewer.0.get_mut();
        let mut head = vec![0x82, 0xff];
        head.extend((1u64 << 30).to_be_bytes());
        head.extend([0; 4]);
        stream.write_all(&head).unwrap();
        let why = viewer.close_reason();
        assert!(
            why.contains("too long") || why.contains("too big") || why.contains("1002"),
            "{why}"
        );
    });
}

#[test]
fn disconnects_after_malformed_frames() {
    with_server(|_, server| {
        // A reserved operation code; a client frame without a mask; undefined extension bits.
        for head in [[0x83, 0x80], [0x81, 0x05], [0xf1, 0x80]] {
            let mut viewer = Viewer::of(server);
            viewer.0.get_mut().write_all(&head).unwrap();
            viewer.0.get_mut().write_all(&[0; 16]).unwrap();
            let why = viewer.close_reason();
            assert!(!why.is_empty());
        }
    });
}

#[test]
fn handshake_times_out_for_idle_connections() {
    with_server(|_, server| {
        // Clients that send nothing or an incomplete request occupy all connections.
        let idle: Vec<TcpStream> = (0..rnet_foxglove::MAX_CLIENTS)
            .map(|n| {
                let mut stream = TcpStream::connect(server.addr()).unwrap();
                if n % 2 == 0 {
                    stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n").unwrap();
                }
                stream
            })
            .collect();
        // The timeout closes them.
        for mut stream in idle {
            stream.set_read_timeout(Some(LONG)).unwrap();
            let mut rest = Vec::new();
            let _ = stream.read_to_end(&mut rest);
        }
        wait("the count", || server.stats().refused >= rnet_foxglove::MAX_CLIENTS as u64);
    });
}

#[test]
fn rejects_client_beyond_limit_and_accepts_it_later() {
    with_server(|_, server| {
        let mut viewers: Vec<Viewer> =
            (0..rnet_foxglove::MAX_CLIENTS).map(|_| Viewer::of(server)).collect();
        for viewer in &mut viewers {
            viewer.recv_text("serverInfo", |_| true);
        }
        assert!(connect(server.addr(), &[]).is_err());
        drop(viewers);
        wait("a place", || connect(server.addr(), &[]).is_ok());
    });
}

#[test]
fn limits_repeated_and_excessive_requests() {
    with_server(|_, server| {
        let mut viewer = Viewer::of(server);
        let channel = viewer.channel("/note");
        viewer.subscribe(1, &channel);
        viewer.subscribe(1, &channel);
        viewer.recv_text("status", |said| {
            said["message"].as_str().unwrap().contains("already exists")
        });
        viewer.subscribe(2, &channel);
        viewer.recv_text("status", |said| {
            said["message"].as_str().unwrap().contains("already subscribed")
        });
        let channels: Vec<_> = (0..300)
            .map(|id| json!({"id": id, "topic": format!("/t{id}"), "encoding": "json", "schemaName": ""}))
            .collect();
        viewer.send(&json!({"op": "advertise", "channels": channels}));
        viewer.recv_text("status", |said| {
            said["message"].as_str().unwrap().contains("at most 256 channels")
        });
        for (topic, encoding, why) in [
            ("/x", "cdr", "cdr"),
            ("/_rnet/log", "json", "reserved for robot-net"),
            ("not a topic", "json", "topic"),
        ] {
            let mut viewer = Viewer::of(server);
            let channel = json!({"id": 1, "topic": topic, "encoding": encoding, "schemaName": ""});
            viewer.send(&json!({"op": "advertise", "channels": [channel]}));
            viewer.recv_text("status", |said| said["message"].as_str().unwrap().contains(why));
        }
    });
}

#[test]
fn client_that_does_not_read_loses_counted_messages_and_others_lose_none() {
    let test_domain = TestDomain::new();
    let node = test_domain.node("talker");
    // The newest message is kept for late joiners: when it has arrived, the publisher is followed.
    let mut publisher = node.publisher::<[u8]>("/big").transient_local(1).open().unwrap();
    publisher.send(b"first").unwrap();
    let server = test_domain.server();
    let (mut slow, mut good) = (Viewer::of(&server), Viewer::of(&server));
    for viewer in [&mut slow, &mut good] {
        let channel = viewer.channel("/big");
        viewer.subscribe(1, &channel);
    }
    good.message();
    // A client that reads nothing keeps at most the content of the queue and the sockets.
    let payload = vec![0xff; 1 << 20];
    let mut sent = 0;
    wait("a loss", || {
        publisher.send(&payload[..]).unwrap();
        sent += 1;
        // This client keeps reading.
        let (subscription, message) = good.message();
        assert_eq!((subscription, message.is_empty()), (1, false));
        server.stats().dropped > 0
    });
    // The publisher has no subscriber, and never waited.
    assert_eq!(publisher.subscriber_count(), 0);
    assert!(sent >= 16, "{sent}");
    slow.recv_text("status", |said| said["message"].as_str().unwrap().contains("too slow"));
}
