//! `rnet action …`.

use crate::util;

use std::time::Duration;

use rnet::msgs::{Twist, Vector3};
use rnet::{ActionContext, CallOptions, GoalPolicy, Node, Service};
use serde_json::json;
use util::{TEST_TIMEOUT, TestEnv};

/// Sends feedback for x steps of the goal, and returns the goal. If x is negative, works until it is
/// cancelled.
fn steps(node: &Node) -> Service {
    let handler = |goal: &Twist, context: &mut ActionContext<'_, Vector3>| {
        let x = goal.linear.unwrap_or_default().x;
        context.feedback(&Vector3::default())?;
        for step in 1..x as i32 {
            context.feedback(&Vector3 { x: step.into(), ..Default::default() })?;
        }
        while x < 0.0 && !context.cancelled() {
            std::thread::sleep(Duration::from_millis(1)); // sleep: polling interval
        }
        Ok(*goal)
    };
    let queue = node.action::<Twist, Vector3, Twist>("/steps").policy(GoalPolicy::Queue(8));
    queue.serve(handler).unwrap()
}

#[test]
fn actions_are_listed_with_types_and_servers() {
    let env = TestEnv::new();
    let none = rnet!(env, "action", "list");
    assert!(none.stderr.contains("no actions"), "{none:?}");
    let node = env.node("a");
    let action = steps(&node);
    let service = node.service::<[u8], [u8]>("/upper").serve(|text| Ok(text.to_vec())).unwrap();
    assert_eq!(rnet!(env, "action", "list").ok(), "/steps\n");
    let typed = rnet!(env, "action", "list", "-t").ok();
    assert_eq!(typed, "/steps [rnet.msgs.Twist -> foxglove.Vector3 -> rnet.msgs.Twist]\n");
    let listed = rnet!(env, "action", "list", "--json").json();
    assert_eq!(listed["actions"][0]["types"]["feedback"], "foxglove.Vector3");
    assert_eq!(listed["actions"][0]["servers"], 1);
    let info = rnet!(env, "action", "info", "/steps").ok();
    assert!(info.contains("Server: /a") && info.contains("feedback: foxglove.Vector3"), "{info}");
    let info = rnet!(env, "action", "info", "/steps", "--json").json();
    assert_eq!(info["servers"][0]["node"], "/a");
    let said = rnet!(env, "action", "send", "/upper", "--text", "a").fails(1);
    assert!(said.contains("/upper in /a is a service, not an action"), "{said}");
    for name in ["/upper", "/stepps"] {
        let said = rnet!(env, "action", "info", name).fails(1);
        assert!(said.contains(&format!("action {name} not found")), "{said}");
    }
    drop((action, service));
}

#[test]
fn a_goal_prints_feedback_and_its_result() {
    let env = TestEnv::new();
    let node = env.node("a");
    let action = steps(&node);
    let printed = rnet!(env, "action", "send", "/steps", "{linear: {x: 3}}").ok();
    assert_eq!(printed.matches("---").count(), 3, "{printed}");
    let sent = rnet!(env, "action", "send", "/steps", r#"{"linear": {"x": 2}}"#, "--json");
    let lines = sent.json_lines();
    let parts: Vec<_> = lines.iter().map(|line| line["part"].as_str().unwrap()).collect();
    assert_eq!(parts, ["feedback", "feedback", "result"]);
    assert_eq!(lines[1]["data"]["x"], json!(1.0));
    assert_eq!(lines[2]["data"]["linear"]["x"], json!(2.0));
    let said = rnet!(env, "action", "send", "/steps", "{angel: 1}").fails(2);
    assert!(said.contains("angel"), "{said}");
    let said = rnet!(env, "action", "send", "/none", "--timeout", "0.05").fails(124);
    assert!(said.contains("/none had no server"), "{said}");
    let said = rnet!(env, "action", "send", "/steps", "{linear: {x: -1}}", "--timeout", "0.3");
    assert!(said.fails(124).contains("timed out"), "it has a time");
    drop(action);
}

#[test]
fn a_goal_is_cancelled_by_a_signal_and_by_another_command() {
    let env = TestEnv::new();
    let node = env.node("a");
    let action = steps(&node);
    let mut send = env.spawn(&["action", "send", "/steps", "{linear: {x: -1}}"]);
    send.wait_for_stdout("x: 0");
    send.signal("INT");
    let ran = send.wait();
    assert_eq!(ran.code, Some(130), "{ran:?}");
    let client = node.action_client::<Twist, Vector3, Twist>("/steps").open().unwrap();
    let goal =
        Twist { linear: Some(Vector3 { x: -1.0, ..Default::default() }), ..Twist::default() };
    let goal = client.send(&goal, CallOptions::new()).unwrap();
    assert!(goal.feedback().unwrap().is_some());
    let said = rnet!(env, "action", "cancel", "/steps").ok();
    assert_eq!(said, "/steps: cancel requested; servers reached: 1\n");
    let error = goal.result_timeout(TEST_TIMEOUT).unwrap_err();
    assert!(error.to_string().contains("by an operator"), "{error}");
    assert!(rnet!(env, "action", "cancel", "/none").fails(1).contains("action /none not found"));
    drop(action);
}

#[test]
fn goals_of_one_key_go_to_one_server() {
    let env = TestEnv::new();
    let nodes: Vec<Node> = ["a", "b", "c"].map(|name| env.node(name)).into();
    let serve = |(n, node): (usize, &Node)| {
        let action = node.action::<Twist, Vector3, Twist>("/who").policy(GoalPolicy::Queue(8));
        let who = Twist {
            linear: Some(Vector3 { x: n as f64, ..Default::default() }),
            ..Twist::default()
        };
        let handler = move |_: &Twist, _: &mut ActionContext<'_, Vector3>| Ok(who);
        action.serve(handler).unwrap()
    };
    let actions: Vec<Service> = nodes.iter().enumerate().map(serve).collect();
    let client_node = env.node("asks");
    let client = client_node.action_client::<Twist, Vector3, Twist>("/who").open().unwrap();
    util::processes::until("all servers are found", || client.server_count() == nodes.len());
    for server in [0.0, 1.0, 2.0] {
        let goes_there = |key: &String| {
            let goal = client.send(&Twist::default(), CallOptions::new().key(key)).unwrap();
            goal.result_timeout(TEST_TIMEOUT).unwrap().linear.unwrap_or_default().x == server
        };
        let mut keys = (0..).map(|n| format!("key {n}")).filter(goes_there);
        for key in [keys.next().unwrap(), keys.next().unwrap()] {
            let sent = env.run(&["action", "send", "/who", "{}", "--key", &key, "--json"]);
            let result = sent.json_lines().pop().unwrap();
            assert_eq!(result["data"]["linear"]["x"].as_f64().unwrap_or(0.0), server, "{key}");
        }
    }
    drop(actions);
}
