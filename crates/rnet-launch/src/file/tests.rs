//! Each key: which values are accepted, and the errors for the others.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use proptest::prelude::*;

use super::*;
use crate::node::{ParamValue, Ready, Scheduler};
use crate::restart_policy::RestartWhen;

mod vars;

/// A directory of the test, removed with it.
struct Dir(PathBuf);

impl Dir {
    fn new(files: &[(&str, &str)]) -> Dir {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("rnet-launch-{}-{n}", std::process::id()));
        std::fs::create_dir(&dir).unwrap();
        for (name, text) in files {
            std::fs::write(dir.join(name), text).unwrap();
        }
        Dir(dir)
    }

    fn load(&self, choices: &LaunchOptions) -> std::result::Result<Plan, String> {
        // Errors are compared without the directory, whose name differs in each run.
        let dir = format!("{}/", self.0.display());
        load(&self.0.join("robot.toml"), choices).map_err(|e| e.to_string().replace(&dir, ""))
    }

    /// Without the black box, which has its own tests.
    fn nodes(&self, choices: &LaunchOptions) -> std::result::Result<Plan, String> {
        let mut plan = self.load(choices)?;
        plan.nodes.retain(|node| !node.is_companion);
        Ok(plan)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn choices(host: &str, set: &[(&str, &str)]) -> LaunchOptions {
    let set = set.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    LaunchOptions { host: Some(host.into()), set, ..LaunchOptions::default() }
}

fn parsed(text: &str) -> std::result::Result<Plan, String> {
    Dir::new(&[("robot.toml", text)]).nodes(&choices("base", &[]))
}

#[track_caller]
fn refused(text: &str, expected: &str) {
    assert_eq!(parsed(text).expect_err(text), expected, "{text}");
}

fn names(plan: &Plan) -> Vec<&str> {
    plan.nodes.iter().map(|node| node.name.as_str()).collect()
}

#[test]
fn all_keys_are_accepted() {
    let text = r#"
        network = "off"
        [var]
        speed = 3
        [node.arm]
        command = ["python", "${speed}.py", "$$HOME", "${host}"]
        dir = "arm"
        env = { SPEED = "${speed}" }
        params = { gain = 1.5, mode = "run", on = true, n = 0x10, limits = [0.5, 3.0] }
        after = ["lidar"]
        ready = ["/joints", "state"]
        ready_timeout_s = 2.5
        restart = "always"
        backoff_s = 0.1
        backoff_max_s = 2
        give_up_after = 9
        give_up_within_s = 10
        on_failure = ["./safe", "now"]
        interrupt_timeout_s = 1.5
        stop_timeout_s = 0.5
        die_with_launcher = true
        cpus = [2, 3]
        scheduler = "fifo"
        priority = 50
        memory_limit_mib = 256
        log_max_mib = 1
        log_files = 2
        host = "base"
        when = { speed = 3 }
        [node."/front/lidar"]
        command = ["true"]
        host = "other"
        [node.lidar]
        command = ["./lidar"]
    "#;
    let plan = parsed(text).unwrap();
    assert_eq!(names(&plan), ["/lidar", "/arm"]);
    assert_eq!((plan.host.as_str(), plan.read.len()), ("base", 1));
    let (lidar, arm) = (&plan.nodes[0], &plan.nodes[1]);
    assert_eq!(arm.process.command, ["python", "3.py", "$HOME", "base"]);
    assert!(arm.process.dir.ends_with("arm") && arm.process.dir.parent() == plan.file.parent());
    assert_eq!(arm.process.env["SPEED"], "3");
    assert_eq!(arm.process.params["n"], ParamValue::Int(16));
    let limits = ParamValue::List(vec![ParamValue::Float(0.5), ParamValue::Float(3.0)]);
    assert_eq!(arm.process.params["limits"], limits);
    assert_eq!(arm.ready, Ready::Publishes(vec!["/joints".into(), "/state".into()]));
    assert_eq!((arm.ready_timeout_ms, arm.process.stop_timeout_ms), (2500, 500));
    assert_eq!(arm.process.interrupt_timeout_ms, 1500);
    let policy = &arm.policy;
    assert_eq!((policy.when, policy.give_up_after), (RestartWhen::Always, 9));
    assert_eq!(
        (policy.backoff_ms, policy.backoff_max_ms, policy.give_up_within_ms),
        (100, 2000, 10_000)
    );
    assert_eq!(arm.on_failure, ["./safe", "now"]);
    assert!(arm.process.die_with_launcher && !lidar.process.die_with_launcher);
    let limits = &arm.process.limits;
    assert_eq!((limits.scheduler, limits.priority), (Some(Scheduler::Fifo), 50));
    assert_eq!((limits.cpus.as_slice(), limits.memory_limit_mib), ([2, 3].as_slice(), Some(256)));
    assert_eq!((arm.process.log.max_len_bytes, arm.process.log.files), (1 << 20, 2));
    assert_eq!((&lidar.policy, &lidar.ready), (&Default::default(), &Ready::Started));
    assert_eq!(Some(lidar.process.dir.as_path()), plan.file.parent());
}

#[test]
fn namespace_and_rules_apply_to_process_and_file() {
    let text = r#"
        [var]
        side = "left"
        [node.lidar]
        command = ["./lidar"]
        namespace = "${side}"
        remap = { "/map" = "/${side}/map", "/cam/**" = "/c/**", "node:eye" = "lidar" }
        params = { gain = 1.5 }
        env = { SPEED = "1" }
        ready = ["scan", "/map", "/cam/image", "/far"]
        [node."/right/lidar"]
        command = ["./lidar"]
        namespace = "/right"
        [node.map]
        command = ["./map"]
        after = ["/left/lidar", "/right/lidar"]
        [node.plan]
        command = ["./plan"]
        namespace = "left"
        after = ["lidar", "/map"]
    "#;
    let plan = parsed(text).unwrap();
    assert_eq!(names(&plan), ["/left/lidar", "/right/lidar", "/map", "/left/plan"]);
    let env = |at: usize| {
        let env = &plan.nodes[at].process.env;
        ["SPEED", "RNET_NAMESPACE", "RNET_REMAP"].map(|name| env.get(name).map(String::as_str))
    };
    // In the order of the file: the first match counts.
    let rules = "/map=/left/map,/cam/**=/c/**,node:eye=lidar";
    assert_eq!(env(0), [Some("1"), Some("left"), Some(rules)]);
    assert_eq!(env(1), [None, Some("/right"), None]);
    assert_eq!(env(2), [None; 3]);
    let topics = ["/left/scan", "/left/map", "/c/image", "/far"].map(str::to_owned);
    assert_eq!(plan.nodes[0].ready, Ready::Publishes(topics.to_vec()));
}

#[test]
fn mistakes_are_reported_with_file_line_key_and_expected_value() {
    let node = |key: &str| format!("[node.arm]\ncommand = [\"true\"]\n{key}\n");
    for (key, expected) in [
        ("comand = 1", "comand: unknown key; expected "),
        ("namespace = 1", "namespace: expected a namespace, such as \"/left\", found 1"),
        (
            "namespace = \"a b\"",
            "namespace: expected names (invalid name \"a b\": ' ' at character 2 is",
        ),
        (
            "remap = [\"/a\"]",
            "remap: expected a table, such as { \"/scan\" = \"/left/scan\" }, found ",
        ),
        ("remap = { \"/a\" = 1 }", "remap./a: expected a name, found 1"),
        ("remap = { \"/a\" = \"/b,/c\" }", "remap./a: expected names (the rule \"/a=/b,/c\": "),
        (
            "remap = { \"/clock\" = \"/b\" }",
            "remap./clock: expected names (the rule \"/clock=/b\": /clock",
        ),
        (
            "namespace = \"a\"\nenv = { RNET_NAMESPACE = \"b\" }",
            "env.RNET_NAMESPACE: expected no RNET_NAMESPACE, because namespace sets it",
        ),
        ("after = \"b\"", "after: expected an array, such as [\"…\", \"…\"], found \"b\""),
        ("after = [\"b-c\"]", "after: expected the name of a node ('-' at character 2 is not"),
        ("after = [\"b\"]", "after: expected one of the nodes \"/arm\", found \"/b\""),
        (
            "after = [\"arm\"]",
            "after: expected no cycle, found /arm -> /arm (each node waits for the",
        ),
        (
            "restart = \"alway\"",
            "restart: expected \"never\", \"on-failure\" or \"always\", found \"alway\"; did you mean \"always\"?",
        ),
        ("restart = true", "restart: expected \"never\", \"on-failure\" or \"always\", found true"),
        ("backoff_s = -1", "backoff_s: expected seconds, 0 to 86400, found -1"),
        ("backoff_max_s = nan", "backoff_max_s: expected seconds, 0 to 86400, found nan"),
        (
            "backoff_s = 3\nbackoff_max_s = 2",
            "backoff_s: expected at most backoff_max_s, 2 s at robot.toml:4:17, found 3",
        ),
        ("give_up_after = 0", "give_up_after: expected a whole number, 1 to 4294967295, found 0"),
        ("give_up_within_s = \"1\"", "give_up_within_s: expected seconds, 0 to 86400, found \"1\""),
        (
            "on_failure = []",
            "on_failure: expected an array of a program and its arguments, such as",
        ),
        ("stop_timeout_s = 1e9", "stop_timeout_s: expected seconds, 0 to 86400, found 1e9"),
        ("die_with_launcher = 1", "die_with_launcher: expected true or false, found 1"),
        ("cpus = [-1]", "cpus: expected a whole number, 0 to 1023, found -1"),
        ("cpus = 2", "cpus: expected an array, such as "),
        (
            "scheduler = \"fif\"",
            "scheduler: expected \"other\", \"batch\", \"idle\", \"fifo\" or \"rr\", found \"fif\"; did you mean",
        ),
        ("scheduler = \"fifo\"", "priority is missing; expected a whole number, 1 to 99, for"),
        (
            "priority = 3",
            "priority: expected scheduler = \"fifo\" or \"rr\" together with priority, found 3",
        ),
        (
            "scheduler = \"rr\"\npriority = 100",
            "priority: expected a whole number, 1 to 99, found 100",
        ),
        (
            "memory_limit_mib = 0",
            "memory_limit_mib: expected a whole number, 1 to 1073741824, found 0",
        ),
        ("log_max_mib = 0", "log_max_mib: expected a whole number, 1 to 1073741824, found 0"),
        ("log_files = 101", "log_files: expected a whole number, 1 to 100, found 101"),
        (
            "ready = \"now\"",
            "ready: expected \"started\", \"notified\", \"exited\", or an array of topics that it",
        ),
        (
            "ready = []",
            "ready: expected \"started\", \"notified\", \"exited\", or an array of topics that it",
        ),
        ("ready = [\"a b\"]", "ready: expected a topic (' ' at character 2 is not allowed"),
        (
            "ready = \"exited\"\nrestart = \"always\"",
            "ready: expected another value, because restart = \"always\", found",
        ),
        ("ready_timeout_s = true", "ready_timeout_s: expected seconds, 0 to 86400, found true"),
        ("env = { A = 1 }", "env.A: expected a string, found 1"),
        ("env = { \"A=\" = \"\" }", "env.A=: expected a name without '=', found an empty text"),
        ("env = { A = \"\\u0000\" }", "env.A: expected a string without a zero byte, found"),
        ("params = { \"a b\" = 1 }", "params.a b: expected the name of a parameter ("),
        ("params = { a = {} }", "params.a: expected true, false, a number, a string or an array"),
        ("params = { a = inf }", "params.a: expected true, false, a number, a string or an array"),
        ("dir = 1", "dir: expected the path of a directory, found 1"),
        (
            "dir = \"${here}\"",
            "dir: expected in ${…}: no variable, because the file has no [var] (launch files",
        ),
        (
            "dir = \"$HOME/x\"",
            "dir: expected ${NAME} for a variable of [var], or $$ for a dollar (launch files do not read \
             environment variables: use a shell, [\"sh\", \"-c\", \"… $$HOME …\"], or declare HOME in [var] and \
             start with --set HOME=VALUE), found",
        ),
        ("host = \"a b\"", "host: expected a name of 1 to 64 letters, digits, '-', '.' and '_'"),
        ("when = { sim = true }", "when.sim: expected no variable, because the file has no [var]"),
        ("when = \"sim\"", "when: expected a table of variables, found \"sim\""),
    ] {
        let error = parsed(&node(key)).expect_err(key);
        let (place, rest) = error.split_once(": ").expect(&error);
        assert!(place.starts_with("robot.toml:"), "{error}");
        assert!(rest.starts_with(&format!("node.arm.{expected}")), "{key}\n{error}");
    }
}

#[test]
fn one_configured_wait_adjusts_the_default_of_the_other() {
    let waits = |keys: &str| {
        let plan = parsed(&format!("[node.arm]\ncommand = [\"true\"]\n{keys}\n")).unwrap();
        (plan.nodes[0].policy.backoff_ms, plan.nodes[0].policy.backoff_max_ms)
    };
    assert_eq!(waits(""), (500, 30_000));
    assert_eq!(waits("backoff_s = 60"), (60_000, 60_000));
    assert_eq!(waits("backoff_max_s = 0.1"), (100, 100));
    assert_eq!(waits("backoff_s = 2\nbackoff_max_s = 2"), (2000, 2000));
}

#[test]
fn mistakes_around_nodes_are_reported() {
    refused(
        "[node.arm]",
        "robot.toml:1:1: node.arm.command is missing; expected an array, such as [\"python\", \"arm.py\"]",
    );
    for command in ["\"./arm\"", "[]"] {
        let error = parsed(&format!("[node.arm]\ncommand = {command}")).unwrap_err();
        assert!(
            error.starts_with("robot.toml:2:11: node.arm.command: expected an array of a program"),
            "{error}"
        );
        assert!(command != "[]" || error.ends_with("found an empty array"), "{error}");
    }
    refused(
        "[node.arm]\ncommand = [\"\"]",
        "robot.toml:2:12: node.arm.command: expected a program as the first element, found an empty text",
    );
    refused(
        "[nodes.arm]",
        "robot.toml:1:2: nodes: unknown key; expected \"network\", \"include\", \"var\", \"node\" or \"blackbox\"; did you mean \"node\"?",
    );
    refused("node = 3", "robot.toml:1:8: node: expected tables [node.NAME], found 3");
    refused("[node]\narm = 3", "robot.toml:2:7: node.arm: expected a table [node.NAME], found 3");
    let error = parsed("[node.\"a-b\"]\ncommand = [\"true\"]").unwrap_err();
    assert!(
        error.starts_with(
            "robot.toml:1:1: node.a-b: expected the name of a node ('-' at character 2"
        ),
        "{error}"
    );
    refused(
        "[node.a]\ncommand = [\"true\"]\n[node.\"/a\"]\ncommand = [\"true\"]",
        "robot.toml:3:1: node./a: expected a unique name; robot.toml:1:1 already uses it, found /a",
    );
    refused(
        "[var]\nhost = 1",
        "robot.toml:2:8: var.host: expected a name of letters, digits and '_', other than host, found 1",
    );
    refused(
        "[var]\na = 1.5",
        "robot.toml:2:5: var.a: expected a string, true, false or a 64-bit whole number, found 1.5",
    );
    refused("[[include]]", "robot.toml:1:1: include.file is missing; expected the path of a file");
    let error = parsed("[[include]]\nfile = \"none.toml\"").unwrap_err();
    assert!(
        error.starts_with("robot.toml:2:8: include.file: expected a readable file (No such file"),
        "{error}"
    );
    let error = parsed("[node.arm\n").unwrap_err();
    assert!(error.starts_with("robot.toml:1:10: "), "{error}");
    let missing = Dir::new(&[]).load(&LaunchOptions::default()).unwrap_err();
    assert!(missing.starts_with("robot.toml: cannot be read: No such file"), "{missing}");
    let host = Dir::new(&[("robot.toml", "")]).load(&choices("a b", &[])).unwrap_err();
    assert!(host.starts_with("--host, RNET_HOST: expected a name of 1 to 64"), "{host}");
}

#[test]
fn robot_has_a_black_box_unless_its_file_disables_it() {
    let arm = "[node.arm]\ncommand = [\"true\"]\n";
    let loaded = |text: &str| {
        let dir = Dir::new(&[("robot.toml", text), ("more.toml", "[blackbox]\nafter_s = 1")]);
        let blackbox = PathBuf::from("/kept");
        let choices = LaunchOptions { blackbox, ..choices("base", &[]) };
        dir.load(&choices).map(|plan| {
            let first = plan.nodes.into_iter().next().filter(|node| node.is_companion);
            first.map(|node| {
                node.process.command[3..].join(" ").replace(&dir.0.display().to_string(), ".")
            })
        })
    };
    let by_default = "--before 30 --after 5 --max-disk 209715200 --output /kept --trigger death \
                      --trigger fallback --trigger log fatal";
    assert_eq!(loaded(arm).unwrap().as_deref(), Some(by_default));
    let all = "[var]\nside = \"left\"\n[blackbox]\nbefore_s = 10\nafter_s = 0.5\nmemory_mib = 128\nmax_disk_mib = 3\n\
               output = \"${side}\"\ntriggers = [\"/battery.voltage < 21\"]\nexclude = [\"/camera/**\"]\n";
    assert_eq!(
        loaded(&format!("{all}{arm}")).unwrap().as_deref(),
        Some(
            "--before 10 --after 0.5 --memory 134217728 --max-disk 3145728 --output ./left \
             --trigger /battery.voltage < 21 --exclude /camera/**"
        )
    );
    for none in ["[blackbox]\nenabled = false\n", "[node.\"/blackbox\"]\ncommand = [\"true\"]\n"] {
        assert_eq!(loaded(&format!("{none}{arm}")).unwrap(), None, "{none}");
    }
    assert_eq!(
        loaded("[blackbox]\nafter_s = 1").unwrap(),
        None,
        "a black box without nodes is not started"
    );
    for (table, expected) in [
        ("before = 3", "robot.toml:2:1: blackbox.before: unknown key; expected \"enabled\""),
        (
            "before_s = 601",
            "robot.toml:2:12: blackbox.before_s: expected seconds, 0 to 600, found 601",
        ),
        ("memory_mib = 63", "robot.toml:2:14: blackbox.memory_mib: expected a whole number, 64 to"),
        ("enabled = 1", "robot.toml:2:11: blackbox.enabled: expected true or false, found 1"),
        (
            "triggers = [\"dead\"]",
            "robot.toml:2:13: blackbox.triggers: expected a trigger (trigger \"dead\":",
        ),
        ("triggers = \"death\"", "robot.toml:2:12: blackbox.triggers: expected an array"),
        ("exclude = [\"/a//b\"]", "robot.toml:2:12: blackbox.exclude: expected a topic pattern ("),
        ("output = \"${no}\"", "robot.toml:2:10: blackbox.output: expected in ${…}: no variable"),
        (
            "[[include]]\nfile = \"more.toml\"",
            "more.toml:1:1: blackbox: expected only one table [blackbox]; the first is at robot.toml:1:1",
        ),
        (
            "[node.\"/blackbox\"]\ncommand = [\"true\"]",
            "robot.toml:1:1: blackbox: expected no table [blackbox], because",
        ),
    ] {
        let error = loaded(&format!("[blackbox]\n{table}\n{arm}")).expect_err(table);
        assert!(error.starts_with(expected), "{table}\n{error}");
    }
}

#[test]
fn cycle_error_shows_the_cycle() {
    let node = |name: &str, after: &str| {
        format!("[node.{name}]\ncommand = [\"true\"]\nafter = [{after}]\n")
    };
    let text =
        node("a", "\"d\", \"b\"") + &node("b", "\"c\"") + &node("c", "\"a\"") + &node("d", "");
    refused(
        &text,
        "robot.toml:3:15: node.a.after: expected no cycle, found /a -> /b -> /c -> /a (each node waits for the next)",
    );
}

#[test]
fn hosts_and_variables_select_nodes() {
    let robot = r#"
        [network]
        mode = "off"
        host = "arm-pc"
        [var]
        sim = false
        model = "v1"
        [[include]]
        file = "${model}.toml"
        [[include]]
        file = "sim.toml"
        when = { sim = true }
        [node.base]
        command = ["base"]
        host = "base-pc"
        [node.lidar]
        command = ["lidar", "${model}"]
        after = ["base"]
        when = { sim = false }
    "#;
    let files = [
        ("robot.toml", robot),
        (
            "v1.toml",
            "[var]\nmodel = \"default\"\nport = 7\n[node.arm]\ncommand = [\"arm1\", \"${model}\", \"${port}\"]",
        ),
        ("v2.toml", "[node.arm]\ncommand = [\"arm2\"]\n[node.leg]\ncommand = [\"leg\"]"),
        ("sim.toml", "[node.lidar]\ncommand = [\"fake\"]"),
    ];
    let dir = Dir::new(&files);
    // The file names this host. Nodes of another host are not waited for.
    let own = dir.nodes(&LaunchOptions::default()).unwrap();
    assert_eq!((names(&own), own.host.as_str()), (vec!["/arm", "/lidar"], "arm-pc"));
    assert_eq!(own.nodes[0].process.command, ["arm1", "v1", "7"]);
    assert!(own.nodes[1].after.is_empty());
    let base = dir.nodes(&choices("base-pc", &[("model", "v2"), ("sim", "true")])).unwrap();
    assert_eq!(names(&base), ["/arm", "/base", "/leg", "/lidar"]);
    assert_eq!(base.nodes[3].process.command, ["fake"]);
    assert_eq!(base.read.len(), 3);
    let error = dir.nodes(&choices("base-pc", &[("modle", "v2")])).unwrap_err();
    assert_eq!(
        error,
        "--set: expected one of the variables \"model\", \"port\" or \"sim\", found \"modle\""
    );
}

#[test]
fn include_cycle_is_reported_as_the_cycle() {
    let dir = Dir::new(&[
        ("robot.toml", "[[include]]\nfile = \"b.toml\""),
        ("b.toml", "\n[[include]]\nfile = \"robot.toml\""),
    ]);
    let error = dir.nodes(&LaunchOptions::default()).unwrap_err();
    assert_eq!(
        error,
        "b.toml:3:8: include.file: expected no cycle, found robot.toml -> b.toml -> robot.toml"
    );
}

#[test]
fn guide_shows_valid_files() {
    let page = include_str!("../../../../docs/guide/launch.md");
    let files: Vec<&str> =
        page.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    // The commands of the page run with this file.
    assert_eq!(files[0], include_str!("../../../../examples/given/launch/robot.toml"));
    for text in files {
        let dir = Dir::new(&[("robot.toml", text), ("sim.toml", "")]);
        let plan = dir.nodes(&choices("base", &[])).expect(text);
        assert!(!plan.nodes.is_empty(), "{text}");
    }
}

/// Texts that are almost a launch file.
fn nearly() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "[node.a]",
        "[node.b]",
        "[var]",
        "[[include]]",
        "command",
        "after",
        "ready",
        "restart",
        "file",
        "when",
        "params",
        "env",
        "\n",
        " = ",
        ".",
        "[",
        "]",
        "{",
        "}",
        ",",
        "\"a\"",
        "[\"a\"]",
        "\"${a}\"",
        "\"$\"",
        "\"robot.toml\"",
        "true",
        "-1",
        "1e400",
        "nan",
        "\"\"",
        "\u{0}",
        "99999999999999999999",
    ]);
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn arbitrary_text_does_not_panic(text in prop_oneof![any::<String>(), nearly()]) {
        if let Err(error) = parsed(&text) {
            prop_assert!(error.contains("robot.toml"), "{error}");
        }
    }
}
