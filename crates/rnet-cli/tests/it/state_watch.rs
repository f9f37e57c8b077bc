//! `rnet state watch`.

use crate::util;

use serde_json::json;
use util::{POSE, TestEnv};

#[test]
fn watch_prints_existing_keys_and_then_each_change() {
    let env = TestEnv::new();
    let node = env.node("arm");
    let state = node.state().unwrap();
    state.set("/arm/mode", "idle").unwrap();
    state.set("/army", 1).unwrap();
    let mut watch = env.spawn(&["state", "watch", "/arm"]);
    watch.wait_for_stdout("/arm/mode: \"idle\"\n");
    state.set("/arm/speed", 1.5).unwrap();
    watch.wait_for_stdout("/arm/speed: 1.5\n");
    state.set("/army", 2).unwrap();
    state.delete("/arm/mode").unwrap();
    watch.wait_for_stdout("/arm/mode deleted\n");
    assert!(rnet!(env, "node", "list").ok().contains("/rnet_state_"));
    watch.signal("INT");
    let ran = watch.wait();
    assert_eq!(ran.stdout, "/arm/mode: \"idle\"\n/arm/speed: 1.5\n/arm/mode deleted\n");
    ran.fails(130);
    assert_eq!(rnet!(env, "node", "list").ok(), "/arm\n");
}

#[test]
fn json_has_the_event_and_its_writer() {
    let env = TestEnv::new();
    let node = env.node("arm");
    let state = node.state().unwrap();
    let first = state.set("/arm/mode", "idle").unwrap();
    state.set_message("/arm/pose", &POSE).unwrap();
    let mut watch = env.spawn(&["state", "watch", "--count", "4", "--json"]);
    watch.wait_for_stdout("\"/arm/pose\"");
    let second = state.set("/arm/mode", "moving").unwrap();
    state.delete("/arm/mode").unwrap();
    let lines = watch.wait().json_lines();
    let of = |i: usize| (&lines[i]["event"], &lines[i]["key"], &lines[i]["value"]);
    assert_eq!(of(0), (&json!("present"), &json!("/arm/mode"), &json!("idle")));
    assert_eq!((&lines[0]["revision"], &lines[0]["node"]), (&json!(first), &json!("/arm")));
    assert_eq!(lines[1]["value"]["legs"][1]["force"], json!(20.0));
    assert_eq!(of(2), (&json!("set"), &json!("/arm/mode"), &json!("moving")));
    assert_eq!((&lines[2]["revision"], &lines[2]["skipped"]), (&json!(second), &json!(0)));
    assert_eq!((&lines[3]["event"], &lines[3]["key"]), (&json!("deleted"), &json!("/arm/mode")));
}

#[test]
fn it_exits_after_count_or_timeout() {
    let env = TestEnv::new();
    let said = rnet!(env, "state", "watch", "/arm", "--timeout", "0.1").fails(124);
    assert!(said.contains("no keys under \"/arm\" yet") && said.contains("0 values"), "{said}");
    let said = rnet!(env, "state", "watch", "--timeout", "0.1").fails(124);
    assert!(said.contains("no keys yet; waiting\n"), "{said}");
    rnet!(env, "state", "set", "/arm/mode", "idle").ok();
    assert_eq!(rnet!(env, "state", "watch", "--once").ok(), "/arm/mode: \"idle\"\n");
    let ran = rnet!(env, "state", "watch", "--timeout", "0.1");
    assert_eq!(ran.ok(), "/arm/mode: \"idle\"\n");
    let ran = rnet!(env, "state", "watch", "--timeout", "0.1", "--count", "2");
    assert_eq!(ran.stdout, "/arm/mode: \"idle\"\n");
    ran.fails(124);
    let said = rnet!(env, "state", "watch", "/am", "--timeout", "0.1").fails(124);
    assert!(said.contains("did you mean /arm?"), "{said}");
    rnet!(env, "state", "watch", "--changes", "--timeout", "0.1").fails(124);
    rnet!(env, "state", "watch", "--once", "--count", "2").fails(2);
}

#[test]
fn changes_option_omits_existing_keys() {
    let env = TestEnv::new();
    let node = env.node("arm");
    let state = node.state().unwrap();
    state.set("/n", 0).unwrap();
    let watch = env.spawn(&["state", "watch", "/n", "--changes", "--once"]);
    // Its output begins with a change, so changes continue until it has seen one.
    let watching = std::thread::spawn(move || watch.wait());
    let mut n = 0;
    while !watching.is_finished() {
        n += 1;
        state.set("/n", n).unwrap();
        std::thread::yield_now();
    }
    let said = watching.join().unwrap().ok();
    let seen: i64 = said.lines().last().unwrap().strip_prefix("/n: ").unwrap().parse().unwrap();
    assert!(seen > 0 && seen <= n, "{said}");
}

#[test]
fn a_flood_ends_with_the_last_value() {
    let env = TestEnv::new();
    let node = env.node("arm");
    let state = node.state().unwrap();
    state.set("/n", 0).unwrap();
    let mut watch = env.spawn(&["state", "watch", "/n", "--json"]);
    watch.wait_for_stdout("\"present\"");
    const LAST: i64 = 20_000;
    for n in 1..=LAST {
        state.set("/n", n).unwrap();
    }
    watch.wait_for_stdout(&format!("\"value\":{LAST},"));
    watch.signal("TERM");
    let ran = watch.wait();
    let mut before = 0;
    for line in ran.json_lines() {
        let value = line["value"].as_i64().unwrap();
        let skipped = line["skipped"].as_i64().unwrap();
        if line["event"] == "set" {
            assert_eq!(value, before + skipped + 1, "{line}");
        }
        before = value;
    }
    assert_eq!(before, LAST);
    ran.fails(130);
}
