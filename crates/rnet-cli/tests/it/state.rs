//! `rnet state get`, `set`, `cas`, `del`, `flush` and `list`.

use crate::util;

use std::io::Write;
use std::process::{Command, Stdio};

use rnet::inspect::Domain;
use rnet::state::Value;
use serde_json::json;
use util::{DOMAIN, POSE, Pose, TEST_TIMEOUT, TestEnv};

fn exists(env: &TestEnv) -> bool {
    Domain::open(Some(DOMAIN), Some(env.dir.clone()), None).unwrap().exists()
}

#[test]
fn observers_create_no_domain() {
    let env = TestEnv::new();
    let said = rnet!(env, "state", "get", "/arm/mode").fails(1);
    assert_eq!(said, "rnet: key /arm/mode not found in domain clitest; the domain has no keys\n");
    assert_eq!(rnet!(env, "state", "list").ok(), "");
    let empty = rnet!(env, "state", "list", "--json").json();
    assert_eq!(empty, json!({"domain": "clitest", "revision": 0, "keys": []}));
    assert!(rnet!(env, "state", "dump").ok().ends_with("{\"end\":0}\n"));
    rnet!(env, "state", "del", "/arm/mode").fails(1);
    assert!(!exists(&env));

    // In a domain with nodes but without state, no state is created.
    let node = env.node("other");
    rnet!(env, "state", "get", "/arm/mode").fails(1);
    assert!(!Domain::open(Some(DOMAIN), Some(env.dir.clone()), None).unwrap().has_state().unwrap());
    drop(node);
}

#[test]
fn set_value_outlives_the_command_node() {
    let env = TestEnv::new();
    let said = rnet!(env, "state", "set", "/arm/mode", "idle").ok();
    assert_eq!(said, "", "stdout is data");
    assert_eq!(rnet!(env, "state", "get", "/arm/mode").ok(), "idle\n");
    assert_eq!(rnet!(env, "node", "list").ok(), "");
    let node = env.node("arm");
    let state = node.state().unwrap();
    assert_eq!(state.get("/arm/mode").unwrap(), Some(Value::from("idle")));
    let revision = state.set("/arm/mode", "moving").unwrap();
    let document = rnet!(env, "state", "get", "/arm/mode", "--json").json();
    assert_eq!((&document["value"], &document["type"]), (&"moving".into(), &"str".into()));
    assert_eq!((&document["revision"], &document["version"]), (&revision.into(), &2.into()));
    assert_eq!((&document["node"], &document["durable"]), (&"/arm".into(), &false.into()));
    assert!(document["ttl_s"].is_null());
    rnet!(env, "state", "set", "/arm/mode", "off", "--node-name", "clerk").ok();
    assert_eq!(state.entry("/arm/mode").unwrap().unwrap().owner.node, "/clerk");
}

#[test]
fn new_key_gets_the_type_inferred_from_its_value() {
    let env = TestEnv::new();
    for (given, type_name, value, said) in [
        ("true", "bool", json!(true), "true"),
        ("-5", "int", json!(-5), "-5"),
        ("9223372036854775807", "int", json!(i64::MAX), "9223372036854775807"),
        ("1.50", "float", json!(1.5), "1.5"),
        ("-1e3", "float", json!(-1000.0), "-1000.0"),
        ("idle", "str", json!("idle"), "\"idle\""),
        ("007", "str", json!("007"), "\"007\""),
        ("", "str", json!(""), "\"\""),
        ("-x", "str", json!("-x"), "\"-x\""),
        ("True", "bool", json!(true), "true"),
        ("0x10", "int", json!(16), "16"),
        ("null", "str", json!("null"), "\"null\""),
        ("[1, 2]", "json", json!([1, 2]), "[1,2]"),
        (
            "{kp: 1.5, mode: idle}",
            "json",
            json!({"kp": 1.5, "mode": "idle"}),
            r#"{"kp":1.5,"mode":"idle"}"#,
        ),
        (r#"{"a": "b c"}"#, "json", json!({"a": "b c"}), r#"{"a":"b c"}"#),
    ] {
        let ran = rnet!(env, "state", "set", "/k", given);
        let talk = format!("/k is {said} (type {type_name}, inferred from the value), revision ");
        assert!(ran.stderr.starts_with(&talk), "{ran:?}");
        ran.ok();
        let document = rnet!(env, "state", "get", "/k", "--json").json();
        assert_eq!((&document["type"], &document["value"]), (&type_name.into(), &value), "{given}");
        rnet!(env, "state", "del", "/k").ok();
    }
    for (given, why) in [
        (
            "9223372036854775808",
            "does not fit in 64 bits; to override the inferred type, give --type",
        ),
        ("1e999", "1e999 does not fit in 64 bits"),
        ("{\"a\": ", "(invalid YAML"),
    ] {
        let said = rnet!(env, "state", "set", "/k", given).fails(2);
        assert!(said.contains(why), "{said}");
    }
    rnet!(env, "state", "get", "/k").fails(1);
}

#[test]
fn last_will_belongs_to_the_running_command() {
    let env = TestEnv::new();
    let node = env.node("watcher");
    let state = node.state().unwrap();
    let until = |key: &str, value: Option<Value>| {
        let mut watch = state.watch(key).unwrap();
        while state.get(key).unwrap() != value {
            watch.recv_timeout(TEST_TIMEOUT).unwrap();
        }
    };
    // Stopped, and killed.
    for (signal, args) in
        [("INT", &["--last-will", "false"][..]), ("KILL", &["--last-will-delete"])]
    {
        let set = &["state", "set", "/online", "true", "--ttl", "1000"];
        let mut set = env.spawn(&[set, args].concat());
        set.wait_for_stderr("when this command exits; press Ctrl-C to exit");
        assert_eq!(state.get("/online").unwrap(), Some(true.into()));
        set.signal(signal);
        set.wait_for_exit();
        until("/online", (signal == "INT").then(|| false.into()));
        let code = set.wait().code;
        assert_eq!(code, (signal == "INT").then_some(130));
    }
    // Another node has written the key meanwhile.
    let mut set = env.spawn(&["state", "set", "/mode", "run", "--last-will", "idle"]);
    set.wait_for_stderr("/mode becomes \"idle\" when this command exits");
    state.set("/mode", "halt").unwrap();
    assert!(
        set.wait()
            .fails(0)
            .contains("/mode was written by /watcher, so its last will no longer applies")
    );
    assert_eq!(state.get("/mode").unwrap(), Some("halt".into()));
    let said = rnet!(env, "state", "set", "/n", "1", "--last-will", "gone").fails(2);
    assert!(said.contains("\"gone\" is not a valid int") && said.contains("last will"), "{said}");
    assert_eq!(state.get("/n").unwrap(), None);
}

#[test]
fn flush_counts_and_asks() {
    let env = TestEnv::new();
    assert!(rnet!(env, "state", "flush", "--yes").fails(0).contains("deleted 0 of 0 keys"));
    assert_eq!(std::fs::read_dir(&env.dir).unwrap().count(), 0, "nothing was made");
    let node = env.node("arm");
    let state = node.state().unwrap();
    for key in ["/arm/a", "/arm/b", "/army", "/leg"] {
        state.set(key, 1).unwrap();
    }
    let said = rnet!(env, "state", "flush", "/arm").fails(2);
    assert!(said.contains("this deletes 2 keys under /arm in domain clitest"), "{said}");
    assert!(said.contains("--yes"), "{said}");
    // `script` provides a terminal.
    let on_a_terminal = |answer: &str| {
        let line = concat!(env!("CARGO_BIN_EXE_rnet"), " state flush /arm");
        let mut command = Command::new("script");
        command.args(["--quiet", "--return", "--command", line, "/dev/null"]);
        command.env("RNET_DIR", &env.dir).env("RNET_DOMAIN", DOMAIN).env_remove("RNET_GROUP");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let child = command.spawn().unwrap();
        child.stdin.as_ref().unwrap().write_all(answer.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, said) = on_a_terminal("\n");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("delete 2 keys under /arm in domain clitest? [y/N]"), "{said}");
    assert_eq!(state.keys("").unwrap().len(), 4);
    let (code, said) = on_a_terminal("y\n");
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(state.keys("").unwrap(), ["/army", "/leg"]);
    assert_eq!(rnet!(env, "state", "flush", "--yes", "--json").json()["deleted"], 2);
    assert_eq!(state.keys("").unwrap().len(), 0);
}

#[test]
fn a_key_keeps_its_type_unless_asked() {
    let env = TestEnv::new();
    rnet!(env, "state", "set", "/gain", "1.0").ok();
    let ran = rnet!(env, "state", "set", "/gain", "2");
    assert!(ran.stderr.contains("/gain is 2.0 (type float, unchanged)"), "{ran:?}");
    ran.ok();
    let said = rnet!(env, "state", "set", "/gain", "fast").fails(2);
    assert!(said.contains("\"fast\" is not a valid float: the key has this type"), "{said}");
    let said = rnet!(env, "state", "set", "/gain", "fast", "--type", "str", "--json").fails(1);
    assert!(said.contains("\"code\":\"state_type\"") && said.contains("--change-type"), "{said}");
    assert_eq!(rnet!(env, "state", "get", "/gain").ok(), "2.0\n");
    rnet!(env, "state", "set", "/gain", "fast", "--type", "str", "--change-type").ok();
    rnet!(env, "state", "set", "/gain", "7").ok();
    assert_eq!(rnet!(env, "state", "get", "/gain", "--json").json()["value"], "7");
    rnet!(env, "state", "set", "/gain", "7", "--change-type").ok();
    assert_eq!(rnet!(env, "state", "get", "/gain", "--json").json()["type"], "int");
    let said = rnet!(env, "state", "set", "/gain", "7", "--type", "integer").fails(2);
    assert!(said.contains("built-in types are bool, int, float, str"), "{said}");
    for (type_name, bad) in [
        ("bool", "yes"),
        ("int", "1.5"),
        ("float", "x"),
        ("bytes", "0g"),
        ("json", "{"),
        ("list", "{}"),
    ] {
        let said = rnet!(env, "state", "set", "/k", bad, "--type", type_name).fails(2);
        assert!(
            said.contains(&format!("is not a valid {type_name}")) || said.contains("cannot parse"),
            "{said}"
        );
    }
}

#[test]
fn every_type_has_a_text_form() {
    let env = TestEnv::new();
    let node = env.node("robot");
    let state = node.state().unwrap();
    state.set("/bytes", &[0_u8, 255, 65][..]).unwrap();
    state.set("/float", f64::NAN).unwrap();
    state.set("/list", Value::list([1, 2])).unwrap();
    state.set("/set", Value::set(["b", "a", "b"])).unwrap();
    state.set("/text", "two\nlines").unwrap();
    let get = |key: &str| rnet!(env, "state", "get", key).ok();
    assert_eq!(
        get("/bytes"),
        "00000000  00 ff 41                                          |..A|\n"
    );
    assert_eq!(get("/float"), "nan\n");
    assert_eq!(get("/list"), "1\n2\n");
    assert_eq!(get("/set"), "a\nb\n");
    assert_eq!(get("/text"), "two\nlines\n");
    let table = rnet!(env, "state", "list", "--long").ok();
    for row in [
        ("/bytes", "bytes", "0x00ff41 (3 bytes)"),
        ("/float", "float", "nan"),
        ("/list", "list", "[1, 2]"),
        ("/set", "set", "{\"a\", \"b\"}"),
        ("/text", "str", "\"two\\nlines\""),
    ] {
        let line = table.lines().find(|line| line.starts_with(row.0)).unwrap();
        let words: Vec<&str> = line.split("  ").filter(|w| !w.is_empty()).map(str::trim).collect();
        assert_eq!(words[..3], [row.0, row.1, row.2], "{table}");
        assert!(line.contains("/robot") && line.ends_with("no"), "{line}");
    }
    let document = rnet!(env, "state", "get", "/bytes", "--json").json();
    assert_eq!(document["value"], "AP9B");
    for (key, value) in
        [("/list", json!([1, 2])), ("/set", json!(["a", "b"])), ("/float", json!("nan"))]
    {
        assert_eq!(rnet!(env, "state", "get", key, "--json").json()["value"], value);
    }
    // The same from the command line, and back.
    rnet!(env, "state", "set", "/bytes", "00 01").ok();
    rnet!(env, "state", "set", "/list", "[3, \"x\", [true], {\"a\": 1}]").ok();
    rnet!(env, "state", "set", "/set", "[\"c\", \"b\", \"c\"]").ok();
    rnet!(env, "state", "set", "/float", "inf").ok();
    assert_eq!(state.get("/bytes").unwrap(), Some(Value::Bytes(vec![0, 1])));
    let list = vec![
        Value::Int(3),
        Value::from("x"),
        Value::list([true]),
        Value::json("{\"a\":1}").unwrap(),
    ];
    assert_eq!(state.get("/list").unwrap(), Some(Value::List(list)));
    assert_eq!(state.get("/set").unwrap(), Some(Value::set(["b", "c"])));
    assert_eq!(state.get("/float").unwrap(), Some(Value::Float(f64::INFINITY)));
}

#[test]
fn messages_are_set_as_json_and_shown_by_field() {
    let env = TestEnv::new();
    let node = env.node("robot");
    let state = node.state().unwrap();
    state.set_message("/pose", &POSE).unwrap();
    assert_eq!(rnet!(env, "state", "get", "/pose", "--field", "q[3]").ok(), "1.0\n");
    let document = rnet!(env, "state", "get", "/pose", "--json").json();
    assert_eq!((&document["type"], &document["value"]["x"]), (&"Pose".into(), &1.5.into()));
    rnet!(env, "state", "set", "/pose", r#"{"x": 2.5}"#).ok();
    assert_eq!(state.get_message::<Pose>("/pose").unwrap().unwrap().x, 2.5);

    let data = r#"{"frame_id": "imu", "angular_velocity": {"z": 1.5}}"#;
    rnet!(env, "state", "set", "/imu", data, "--type", "Imu").ok();
    let imu = state.get_message::<rnet::msgs::Imu>("/imu").unwrap().unwrap();
    assert_eq!((imu.frame_id.as_str(), imu.angular_velocity.unwrap().z), ("imu", 1.5));
    let text = rnet!(env, "state", "get", "/imu").ok();
    assert!(text.contains("frame_id: \"imu\"\n") && text.contains("  z: 1.5  # rad/s\n"), "{text}");
    let field = rnet!(env, "state", "get", "/imu", "--field", "angular_velocity.z");
    assert_eq!(field.ok(), "1.5  # rad/s\n");
    let said = rnet!(env, "state", "set", "/imu", r#"{"frame": "x"}"#).fails(2);
    assert!(said.contains("`frame`") && said.contains("rnet.msgs.Imu"), "{said}");
    let said = rnet!(env, "state", "get", "/imu", "--field", "nothing").fails(1);
    assert!(said.contains("nothing"), "{said}");

    let proto = env.dir.join("robot.proto");
    std::fs::write(
        &proto,
        "syntax = \"proto3\"; package robot; message Leg { double force = 1; }\n",
    )
    .unwrap();
    let proto = proto.to_str().unwrap();
    rnet!(env, "state", "set", "/leg", r#"{"force": 9}"#, "--type", "Leg", "--proto", proto).ok();
    // The type was included.
    assert_eq!(rnet!(env, "state", "get", "/leg").ok(), "force: 9.0\n");
    let listed = rnet!(env, "state", "list", "/leg", "--json").json();
    assert_eq!(listed["keys"][0]["type"], "robot.Leg");
    assert_eq!(listed["keys"][0]["value"], json!({"force": 9.0}));
}

#[test]
fn fields_of_json_and_bytes_of_files() {
    let env = TestEnv::new();
    rnet!(env, "state", "set", "/pid", r#"{"kp": 1.5, "joints": [{"name": "elbow"}]}"#).ok();
    assert_eq!(rnet!(env, "state", "get", "/pid", "--field", "kp").ok(), "1.5\n");
    let name = rnet!(env, "state", "get", "/pid", "--field", "joints[0].name");
    assert_eq!(name.ok(), "elbow\n");
    let said = rnet!(env, "state", "get", "/pid", "--field", "ki").fails(1);
    assert!(said.contains("\"ki\"; it has kp, joints"), "{said}");
    rnet!(env, "state", "set", "/n", "5").ok();
    let said = rnet!(env, "state", "get", "/n", "--field", "kp").fails(1);
    assert!(said.contains("type int has no fields"), "{said}");
    assert!(rnet!(env, "state", "get", "/n", "--raw").fails(1).contains("omit --raw"));

    let file = env.dir.join("firmware");
    std::fs::write(&file, b"ab\ncd").unwrap();
    let file = file.to_str().unwrap();
    rnet!(env, "state", "set", "/firmware", "--file", file).ok();
    let raw = env.command().args(["state", "get", "/firmware", "--raw"]).output().unwrap();
    assert_eq!(raw.stdout, b"ab\ncd");
    assert_eq!(rnet!(env, "state", "get", "/firmware", "--json").json()["value"], "YWIKY2Q=");
    let nowhere = env.dir.join("nowhere");
    let nowhere = nowhere.to_str().unwrap();
    assert!(rnet!(env, "state", "set", "/k", "--file", nowhere).fails(1).contains(nowhere));
    rnet!(env, "state", "set", "/k").fails(2);
}

#[test]
fn cas_and_if_revision_detect_changes_by_others() {
    let env = TestEnv::new();
    let made = rnet!(env, "state", "cas", "/lock", "0", "mine", "--json").json();
    assert_eq!((&made["key"], &made["type"]), (&"/lock".into(), &"str".into()));
    let revision = made["revision"].as_u64().unwrap();
    let said = rnet!(env, "state", "cas", "/lock", "0", "yours", "--json").fails(1);
    let error: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(error["error"]["code"], "conflict");
    assert!(error["error"]["message"].as_str().unwrap().contains("/lock"), "{said}");
    let at = revision.to_string();
    rnet!(env, "state", "set", "/lock", "later", "--if-revision", &at).ok();
    rnet!(env, "state", "cas", "/lock", &at, "too late").fails(1);
    rnet!(env, "state", "del", "/lock", "--if-revision", &at).fails(1);
    assert_eq!(rnet!(env, "state", "get", "/lock").ok(), "later\n");
    let now = rnet!(env, "state", "get", "/lock", "--json").json()["revision"].to_string();
    rnet!(env, "state", "del", "/lock", "--if-revision", now).ok();
    rnet!(env, "state", "get", "/lock").fails(1);
}

#[test]
fn numbers_are_added_to() {
    let env = TestEnv::new();
    assert_eq!(rnet!(env, "state", "add", "/n").ok(), "1\n");
    assert_eq!(rnet!(env, "state", "add", "/n", "-3").ok(), "-2\n");
    let document = rnet!(env, "state", "add", "n", "10", "--json").json();
    assert_eq!(document, json!({"key": "/n", "type": "int", "value": 8}));
    rnet!(env, "state", "add", "/n", "0.5").fails(1);
    assert_eq!(rnet!(env, "state", "add", "/x", "0.5").ok(), "0.5\n");
    // A float stays a float, whatever is added.
    assert_eq!(rnet!(env, "state", "add", "/x", "2").ok(), "2.5\n");
    let said = rnet!(env, "state", "add", "/x", "much").fails(2);
    assert!(said.contains("\"much\" is not a number"), "{said}");
    rnet!(env, "state", "set", "/mode", "idle").ok();
    let said = rnet!(env, "state", "add", "/mode").fails(1);
    assert!(said.contains("/mode"), "{said}");
    assert_eq!(rnet!(env, "state", "get", "/mode").ok(), "idle\n");

    // Increments are atomic across processes.
    let adders: Vec<_> = (0..4).map(|_| env.spawn(&["state", "add", "/count", "5"])).collect();
    let mut sums: Vec<i64> =
        adders.into_iter().map(|adder| adder.wait().ok().trim().parse().unwrap()).collect();
    sums.sort_unstable();
    assert_eq!(sums, [5, 10, 15, 20]);
}

#[test]
fn error_of_a_missing_key_suggests_similar_keys() {
    let env = TestEnv::new();
    for key in ["/arm/mode", "/arm/speed", "/army"] {
        rnet!(env, "state", "set", key, "1").ok();
    }
    let said = rnet!(env, "state", "get", "/arm/mod").fails(1);
    assert!(said.ends_with("did you mean /arm/mode?\n"), "{said}");
    let said = rnet!(env, "state", "get", "/arm").fails(1);
    assert!(said.ends_with("keys under it: /arm/mode, /arm/speed\n"), "{said}");
    let said = rnet!(env, "state", "get", "/nothing/like/it").fails(1);
    assert!(said.ends_with("see rnet state list (3 keys)\n"), "{said}");
    assert_eq!(rnet!(env, "state", "list").ok(), "/arm/mode\n/arm/speed\n/army\n");
    assert_eq!(rnet!(env, "state", "list", "/arm").ok(), "/arm/mode\n/arm/speed\n");
    for (prefix, long, hint) in [("/legs", &[][..], ""), ("/amr", &["-l"], "; did you mean /arm?")]
    {
        let ran = env.run(&[&["state", "list", prefix], long].concat());
        assert_eq!(ran.stderr, format!("no keys under {prefix} in domain {DOMAIN}{hint}\n"));
        ran.ok();
    }

    let ran = rnet!(env, "state", "del", "/arm/mode", "/arm/sped", "/arms", "/army", "--json");
    assert_eq!(ran.json(), json!({"deleted": ["/arm/mode", "/army"]}));
    let said = ran.fails(1);
    assert!(said.contains("/arm/sped") && said.contains("/arms"), "{said}");
    assert_eq!(rnet!(env, "state", "list").ok(), "/arm/speed\n");
}

#[test]
fn help_lists_the_value_types() {
    let env = TestEnv::new();
    let help = rnet!(env, "state", "set", "--help").ok();
    assert!(help.contains("For a new key the type is inferred from VALUE"), "{help}");
    assert!(rnet!(env, "state", "--help").ok().contains("\n  cas    Set a key if it is still at"));
}

#[test]
fn invalid_arguments_are_usage_errors() {
    let env = TestEnv::new();
    rnet!(env, "state", "set", "/a b", "1").fails(2);
    rnet!(env, "state", "set", "/".repeat(3), "1").fails(2);
    rnet!(env, "state", "set", format!("/{}", "k".repeat(300)), "1").fails(2);
    for ttl in ["0", "-1", "soon", "nan"] {
        rnet!(env, "state", "set", "/k", "1", "--ttl", ttl).fails(2);
    }
    rnet!(env, "state", "cas", "/k", "x", "1").fails(2);
    rnet!(env, "state", "get").fails(2);
    rnet!(env, "state", "del").fails(2);
    rnet!(env, "state", "set", "/k", "1", "--proto", "x.proto").fails(2);
    assert_eq!(rnet!(env, "state", "list").ok(), "");
}

#[test]
fn a_time_to_live_is_shown_and_obeyed() {
    let env = TestEnv::new();
    rnet!(env, "state", "set", "/lease", "me", "--ttl", "3600").ok();
    let document = rnet!(env, "state", "get", "/lease", "--json").json();
    let left = document["ttl_s"].as_f64().unwrap();
    assert!(left > 0.0 && left <= 3600.0, "{document}");
    let table = rnet!(env, "state", "list", "--long").ok();
    assert!(table.lines().nth(1).unwrap().contains(" min "), "{table}");
    // A set without a time to live removes it, as in Redis.
    rnet!(env, "state", "set", "/lease", "me").ok();
    assert!(rnet!(env, "state", "get", "/lease", "--json").json()["ttl_s"].is_null());

    let mut watch = env.spawn(&["state", "watch", "/blink", "--count", "2"]);
    watch.wait_for_stderr("no keys under \"/blink\" yet; waiting");
    rnet!(env, "state", "set", "/blink", "1", "--ttl", "0.05").ok();
    assert_eq!(watch.wait().ok(), "/blink: 1\n/blink expired\n");
    rnet!(env, "state", "get", "/blink").fails(1);
}

#[test]
fn keys_of_another_host_are_those_of_its_home() {
    let env = TestEnv::new();
    let node = env.node("robot");
    let state = node.state().unwrap();
    // A home that answers for "robot" in this domain, as a link does for another host's.
    let _home = rnet::bridge::serve_state(&node, "robot", None).unwrap();
    rnet!(env, "state", "set", "@robot/arm/mode", "idle").ok();
    assert_eq!(state.get("/arm/mode").unwrap(), Some(Value::from("idle")));
    assert_eq!(rnet!(env, "state", "get", "@robot/arm/mode").ok(), "idle\n");
    assert_eq!(rnet!(env, "state", "list", "@robot/arm").ok(), "/arm/mode\n");
    assert_eq!(rnet!(env, "state", "list", "@robot", "--json").json()["host"], "robot");
    let said = rnet!(env, "state", "set", "@robot/arm/mode", "3", "--type", "int").fails(1);
    assert!(said.contains("holds a string"), "{said}");
    let revision = state.entry("/arm/mode").unwrap().unwrap().revision.to_string();
    let set = rnet!(env, "state", "cas", "@robot/arm/mode", revision, "moving", "--json").json();
    assert_eq!((&set["host"], &set["key"]), (&"robot".into(), &"/arm/mode".into()));
    let said = rnet!(env, "state", "cas", "@robot/arm/mode", revision, "off").fails(1);
    assert!(said.contains("conflict at /arm/mode"), "{said}");
    assert_eq!(
        rnet!(env, "state", "watch", "@robot/arm", "--once").ok(),
        "/arm/mode: \"moving\"\n"
    );
    let mut watch = env.spawn(&["state", "watch", "@robot/", "--count", "2"]);
    watch.wait_for_stdout("moving");
    state.set("/arm/mode", "off").unwrap();
    assert!(watch.wait().ok().ends_with("/arm/mode: \"off\"\n"));
    state.set("/local", 1).unwrap();
    rnet!(env, "state", "del", "/local", "@robot/arm/mode").ok();
    assert_eq!(state.get("/local").unwrap(), None);
    assert_eq!(state.get("/arm/mode").unwrap(), None);
    let said = rnet!(env, "state", "get", "@robot/arm/mode").fails(1);
    assert!(said.contains("key /arm/mode not found on host robot"), "{said}");
    let said = rnet!(env, "state", "get", "@desk/k").fails(1);
    assert!(said.contains("home on host desk, which is not reachable"), "{said}");
    let said = rnet!(env, "state", "set", "@robot/k", "1", "--last-will-delete").fails(2);
    assert!(said.contains("cannot have a last will"), "{said}");
    rnet!(env, "state", "add", "@robot/k").fails(2);
}
