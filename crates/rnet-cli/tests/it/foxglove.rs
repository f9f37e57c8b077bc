//! `rnet foxglove`: the command line around crates/rnet-foxglove, which tests the protocol.

use crate::util;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Command;

use util::{TEST_TIMEOUT, TestEnv};

#[test]
fn it_says_where_it_serves_and_lets_allowed_pages_in() {
    let env = TestEnv::new();
    let mut command = env.command();
    let args = ["foxglove", "--port", "0", "--allow-origin", "https://app.foxglove.dev"];
    let mut server = command.args(args).spawn().unwrap();
    let mut url = String::new();
    BufReader::new(server.stdout.as_mut().unwrap()).read_line(&mut url).unwrap();
    let addr = url.trim().strip_prefix("ws://").unwrap();
    let ask = |origin: &str| {
        let mut stream = TcpStream::connect(addr).unwrap();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        let request = format!(
            "GET / HTTP/1.1\r\nHost: {addr}\r\nOrigin: {origin}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
             Sec-WebSocket-Protocol: foxglove.sdk.v1\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).unwrap();
        String::from_utf8(answer.to_vec()).unwrap()
    };
    assert_eq!(ask("https://app.foxglove.dev"), "HTTP/1.1 101");
    assert_eq!(ask("https://evil.example"), "HTTP/1.1 403");
    let pid = server.id().to_string();
    assert!(Command::new("kill").args(["-s", "INT", &pid]).status().unwrap().success());
    let ended = server.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(130), "{said}");
    assert!(said.contains("refused 127.0.0.1:") && said.contains("1 refused"), "{said}");
}

#[test]
fn beyond_this_machine_it_needs_a_token_and_tls() {
    let env = TestEnv::new();
    let said = rnet!(env, "foxglove", "--bind", "0.0.0.0", "--port", "0").fails(2);
    assert!(said.contains("--token-file") && said.contains("--tls-cert"), "{said}");
    let said = rnet!(env, "foxglove", "none.mcap", "--port", "0").fails(1);
    assert!(said.contains("none.mcap"), "{said}");
    let said = rnet!(env, "foxglove", "--port", "0", "--allow-origin", "foxglove.dev").fails(2);
    assert!(said.contains("not an origin"), "{said}");
}
