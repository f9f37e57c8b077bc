//! `rnet state dump` and `rnet state load`.

use crate::util;

use rnet::state::{State, Value};
use serde_json::json;
use util::{POSE, TestEnv};

/// One key of each type.
fn fill(state: &State) {
    state.set("/all/bool", true).unwrap();
    state.set("/all/int", i64::MIN).unwrap();
    state.set("/all/float", 0.1 + 0.2).unwrap();
    state.set("/all/minus_inf", f64::NEG_INFINITY).unwrap();
    state.set("/all/str", "ä \"quoted\"\nline\u{7f}").unwrap();
    state.set("/all/bytes", (0..=255_u8).collect::<Vec<u8>>()).unwrap();
    let json = "{ \"big\": 123456789012345678901234567890,\n \"x\": 1.0 }";
    state.set("/all/json", Value::json(json).unwrap()).unwrap();
    let nested = vec![Value::Int(1), Value::list([2.5]), Value::from(b"x")];
    state.set("/all/list", Value::List(nested)).unwrap();
    state.set("/all/set", Value::set(["b", "a"])).unwrap();
    state.set_message("/all/plain", &POSE).unwrap();
    let imu = rnet::msgs::Imu { frame_id: "imu".to_owned(), ..Default::default() };
    state.set_message("/all/imu", &imu).unwrap();
    state.set_message("/all/imu2", &imu).unwrap();
    state.set("/other", 1).unwrap();
}

fn values(state: &State) -> Vec<(String, Value)> {
    let entries = state.snapshot("").unwrap().entries;
    entries.into_iter().map(|(key, entry)| (key, entry.value)).collect()
}

/// Output of `dump`, in a file.
fn dump(env: &TestEnv, prefix: &str, name: &str) -> String {
    let path = env.dir.join(name);
    std::fs::write(&path, rnet!(env, "state", "dump", prefix).ok()).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn every_value_is_restored_unchanged() {
    let env = TestEnv::new();
    let node = env.node("robot");
    let state = node.state().unwrap();
    fill(&state);
    let before = values(&state);
    assert_eq!(before.len(), 13);
    let file = dump(&env, "", "all.jsonl");
    let text = std::fs::read_to_string(&file).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // A header, two types (of three messages), the keys, the end.
    assert_eq!(lines.len(), 1 + 2 + 13 + 1, "{text}");
    assert_eq!((&lines[0]["rnet_state"], &lines[0]["domain"]), (&json!(1), &json!("clitest")));
    assert_eq!(lines.last(), Some(&json!({"end": 13})));

    let elsewhere = env.node_in("robot", "other");
    let other = elsewhere.state().unwrap();
    let ran = rnet!(env, "state", "load", &file, "--domain", "other");
    assert_eq!(ran.stderr, "loaded 13 keys\n");
    ran.ok();
    assert_eq!(values(&other), before);
    assert_eq!(other.get_message::<util::Pose>("/all/plain").unwrap().unwrap(), POSE);
    // A second load changes nothing, also through stdin.
    let revision = other.revision();
    let again = rnet!(env, "state", "load", &file, "--domain", "other", "--json").json();
    assert_eq!(again, json!({"set": 0, "unchanged": 13, "expired": 0}));
    let mut command = env.command();
    command.args(["state", "load", "--domain", "other"]).stdin(std::fs::File::open(&file).unwrap());
    let ran = util::RunningCommand::start(command).wait();
    assert_eq!(ran.stderr, "loaded 0 keys, 13 unchanged\n");
    ran.ok();
    assert_eq!(other.revision(), revision);
}

#[test]
fn nan_values_are_unchanged_after_a_load() {
    let env = TestEnv::new();
    let node = env.node("robot");
    let state = node.state().unwrap();
    state.set("/nan", Value::list([f64::NAN, -0.0])).unwrap();
    let file = dump(&env, "", "nan.jsonl");
    let ran = rnet!(env, "state", "load", &file);
    assert_eq!(ran.stderr, "loaded 0 keys, 1 unchanged\n");
    state.delete("/nan").unwrap();
    rnet!(env, "state", "load", &file).ok();
    let items = state.items("/nan").unwrap();
    assert!(items[0].as_float().unwrap().is_nan());
    assert!(items[1].as_float().unwrap().is_sign_negative());
}

#[test]
fn keys_with_other_values_block_a_load() {
    let env = TestEnv::new();
    let node = env.node("robot");
    let state = node.state().unwrap();
    fill(&state);
    let file = dump(&env, "/all", "all.jsonl");
    let before = values(&state);
    state.delete("/all/bool").unwrap();
    state.set("/all/int", 5).unwrap();
    state.put("/all/str").change_type().set(5).unwrap();
    let said = rnet!(env, "state", "load", &file).fails(1);
    assert!(
        said.contains("nothing was loaded: 2 keys") && said.contains("/all/int, /all/str"),
        "{said}"
    );
    assert_eq!(state.get("/all/bool").unwrap(), None);
    rnet!(env, "state", "load", &file, "--replace").ok();
    assert_eq!(values(&state), before);
}

#[test]
fn load_larger_than_a_transaction() {
    let env = TestEnv::new();
    let node = env.node("robot");
    let state = node.state().unwrap();
    for n in 0..2500 {
        state.set(&format!("/k{n}"), n).unwrap();
    }
    let file = dump(&env, "", "many.jsonl");
    let elsewhere = env.node_in("robot", "other");
    let other = elsewhere.state().unwrap();
    rnet!(env, "state", "load", &file, "--domain", "other").ok();
    assert_eq!(values(&other), values(&state));
}

#[test]
fn a_time_to_live_is_restored_or_expired() {
    let env = TestEnv::new();
    rnet!(env, "state", "set", "/long", "1", "--ttl", "3600").ok();
    let file = dump(&env, "", "ttl.jsonl");
    let text = std::fs::read_to_string(&file).unwrap();
    rnet!(env, "state", "del", "/long").ok();
    rnet!(env, "state", "load", &file).ok();
    let left = || rnet!(env, "state", "get", "/long", "--json").json()["ttl_s"].as_f64().unwrap();
    assert!(left() > 3000.0 && left() <= 3600.0, "{}", left());
    // The remaining time at the dump counts, whatever the wall clock is now.
    let lines: Vec<&str> = text.lines().collect();
    let key: serde_json::Value = serde_json::from_str(lines[1]).unwrap();
    let ttl = key["ttl_ns"].to_string();
    std::fs::write(&file, text.replace(&ttl, "900000000000")).unwrap();
    rnet!(env, "state", "load", &file, "--replace").ok();
    rnet!(env, "state", "del", "/long").ok();
    rnet!(env, "state", "load", &file).ok();
    assert!(left() <= 900.0 && left() > 300.0, "{}", left());
    rnet!(env, "state", "del", "/long").ok();
    std::fs::write(&file, text.replace(&ttl, "0")).unwrap();
    let ran = rnet!(env, "state", "load", &file);
    assert_eq!(ran.stderr, "loaded 0 keys, 1 expired and skipped\n");
    ran.ok();
    assert_eq!(rnet!(env, "state", "list").ok(), "");
}

#[test]
fn damaged_files_change_nothing() {
    let env = TestEnv::new();
    let node = env.node("robot");
    let state = node.state().unwrap();
    fill(&state);
    let good = std::fs::read_to_string(dump(&env, "", "good.jsonl")).unwrap();
    let key = good.lines().find(|line| line.contains("/all/int")).unwrap();
    let cut = good.rfind("{\"end\"").unwrap();
    let file = env.dir.join("bad.jsonl");
    let file = file.to_str().unwrap();
    let bad_type = good.replace("\"descriptor_set\":\"", "\"descriptor_set\":\"AAAA");
    for (text, why) in [
        (String::new(), "the file is empty"),
        ("hello\n".to_owned(), "line 1 is not the header of a dump"),
        (good.replace("\"rnet_state\":1", "\"rnet_state\":2"), "version 2"),
        (good[..cut].to_owned(), "the file was truncated"),
        (good.replace("{\"end\":13}", "{\"end\":12}"), "counts 12 keys, but the file has 13"),
        (format!("{good}{key}\n"), "after the end line"),
        (good.replace(key, &format!("{key}\n{key}")), "duplicate key /all/int"),
        (
            good.replace(key, &key.replace("\"int\"", "\"bool\"")),
            "line 8: the value of \"/all/int\"",
        ),
        (good.replace(key, &key.replace("\"int\"", "\"integer\"")), "unknown variant"),
        (good.replace(key, &key[..key.len() - 9]), "invalid JSON"),
        (good.replace("\"type\":1,\"bytes\"", "\"type\":7,\"bytes\""), "its type is not defined"),
        (bad_type, "type rnet.msgs.Imu"),
    ] {
        assert_ne!(text, good);
        std::fs::write(file, &text).unwrap();
        let said = rnet!(env, "state", "load", file, "--domain", "fresh").fails(1);
        assert!(said.contains(why) && said.contains(file), "{why}: {said}");
    }
    std::fs::write(file, [0xff, 0xfe]).unwrap();
    assert!(rnet!(env, "state", "load", file).fails(1).contains("UTF-8"));
    // None of them has created a domain.
    assert_eq!(
        std::fs::read_dir(&env.dir)
            .unwrap()
            .filter(|e| { e.as_ref().unwrap().file_name().to_string_lossy().contains("fresh") })
            .count(),
        0
    );
}
