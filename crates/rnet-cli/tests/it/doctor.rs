//! `rnet doctor` finds and names each planted problem, and reports a healthy domain as well.

use crate::util;

use std::os::unix::fs::PermissionsExt;

use rnet::{Lane, Node};
use util::{CommandOutput, Pose, TEST_TIMEOUT, TestEnv};

/// The problem of this check with its advice, as "what -> advice".
#[track_caller]
fn problem(ran: &CommandOutput, check: &str) -> String {
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    let json = ran.json();
    let findings = json["findings"].as_array().unwrap();
    let found = findings.iter().find(|f| f["level"] == "problem" && f["check"] == check);
    let found = found.unwrap_or_else(|| panic!("no problem {check}: {json:#}"));
    format!("{} -> {}", found["what"].as_str().unwrap(), found["advice"].as_str().unwrap())
}

#[track_caller]
fn note(ran: &CommandOutput, check: &str) -> String {
    let json = ran.json();
    let findings = json["findings"].as_array().unwrap();
    let found = findings.iter().find(|f| f["level"] == "note" && f["check"] == check);
    found.unwrap_or_else(|| panic!("no note {check}: {json:#}"))["what"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[track_caller]
fn contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in {text:?}");
    }
}

fn pair(env: &TestEnv) -> (Node, Node) {
    (env.node("ear"), env.node("mouth"))
}

#[test]
fn a_healthy_domain_is_well() {
    let env = TestEnv::new();
    let (ear, mouth) = pair(&env);
    let mut publisher = mouth.publisher::<Pose>("/pose").open().unwrap();
    let mut subscriber = ear.subscriber::<Pose>("/pose").open().unwrap();
    publisher.wait_for_subscribers_timeout(1, TEST_TIMEOUT).unwrap();
    publisher.send(&util::POSE).unwrap();
    subscriber.recv_timeout(TEST_TIMEOUT).unwrap();
    let text = rnet!(env, "doctor").ok();
    contains(
        &text,
        &[
            "all is well",
            "one pair of publisher and subscriber is matched",
            "shared memory are free",
        ],
    );
    let text = rnet!(env, "doctor", "ear", "mouth").ok();
    contains(&text, &["/ear receives from /mouth on /pose: 1 messages received"]);
    let json = rnet!(env, "--json", "doctor", "--topic", "/pose").json();
    assert_eq!(json["problems"], 0);
    // Nothing flows in the other direction, and the doctor reports that too.
    let ran = rnet!(env, "--json", "doctor", "mouth", "ear");
    contains(&problem(&ran, "topic_name"), &["/ear publishes nothing that /mouth subscribes to"]);
    contains(&note(&ran, "match"), &["the other direction works"]);
}

#[test]
fn the_directory() {
    let env = TestEnv::new();
    let ran = rnet!(env, "--json", "--dir", "/nonexistent/place", "doctor");
    contains(&problem(&ran, "directory"), &["/nonexistent/place", "RNET_DIR"]);
    let file = env.dir.join("file");
    std::fs::write(&file, "").unwrap();
    let ran = rnet!(env, "--json", "--dir", file.to_str().unwrap(), "doctor");
    contains(&problem(&ran, "directory"), &["not a directory"]);
    drop(env.node("a"));
    std::fs::set_permissions(env.domain_dir(), PermissionsExt::from_mode(0o755)).unwrap();
    let ran = rnet!(env, "--json", "doctor");
    contains(&problem(&ran, "directory"), &["mode 755", "RNET_GROUP"]);
}

#[test]
fn the_layout_version() {
    let env = TestEnv::new();
    drop(env.node("a"));
    std::fs::write(env.domain_dir().join("VERSION"), "999\n").unwrap();
    let ran = rnet!(env, "--json", "doctor");
    contains(&problem(&ran, "version"), &["layout version 999", "stop all nodes"]);
}

#[test]
fn the_other_node_is_in_another_domain() {
    let env = TestEnv::new();
    let _mouth = env.node_in("mouth", "lab");
    // The inspected domain has no nodes.
    let ran = rnet!(env, "--json", "doctor");
    contains(&problem(&ran, "other_domain"), &["/mouth", "did you mean --domain lab?"]);
    // One node is here, the other is in another domain.
    let _ear = env.node("ear");
    let ran = rnet!(env, "--json", "doctor", "ear", "mouth");
    contains(
        &problem(&ran, "other_domain"),
        &["node /mouth is not in this domain", "--domain lab", "RNET_DOMAIN"],
    );
    // Two domains at once are not a problem.
    let ran = rnet!(env, "--json", "doctor");
    assert_eq!(ran.code, Some(0));
    contains(&note(&ran, "other_domain"), &["/mouth", "--domain lab"]);
}

#[test]
fn directories_of_other_users_are_reported_and_left_alone() {
    let env = TestEnv::new();
    let foreign = env.dir.join("rnet-54321-lab");
    std::fs::create_dir(&foreign).unwrap();
    std::fs::create_dir(env.dir.join("rnet-litter")).unwrap();
    let ran = rnet!(env, "--json", "doctor");
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    contains(&note(&ran, "other_user"), &["user 54321", "domain lab", "RNET_GROUP"]);
    assert!(foreign.exists());
    // A directory with this domain's name is where another user's nodes wait for ours.
    let namesake = env.dir.join(format!("rnet-54321-{}", util::DOMAIN));
    std::fs::create_dir(&namesake).unwrap();
    let ran = rnet!(env, "--json", "doctor");
    let said = problem(&ran, "other_user");
    contains(&said, &["user 54321", util::DOMAIN, "RNET_GROUP", "RNET_DOMAIN"]);
    contains(&said, &[namesake.to_str().unwrap()]);
    assert!(namesake.exists());
}

#[test]
fn publishers_of_different_types_are_a_problem() {
    let env = TestEnv::new();
    let (one, other) = (env.node("one"), env.node("other"));
    let schema = |text: &str| {
        let file = rnet::schema::compile_text("p.proto", &format!("syntax = \"proto3\"; {text}"));
        rnet::MessageType::from(file.unwrap().schema("P").unwrap())
    };
    let published = |node: &Node, text: &str| {
        node.publisher::<[u8]>("/typed").message_type(schema(text)).open().unwrap()
    };
    let pose = one.publisher::<Pose>("/pose").open().unwrap();
    let _double = published(&one, "message P { double x = 1; }");
    // Versions of one type are compatible.
    let newer = published(&other, "message P { double x = 1; double y = 2; }");
    assert_eq!(rnet!(env, "doctor").code, Some(0));
    drop(newer);
    let _float = published(&other, "message P { float x = 1; }");
    let said = problem(&rnet!(env, "--json", "doctor"), "type");
    contains(
        &said,
        &["/typed", "/one has double x = 1", "/other has float x = 1", "one type per topic"],
    );
    let raw = other.publisher::<[u8]>("/pose").open().unwrap();
    let ran = rnet!(env, "--json", "doctor", "--topic", "/pose");
    contains(&problem(&ran, "type"), &["/pose", "/one", "/other", "Pose"]);
    // A raw subscriber receives both, so it must not add a problem.
    drop((pose, raw));
}

#[test]
fn similar_names_are_reported() {
    let env = TestEnv::new();
    let (ear, mouth) = pair(&env);
    let _publishers = ["/Scan", "/robot/imu", "/joint_state", "/leg1"]
        .map(|t| mouth.publisher::<[u8]>(t).open().unwrap());
    let _subscribers = ["/scan", "/imu", "/joint_states", "/leg2"]
        .map(|t| ear.subscriber::<[u8]>(t).open().unwrap());
    let ran = rnet!(env, "--json", "doctor");
    assert_eq!(ran.json()["problems"], 3, "{ran:#?}");
    contains(&ran.stdout, &["only in case", "additional namespace", "one or two letters"]);
    let ran = rnet!(env, "--json", "doctor", "--topic", "/scan");
    assert_eq!(ran.json()["problems"], 1, "{ran:#?}");
    contains(&problem(&ran, "topic_name"), &["/Scan", "/scan", "/ear", "/mouth"]);
    let ran = rnet!(env, "--json", "doctor", "ear", "mouth");
    contains(&problem(&ran, "topic_name"), &["/ear subscribes to", "/mouth publishes"]);
}

#[test]
fn missing_topic_or_node_is_reported() {
    let env = TestEnv::new();
    let (ear, _mouth) = pair(&env);
    let _subscriber = ear.subscriber::<[u8]>("/scan").open().unwrap();
    let ran = rnet!(env, "--json", "doctor", "--topic", "/scans");
    contains(&problem(&ran, "topic_name"), &["topic /scans does not exist", "did you mean /scan?"]);
    let ran = rnet!(env, "--json", "doctor", "--topic", "/scan");
    contains(&problem(&ran, "topic_name"), &["/scan has no publisher", "start the other side"]);
    let ran = rnet!(env, "--json", "doctor", "ear", "mouht");
    contains(&problem(&ran, "node"), &["node /mouht", "did you mean /mouth?"]);
    let ran = rnet!(env, "--json", "doctor", "ear", "camera");
    contains(&problem(&ran, "node"), &["node /camera", "rnet node list"]);
    let ran = rnet!(env, "--json", "doctor", "ear", "mouth", "--topic", "/odom");
    contains(&problem(&ran, "topic_name"), &["/ear does not subscribe to /odom", "/scan"]);
    // An unmatched endpoint is a problem only if the user asks for it.
    let ran = rnet!(env, "--json", "doctor");
    assert_eq!(ran.code, Some(0));
    contains(&note(&ran, "topic_name"), &["/scan has no publisher"]);
}

#[derive(Clone, Copy, rnet::Plain)]
#[repr(C)]
struct Level {
    volt: f64,
}

mod other {
    #[derive(Clone, Copy, rnet::Plain)]
    #[repr(C)]
    pub struct Level {
        pub volt: f32,
        pub amp: f32,
    }
}

#[test]
fn incompatible_types_are_reported() {
    let env = TestEnv::new();
    let (ear, mouth) = pair(&env);
    let _publisher = mouth.publisher::<Level>("/level").open().unwrap();
    let _subscriber = ear.subscriber::<other::Level>("/level").open().unwrap();
    for ran in [
        rnet!(env, "--json", "doctor"),
        rnet!(env, "--json", "doctor", "ear", "mouth"),
        rnet!(env, "--json", "doctor", "--topic", "level"),
    ] {
        contains(
            &problem(&ran, "type"),
            &["/ear does not receive from /mouth on /level", "`volt`", "f64", "f32"],
        );
    }
}

#[test]
fn incompatible_qos_is_reported() {
    let env = TestEnv::new();
    let (ear, mouth) = pair(&env);
    let _publisher = mouth.publisher::<[u8]>("/t").open().unwrap();
    let subscriber = || ear.subscriber::<[u8]>("/t");
    for (subscriber, words) in [
        (subscriber().reliable(), ["requests reliable", "make the publisher reliable"]),
        (
            subscriber().transient_local(),
            ["requests transient_local", "make the publisher transient_local"],
        ),
        (subscriber().lane(Lane::Urgent), ["urgent lane", "set the publisher's lane to urgent"]),
    ] {
        let _subscriber = subscriber.open().unwrap();
        let ran = rnet!(env, "--json", "doctor", "ear", "mouth");
        contains(&problem(&ran, "qos"), &words);
    }
    let _urgent = mouth.publisher::<[u8]>("/t").urgent().open().unwrap();
    let ran = rnet!(env, "--json", "doctor", "--topic", "/t");
    contains(&problem(&ran, "qos"), &["different lanes", "use one lane per topic"]);
}

#[test]
fn a_node_that_died() {
    let env = TestEnv::new();
    let mut victim = env.spawn(&["topic", "pub", "/t", "--text", "x", "-n", "mouth"]);
    let mut echo = env.spawn(&["topic", "echo", "/t", "--once", "--csv"]);
    echo.wait_for_stdout("78");
    victim.signal("KILL");
    victim.wait_for_exit();
    // No live node could have swept it before the doctor runs.
    let ran = rnet!(env, "--json", "doctor", "ear", "mouth");
    contains(&problem(&ran, "dead"), &["/mouth", "process died"]);
    // The doctor swept it.
    assert_eq!(std::fs::read_dir(env.domain_dir().join("nodes")).unwrap().count(), 0);
}

#[test]
fn a_directory_that_was_removed_under_a_living_node() {
    let env = TestEnv::new();
    let _node = env.node("a");
    std::fs::remove_dir_all(env.domain_dir()).unwrap();
    let mut ran = rnet!(env, "--json", "doctor");
    // Until the node has restored it, before the doctor searched for nodes without folders.
    let is_back = |text: &str| text.contains("was restored") && !text.contains("cannot find it");
    while !is_back(&ran.stdout) {
        ran = rnet!(env, "--json", "doctor");
    }
    contains(
        &problem(&ran, "removed"),
        &["removed while nodes were running", "by /a", "RemoveIPC=no"],
    );
}

#[test]
fn a_process_that_is_stopped() {
    let env = TestEnv::new();
    let stopped = env.spawn(&["topic", "pub", "/t", "--text", "x", "-n", "mouth"]);
    let mut echo = env.spawn(&["topic", "echo", "/t", "--once", "--csv"]);
    echo.wait_for_stdout("78");
    stopped.signal("STOP");
    let mut found = rnet!(env, "--json", "doctor");
    // The kernel delivers the signal asynchronously.
    while found.code == Some(0) {
        found = rnet!(env, "--json", "doctor");
    }
    contains(&problem(&found, "stopped"), &["/mouth", "kill -CONT"]);
    // A subscriber that joins now is compatible, but not matched.
    let ear = env.node("ear");
    let _subscriber = ear.subscriber::<[u8]>("/t").open().unwrap();
    let ran = rnet!(env, "--json", "doctor", "ear", "mouth");
    problem(&ran, "stopped");
    contains(&problem(&ran, "match"), &["compatible on /t, but not matched"]);
    stopped.signal("CONT");
}

#[test]
fn a_subscriber_that_does_not_read_and_one_that_lost() {
    let env = TestEnv::new();
    let (ear, mouth) = pair(&env);
    let mut publisher = mouth.publisher::<[u8]>("/t").log_len_bytes(16 << 10).open().unwrap();
    let mut subscriber = ear.subscriber::<[u8]>("/t").keep_all().open().unwrap();
    publisher.wait_for_subscribers_timeout(1, TEST_TIMEOUT).unwrap();
    for _ in 0..10_000 {
        publisher.send(b"message").unwrap();
    }
    let ran = rnet!(env, "--json", "doctor", "ear", "mouth");
    contains(&problem(&ran, "match"), &["reads nothing", "10000 messages behind"]);
    subscriber.recv_timeout(TEST_TIMEOUT).unwrap();
    let ran = rnet!(env, "--json", "doctor", "ear", "mouth");
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    contains(&note(&ran, "loss"), &["/ear", "overrun"]);
}

#[test]
fn a_lagging_subscriber_is_named() {
    let env = TestEnv::new();
    let (ear, mouth) = pair(&env);
    let mut publisher = mouth.publisher::<[u8]>("/t").open().unwrap();
    let subscriber = ear.subscriber::<[u8]>("/t").open().unwrap();
    publisher.wait_for_subscribers_timeout(1, TEST_TIMEOUT).unwrap();
    publisher.send(b"news").unwrap();
    let mut ran = rnet!(env, "--json", "doctor");
    // Until the unread message is a second old.
    while !ran.stdout.contains("lag") {
        ran = rnet!(env, "--json", "doctor");
    }
    assert!(subscriber.behind().age_ns >= 1_000_000_000);
    assert_eq!(ran.code, Some(0), "a slow best_effort subscriber is not a problem: {ran:#?}");
    contains(&note(&ran, "lag"), &["/ear lags on /t from /mouth", "1 message behind"]);
}

#[test]
fn too_few_file_descriptors() {
    let env = TestEnv::new();
    let _nodes = pair(&env);
    let mut command = std::process::Command::new("sh");
    let script = format!("ulimit -n 30; exec {} --json doctor", env!("CARGO_BIN_EXE_rnet"));
    command.args(["-c", &script]).env("RNET_DIR", &env.dir).env("RNET_DOMAIN", util::DOMAIN);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let ran = util::RunningCommand::start(command).wait();
    contains(&problem(&ran, "files"), &["may open 30 files", "ulimit -n"]);
}

#[test]
fn too_little_shared_memory() {
    let env = TestEnv::new();
    // In its own user and mount namespace, which needs no permissions and ends with the process.
    let script = format!(
        "mount -t tmpfs -o size=1m none {} && exec {} --json doctor",
        env.dir.display(),
        env!("CARGO_BIN_EXE_rnet")
    );
    let mut command = std::process::Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c", &script]);
    command.env("RNET_DIR", &env.dir).env("RNET_DOMAIN", util::DOMAIN);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let ran = util::RunningCommand::start(command).wait();
    if ran.stdout.is_empty() {
        eprintln!("not run: this machine allows no mount namespaces: {}", ran.stderr);
        return;
    }
    contains(&problem(&ran, "space"), &["MiB of shared memory are free", "--shm-size"]);
}

/// The findings of `doctor --realtime --json`; asserts the exit code that matches its problems.
#[track_caller]
fn realtime(ran: &CommandOutput) -> Vec<serde_json::Value> {
    let json = ran.json();
    let findings = json["findings"].as_array().unwrap().clone();
    let count = |level: &str| findings.iter().filter(|f| f["level"] == level).count();
    assert_eq!(json["problems"], count("problem"), "{json:#}");
    assert_eq!(json["advice"], count("advice"), "{json:#}");
    assert_eq!(ran.code, Some((count("problem") > 0).into()), "{ran:#?}");
    for finding in &findings {
        let text = |key: &str| finding[key].as_str().unwrap_or_default().to_owned();
        assert!(["ok", "unknown", "advice", "problem"].contains(&&*text("level")), "{finding:#}");
        for key in ["check", "what", "read_from", "why"] {
            assert!(!text(key).is_empty(), "{key}: {finding:#}");
        }
        let to_mend = ["advice", "problem"].contains(&&*text("level"));
        assert_eq!(to_mend, !text("advice").is_empty(), "{finding:#}");
    }
    findings
}

#[track_caller]
fn level(findings: &[serde_json::Value], check: &str) -> String {
    let found = findings.iter().find(|f| f["check"] == check);
    let found = found.unwrap_or_else(|| panic!("no check {check}: {findings:#?}"));
    found["level"].as_str().unwrap().to_owned()
}

#[test]
fn the_machine_is_examined_for_real_time() {
    let env = TestEnv::new();
    let ran = rnet!(env, "--json", "doctor", "--realtime");
    let findings = realtime(&ran);
    let text = rnet!(env, "doctor", "--realtime");
    assert_eq!(text.code, ran.code);
    for finding in &findings {
        let check = finding["check"].as_str().unwrap();
        assert!(text.stdout.contains(&format!("  {check}: ")), "{check}: {}", text.stdout);
    }
    // It inspects the machine and creates nothing.
    assert_eq!(std::fs::read_dir(&env.dir).unwrap().count(), 0);
}

#[test]
fn realtime_option_cannot_be_combined_with_nodes() {
    let env = TestEnv::new();
    for args in [
        &["doctor", "--realtime", "ear", "mouth"][..],
        &["doctor", "--realtime", "--topic", "/t"],
        &["doctor", "--realtime=yes"],
    ] {
        rnet_fails_as_usage(&env, args);
    }
}

#[track_caller]
fn rnet_fails_as_usage(env: &TestEnv, args: &[&str]) {
    let ran = env.run(args);
    assert_eq!(ran.code, Some(2), "{args:?}: {ran:#?}");
    assert!(ran.stdout.is_empty(), "{ran:#?}");
}

#[test]
fn a_user_without_permissions_gets_advice() {
    let env = TestEnv::new();
    // If permissions cannot be dropped, there is nothing to test.
    let script = format!(
        "ulimit -r 0; ulimit -l 64; ulimit -R 1000; exec {} --json doctor --realtime",
        env!("CARGO_BIN_EXE_rnet")
    );
    let mut command = std::process::Command::new("setpriv");
    command.args(["--bounding-set=-sys_nice,-ipc_lock", "--inh-caps=-all", "bash", "-c", &script]);
    command.env("RNET_DIR", &env.dir).env("RNET_DOMAIN", util::DOMAIN);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let ran = util::RunningCommand::start(command).wait();
    if ran.stdout.is_empty() {
        eprintln!("not run: this user cannot give up rights: {}", ran.stderr);
        return;
    }
    let findings = realtime(&ran);
    assert_eq!(level(&findings, "rt_priority"), "problem");
    assert_eq!(level(&findings, "rt_time"), "advice");
    assert!(["advice", "problem"].contains(&&*level(&findings, "memory_lock")));
    // One core is too few.
    let mut command = std::process::Command::new("taskset");
    let rnet = env!("CARGO_BIN_EXE_rnet");
    command.args(["-c", "0", rnet, "--json", "doctor", "--realtime"]);
    command.env("RNET_DIR", &env.dir).env("RNET_DOMAIN", util::DOMAIN);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let ran = util::RunningCommand::start(command).wait();
    if ran.stdout.is_empty() {
        eprintln!("not run: core 0 is not ours: {}", ran.stderr);
        return;
    }
    assert_eq!(level(&realtime(&ran), "cores"), "problem");
}

#[test]
fn missed_deadlines_and_leases_are_found_and_shown() {
    let env = TestEnv::new();
    let (ear, mouth) = pair(&env);
    let short = std::time::Duration::from_millis(10);
    let mut publisher = mouth
        .publisher::<Pose>("/pose")
        .deadline(short)
        .manual_by_topic(short)
        .lifespan(short)
        .open()
        .unwrap();
    let mut subscriber = ear.subscriber::<Pose>("/pose").deadline(short).open().unwrap();
    publisher.wait_for_subscribers_timeout(1, TEST_TIMEOUT).unwrap();
    publisher.send(&util::POSE).unwrap();
    let silent = || subscriber.stats().iter().any(|s| s.deadline_missed > 0);
    while publisher.deadline_missed() == 0 || !silent() {
        std::thread::sleep(short); // sleep: the test needs silence
    }
    assert!(subscriber.try_recv().unwrap().is_none());
    let ran = rnet!(env, "--json", "doctor");
    contains(&problem(&ran, "liveliness"), &["/pose in /mouth is not alive", "its lease is 10ms"]);
    contains(&note(&ran, "deadline"), &["has missed its deadline of 10ms"]);
    contains(&note(&ran, "lifespan"), &["/ear", "1 message on", "older than the lifespan 10ms"]);
    let text = rnet!(env, "topic", "info", "/pose", "-v").ok();
    let shown = ["Lifespan: 10ms", "Deadline: 10ms", "MANUAL_BY_TOPIC (lease 10ms)", "Alive: NO"];
    contains(&text, &shown);
    contains(&text, &["1 expired", "deadlines missed"]);
    let json = rnet!(env, "--json", "topic", "info", "/pose").json();
    assert_eq!(json["subscribers"][0]["channels"][0]["expired"], 1);
    assert_eq!(json["publishers"][0]["qos"]["deadline"]["nanos"], 10_000_000);
}

#[test]
fn running_recorder_is_shown_with_its_free_space() {
    let env = TestEnv::new();
    let _node = env.node("imu");
    let file = env.dir.join("drive.mcap");
    let mut recorder = env.spawn(&["record", "--output", file.to_str().unwrap(), "/imu"]);
    let findings = || rnet!(env, "doctor", "--json").json()["findings"].to_string();
    let mut seen = String::new();
    util::processes::until("the recorder is seen", || {
        seen = findings();
        seen.contains("drive.mcap: 0 MiB so far")
    });
    assert!(seen.contains(" are free for the recording of process "), "{seen}");
    // The recorder checks the name of its file once a second, and would begin another file.
    recorder.signal("STOP");
    std::fs::rename(&file, env.dir.join("moved.mcap")).unwrap();
    let moved = findings();
    assert!(moved.contains("drive.mcap, no longer exists"), "{moved}");
    recorder.signal("CONT");
    recorder.signal("INT");
    recorder.wait_for_exit();
    assert!(!findings().contains("so far"));
}
