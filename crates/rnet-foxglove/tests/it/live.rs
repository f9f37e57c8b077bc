//! What a viewer sees of a live domain, and what it may change.

use crate::util;

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use prost::Message as _;
use rnet::msgs::plain::Image;
use rnet::msgs::{Clock, Vector3, foxglove::Pose};
use rnet::state::Value as StateValue;
use serde_json::{Value, json};
use util::{LONG, TestDomain, Viewer, wait};

#[derive(Clone, Copy, Debug, rnet::Plain)]
#[repr(C)]
struct Leg {
    force: f64,
    joints: [i32; 2],
}

#[test]
fn advertises_topics_with_types_and_sends_messages() {
    let test_domain = TestDomain::new();
    let node = test_domain.node("robot");
    let mut force = node.publisher::<Vector3>("/force").transient_local(3).open().unwrap();
    let mut leg = node.publisher::<Leg>("/leg").transient_local(3).open().unwrap();
    let mut image = node.publisher::<Image>("/image").transient_local(3).open().unwrap();
    let mut note = node.publisher::<[u8]>("/note").transient_local(3).open().unwrap();
    let vector = Vector3 { x: 1.0, y: 2.0, z: 3.0 };
    force.send(&vector).unwrap();
    leg.send(&Leg { force: 2.5, joints: [4, 5] }).unwrap();
    let header = Image::new(1, 1, "mono8").unwrap();
    image.send_data(&header, &[9]).unwrap();
    note.send(b"hello").unwrap();
    let server = test_domain.server();
    let mut viewer = Viewer::of(&server);
    let info = viewer.recv_text("serverInfo", |_| true);
    let capabilities = info["capabilities"].as_array().unwrap();
    for wanted in ["clientPublish", "services", "parameters", "connectionGraph"] {
        assert!(capabilities.contains(&wanted.into()), "{info}");
    }
    assert!(!capabilities.contains(&"time".into()), "{info}");
    let read = |topic: &str, encoding: &str, schema: &str| {
        let mut viewer = Viewer::of(&server);
        let channel = viewer.channel(topic);
        assert_eq!(
            (&channel["encoding"], &channel["schemaName"]),
            (&encoding.into(), &schema.into())
        );
        viewer.subscribe(5, &channel);
        let (subscription, payload) = viewer.message();
        assert_eq!(subscription, 5);
        payload
    };
    let payload = read("/force", "protobuf", "foxglove.Vector3");
    assert_eq!(Vector3::decode(&payload[..]).unwrap(), vector);
    let leg: Value = serde_json::from_slice(&read("/leg", "json", "Leg")).unwrap();
    assert_eq!(leg, json!({"force": 2.5, "joints": [4, 5]}));
    let raw = read("/image", "protobuf", "foxglove.RawImage");
    assert_eq!(rnet::msgs::RawImage::decode(&raw[..]).unwrap().data, [9]);
    let note: Value = serde_json::from_slice(&read("/note", "json", "bytes")).unwrap();
    assert_eq!(note["text"], "hello");
    // The domain has no subscriber: the server only observes.
    assert_eq!(force.subscriber_count(), 0);
}

#[test]
fn advertises_new_topics_and_unadvertises_removed_ones() {
    let test_domain = TestDomain::new();
    let server = test_domain.server();
    let mut viewer = Viewer::of(&server);
    viewer.recv_text("serverInfo", |_| true);
    viewer.send(&json!({"op": "subscribeConnectionGraph"}));
    viewer.recv_text("connectionGraphUpdate", |graph| graph["publishedTopics"] == json!([]));
    let node = test_domain.node("late");
    let mut publisher = node.publisher::<[u8]>("/late").open().unwrap();
    let channel = viewer.channel("/late");
    viewer.recv_text("connectionGraphUpdate", |graph| {
        graph["publishedTopics"] == json!([{"name": "/late", "publisherIds": ["/late"]}])
    });
    viewer.subscribe(1, &channel);
    // Following starts after a while; then a message arrives.
    let mut other = Viewer::of(&server);
    let channel = other.channel("/late");
    other.subscribe(1, &channel);
    let sender = std::thread::spawn(move || {
        for _ in 0..6000 {
            publisher.send(b"x").unwrap();
            std::thread::sleep(Duration::from_millis(10)); // sleep: its rate.
            if publisher.sent() > 50 {
                break;
            }
        }
        publisher
    });
    assert_eq!((viewer.message().0, other.message().0), (1, 1));
    drop(sender.join().unwrap());
    let gone = viewer.recv_text("unadvertise", |_| true);
    assert_eq!(gone["channelIds"], json!([channel["id"]]));
    viewer.recv_text("connectionGraphUpdate", |graph| graph["removedTopics"] == json!(["/late"]));
    // A viewer may unsubscribe once from its subscription that ended with the channel.
    let mut is_refused = |subscription: u32| {
        viewer.send(&json!({"op": "unsubscribe", "subscriptionIds": [subscription]}));
        // Its reply, with operation code 4, shows that the previous request is done.
        viewer.send(&json!({"op": "fetchAsset", "uri": "x", "requestId": 1}));
        let mut refused = false;
        viewer.until(|message| match message {
            tungstenite::Message::Binary(bytes) => (bytes[0] == 4).then_some(()),
            message => {
                refused |= message.to_text().unwrap().contains("does not exist");
                None
            }
        });
        refused
    };
    assert_eq!([1, 1, 2].map(&mut is_refused), [false, true, true]);
}

#[test]
fn follows_domain_again_after_it_was_unreadable() {
    let test_domain = TestDomain::new();
    let mut options = test_domain.options();
    let (sender, events) = std::sync::mpsc::channel();
    options.on_event = std::sync::Arc::new(move |text| drop(sender.send(text.to_owned())));
    let wait_for = |what: &str| {
        while !events.recv_timeout(util::HANG).expect("an event").contains(what) {}
    };
    let node = test_domain.node("early");
    let early = node.publisher::<[u8]>("/early").open().unwrap();
    let server = rnet_foxglove::serve(options).unwrap();
    let mut viewer = Viewer::of(&server);
    viewer.channel("/early");
    drop((early, node));
    viewer.recv_text("unadvertise", |_| true);
    // A file in place of the directory makes every snapshot fail.
    let (domain, aside) = (test_domain.location().path().to_owned(), test_domain.0.join("aside"));
    std::fs::rename(&domain, &aside).unwrap();
    std::fs::write(&domain, b"").unwrap();
    let has_text =
        |what: &'static str| move |said: &Value| said["message"].as_str().unwrap().contains(what);
    wait_for("the domain cannot be read");
    viewer.recv_text("status", has_text("the domain cannot be read"));
    // A new client is accepted meanwhile, and the server keeps running.
    let mut other = Viewer::of(&server);
    other.recv_text("serverInfo", |_| true);
    assert!(!server.is_finished());
    std::fs::remove_file(&domain).unwrap();
    std::fs::rename(&aside, &domain).unwrap();
    wait_for("the domain can be read again");
    viewer.recv_text("status", has_text("the domain can be read again"));
    let node = test_domain.node("late");
    let _late = node.publisher::<[u8]>("/late").open().unwrap();
    viewer.channel("/late");
    other.channel("/late");
}

#[test]
fn does_not_send_stale_latched_messages_or_those_of_gone_publishers() {
    let test_domain = TestDomain::new();
    let (first, second) = (test_domain.node("first"), test_domain.node("second"));
    let mut publisher = first.publisher::<[u8]>("/mode").transient_local(1).open().unwrap();
    let text = |payload: Vec<u8>| {
        serde_json::from_slice::<Value>(&payload).unwrap()["text"].as_str().unwrap().to_owned()
    };
    let server = test_domain.server();
    let comes = || {
        let mut viewer = Viewer::of(&server);
        let channel = viewer.channel("/mode");
        viewer.subscribe(1, &channel);
        viewer
    };
    publisher.send(b"old").unwrap();
    let mut viewer = comes();
    assert_eq!(text(viewer.message().1), "old");
    // A newer message is sent while no viewer is connected.
    drop(viewer);
    wait("the end of the viewer", || server.stats().clients == 0);
    publisher.send(b"new").unwrap();
    let mut viewer = comes();
    let mut received = text(viewer.message().1);
    if received == "old" {
        // The server was still reading the topic when this viewer connected, and reads the new message now.
        received = text(viewer.message().1);
    }
    assert_eq!(received, "new");
    let mut other = second.publisher::<[u8]>("/mode").transient_local(1).open().unwrap();
    other.send(b"other").unwrap();
    assert_eq!(text(viewer.message().1), "other");
    drop((publisher, first));
    viewer.send(&json!({"op": "subscribeConnectionGraph"}));
    viewer.recv_text("connectionGraphUpdate", |graph| {
        graph["publishedTopics"] == json!([{"name": "/mode", "publisherIds": ["/second"]}])
    });
    assert_eq!(text(comes().message().1), "other");
}

#[test]
fn viewer_publishes_in_both_encodings_and_gets_errors() {
    let test_domain = TestDomain::new();
    let node = test_domain.node("base");
    let mut goals = node.subscriber::<Vector3>("/goal").open().unwrap();
    let server = test_domain.server();
    let mut viewer = Viewer::of(&server);
    viewer.recv_text("serverInfo", |_| true);
    let channel = |id: u32, encoding: &str, name: &str| {
        json!({"op": "advertise", "channels": [
            {"id": id, "topic": "/goal", "encoding": encoding, "schemaName": name}]})
    };
    viewer.send(&channel(1, "json", "foxglove.Vector3"));
    viewer.send(&channel(2, "protobuf", "foxglove.Vector3"));
    goals.wait_for_publishers_timeout(2, LONG).unwrap();
    viewer.binary(&[&[1], &1u32.to_le_bytes(), br#"{"x": 1.5}"#]);
    assert_eq!(goals.recv_timeout(LONG).unwrap().x, 1.5);
    let message = Vector3 { y: 2.5, ..Vector3::default() };
    viewer.binary(&[&[1], &2u32.to_le_bytes(), &message.encode_to_vec()]);
    assert_eq!(goals.recv_timeout(LONG).unwrap().y, 2.5);
    // A malformed message is not sent.
    viewer.binary(&[&[1], &1u32.to_le_bytes(), br#"{"w": 1}"#]);
    viewer.recv_text("status", |said| said["message"].as_str().unwrap().contains("was not sent"));
    viewer.binary(&[&[1], &2u32.to_le_bytes(), &[0xff; 9]]);
    viewer.recv_text("status", |said| said["message"].as_str().unwrap().contains("was not sent"));
    viewer.send(&channel(3, "json", "foxglove.Pose"));
    viewer.recv_text("status", |said| {
        let text = said["message"].as_str().unwrap();
        text.contains("foxglove.Vector3") && text.contains("foxglove.Pose")
    });
    // A wrong type is rejected even with a description: no subscriber would receive it. The other channel is
    // opened.
    let mut other = channel(4, "protobuf", "foxglove.Pose");
    let pose = <Pose as rnet::Message>::message_type().unwrap();
    let schema = BASE64.encode(pose.schema().unwrap().descriptor_set_with_json_names());
    other["channels"][0]["schema"] = schema.into();
    other["channels"][0]["schemaEncoding"] = "protobuf".into();
    let beside = channel(5, "json", "")["channels"][0].clone();
    other["channels"].as_array_mut().unwrap().push(beside);
    viewer.send(&other);
    viewer.recv_text("status", |said| {
        let text = said["message"].as_str().unwrap();
        text.contains("foxglove.Vector3") && text.contains("foxglove.Pose")
    });
    goals.wait_for_publishers_timeout(3, LONG).unwrap();
    viewer.binary(&[&[1], &5u32.to_le_bytes(), br#"{"x": 3.5}"#]);
    assert_eq!(goals.recv_timeout(LONG).unwrap().x, 3.5);
    // A client's publishers are dropped with the client.
    drop(viewer);
    wait("the end of the publishers", || goals.publisher_count() == 0);
}

#[test]
fn calls_services_and_reports_their_errors() {
    let test_domain = TestDomain::new();
    let node = test_domain.node("planner");
    let _plan = node
        .service::<Vector3, Vector3>("/plan")
        .serve(|request| match request.x {
            x if x < 0.0 => Err(rnet::HandlerError::new("Negative", "x is below zero")),
            x => Ok(Vector3 { x: 2.0 * x, ..Vector3::default() }),
        })
        .unwrap();
    let server = test_domain.server();
    let mut viewer = Viewer::of(&server);
    let services = viewer.recv_text("advertiseServices", |_| true);
    let service = &services["services"][0];
    assert_eq!((&service["name"], &service["type"]), (&"/plan".into(), &"foxglove.Vector3".into()));
    assert_eq!(service["request"]["schemaEncoding"], "protobuf");
    let id = u32::try_from(service["id"].as_u64().unwrap()).unwrap().to_le_bytes();
    let call = |viewer: &mut Viewer, number: u32, encoding: &str, data: &[u8]| {
        let len = (encoding.len() as u32).to_le_bytes();
        viewer.binary(&[&[2], &id, &number.to_le_bytes(), &len, encoding.as_bytes(), data]);
    };
    call(&mut viewer, 1, "json", br#"{"x": 4}"#);
    let reply = viewer.frame(3);
    assert_eq!(
        (&reply[..4], &reply[4..8], &reply[12..16]),
        (&id[..], &[1, 0, 0, 0][..], &b"json"[..])
    );
    let reply: Value = serde_json::from_slice(&reply[16..]).unwrap();
    assert_eq!(reply["x"], 8.0);
    let negative = Vector3 { x: -1.0, ..Vector3::default() }.encode_to_vec();
    let wrong: [(u32, &str, &[u8], &str); 2] =
        [(2, "protobuf", &negative, "below zero"), (3, "json", b"[", "not valid JSON")];
    for (number, encoding, data, why) in wrong {
        call(&mut viewer, number, encoding, data);
        let said = viewer.recv_text("serviceCallFailure", |said| said["callId"] == number);
        assert!(said["message"].as_str().unwrap().contains(why), "{said}");
    }
    viewer.binary(&[&[2], &[9; 4], &[4, 0, 0, 0], &[4, 0, 0, 0], b"json{}"]);
    let said = viewer.recv_text("serviceCallFailure", |said| said["callId"] == 4);
    assert!(said["message"].as_str().unwrap().contains("does not exist"), "{said}");
}

#[test]
fn reads_sets_follows_and_resets_parameters() {
    let test_domain = TestDomain::new();
    let node = test_domain.node("arm");
    let speed = node.param::<f64>("speed").default(1.0).max(2.0).declare().unwrap();
    let joints = node.param::<i64>("joints").default(6).declare().unwrap();
    let server = test_domain.server();
    let (mut viewer, mut other) = (Viewer::of(&server), Viewer::of(&server));
    viewer.send(&json!({"op": "getParameters", "parameterNames": [], "id": "all"}));
    let said = viewer.recv_text("parameterValues", |said| said["id"] == "all");
    let params = json!([
        {"name": "/arm/joints", "value": 6},
        {"name": "/arm/speed", "value": 1.0, "type": "float64"},
    ]);
    assert_eq!(said["parameters"], params);
    other.send(&json!({"op": "subscribeParameterUpdates", "parameterNames": ["/arm/speed"]}));
    // A reply shows that the previous request is done.
    other.send(&json!({"op": "getParameters", "parameterNames": ["/arm/joints"], "id": "done"}));
    other.recv_text("parameterValues", |said| said["id"] == "done");
    let mut set = |name: &str, value: Value, id: &str| {
        let parameters = json!([{"name": name, "value": value}]);
        viewer.send(&json!({"op": "setParameters", "parameters": parameters, "id": id}));
        viewer.recv_text("parameterValues", |said| said["id"] == id)["parameters"][0]["value"]
            .clone()
    };
    assert_eq!(set("/arm/speed", json!(2), "1"), json!(2.0));
    assert_eq!(set("/arm/joints", json!(7.0), "2"), json!(7));
    assert_eq!((speed.get().unwrap(), joints.get().unwrap()), (2.0, 7));
    other.recv_text("parameterValues", |said| said["parameters"][0]["value"] == 2.0);
    // A value above the maximum is rejected with a reason.
    assert_eq!(set("/arm/speed", json!(3), "3"), json!(2.0));
    viewer.recv_text("status", |said| said["message"].as_str().unwrap().contains("maximum"));
    viewer.send(&json!({"op": "setParameters", "parameters": [{"name": "/arm/none", "value": 1}]}));
    viewer.recv_text("status", |said| said["message"].as_str().unwrap().contains("/arm/none"));
    // Each parameter of several that could not be set is reported.
    let several = json!([{"name": "/arm/one", "value": 1}, {"name": "/arm/two", "value": 2}]);
    viewer.send(&json!({"op": "setParameters", "parameters": several}));
    let reports = |said: &Value, name: &str| said["message"].as_str().unwrap().contains(name);
    viewer.recv_text("status", |said| reports(said, "/arm/one") && reports(said, "/arm/two"));
    // Without a value it is reset to its default.
    viewer.send(&json!({"op": "setParameters", "parameters": [{"name": "/arm/speed"}]}));
    other.recv_text("parameterValues", |said| said["parameters"][0]["value"] == 1.0);
    assert_eq!(node.state().unwrap().get("/params/arm/joints").unwrap(), Some(StateValue::Int(7)));
}

#[test]
fn sends_simulated_time() {
    let test_domain = TestDomain::new();
    let node = test_domain.node("simulator");
    let server = test_domain.server();
    let mut viewer = Viewer::of(&server);
    let mut clock = node.publisher::<Clock>("/clock").open().unwrap();
    let has_time = |info: &Value| info["capabilities"].as_array().unwrap().contains(&"time".into());
    viewer.recv_text("serverInfo", has_time);
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let ticks = std::thread::spawn(move || {
        let mut now_ns = 0;
        while stopped
            .recv_timeout(Duration::from_millis(5))
            .is_err_and(|e| e == std::sync::mpsc::RecvTimeoutError::Timeout)
        {
            now_ns += 1_000_000_000;
            clock.send(&Clock { time_ns: now_ns }).unwrap();
        }
    });
    let time = |frame: Vec<u8>| u64::from_le_bytes(frame.try_into().unwrap());
    let first = time(viewer.frame(2));
    assert!(first.is_multiple_of(1_000_000_000) && time(viewer.frame(2)) > first);
    drop(stop);
    ticks.join().unwrap();
    viewer.recv_text("serverInfo", |info| !has_time(info));
}

#[test]
fn read_only_viewer_cannot_change_anything() {
    let test_domain = TestDomain::new();
    let node = test_domain.node("arm");
    let speed = node.param::<f64>("speed").default(1.0).declare().unwrap();
    let _plan = node.service::<[u8], [u8]>("/plan").serve(|_| Ok(Vec::new())).unwrap();
    let mut options = test_domain.options();
    options.access.read_only = true;
    let server = rnet_foxglove::serve(options).unwrap();
    let mut viewer = Viewer::of(&server);
    let info = viewer.recv_text("serverInfo", |_| true);
    let capabilities = info["capabilities"].as_array().unwrap();
    assert!(!capabilities.contains(&"clientPublish".into()), "{info}");
    for request in [
        json!({"op": "setParameters", "parameters": [{"name": "/arm/speed", "value": 2.0}]}),
        json!({"op": "advertise", "channels": [
            {"id": 1, "topic": "/x", "encoding": "json", "schemaName": ""}]}),
    ] {
        viewer.send(&request);
        viewer
            .recv_text("status", |said| said["message"].as_str().unwrap().contains("--read-only"));
    }
    assert_eq!(speed.get().unwrap(), 1.0);
}
