//! The built-in messages as Rust types, on topics.

use crate::common;

use common::{LONG, Net, eventually};
use rnet::msgs::{self, foxglove, timestamp_from_ns, timestamp_now, timestamp_to_ns};
use rnet::schema::{Schema, compile_text};
use rnet::{Error, Message, Publisher, Subscriber};

/// Both endpoints of a topic, in two nodes.
fn ends<T: Message>(net: &Net) -> (Publisher<T>, Subscriber<T>) {
    let publisher = net.node("a").publisher::<T>("/typed").open().unwrap();
    let mut subscriber = net.node("b").subscriber::<T>("/typed").open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    subscriber.wait_for_publishers_timeout(1, LONG).unwrap();
    (publisher, subscriber)
}

#[test]
fn joint_states_arrive_unchanged() {
    let net = Net::new("typed_joints");
    let (mut publisher, mut subscriber) = ends::<msgs::JointState>(&net);
    // Fewer joints, more joints, none: no message leaks into the next.
    for count in [7, 3, 0, 12, 1] {
        let sent = msgs::JointState {
            timestamp: (count != 3).then(timestamp_now),
            names: (0..count).map(|i| format!("joint_{i}_of_{count}")).collect(),
            position: (0..count).map(f64::from).collect(),
            effort: if count == 12 { vec![f64::INFINITY; 12] } else { Vec::new() },
            ..Default::default()
        };
        publisher.send(&sent).unwrap();
        assert_eq!(*subscriber.recv_timeout(LONG).unwrap(), sent);
    }
}

#[test]
fn a_scan_is_kept_while_the_next_one_comes() {
    let net = Net::new("typed_scan");
    let (mut publisher, mut subscriber) = ends::<msgs::LaserScan>(&net);
    let scan = |first: f64| msgs::LaserScan {
        timestamp: Some(timestamp_from_ns(-1)),
        frame_id: "laser".into(),
        pose: Some(msgs::Pose {
            position: Some(msgs::Vector3 { x: first, y: 0.0, z: 0.0 }),
            orientation: None,
        }),
        // Longer than the inline limit: a chunk.
        ranges: (0..1080).map(|i| first + f64::from(i)).collect(),
        ..Default::default()
    };
    publisher.send(&scan(1.0)).unwrap();
    publisher.send(&scan(2.0)).unwrap();
    let kept = subscriber.recv_timeout(LONG).unwrap().into_owned();
    assert_eq!(*subscriber.recv_timeout(LONG).unwrap(), scan(2.0));
    assert_eq!(*kept, scan(1.0));
    assert_eq!(kept.timestamp.as_ref().and_then(timestamp_to_ns), Some(-1));
}

/// `foxglove.JointState` is one joint, `rnet.msgs.JointState` is all of them.
#[test]
fn two_types_of_one_name_do_not_match() {
    let net = Net::new("typed_two");
    let (a, b) = (net.node("a"), net.node("b"));
    let publisher = a.publisher::<msgs::JointState>("/joints").open().unwrap();
    let _subscriber = b.subscriber::<foxglove::JointState>("/joints").open().unwrap();
    eventually("the publisher gets the event", || !publisher.incompatible().is_empty());
    let reported = publisher.incompatible();
    let [error @ Error::IncompatibleType { .. }] = &reported[..] else { panic!("{reported:?}") };
    let text = error.to_string();
    assert!(
        text.contains("rnet.msgs.JointState") && text.contains("foxglove.JointState"),
        "{text}"
    );
}

/// The error must not name publishers, subscribers or topics, which users of a service do not know.
#[test]
fn type_mismatch_names_the_service_the_client_and_the_server() {
    use msgs::{Pose, Twist, Vector3};
    let net = Net::new("typed_calls");
    let (a, b) = (net.node("a"), net.node("b"));
    let _plan = a
        .service::<Twist, Pose>("/plan")
        .serve(|_| Ok::<_, rnet::HandlerError>(Pose::default()))
        .unwrap();
    let _go = a
        .action::<Twist, Vector3, Pose>("/go")
        .serve(|_, _| Ok::<_, rnet::HandlerError>(Pose::default()))
        .unwrap();
    let goal = b.action_client::<Pose, Vector3, Pose>("/go").open().unwrap();
    let goal = goal.send(&Pose::default(), rnet::CallOptions::new()).unwrap();
    let of_goal = goal.result_timeout(LONG).unwrap_err();
    let of_request = b.call_timeout::<Pose, Pose>("/plan", &Pose::default(), LONG).err().unwrap();
    let of_reply =
        b.call_timeout::<Twist, Vector3>("/plan", &Twist::default(), LONG).err().unwrap();
    for (error, service, clash) in [
        (
            of_request,
            "/plan",
            "request: client has type foxglove.Pose, server has type rnet.msgs.Twist",
        ),
        (
            of_reply,
            "/plan",
            "reply: server has type foxglove.Pose, client has type foxglove.Vector3",
        ),
        (of_goal, "/go", "request: client has type foxglove.Pose, server has type rnet.msgs.Twist"),
    ] {
        let text = error.to_string();
        assert_eq!((error.code(), error.topic()), ("incompatible_type", Some(service)), "{text}");
        assert!(
            text.contains(&format!("calls of {service}: {clash} (client /b, server /a)")),
            "{text}"
        );
        assert!(!text.contains("_rnet") && !text.contains("publisher"), "{text}");
    }
}

/// The schema that peers receive, for each built-in message with a Rust type.
#[test]
fn every_built_in_message_has_its_schema() {
    let imports: String =
        rnet::schema::builtin_files().map(|file| format!("import {file:?};\n")).collect();
    let all = compile_text("all.proto", &format!("syntax = \"proto3\";\n{imports}")).unwrap();
    let names: Vec<String> = all
        .all_messages()
        .into_iter()
        .filter(|name| !name.starts_with("google.protobuf."))
        .collect();
    assert!(names.len() >= 70, "48 of foxglove and 22 of rnet.msgs: {names:?}");
    // The types of these are generated in the crates below `rnet`.
    let below: Vec<Schema> = [
        foxglove::Log::message_type(),
        msgs::Clock::message_type(),
        msgs::CallControl::message_type(),
        msgs::CallStatus::message_type(),
        msgs::CommandEvent::message_type(),
        msgs::CommandReply::message_type(),
        msgs::CommandRequest::message_type(),
        msgs::CommandStatus::message_type(),
        msgs::StateAsk::message_type(),
        msgs::StateChange::message_type(),
        msgs::StateEntry::message_type(),
        msgs::StateReply::message_type(),
        msgs::state_reply::Refusal::message_type(),
    ]
    .map(|message_type| message_type.unwrap().schema().unwrap().clone())
    .into();
    for name in &names {
        let schema = below.iter().find(|schema| schema.name() == name).cloned();
        let schema = schema.unwrap_or_else(|| {
            let file = format!("{}/rnet_protos/{name}.bin", env!("OUT_DIR"));
            let set = std::fs::read(&file).unwrap_or_else(|error| panic!("{file}: {error}"));
            Schema::from_descriptor_set(&set, name).unwrap()
        });
        assert_eq!(schema, all.schema(name).unwrap());
        assert!(!schema.docs().is_empty(), "{name} has no comment");
    }
    let same = |message_type: rnet::Result<rnet::MessageType>, name: &str| {
        assert_eq!(message_type.unwrap().schema(), Some(&all.schema(name).unwrap()));
    };
    same(msgs::JointState::message_type(), "rnet.msgs.JointState");
    same(msgs::Event::message_type(), "rnet.msgs.Event");
    same(msgs::LaserScan::message_type(), "foxglove.LaserScan");
    same(foxglove::Event::message_type(), "foxglove.Event");
}
