//! `rnet record`, as people and scripts use it.

use crate::util;

use std::io::Write;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;

use serde_json::Value;
use util::processes::until;
use util::{DOMAIN, RunningCommand, TestEnv};

fn file(env: &TestEnv) -> String {
    env.dir.join("run.mcap").to_string_lossy().into_owned()
}

#[test]
fn records_until_it_is_stopped_and_prints_a_summary() {
    let env = TestEnv::new();
    let node = env.node("/n");
    let mut raw = node.publisher::<[u8]>("/raw").open().unwrap();
    let mut other = node.publisher::<[u8]>("/other").open().unwrap();
    let file = file(&env);
    // An invalid pattern is refused before any file is created.
    env.run(&["record", "-o", &file, "/ra?", "raw"]).fails(2);
    let mut running = env.spawn(&["record", "-o", &file, "raw", "--json"]);
    running.wait_for_stdout("progress");
    for _ in 0..100 {
        raw.send(b"raw").unwrap();
        other.send(b"other").unwrap();
    }
    running.wait_for_stdout("\"messages\":100,");
    running.signal("INT");
    let ran = running.wait();
    assert_eq!(ran.code, Some(130));
    let end: Value = serde_json::from_str(ran.stdout.lines().last().unwrap()).unwrap();
    assert_eq!(
        (&end["event"], &end["messages"], &end["missing"]),
        (&"end".into(), &100.into(), &0.into())
    );
    assert_eq!(end["ended"], serde_json::json!([file]));
    let bytes = std::fs::read(&file).unwrap();
    assert!(bytes.starts_with(b"\x89MCAP0\r\n") && bytes.ends_with(b"\x89MCAP0\r\n"));
    let again = env.run(&["record", "-o", &file]);
    let why = again.fails(1);
    assert!(why.contains("already exists"), "{why}");
}

#[test]
fn timed_recording_ends_and_prints_text() {
    let env = TestEnv::new();
    let node = env.node("/n");
    let file = file(&env);
    let ran = env.run(&["record", "-o", &file, "--for", "0.2", "--compress", "lz4"]);
    assert_eq!((ran.code, &*ran.stdout), (Some(0), ""));
    assert!(ran.stderr.contains("recording"), "{}", ran.stderr);
    // The node publishes nothing, so no publisher was followed.
    assert!(ran.stderr.contains("; no publisher was followed"), "{}", ran.stderr);
    assert!(Path::new(&file).exists());
    env.run(&["record", "-o", &file, "--max-disk", "1M"]).fails(2);
    drop(node);
}

#[test]
fn summary_counts_complete_publishers_and_names_unpublished_topics() {
    let env = TestEnv::new();
    let node = env.node("/n");
    let mut raw = node.publisher::<[u8]>("/raw").open().unwrap();
    let file = file(&env);
    let ran = env.run(&["record", "-o", &file, "/scan", "--no-state", "--for", "0.2"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let none = "no publisher was followed: none of /scan was found";
    assert!(ran.stderr.contains(none) && !ran.stderr.contains("missing"), "{}", ran.stderr);
    let info = env.run(&["bag", "info", &file]).stdout;
    assert!(info.contains("Losses:      0 known: no publisher was followed\n"), "{info}");
    let checked = env.run(&["bag", "check", &file]).stdout;
    assert!(checked.ends_with("; the recorder followed no publisher\n"), "{checked}");
    std::fs::remove_file(&file).unwrap();
    let mut running = env.spawn(&["record", "-o", &file, "/raw", "--no-state"]);
    running.wait_for_stderr("recording");
    raw.send(b"1").unwrap();
    running.signal("INT");
    let ran = running.wait();
    let all = "no message is missing from the publisher followed";
    assert!(ran.stderr.lines().last().is_some_and(|line| line.ends_with(all)), "{ran:?}");
    let info = env.run(&["bag", "info", &file]).stdout;
    assert!(info.contains("Losses:      0 from the publisher followed\n"), "{info}");
}

#[test]
fn removed_file_is_reported_and_moved_file_is_continued_in_the_next() {
    let env = TestEnv::new();
    let node = env.node("/n");
    let mut raw = node.publisher::<[u8]>("/raw").open().unwrap();
    let file = file(&env);
    let of = |part: u32| file.replace(".mcap", &format!("_{part}.mcap"));
    let mut running = env.spawn(&["record", "-o", &file, "--json"]);
    running.wait_for_stdout("progress");
    (0..5).for_each(|_| raw.send(b"lost").unwrap());
    running.wait_for_stdout("\"messages\":5,");
    std::fs::remove_file(&file).unwrap();
    running.wait_for_stdout(&format!("\"file\":\"{}\"", of(1)));
    (0..3).for_each(|_| raw.send(b"moved").unwrap());
    running.wait_for_stdout("\"messages\":3,");
    let moved = env.dir.join("moved.mcap");
    std::fs::rename(of(1), &moved).unwrap();
    running.wait_for_stdout(&format!("\"file\":\"{}\"", of(2)));
    running.signal("INT");
    let ran = running.wait();
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let end: Value = serde_json::from_str(ran.stdout.lines().last().unwrap()).unwrap();
    assert_eq!((&end["gone"], &end["messages"]), (&serde_json::json!([file]), &3.into()), "{end}");
    assert_eq!((&end["losses"][0]["cause"], &end["missing"]), (&"removed".into(), &5.into()));
    for said in ["run.mcap was removed while", "run_1.mcap was moved while"] {
        assert!(ran.stderr.contains(said), "{}", ran.stderr);
    }
    // The part begun after the removal reports the loss, and is complete although it was moved.
    let info = env.run(&["bag", "info", moved.to_str().unwrap(), "--json"]).json();
    let metadata = info["metadata"].as_array().unwrap();
    let losses = metadata.iter().find(|one| one["name"] == "rnet.losses").unwrap();
    assert_eq!(losses["values"]["/raw /n removed"], "5", "{info}");
}

#[test]
fn killed_recorder_leaves_a_readable_file() {
    let env = TestEnv::new();
    let node = env.node("/n");
    let mut raw = node.publisher::<[u8]>("/raw").open().unwrap();
    let file = file(&env);
    let mut running = env.spawn(&["record", "-o", &file, "--json"]);
    running.wait_for_stdout("progress");
    raw.send(b"raw").unwrap();
    // It is reported once a second, and written four times a second.
    running.wait_for_stdout("\"messages\":1,");
    running.wait_for_stdout("\"messages\":1,");
    running.signal("KILL");
    running.wait();
    let bytes = std::fs::read(&file).unwrap();
    assert!(bytes.starts_with(b"\x89MCAP0\r\n") && !bytes.ends_with(b"\x89MCAP0\r\n"));
    // All records up to the end are intact.
    let mut at = 8;
    while at < bytes.len() {
        let len = u64::from_le_bytes(bytes[at + 1..at + 9].try_into().unwrap());
        at += 9 + usize::try_from(len).unwrap();
    }
    assert_eq!(at, bytes.len());
}

#[test]
fn a_recorder_that_loses_messages_is_named_by_doctor_status_and_metrics() {
    let env = TestEnv::new();
    let imu = env.node("imu");
    let file = env.dir.join("run.mcap");
    let args = ["record", "--json", "--output", file.to_str().unwrap()];
    let mut recorder = env.spawn(&args);
    recorder.wait_for_stdout("progress");
    let mut angles = imu.publisher::<[u8]>("/angles").open().unwrap();
    angles.send(b"0.25").unwrap();
    let metric = |name: &str| {
        let text = rnet!(env, "metrics").ok();
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
        line.rsplit_once(' ').map_or(-1.0, |(_, value)| value.parse().unwrap())
    };
    let messages = "rnet_recorder_messages_total{domain=\"clitest\",recorder=";
    until("the recorder tells of its message", || metric(messages) == 1.0);
    assert!(metric("rnet_recorder_disk_free_bytes{") > 0.0);
    rnet!(env, "doctor", "--json").json()["findings"].as_array().unwrap().iter().for_each(
        |finding| {
            assert!(finding["check"] != "recorder" || finding["level"] == "ok", "{finding}");
        },
    );
    // The recorder is stopped, and a publisher writes more than its log holds.
    recorder.signal("STOP");
    for _ in 0..20_000 {
        angles.send(&[0; 100]).unwrap();
    }
    let mut status = rnet!(env, "status", "--json").json();
    until("status says that it is stopped", || {
        status = rnet!(env, "status", "--json").json();
        status["problems"].to_string().contains("it is stopped or starved")
    });
    assert_eq!(status["ok"], false);
    recorder.signal("CONT");
    let lost = |text: &str| {
        text.contains("messages: overwritten in the log before they were read")
            && text.contains("the recorder of process")
    };
    let mut findings = String::new();
    until("doctor reports the loss", || {
        findings = rnet!(env, "doctor", "--json").json()["findings"].to_string();
        lost(&findings)
    });
    assert!(findings.contains("run.mcap") && findings.contains("--exclude"), "{findings}");
    assert!(metric("rnet_recorder_lost_messages_total{domain=\"clitest\",recorder=") > 0.0);
    // An earlier loss is not a current loss.
    let end = |ran: util::CommandOutput| ran.json()["problems"].to_string();
    until("status is quiet again", || {
        !end(rnet!(env, "status", "--json")).contains("the recorder of")
    });
    recorder.signal("INT");
    let ended = recorder.wait().json_lines().pop().unwrap();
    assert!(ended["missing"].as_u64() > Some(0), "{ended}");
    assert!(!rnet!(env, "metrics").ok().contains("rnet_recorder_messages_total{"));
}

/// Users and a group that need no entry in /etc/passwd.
const ALICE: u32 = 64_001;
const BOB: u32 = 64_002;
const GROUP: u32 = 64_100;

/// `rnet` run by a user of the group, in the group's domain.
fn of_user(env: &TestEnv, user: u32, args: &[&str]) -> RunningCommand {
    let mut command = env.command();
    command.env("RNET_GROUP", GROUP.to_string()).uid(user).gid(GROUP).current_dir("/").args(args);
    RunningCommand::start(command)
}

#[test]
fn a_recorder_of_another_user_is_reported_without_its_files() {
    let line = b"NOT RUN: a_recorder_of_another_user_is_reported_without_its_files: \
        only root can start processes of other users, and they must be able to run rnet\n";
    let mut probe = TestEnv::new().command();
    let is_user = probe.uid(ALICE).gid(GROUP).current_dir("/").arg("--version").output();
    if !is_user.is_ok_and(|probe| probe.status.success()) {
        let _ = std::io::stderr().write_all(line);
        return;
    }
    let env = TestEnv::new();
    std::fs::set_permissions(&env.dir, PermissionsExt::from_mode(0o1777)).unwrap();
    let files = env.dir.join("alice");
    std::fs::create_dir(&files).unwrap();
    chown(&files, Some(ALICE), Some(GROUP)).unwrap();
    let opens = |mode| std::fs::set_permissions(&files, PermissionsExt::from_mode(mode)).unwrap();
    opens(0o700);
    let imu = rnet::Node::builder("imu").dir(&env.dir).domain(DOMAIN).group(&GROUP.to_string());
    let imu = imu.open().unwrap();
    let file = files.join("run.mcap");
    let record = ["record", "--json", "--output", file.to_str().unwrap()];
    let mut recorder = of_user(&env, ALICE, &record);
    recorder.wait_for_stdout("progress");
    let mut angles = imu.publisher::<[u8]>("/angles").open().unwrap();
    angles.send(b"0.25").unwrap();
    until("each user of the group sees what it has recorded", || {
        let text = of_user(&env, BOB, &["metrics"]).wait().ok();
        let mut lines = text.lines();
        lines.any(|line| line.starts_with("rnet_recorder_messages_total{") && line.ends_with(" 1"))
    });
    let findings = |user| {
        let found = of_user(&env, user, &["doctor", "--json"]).wait().json();
        let of_it = |one: &&Value| one["check"] == "recorder";
        let reported = found["findings"].as_array().unwrap().iter().filter(of_it);
        reported.map(|one| format!("{}: {}; ", one["level"], one["what"])).collect::<String>()
    };
    assert!(findings(ALICE).contains("run.mcap: 0 MiB so far"), "{}", findings(ALICE));
    // A folder that this user may not read, and one that it may.
    assert_eq!(findings(BOB), "");
    opens(0o755);
    assert!(findings(BOB).contains("run.mcap: 0 MiB so far"), "{}", findings(BOB));
    recorder.signal("STOP");
    std::fs::rename(&file, files.join("moved.mcap")).unwrap();
    let is_gone = |reported: &str| reported.contains("no longer exists");
    assert!(is_gone(&findings(ALICE)), "{}", findings(ALICE));
    // It may belong to a container, which sees other files.
    assert!(!is_gone(&findings(BOB)), "{}", findings(BOB));
    until("a user without access to its files sees that it is stopped", || {
        let problems = of_user(&env, BOB, &["status", "--json"]).wait().json();
        problems["problems"].to_string().contains("run.mcap) has sent no status for")
    });
    recorder.signal("CONT");
    recorder.signal("INT");
    recorder.wait_for_exit();
}
