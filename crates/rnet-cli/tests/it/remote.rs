//! How commands that name nodes or types report other hosts. The link is a test node with proxies.

use crate::util;

use rnet::bridge::{BridgePublisherBuilder, BridgeSubscriber, BridgeSubscriberBuilder};
use rnet::msgs::LinkStatus;
use rnet::msgs::link_status::{Peer, Topic};
use rnet::{Node, Proxy};
use serde_json::json;
use util::{DOMAIN, POSE, Pose, TEST_TIMEOUT, TestEnv};

/// The link's node, as tools recognize it.
fn link(env: &TestEnv) -> Node {
    Node::builder("_rnet/link_1").tool().dir(&env.dir).domain(DOMAIN).open().unwrap()
}

fn viewer(endpoint: u64) -> Proxy {
    Proxy::new("laptop", "/viewer", endpoint).unwrap()
}

#[test]
fn doctor_and_node_info_take_nodes_of_other_hosts() {
    let env = TestEnv::new();
    let (node, link) = (env.node("lidar"), link(&env));
    let mut poses = node.publisher::<Pose>("/pose").open().unwrap();
    let mut goals = node.subscriber::<Pose>("/goal").open().unwrap();
    // As the link has it: a separate subscription forwards the messages.
    let theirs = link.subscriber::<Pose>("/pose").proxy(viewer(1), 1).passive().open().unwrap();
    theirs.admit_to(poses.id()).unwrap();
    let mut goal = link.publisher::<Pose>("/goal").proxy(viewer(2)).open().unwrap();
    poses.wait_for_subscribers_timeout(1, TEST_TIMEOUT).unwrap();
    goal.wait_for_subscribers_timeout(1, TEST_TIMEOUT).unwrap();
    poses.send(&POSE).unwrap();
    goal.send(&POSE).unwrap();
    goals.recv_timeout(TEST_TIMEOUT).unwrap();

    let text = rnet!(env, "doctor", "@laptop/viewer", "lidar").ok();
    assert!(
        text.contains("@laptop/viewer receives from /lidar on /pose through the link"),
        "{text}"
    );
    let text = rnet!(env, "doctor", "lidar", "@laptop/viewer").ok();
    assert!(
        text.contains("/lidar receives from @laptop/viewer on /goal: 1 messages received"),
        "{text}"
    );
    let text = rnet!(env, "doctor", "@laptop/viewer", "@laptop/viewer").ok();
    assert!(text.contains("both on other hosts") && text.contains("on laptop"), "{text}");
    let ran = rnet!(env, "doctor", "lidar", "@laptop/viever");
    assert!(ran.stdout.contains("did you mean @laptop/viewer?"), "{ran:?}");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(rnet!(env, "doctor", "lidar", "@laptop").fails(2).contains("@host/node"));

    let text = rnet!(env, "node", "info", "@laptop/viewer").ok();
    assert!(
        text.starts_with("@laptop/viewer\n  Host: laptop; run rnet node info /viewer there"),
        "{text}"
    );
    let (subscribers, publishers) = text.split_once("  Publishers:").unwrap();
    assert!(subscribers.contains("/pose") && publishers.contains("/goal"), "{text}");
    let json = rnet!(env, "node", "info", "@laptop/viewer", "--json").json();
    assert_eq!((&json["host"], &json["publishes"]), (&json!("laptop"), &json!(["/goal"])));
    assert_eq!(json["subscribers"][0]["topic"], "/pose", "{json}");
    let why = rnet!(env, "node", "info", "@labtop/viewer").fails(1);
    assert!(why.contains("did you mean @laptop/viewer?"), "{why}");
}

#[test]
fn types_in_use_name_their_hosts_where_there_are_several() {
    let env = TestEnv::new();
    let node = env.node("lidar");
    let _pose = node.publisher::<Pose>("/pose").open().unwrap();
    let list = |args: &[&str]| env.run(&[&["type", "list", "--in-use"], args].concat());
    let alone = list(&[]).ok();
    assert!(alone.ends_with("Pose  /pose\n"), "{alone}");
    let link = link(&env);
    let _twist = link.publisher::<rnet::msgs::Twist>("/twist").proxy(viewer(1)).open().unwrap();
    let text = list(&[]).ok();
    let lines: Vec<Vec<&str>> =
        text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["TYPE", "TOPICS", "HOST"], "{text}");
    let row = |topic: &str| lines.iter().find(|line| line[1] == topic).unwrap();
    assert_eq!(row("/twist")[2], "laptop", "{text}");
    let own = row("/pose")[2];
    assert_eq!(
        list(&["--host", "laptop", "--json"]).json()["types"][0]["hosts"],
        json!(["laptop"])
    );
    let of_own = env.run(&["type", "list", "--host", own, "--json"]).json();
    assert_eq!(of_own["types"][0]["topics"], json!(["/pose"]), "{of_own}");
    assert_eq!(of_own["types"].as_array().unwrap().len(), 1, "{of_own}");
    assert!(list(&["--host", "labtop"]).fails(1).contains("did you mean laptop?"));
}

#[test]
fn status_and_doctor_report_a_missing_link_program() {
    let env = TestEnv::new();
    let _node = env.node("robot");
    assert!(rnet!(env, "status", "--over", "0.1").ok().contains("all is well"));
    for words in [&["status", "--over", "0.1"][..], &["doctor"]] {
        let mut command = env.command();
        command.args(words).env("RNET_NETWORK", "lan");
        let said = util::RunningCommand::start(command).wait();
        let what =
            "a network is configured (RNET_NETWORK=lan), but the program rnet-link was not found";
        assert!(said.stdout.contains(what) && said.stdout.contains("RNET_LINK names"), "{said:?}");
        assert_eq!(said.code, Some(1), "{said:?}");
    }
}

#[test]
fn link_status_lists_internal_topics_on_request() {
    let env = TestEnv::new();
    let link = link(&env);
    let mut said = link.publisher::<LinkStatus>("/_rnet/link").transient_local(1).open().unwrap();
    let topic = |name: &str| Topic { name: name.into(), ..Topic::default() };
    let topics = vec![topic("/_rnet/call/_rnet/state/set"), topic("/camera")];
    let peers = vec![Peer { host: "laptop".into(), topics, ..Peer::default() }];
    said.send(&LinkStatus { peers, ..LinkStatus::default() }).unwrap();
    let shown = rnet!(env, "link", "status").ok();
    assert!(shown.contains("/camera") && !shown.contains("/_rnet/"), "{shown}");
    let shown = rnet!(env, "link", "status", "--all").ok();
    assert!(shown.contains("/camera") && shown.contains("/_rnet/call/_rnet/state/set"), "{shown}");
    let json = rnet!(env, "link", "status", "--json").json();
    assert_eq!(json["peers"][0]["topics"].as_array().unwrap().len(), 2);
}

/// A long status is replaced by a later one. A status after a long one was not read.
#[test]
fn the_last_status_of_a_link_with_many_topics_is_shown() {
    let env = TestEnv::new();
    let link = link(&env);
    let mut said = link.publisher::<LinkStatus>("/_rnet/link").transient_local(1).open().unwrap();
    let topics = vec![Topic { name: "/camera/front/image".into(), ..Topic::default() }; 2000];
    for n in 1..=9 {
        let peers = vec![Peer { host: "laptop".into(), topics: topics.clone(), ..Peer::default() }];
        let status = LinkStatus { host: format!("robot-{n}"), peers, ..LinkStatus::default() };
        said.send(&status).unwrap();
        let shown = rnet!(env, "link", "status").ok();
        assert!(shown.starts_with(&format!("host robot-{n}\n")), "{n}: {:?}", shown.lines().next());
    }
}
