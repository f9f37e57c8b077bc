//! `rnet service …`.

use crate::util;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use rnet::msgs::Twist;
use rnet::{CallOptions, HandlerError, Node, Service};
use serde_json::json;
use util::{Pose, TEST_TIMEOUT, TestEnv};

/// Returns a twist that is faster by one.
fn faster(node: &Node) -> Service {
    let handler = |twist: &Twist| {
        let mut linear = twist.linear.unwrap_or_default();
        if linear.x < 0.0 {
            return Err(HandlerError::new("Backwards", "it only goes ahead"));
        }
        linear.x += 1.0;
        Ok(Twist { linear: Some(linear), ..*twist })
    };
    node.service::<Twist, Twist>("/faster").serve(handler).unwrap()
}

#[test]
fn services_are_listed_with_types_servers_and_clients() {
    let env = TestEnv::new();
    let none = rnet!(env, "service", "list");
    assert!(none.stderr.contains("no services"), "{none:?}");
    let (a, b) = (env.node("a"), env.node("b"));
    let services = (faster(&a), faster(&b));
    let pose = a.service::<[u8], Pose>("/arm/pose").serve(|_| Ok(util::POSE)).unwrap();
    let client = b.client::<Twist, Twist>("/faster").open().unwrap();
    client.call_timeout(&Twist::default(), TEST_TIMEOUT).unwrap();
    assert_eq!(rnet!(env, "service", "list").ok(), "/arm/pose\n/faster\n");
    let typed = rnet!(env, "service", "list", "-t").ok();
    assert!(typed.contains("/faster [rnet.msgs.Twist -> rnet.msgs.Twist]"), "{typed}");
    let listed = rnet!(env, "service", "list", "--json").json();
    let first = json!({"service": "/arm/pose", "types": {"request": "raw", "reply": "Pose"},
        "servers": 1, "clients": 0});
    assert_eq!(listed["services"][0], first);
    assert_eq!(listed["services"][1]["servers"], 2);
    assert!(rnet!(env, "service", "list", "-v").ok().contains("SERVERS"));
    assert_eq!(rnet!(env, "service", "type", "/arm/pose").ok(), "raw\nPose\n");
    let info = rnet!(env, "service", "info", "/faster").ok();
    assert!(info.contains("Server: /a") && info.contains("Server: /b"), "{info}");
    let info = rnet!(env, "service", "info", "/faster", "--json").json();
    assert_eq!(
        (&info["servers"][1]["node"], &info["servers"][1]["clients"]),
        (&json!("/b"), &json!(1))
    );
    let said = rnet!(env, "service", "info", "/fasterr").fails(1);
    assert!(
        said.contains("service /fasterr not found") && said.contains("did you mean /faster"),
        "{said}"
    );
    drop((services, pose));
}

#[test]
fn a_call_prints_the_reply() {
    let env = TestEnv::new();
    let node = env.node("a");
    let service = faster(&node);
    let reply = rnet!(env, "service", "call", "/faster", "{linear: {x: 0.5}}").ok();
    assert!(reply.contains("x: 1.5"), "{reply}");
    let reply =
        rnet!(env, "service", "call", "/faster", r#"{"linear": {"x": 2}}"#, "--json").json();
    assert_eq!(
        (&reply["type"], &reply["data"]["linear"]["x"]),
        (&json!("rnet.msgs.Twist"), &json!(3.0))
    );
    let file = env.dir.join("twist.yaml");
    std::fs::write(&file, "linear:\n  x: 4.0\n").unwrap();
    let reply = rnet!(env, "service", "call", "/faster", "--file", file.to_str().unwrap()).ok();
    assert!(reply.contains("x: 5"), "{reply}");
    assert!(rnet!(env, "service", "call", "/faster").ok().contains("x: 1"));
    let upper =
        node.service::<[u8], [u8]>("/upper").serve(|text| Ok(text.to_ascii_uppercase())).unwrap();
    let reply = rnet!(env, "service", "call", "/upper", "--text", "robot", "--json").json();
    assert_eq!(reply["hex"], "524f424f54");
    // The error names the cause.
    let said = rnet!(env, "service", "call", "/faster", "{linear: {x: -1}}").fails(1);
    assert!(said.contains("/faster failed in /a: Backwards: it only goes ahead"), "{said}");
    let said = rnet!(env, "service", "call", "/faster", "{linear: {x: -1}}", "--json").fails(1);
    assert!(said.contains(r#""code":"call_failed""#), "{said}");
    let said = rnet!(env, "service", "call", "/faster", "{angel: 1}").fails(2);
    assert!(said.contains("angel") && said.contains("example: "), "{said}");
    let said = rnet!(env, "service", "call", "/faster", "--text", "x").fails(2);
    assert!(said.contains("give the fields"), "{said}");
    let said = rnet!(env, "service", "call", "/upper", "{x: 1}").fails(2);
    assert!(said.contains("--text, --hex or --file"), "{said}");
    let said = rnet!(env, "service", "call", "/none", "--timeout", "0.05").fails(124);
    assert!(said.contains("/none had no server"), "{said}");
    let said = rnet!(env, "service", "call", "/fastr", "--timeout", "0.05").fails(124);
    assert_eq!(said.matches("/faster?").count(), 2, "{said}");
    // An error of another node cannot control this terminal.
    let steers = |_: &[u8]| Err(HandlerError::new("Odd", "one\ntwo \u{1b}[2J\u{202e}three"));
    let odd = node.service::<[u8], [u8]>("/odd").serve::<Vec<u8>>(steers).unwrap();
    let said = rnet!(env, "service", "call", "/odd", "--text", "x").fails(1);
    assert!(said.contains("Odd: one\ntwo \\u{1b}[2J\\u{202e}three"), "{said}");
    drop((service, upper, odd));
}

#[test]
fn a_stream_is_shown_as_it_comes_and_a_signal_cancels_it() {
    let env = TestEnv::new();
    let node = env.node("a");
    let (next, steps) = mpsc::channel::<u8>();
    let steps = std::sync::Mutex::new(steps);
    let ended = Arc::new(AtomicBool::new(false));
    let end = ended.clone();
    let service = node
        .service::<[u8], [u8]>("/count")
        .serve_stream(move |wanted, responder| {
            for _ in 0..wanted[0] {
                let step = steps.lock().unwrap().recv()?;
                if responder.send(&[step]).is_err() {
                    end.store(true, Ordering::SeqCst);
                    break;
                }
            }
            Ok(())
        })
        .unwrap();
    let mut call = env.spawn(&["service", "call", "/count", "--hex", "02", "--stream", "--json"]);
    next.send(7).unwrap();
    call.wait_for_stdout(r#""hex":"07""#);
    next.send(8).unwrap();
    let ran = call.wait();
    assert_eq!((ran.code, ran.json_lines().len()), (Some(0), 2));
    let mut call = env.spawn(&["service", "call", "/count", "--hex", "ff", "--stream"]);
    next.send(7).unwrap();
    call.wait_for_stdout("07");
    call.signal("INT");
    assert_eq!(call.wait().code, Some(130));
    while !ended.load(Ordering::SeqCst) {
        next.send(9).unwrap();
        std::thread::sleep(Duration::from_millis(1)); // sleep: polling interval
    }
    drop(next);
    drop(service);
}

#[test]
fn calls_of_one_key_go_to_one_server() {
    let env = TestEnv::new();
    let nodes: Vec<Node> = ["a", "b", "c"].map(|name| env.node(name)).into();
    let serve = |node: &Node| {
        let name = node.name().to_owned();
        let service = node.service::<[u8], [u8]>("/who");
        service.serve(move |_| Ok(name.clone().into_bytes())).unwrap()
    };
    let services: Vec<Service> = nodes.iter().map(serve).collect();
    let asks = env.node("asks");
    let client = asks.client::<[u8], [u8]>("/who").open().unwrap();
    util::processes::until("all servers are found", || client.server_count() == nodes.len());
    for (server, hex) in [("/a", "2f61"), ("/b", "2f62"), ("/c", "2f63")] {
        let goes_there = |key: &String| {
            let call = client.start(b"x", CallOptions::new().key(key)).unwrap();
            *call.wait().unwrap() == *server.as_bytes()
        };
        let mut keys = (0..).map(|n| format!("key {n}")).filter(goes_there);
        for key in [keys.next().unwrap(), keys.next().unwrap()] {
            let args = ["service", "call", "/who", "--text", "x", "--key", &key, "--json"];
            let reply = env.run(&args).json();
            assert_eq!(reply["hex"], hex, "{key}");
        }
    }
    drop(services);
}
