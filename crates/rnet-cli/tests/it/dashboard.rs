//! `rnet dashboard`: the program around the server. crates/rnet-dashboard/tests tests the server.

use crate::util;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use util::{DOMAIN, TEST_TIMEOUT, TestEnv};

#[test]
fn it_prints_its_url_serves_the_page_and_stops_on_request() {
    let env = TestEnv::new();
    let mut child = Command::new(env!("CARGO_BIN_EXE_rnet"))
        .args(["dashboard", "--port", "0", "--domain", DOMAIN, "--dir"])
        .arg(&env.dir)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut said).unwrap();
    let address = said.split("http://").nth(1).and_then(|rest| rest.split('/').next());
    let address = address.unwrap_or_else(|| panic!("{said}"));
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    write!(stream, "GET / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("<title>"), "{answer}");
    // An open connection does not delay the exit.
    let _open = TcpStream::connect(address).unwrap();
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn invalid_recordings_folder_is_refused_by_name() {
    let env = TestEnv::new();
    let missing = env.dir.join("disk");
    let start = || {
        rnet!(env, "dashboard", "--port", "0", "--recordings", missing.to_str().unwrap()).fails(1)
    };
    let said = start();
    let named = format!("recordings cannot be written to {} (--recordings)", missing.display());
    assert!(said.contains(&named) && said.contains("No such file"), "{said}");
    std::fs::write(&missing, "").unwrap();
    let said = start();
    assert!(said.contains(&named) && said.contains("not a directory"), "{said}");
}

#[test]
fn foxglove_clients_are_accepted_on_request() {
    let env = TestEnv::new();
    let mut command = env.command();
    let args = ["dashboard", "--port", "0", "--foxglove", "0", "--json"];
    let mut child = command.args(args).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let startup: serde_json::Value = serde_json::from_str(&line).unwrap();
    let address = startup["foxglove"].as_str().unwrap().strip_prefix("ws://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    write!(
        stream,
        "GET / HTTP/1.1\r\nHost: {address}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
         Sec-WebSocket-Protocol: foxglove.sdk.v1\r\n\r\n"
    )
    .unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 101");
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let ran = rnet!(env, "dashboard", "--port", "0", "--allow-origin", "https://app.foxglove.dev");
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
}

/// The first line of a dashboard's `--json`, with the keys file of the environment.
fn urls(env: &TestEnv, keys: &std::path::Path, args: &[&str]) -> serde_json::Value {
    let mut command = env.command();
    command.env("RNET_KEYS", keys).args(["dashboard", "--port", "0", "--foxglove", "0", "--json"]);
    let mut child = command.args(args).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    child.wait().unwrap();
    serde_json::from_str(&line).unwrap()
}

#[test]
fn keys_file_of_this_host_protects_addresses_of_other_computers_alone() {
    let env = TestEnv::new();
    let keys = env.dir.join("keys.pem");
    let (mut authority, _) = rnet_keys::Authority::init(&env.dir.join("authority")).unwrap();
    let (name, rights, addresses) = ("robot".to_owned(), rnet_keys::Rights::all(), Vec::new());
    let request = rnet_keys::HostRequest { name, rights, days: 1, addresses };
    authority.add_host(&request, &keys).unwrap();
    rnet_keys::add_token(&keys, "tablet", rnet_keys::Role::Look, None).unwrap();
    let open = urls(&env, &keys, &["--bind", "0.0.0.0"]);
    assert!(open["url"].as_str().unwrap().starts_with("https://robot.local:"), "{open}");
    assert!(open["foxglove"].as_str().unwrap().starts_with("wss://"), "{open}");
    let local = urls(&env, &keys, &[]);
    assert!(local["url"].as_str().unwrap().starts_with("http://127.0.0.1:"), "{local}");
    assert!(local["foxglove"].as_str().unwrap().starts_with("ws://"), "{local}");
    let asked = urls(&env, &keys, &["--keys", keys.to_str().unwrap()]);
    assert!(asked["url"].as_str().unwrap().starts_with("https://127.0.0.1:"), "{asked}");
}

#[test]
fn beyond_this_computer_it_is_refused_without_a_token_and_tls() {
    let env = TestEnv::new();
    let ran = rnet!(env, "dashboard", "--bind", "0.0.0.0");
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("a token and TLS (rnet keys, or --token-file"), "{}", ran.stderr);
    let ran = rnet!(env, "dashboard", "--token", "short");
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("at least 16"), "{}", ran.stderr);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let ran = rnet!(env, "dashboard", "--port", port);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("--port 0"), "{}", ran.stderr);
}
