//! `rnet graph`.

use crate::util;
use rnet::bridge::BridgeSubscriberBuilder;

use serde_json::json;
use util::{BackgroundPublisher, POSE, Pose, TestEnv};

/// A camera, a display, a second robot and a subscriber with an incompatible QoS.
fn with_robot(test: impl FnOnce(&TestEnv)) {
    let env = TestEnv::new();
    let (camera, display, link) = (env.node("camera"), env.node("display"), env.node("link"));
    let remote = rnet::Proxy::new("robot2", "arm", 7).unwrap();
    let mut poses = camera.publisher::<Pose>("/pose").open().unwrap();
    let _stop = camera.publisher::<[u8]>("/stop").urgent().open().unwrap();
    let _image = camera.publisher::<[u8]>("/image").open().unwrap();
    let _shown = display.subscriber::<Pose>("/pose").open().unwrap();
    let _never = display.subscriber::<[u8]>("/image").reliable().open().unwrap();
    let _lonely = display.subscriber::<[u8]>("/wanted").open().unwrap();
    let _far = link.subscriber::<Pose>("/pose").proxy(remote, 1).open().unwrap();
    let _hidden = camera.publisher::<[u8]>("/_rnet/hidden").open().unwrap();
    poses.send(&POSE).unwrap();
    test(&env);
}

#[test]
fn the_text_shows_who_publishes_what_to_whom() {
    with_robot(|env| {
        let text = rnet!(env, "graph", "--over", "0").ok();
        for part in [
            "    /camera\n",
            "        -> /stop  raw  urgent\n",
            "        -> /pose  Pose\n            -> /display\n            -> @robot2/arm\n",
            "            -> /display  NO MATCH: ",
            "host robot2\n    @robot2/arm\n",
            "no publisher\n    -> /wanted  raw\n        -> /display\n",
        ] {
            assert!(text.contains(part), "{part:?} is missing:\n{text}");
        }
        assert!(!text.contains("hidden") && !text.contains("/link"), "{text}");
        assert!(rnet!(env, "graph", "--over", "0", "--all").ok().contains("/_rnet/hidden"));
    });
}

#[test]
fn unknown_file_extension_is_refused() {
    with_robot(|env| {
        let path = |name: &str| env.dir.join(name).to_str().unwrap().to_owned();
        let refused = rnet!(env, "graph", "--over", "0", "-o", path("net.png")).fails(2);
        assert!(refused.contains("unknown graph format .png: use .dot, .mmd or .txt"), "{refused}");
        assert!(!env.dir.join("net.png").exists());
        rnet!(env, "graph", "--over", "0", "-o", path("net.txt")).ok();
        rnet!(env, "graph", "--over", "0", "-o", path("net.xml"), "--format", "dot").ok();
        rnet!(env, "graph", "--over", "0", "-o", path("net.json"), "--json").ok();
    });
}

#[test]
fn rates_are_measured_between_two_snapshots() {
    let env = TestEnv::new();
    let node = env.node("imu");
    let imu = BackgroundPublisher::start(
        node.publisher::<[u8]>("/imu").open().unwrap(),
        Box::from(*b"0123456789"),
    );
    let graph = rnet!(env, "graph", "--over", "0.5", "--json").json();
    drop(imu);
    let _imu = node.publisher::<[u8]>("/imu").open().unwrap();
    let rate = &graph["topics"][0]["rate"];
    let hz = rate["rate_hz"].as_f64().unwrap();
    assert!(hz > 1.0 && hz <= 1100.0, "{graph}");
    assert!((rate["bytes_per_s"].as_f64().unwrap() / hz - 10.0).abs() < 0.01, "{graph}");
    assert_eq!(graph["topics"][0]["publishers"][0]["rate"], *rate);
    let still = rnet!(env, "graph", "--over", "0.01").ok();
    assert!(still.contains("-> /imu  raw  silent\n"), "{still}");
}

#[test]
fn the_other_forms_show_the_same() {
    with_robot(|env| {
        let graph = rnet!(env, "graph", "--over", "0", "--json").json();
        let topics = graph["topics"].as_array().unwrap();
        let names: Vec<&str> = topics.iter().map(|t| t["topic"].as_str().unwrap()).collect();
        // /log has the line about the incompatible subscriber.
        assert_eq!(names, ["/image", "/log", "/pose", "/stop", "/wanted"]);
        assert_eq!(graph["hosts"][1], json!({"host": "robot2", "nodes": ["@robot2/arm"]}));
        assert_eq!((&topics[3]["lane"], &topics[2]["rate"]), (&json!("urgent"), &json!(null)));
        assert_eq!(topics[2]["subscribers"][0]["node"], "/display");
        let problem = topics[0]["subscribers"][0]["problem"].as_str().unwrap();
        assert!(problem.contains("reliable"), "{problem}");

        let dot = rnet!(env, "graph", "--over", "0", "--format", "dot").ok();
        for part in [
            "subgraph cluster_1 {\n        label=\"robot2\";\n        \"@robot2/arm\" [shape=box];",
            "\"topic /stop\" [shape=ellipse, label=\"/stop\\nraw\\nurgent\", color=red];",
            "\"/camera\" -> \"topic /pose\";",
            "\"topic /pose\" -> \"@robot2/arm\";",
            "\"topic /image\" -> \"/display\" [style=dashed",
        ] {
            assert!(dot.contains(part), "{part:?} is missing:\n{dot}");
        }
        let mermaid = rnet!(env, "graph", "--over", "0", "--format", "mermaid").ok();
        for part in ["flowchart LR\n", "n2[\"@robot2/arm\"]", "t2 --> n2\n", "t0 -. \""] {
            assert!(mermaid.contains(part), "{part:?} is missing:\n{mermaid}");
        }
        let file = env.dir.join("robot.dot");
        let path = file.to_str().unwrap();
        assert_eq!(rnet!(env, "graph", "--over", "0", "--output", path).ok(), "");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), dot);
    });
}

#[test]
fn an_empty_domain_and_a_bad_output_path_are_reported() {
    let env = TestEnv::new();
    let ran = rnet!(env, "graph", "--over", "0");
    assert!(ran.stderr.contains("no topics in domain"), "{ran:#?}");
    let node = env.node("imu");
    let _imu = node.publisher::<[u8]>("/imu").open().unwrap();
    let said = rnet!(env, "graph", "--over", "0", "-o", "/proc/nowhere/robot.dot").fails(1);
    assert!(said.contains("cannot write /proc/nowhere/robot.dot"), "{said}");
    rnet!(env, "graph", "--json", "--format", "dot").fails(2);
}
