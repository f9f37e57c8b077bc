//! `rnet param`: declared parameters, shown and set from the command line.

use crate::util;

use rnet::{Node, Param};
use serde_json::json;
use util::TestEnv;

/// A node with one parameter of each kind.
struct Arm {
    gain: Param<f64>,
    mode: Param<String>,
    _steps: Param<i64>,
    _limits: Param<Vec<f64>>,
    _node: Node,
}

fn arm(env: &TestEnv) -> Arm {
    let node = env.node("arm");
    let gain = node.param("/pid/gain").default(1.0).min(0.0).max(10.0).unit("1/s");
    let mode = node.param("/mode").default("idle".to_owned()).choices(["idle", "run"]);
    Arm {
        gain: gain.description("how hard it pulls").declare().unwrap(),
        mode: mode.declare().unwrap(),
        _steps: node.param("/steps").default(5).declare().unwrap(),
        _limits: node.param("/limits").default(vec![1.0, 2.0]).max(3.0).declare().unwrap(),
        _node: node,
    }
}

fn write(env: &TestEnv, name: &str, text: &str) -> String {
    let path = env.dir.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn observers_create_no_domain() {
    let env = TestEnv::new();
    let ran = rnet!(env, "param", "list");
    assert!(ran.stderr.starts_with("no parameters in domain "), "{ran:#?}");
    assert_eq!(ran.ok(), "");
    let said = rnet!(env, "param", "get", "/arm", "gain").fails(1);
    assert!(said.contains("/arm has no parameters in domain clitest"), "{said}");
    rnet!(env, "param", "describe", "/arm").fails(1);
    rnet!(env, "param", "reset", "/arm", "gain").fails(1);
    let dumped = rnet!(env, "param", "dump").ok();
    assert!(dumped.starts_with("# Parameters of domain clitest"), "{dumped}");
    assert_eq!(rnet!(env, "param", "list", "--json").json()["params"], json!([]));
    let left = std::fs::read_dir(&env.dir).unwrap().count();
    assert_eq!(left, 0, "nothing was made");
}

#[test]
fn set_get_reset() {
    let env = TestEnv::new();
    let arm = arm(&env);
    assert_eq!(rnet!(env, "param", "get", "/arm", "/pid/gain").ok(), "1.0\n");
    let said = rnet!(env, "param", "set", "arm", "pid/gain", "2").fails(0);
    assert!(said.contains("parameter /pid/gain of /arm is 2.0 (was 1.0)"), "{said}");
    assert_eq!(arm.gain.get(), Ok(2.0));
    rnet!(env, "param", "set", "/arm", "/mode", "run").ok();
    assert_eq!(arm.mode.get().as_deref(), Ok("run"));
    assert_eq!(rnet!(env, "param", "get", "/arm", "mode").ok(), "run\n");
    rnet!(env, "param", "set", "/arm", "/steps", "-3").ok();
    rnet!(env, "param", "set", "/arm", "/limits", "[0.5, 3]").ok();
    assert_eq!(rnet!(env, "param", "get", "/arm", "limits").ok(), "[0.5, 3.0]\n");
    let set = rnet!(env, "param", "set", "/arm", "/steps", "7", "--json", "-n", "person").json();
    assert_eq!(
        (&set["value"], &set["was"], &set["set_by"]),
        (&json!(7), &json!(-3), &json!("/person"))
    );
    rnet!(env, "param", "reset", "/arm", "/mode").ok();
    assert_eq!(arm.mode.get().as_deref(), Ok("idle"));
    let known = rnet!(env, "param", "get", "/arm", "/mode", "--json").json();
    assert_eq!((&known["value"], &known["is_default"]), (&json!("idle"), &json!(true)));
}

#[test]
fn invalid_values_are_refused_with_the_reason() {
    let env = TestEnv::new();
    let arm = arm(&env);
    for (name, value, why) in [
        ("/pid/gain", "10.5", "10.5 is above its maximum 10.0 1/s"),
        ("/pid/gain", "-1", "-1.0 is below its minimum 0.0 1/s"),
        ("/pid/gain", ".nan", "is not a number"),
        ("/pid/gain", "fast", "\"fast\" is str, but the parameter is float"),
        ("/mode", "fly", "\"fly\" is not one of its choices: idle, run"),
        ("/steps", "1.5", "1.5 is float, but the parameter is int"),
        ("/limits", "[1, 4]", "4.0 at [1], which is above its maximum 3.0"),
        ("/limits", "1, 2", "is str, but the parameter is list[float]"),
    ] {
        let said = rnet!(env, "param", "set", "/arm", name, value).fails(1);
        assert!(said.contains(why), "{said}");
    }
    assert_eq!(arm.gain.get(), Ok(1.0));
    let ran = rnet!(env, "param", "set", "/arm", "/pid/gain", "11", "--json");
    let reported: serde_json::Value = serde_json::from_str(&ran.fails(1)).unwrap();
    assert_eq!(reported["error"]["code"], "bad_value");
    // `rnet state` applies the same rules.
    let said = rnet!(env, "state", "set", "/params/arm/pid/gain", "11").fails(1);
    assert!(said.contains("above its maximum 10.0 1/s"), "{said}");
}

#[test]
fn typing_errors_get_suggestions() {
    let env = TestEnv::new();
    let _arm = arm(&env);
    let said = rnet!(env, "param", "get", "/arm", "pid/gian").fails(1);
    assert!(said.contains("/arm has no parameter /pid/gian; did you mean /pid/gain?"), "{said}");
    let said = rnet!(env, "param", "set", "/arm", "modes", "run").fails(1);
    assert!(said.contains("did you mean /mode?") && said.contains("--undeclared"), "{said}");
    let said = rnet!(env, "param", "list", "/arn").fails(1);
    assert!(said.contains("did you mean /arm?"), "{said}");
    let said = rnet!(env, "param", "set", "/arm", "a b", "1").fails(2);
    assert!(said.contains("bad parameter name"), "{said}");
    rnet!(env, "param", "set", "/arm").fails(2);
}

#[test]
fn undeclared_parameters_are_set_only_on_request_and_can_be_deleted() {
    let env = TestEnv::new();
    let said = rnet!(env, "param", "set", "/arm", "mode", "run").fails(1);
    assert!(said.contains("node /arm not found in domain clitest"), "{said}");
    assert_eq!(std::fs::read_dir(&env.dir).unwrap().count(), 0, "nothing was made");
    let _arm = arm(&env);
    let _leg = env.node("leg");
    for (node, why) in [
        ("/arn", "node /arn not found in domain clitest; did you mean /arm?"),
        ("/lge2", "node /lge2 not found"),
        ("/leg", "/leg has not declared any parameters"),
    ] {
        let said = rnet!(env, "param", "set", node, "pid.gain", "2").fails(1);
        assert!(said.contains(why) && said.contains("--undeclared"), "{said}");
    }
    assert!(!rnet!(env, "param", "list").ok().contains("not declared yet"));
    rnet!(env, "param", "set", "/arn", "pid.gain", "2", "--undeclared").ok();
    rnet!(env, "param", "set", "/arn", "pid.gain", "3").fails(1);
    assert_eq!(rnet!(env, "param", "get", "/arn", "pid/gain").ok(), "2\n");
    let said = rnet!(env, "param", "reset", "/arn", "pid/gain").fails(1);
    assert!(said.contains("rnet param delete"), "{said}");
    let said = rnet!(env, "param", "delete", "/arn", "pid.gain").fails(0);
    assert!(said.contains("was deleted (was 2)"), "{said}");
    rnet!(env, "param", "get", "/arn", "pid/gain").fails(1);
    // The error suggests how to split the node's name from the parameter.
    let said = rnet!(env, "param", "set", "/arn/pid", "2", "--undeclared").fails(2);
    assert!(said.contains("arguments: rnet param set /arn pid 2 --undeclared"), "{said}");
    rnet!(env, "param", "set", "/arn", "pid/gain", "2", "--undeclared").ok();
    let listed = rnet!(env, "param", "list", "/arn", "--json").json();
    let (node, name) = (&listed["params"][0]["node"], &listed["params"][0]["name"]);
    assert_eq!((node.as_str(), name.as_str()), (Some("/arn"), Some("/pid/gain")));
    let said = rnet!(env, "param", "delete", "/arn", "pid/gain").fails(0);
    assert!(said.contains("/pid/gain of /arn was deleted"), "{said}");
    let said = rnet!(env, "param", "delete", "/arm", "pid/gain").fails(1);
    assert!(said.contains("rnet param reset"), "{said}");
}

#[test]
fn node_and_parameter_may_be_one_word() {
    let env = TestEnv::new();
    let arm = arm(&env);
    let said = rnet!(env, "param", "set", "/arm/mode", "run").fails(0);
    assert!(said.contains("parameter /mode of /arm is run (was idle)"), "{said}");
    rnet!(env, "param", "set", "/arm/steps", "-3").ok();
    rnet!(env, "param", "set", "/arm", "pid.gain", "2").ok();
    assert_eq!((arm.mode.get().as_deref(), arm.gain.get()), (Ok("run"), Ok(2.0)));
    assert_eq!(rnet!(env, "param", "get", "/arm/pid/gain").ok(), "2.0\n");
    assert!(rnet!(env, "param", "describe", "/arm/pid/gain").ok().contains("unit: 1/s"));
    assert!(rnet!(env, "param", "describe", "/arm").ok().contains("\n/steps\n"));
    rnet!(env, "param", "reset", "/arm/mode").ok();
    assert_eq!(arm.mode.get().as_deref(), Ok("idle"));
    for (args, code, why) in [
        (&["get", "/arm"][..], 2, "give a parameter of /arm: it has /limits, /mode, /pid/gain"),
        (&["set", "/arm", "pid.gain"], 2, "VALUE is missing: rnet param set /arm /pid/gain VALUE"),
        (&["set", "/arm", "fast"], 2, "give a parameter of /arm:"),
        (&["reset", "/arm"], 2, "give a parameter of /arm:"),
        (
            &["get", "/arm/mdoe"],
            1,
            "parameter /arm/mdoe not found in domain clitest; did you mean /arm/mode?",
        ),
        (&["set", "/arm/mod", "run"], 1, "did you mean /arm/mode?"),
        (&["describe", "/lidar"], 1, "see rnet param list"),
    ] {
        let said = env.run(&[&["param"], args].concat()).fails(code);
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn values_are_yaml_except_for_string_parameters() {
    let env = TestEnv::new();
    let node = env.node("arm");
    let on = node.param("/on").default(false).declare().unwrap();
    let name = node.param("/name").default("a".to_owned()).declare().unwrap();
    let joints = node.param("/joints").default(vec!["a".to_owned()]).declare().unwrap();
    rnet!(env, "param", "set", "/arm", "on", "yes").ok();
    rnet!(env, "param", "set", "/arm", "name", "12: {").ok();
    rnet!(env, "param", "set", "/arm", "joints", "[left, 'right knee']").ok();
    assert_eq!((on.get(), name.get().as_deref()), (Ok(true), Ok("12: {")));
    assert_eq!(joints.get(), Ok(vec!["left".to_owned(), "right knee".to_owned()]));
}

#[test]
fn list_and_describe() {
    let env = TestEnv::new();
    let arm = arm(&env);
    rnet!(env, "param", "set", "/arm", "mode", "run", "-n", "person").ok();
    let list = rnet!(env, "param", "list").ok();
    let row =
        |name: &str| list.lines().find(|l| l.contains(name)).unwrap_or_else(|| panic!("{list}"));
    assert!(row("/pid/gain").contains("1.0") && row("/pid/gain").ends_with("default"), "{list}");
    assert!(row("/mode").contains("run") && row("/mode").ends_with("set by /person"), "{list}");
    let said = rnet!(env, "param", "describe", "/arm", "pid/gain").ok();
    for line in [
        "/pid/gain",
        "  type: float",
        "  value: 1.0",
        "  range: 0.0 to 10.0",
        "  unit: 1/s",
        "  description: how hard it pulls",
        "  kept: until reboot",
        "  key: /params/arm/pid/gain",
    ] {
        assert!(said.lines().any(|l| l == line), "{line}: {said}");
    }
    let all = rnet!(env, "param", "describe", "/arm", "--json").json();
    let modes = all["params"].as_array().unwrap().iter().find(|p| p["name"] == "/mode").unwrap();
    assert_eq!(modes["choices"], json!(["idle", "run"]));
    assert_eq!((&modes["type"], &modes["default"]), (&json!("str"), &json!("idle")));
    // The parameters of a closed node are kept.
    drop(arm);
    let params = rnet!(env, "param", "list", "--json").json()["params"].clone();
    assert_eq!(params.as_array().unwrap().len(), 4);
    assert_eq!(params[1]["value"], "run");
    assert!(rnet!(env, "node", "list").ok().is_empty(), "the command is gone, too");
}

#[test]
fn refused_values_are_shown_in_the_list() {
    let env = TestEnv::new();
    rnet!(env, "param", "set", "/arm", "/pid/gain", "99", "--undeclared", "-n", "person").ok();
    let _arm = arm(&env);
    let list = rnet!(env, "param", "list", "/arm").ok();
    assert!(list.contains("default: 99.0, set by /person, is above its maximum 10.0"), "{list}");
    let known = rnet!(env, "param", "get", "/arm", "pid/gain", "--json").json();
    assert_eq!(known["refused"]["set_by"], "/person");
    rnet!(env, "param", "set", "/arm", "/pid/gain", "9").ok();
    let known = rnet!(env, "param", "get", "/arm", "pid/gain", "--json").json();
    assert_eq!(known["refused"], json!(null));
}

#[test]
fn undeclared_value_has_its_inferred_type() {
    let env = TestEnv::new();
    let set =
        |name: &str, value: &str| env.run(&["param", "set", "/arm", name, value, "--undeclared"]);
    let said = set("/pid.gain", "3").fails(0);
    assert!(said.contains("parameter /pid/gain of /arm is not declared yet"), "{said}");
    set("mode", "run").ok();
    set("limits", "[0.5, 1]").ok();
    // It may change its type until a node declares it.
    set("steps", "many").ok();
    set("steps", "8").ok();
    set("x", "[[1]]").fails(1);
    let list = rnet!(env, "param", "list").ok();
    assert_eq!(list.matches("not declared yet").count(), 4, "{list}");
    let arm = arm(&env);
    assert_eq!((arm.gain.get(), arm.mode.get().as_deref()), (Ok(3.0), Ok("run")));
    set("later", "1").ok();
}

#[test]
fn dump_can_be_loaded_again() {
    let env = TestEnv::new();
    let arm_before = arm(&env);
    arm_before.gain.set(2.5).unwrap();
    arm_before.mode.set("run".to_owned()).unwrap();
    let dumped = rnet!(env, "param", "dump").ok();
    assert_eq!(
        dumped,
        "# Parameters of domain clitest, for rnet param load.\n\
         /arm:\n  \
           # limits: [1.0, 2.0]  # at most 3.0; default [1.0, 2.0]\n  \
           mode: \"run\"  # idle | run; default \"idle\"\n  \
           pid/gain: 2.5  # 0.0 to 10.0; 1/s; default 1.0; how hard it pulls\n  \
           # steps: 5  # default 5\n"
    );
    let json = rnet!(env, "param", "dump", "--json").json();
    assert_eq!(json, json!({"/arm": {"mode": "run", "pid/gain": 2.5}}));
    let all = rnet!(env, "param", "dump", "/arm", "--all").ok();
    assert!(all.contains("\n  steps: 5  #"), "{all}");
    // On another robot.
    let other = TestEnv::new();
    let arm_after = arm(&other);
    let said = rnet!(other, "param", "load", write(&other, "arm.yaml", &dumped)).fails(0);
    assert!(said.contains("set 2 parameters"), "{said}");
    assert_eq!((arm_after.gain.get(), arm_after.mode.get().as_deref()), (Ok(2.5), Ok("run")));
    let again = rnet!(other, "param", "dump").ok();
    assert_eq!(again, dumped);
}

#[test]
fn a_file_is_loaded_as_a_whole_or_not_at_all() {
    let env = TestEnv::new();
    let arm = arm(&env);
    let file = write(
        &env,
        "bad.yaml",
        "/arm:\n  mode: run\n  pid/gain: 20\n  steps: [1]\n  gain: 3\n  limits: [1, 9]\n/leg:\n  ok: 1\n/a b: {x: 1}\n",
    );
    let said = rnet!(env, "param", "load", &file).fails(1);
    for line in [
        "bad.yaml:3: parameter /pid/gain of /arm: 20.0 is above its maximum 10.0 1/s",
        "bad.yaml:4: parameter /steps of /arm: [1] is list[int], but the parameter is int",
        "bad.yaml:5: /arm has no parameter /gain; did you mean",
        "bad.yaml:6: parameter /limits of /arm: [1.0, 9.0] has 9.0 at [1], which is above",
        "bad.yaml:9: bad node name",
        "nothing was set: 5 lines of",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    assert_eq!(arm.mode.get().as_deref(), Ok("idle"), "the line that fits is not set either");
    let list = rnet!(env, "param", "list").ok();
    assert!(!list.contains("/leg"), "{list}");
    for (text, why) in [
        ("/arm:\n  mode: &a run\n  x: *a\n", "bad.yaml:3: aliases"),
        ("/arm:\n\tmode: run\n", "invalid YAML"),
        ("/arm:\n  mode: run\n  mode: idle\n", "bad.yaml:3: duplicate name \"mode\""),
        ("- 1\n", "bad.yaml:1: expected node names"),
        ("/arm:\n  mode: on\n", "\"on\""),
        ("/arm:\n  mode: ~\n", "the value is missing"),
    ] {
        let said = rnet!(env, "param", "load", write(&env, "bad.yaml", text)).fails(1);
        assert!(said.contains(why) || said.contains("not one of its choices"), "{said}");
    }
    let said = rnet!(env, "param", "load", "/nowhere.yaml").fails(1);
    assert!(said.contains("cannot read /nowhere.yaml"), "{said}");
    let huge = write(&env, "huge.yaml", &"# nothing\n".repeat(200_000));
    assert!(rnet!(env, "param", "load", huge).fails(1).contains("exceeds 1048576 bytes"));
    std::fs::write(env.dir.join("no_text.yaml"), [0xff, 0xfe]).unwrap();
    let no_text = env.dir.join("no_text.yaml");
    rnet!(env, "param", "load", no_text.to_str().unwrap()).fails(1);
}

#[test]
fn files_of_ros_are_read() {
    let env = TestEnv::new();
    let arm = arm(&env);
    let leg = env.node("leg");
    let rate = leg.param("/rate").default(10_i64).declare().unwrap();
    let sim = |node: &Node| node.param("/use_sim_time").default(false).declare().unwrap();
    let (arm_sim, leg_sim) = (sim(&arm._node), sim(&leg));
    let file = write(
        &env,
        "ros.yaml",
        "arm:\n  ros__parameters:\n    pid.gain: 3\n    mode: run\n    use_sim_time: off\n\
         /**:\n  ros__parameters:\n    use_sim_time: true\nleg:\n  ros__parameters: {rate: 0x20}\n",
    );
    let set = rnet!(env, "param", "load", &file, "--json").json();
    assert_eq!(set["set"].as_array().unwrap().len(), 5);
    assert_eq!((arm.gain.get(), arm.mode.get().as_deref()), (Ok(3.0), Ok("run")));
    assert_eq!(rate.get(), Ok(32));
    // A specific node entry precedes the wildcard entry.
    assert_eq!((arm_sim.get(), leg_sim.get()), (Ok(false), Ok(true)));
    let file = write(&env, "none.yaml", "/**:\n  ros__parameters:\n    use_smi_time: true\n");
    let said = rnet!(env, "param", "load", file).fails(1);
    assert!(
        said.contains("none.yaml:3: no node that matches /** has declared parameter /use_smi_time"),
        "{said}"
    );
}

#[test]
fn a_ros_dump_is_loaded_without_the_parameters_of_every_ros_node() {
    let env = TestEnv::new();
    let arm = arm(&env);
    let dump = "/arm:\n  ros__parameters:\n    pid:\n      gain: 3.0\n    qos_overrides:\n      \
                /parameter_events:\n        publisher: {depth: 1000, reliability: reliable}\n    \
                start_type_description_service: true\n    use_sim_time: false\n";
    let file = write(&env, "dump.yaml", dump);
    let said = rnet!(env, "param", "load", &file).fails(0);
    assert_eq!(arm.gain.get(), Ok(3.0));
    let left_out = "dump.yaml:8: parameter /start_type_description_service of /arm was skipped: it exists in every ROS 2 node";
    assert!(said.contains(left_out) && said.contains("set 1 parameter"), "{said}");
    // In a robot-net file it is an error, like any other unknown name.
    let file = write(&env, "ours.yaml", "/arm:\n  use_sim_time: false\n");
    assert!(rnet!(env, "param", "load", file).fails(1).contains("has no parameter /use_sim_time"));
}

#[test]
fn a_file_may_come_before_the_nodes() {
    let env = TestEnv::new();
    let text = "/arm:\n  pid/gain: 4\n  mode: fly\n  steps: 6\n";
    let said = rnet!(env, "param", "load", write(&env, "early.yaml", text)).fails(0);
    assert!(
        said.contains("early.yaml:2: parameter /pid/gain of /arm is not declared yet"),
        "{said}"
    );
    let arm = arm(&env);
    assert_eq!((arm.gain.get(), arm.mode.get().as_deref()), (Ok(4.0), Ok("idle")));
    let list = rnet!(env, "param", "list").ok();
    assert!(list.contains("\"fly\", set by /rnet_param_"), "{list}");
}

#[test]
fn read_only_parameters_are_set_before_the_node_starts() {
    let env = TestEnv::new();
    let declare = || {
        let node = env.node("arm");
        let legs = node.param("/legs").default(4_i64).read_only().declare().unwrap();
        (legs, node)
    };
    let running = declare();
    let said = rnet!(env, "param", "set", "/arm", "legs", "6").fails(1);
    assert!(
        said.contains("read-only while /arm runs; set it before that node is started"),
        "{said}"
    );
    assert!(rnet!(env, "param", "describe", "/arm").ok().contains("read-only: while /arm runs"));
    drop(running);
    rnet!(env, "param", "set", "/arm", "legs", "6").ok();
    assert_eq!(declare().0.get(), Ok(6));
}

#[test]
fn parameters_of_another_host_are_set_at_their_home() {
    let env = TestEnv::new();
    let node = env.node("arm");
    let gain = node.param("/gain").default(1.0).max(10.0).declare().unwrap();
    let _home = rnet::bridge::serve_state(&node, "robot", None).unwrap();
    let said = rnet!(env, "param", "list", "--host", "robot").ok();
    assert!(said.contains("/arm") && said.contains("/gain"), "{said}");
    rnet!(env, "param", "set", "/arm", "gain", "2.5", "--host", "robot").ok();
    assert_eq!(gain.get().unwrap(), 2.5);
    assert_eq!(rnet!(env, "param", "get", "/arm/gain", "--host", "robot").ok(), "2.5\n");
    let set = rnet!(env, "param", "set", "/arm/gain", "3", "--host", "robot", "--json").json();
    assert_eq!((&set["value"], &set["was"]), (&3.0.into(), &2.5.into()));
    let said = rnet!(env, "param", "set", "/arm", "gain", "11", "--host", "robot").fails(1);
    assert!(said.contains("above its maximum 10"), "{said}");
    let said = rnet!(env, "param", "set", "/arm", "gian", "1", "--host", "robot").fails(1);
    assert!(said.contains("not declared by any node"), "{said}");
    rnet!(env, "param", "set", "/leg", "x", "1", "--host", "robot", "--undeclared").ok();
    assert_eq!(node.state().unwrap().get("/params/leg/x").unwrap(), Some(1.into()));
    let said = rnet!(env, "param", "list", "--host", "desk").fails(1);
    assert!(said.contains("home on host desk, which is not reachable"), "{said}");
}
