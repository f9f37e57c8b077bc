//! `rnet node …`.

use crate::util;

use util::{Pose, TestEnv};

#[test]
fn list_shows_the_nodes() {
    let env = TestEnv::new();
    let _nodes = [env.node("b"), env.node("arm/controller")];
    assert_eq!(rnet!(env, "node", "list").ok(), "/arm/controller\n/b\n");
    let verbose = rnet!(env, "node", "list", "-v").ok();
    let rows: Vec<&str> = verbose.lines().collect();
    assert!(rows[0].starts_with("NODE") && rows[0].contains("UPTIME"), "{verbose}");
    let pid = std::process::id().to_string();
    assert!(rows[1].starts_with("/arm/controller") && rows[1].contains(&pid), "{verbose}");
    assert!(rows[1].contains("rust") && rows[1].contains(rnet::VERSION), "{verbose}");
    let json = rnet!(env, "--json", "node", "list").json();
    assert_eq!(json["nodes"][1]["name"], "/b");
    assert_eq!(json["nodes"][1]["pid"], std::process::id());
    assert!(json["nodes"][1]["uptime_s"].as_f64().unwrap() >= 0.0);
}

#[test]
fn info_shows_process_and_topics() {
    let env = TestEnv::new();
    let node = env.node("lidar");
    let _publisher = node.publisher::<Pose>("/pose").open().unwrap();
    let _subscriber = node.subscriber::<[u8]>("/cmd").open().unwrap();
    let text = rnet!(env, "node", "info", "lidar").ok();
    assert!(text.starts_with("/lidar\n"), "{text}");
    let pid = format!("pid {}", std::process::id());
    for part in
        [&pid, "Subscribers:\n    /cmd  raw\n", "Publishers:\n    /pose  Pose\n", "Language: rust"]
    {
        assert!(text.contains(part), "{part} is not in:\n{text}");
    }
    assert!(!text.contains("Parameters"), "{text}");
    let json = rnet!(env, "node", "info", "/lidar", "--json").json();
    assert_eq!(json["publishers"][0]["topic"], "/pose");
    assert_eq!(json["subscribers"][0]["topic"], "/cmd");
    assert_eq!(json["publishes"], serde_json::json!(["/pose"]));
    let said = rnet!(env, "node", "info", "/Lidar").fails(1);
    assert!(said.contains("did you mean /lidar?"), "{said}");
}

#[test]
fn info_shows_parameters_and_no_empty_headings() {
    let env = TestEnv::new();
    let (lidar, other) = (env.node("lidar"), env.node("other"));
    let _rate = lidar.param::<f64>("rate").unit("Hz").default(10.0).declare().unwrap();
    let _speed = other.param::<f64>("speed").default(1.0).declare().unwrap();
    let text = rnet!(env, "node", "info", "lidar").ok();
    assert!(text.ends_with("  Parameters:\n    /rate  10.0  Hz  default\n"), "{text}");
    assert!(!text.contains("Publishers") && !text.contains("Subscribers"), "{text}");
    let json = rnet!(env, "node", "info", "lidar", "--json").json();
    assert_eq!(json["parameters"].as_array().unwrap().len(), 1, "{json:#}");
    assert_eq!(
        (&json["parameters"][0]["name"], &json["parameters"][0]["value"]),
        (&"/rate".into(), &10.0.into())
    );
}

#[test]
fn info_skips_unreadable_parameters() {
    let env = TestEnv::new();
    let _node = env.node("lidar");
    std::fs::write(env.domain_dir().join("state"), "no state").unwrap();
    let ran = rnet!(env, "node", "info", "lidar");
    assert!(ran.stderr.contains("cannot read the parameters: "), "{ran:#?}");
    assert!(ran.ok().starts_with("/lidar\n"));
}

#[test]
fn watch_prints_joins_leaves_and_deaths() {
    let env = TestEnv::new();
    let _here = env.node("here");
    let mut watch = env.spawn(&["node", "list", "--watch"]);
    watch.wait_for_stdout("present /here");
    let guest = env.node("guest");
    watch.wait_for_stdout("joined  /guest");
    drop(guest);
    watch.wait_for_stdout("left    /guest");
    // A killed process does not announce its exit.
    let victim = env.spawn(&["topic", "pub", "/t", "--text", "x", "-n", "victim"]);
    watch.wait_for_stdout("joined  /victim");
    victim.signal("KILL");
    watch.wait_for_stdout("died    /victim");
    watch.signal("INT");
    assert_eq!(watch.wait().code, Some(130));
}

/// A watch that starts before the domain exists, for a program that reads lines.
#[test]
fn watch_waits_for_a_domain_and_prints_json() {
    let env = TestEnv::new();
    let mut watch = env.spawn(&["--json", "node", "list", "--watch"]);
    let victim = env.spawn(&["topic", "pub", "/t", "--text", "x", "-n", "victim"]);
    watch.wait_for_stdout("\"node\":\"/victim\"");
    victim.signal("KILL");
    watch.wait_for_stdout("\"event\":\"died\"");
    // The domain is removed and created again while the watcher runs.
    std::fs::remove_dir_all(env.domain_dir()).unwrap();
    let _guest = env.node("guest");
    watch.wait_for_stdout("\"node\":\"/guest\"");
    watch.signal("INT");
    let ran = watch.wait();
    assert_eq!(ran.code, Some(130));
    let lines = ran.json_lines();
    let died = lines.iter().find(|line| line["event"] == "died").unwrap();
    assert!(died["node"] == "/victim" && died["unix_ns"].is_u64(), "{died}");
}

#[test]
fn watch_exits_after_the_given_time() {
    let env = TestEnv::new();
    let _here = env.node("here");
    let ran = rnet!(env, "node", "list", "--watch", "--timeout", "0.1", "--json");
    assert_eq!(ran.code, Some(0));
    assert_eq!(ran.json_lines()[0]["event"], "present");
    rnet!(env, "node", "list", "--timeout", "1").fails(2);
}

/// A full domain has reserved slots for tools.
#[test]
fn commands_join_as_tools() {
    let env = TestEnv::new();
    let mut subscriber = env.node("hears").subscriber::<[u8]>("/t").open().unwrap();
    let running = env.spawn(&["topic", "pub", "/t", "--text", "x", "-n", "says"]);
    assert_eq!(&*subscriber.recv_timeout(util::TEST_TIMEOUT).unwrap(), b"x");
    let json = rnet!(env, "node", "list", "--json").json();
    let languages: Vec<_> =
        json["nodes"].as_array().unwrap().iter().map(|n| &n["language"]).collect();
    assert_eq!(languages, ["rust", "tool"]);
    running.signal("KILL");
}

/// JavaScript and jq change numbers of more than 53 bits.
#[test]
fn ids_are_strings_in_json() {
    let env = TestEnv::new();
    let (ear, mouth) = (env.node("ear"), env.node("mouth"));
    let publisher = mouth.publisher::<util::Pose>("/pose").open().unwrap();
    let subscriber = ear.subscriber::<util::Pose>("/pose").open().unwrap();
    publisher.wait_for_subscribers_timeout(1, util::TEST_TIMEOUT).unwrap();
    let id = publisher.id().to_string();
    let info = rnet!(env, "topic", "info", "/pose", "--json").json();
    assert_eq!(info["publishers"][0]["id"], id);
    let channel = &info["subscribers"][0]["channels"][0];
    assert_eq!(channel["publisher"], id, "{info:#}");
    let subscription = &info["subscribers"][0]["id"];
    assert!(subscription.is_string());
    assert_eq!(info["publishers"][0]["admitted"][0]["subscription"], *subscription);
    let nodes = rnet!(env, "node", "list", "--json").json();
    let incarnation = nodes["nodes"][0]["incarnation"].as_str().unwrap();
    assert!(incarnation.parse::<u64>().is_ok());
    no_large_numbers(&info, "");
    no_large_numbers(&nodes, "");
    drop(subscriber);
}

/// Times may be large numbers; all other large values must be strings.
fn no_large_numbers(json: &serde_json::Value, name: &str) {
    match json {
        serde_json::Value::Number(n) if !name.ends_with("_ns") => {
            assert!(n.as_f64().unwrap() < (1u64 << 53) as f64, "{name}: {n}");
        }
        serde_json::Value::Array(all) => all.iter().for_each(|one| no_large_numbers(one, name)),
        serde_json::Value::Object(all) => {
            all.iter().for_each(|(name, one)| no_large_numbers(one, name));
        }
        _ => {}
    }
}
