//! `rnet blackbox`, as people and scripts use it.

use crate::util;

use serde_json::Value;
use util::TestEnv;

#[test]
fn black_box_can_be_run_triggered_and_listed() {
    let env = TestEnv::new();
    let folder = env.dir.join("files").to_string_lossy().into_owned();
    let node = env.node("/n");
    let mut raw = node.publisher::<[u8]>("/raw").open().unwrap();
    let why = env.run(&["blackbox", "trigger", "smoke"]).fails(1);
    assert!(why.contains("no black box"), "{why}");
    let why = env.run(&["blackbox", "run", "-t", "/battery < 21"]).fails(2);
    assert!(why.contains("does not name a field"), "{why}");
    env.run(&["blackbox", "run", "--memory", "1M"]).fails(2);
    let run = ["blackbox", "run", "-o", &folder, "--after", "0.1", "-t", "death"];
    let mut running = env.spawn(&run);
    running.wait_for_stderr("keeps up to");
    raw.send(b"raw").unwrap();
    let why = env.run(&run).fails(2);
    assert!(why.contains("already runs"), "{why}");
    env.run(&["blackbox", "trigger", "smoke"]).ok();
    running.wait_for_stderr("is written");
    let status = env.run(&["blackbox", "status", "--json"]).json();
    assert_eq!((&status["files"], &status["fired"]), (&1.into(), &1.into()));
    assert_eq!(status["triggers"], serde_json::json!(["death"]));
    let text = env.run(&["blackbox", "status"]).ok();
    assert!(text.contains("call: smoke") && text.contains("at most "), "{text}");
    running.signal("INT");
    assert_eq!(running.wait().code, Some(130));
    let list: Value = env.run(&["blackbox", "list", &folder, "--json"]).json();
    assert_eq!((list.as_array().unwrap().len(), &list[0]["fired"][0]["why"]), (1, &"smoke".into()));
    let text = env.run(&["blackbox", "list", &folder]).ok();
    assert!(text.contains("call: smoke"), "{text}");
    let again = env.run(&["blackbox", "recover", &folder]);
    assert_eq!((again.code, &*again.stdout), (Some(0), ""));
}

#[test]
fn a_box_that_cannot_write_is_reported_by_every_tool_and_its_exit_code() {
    let env = TestEnv::new();
    let path = env.dir.join("files");
    let folder = path.to_string_lossy().into_owned();
    let _node = env.node("/n");
    let why = env.run(&["blackbox", "list", &folder]).fails(1);
    assert!(why.contains("cannot read") && why.contains(&folder), "{why}");
    let mut running = env.spawn(&["blackbox", "run", "-o", &folder, "--after", "0.1"]);
    running.wait_for_stderr("keeps up to");
    env.run(&["blackbox", "status"]).ok();
    std::fs::remove_dir(&path).unwrap();
    std::fs::write(&path, b"").unwrap();
    running.wait_for_stderr("the black box cannot write its folder: ");
    let why = env.run(&["blackbox", "status"]).fails(1);
    assert!(why.contains("the black box cannot write its folder: "), "{why}");
    let status = env.run(&["blackbox", "status", "--json"]);
    assert!(status.code == Some(1) && status.stdout.contains("\"folder\": \""), "{status:?}");
    util::processes::until("doctor names it", || {
        env.run(&["doctor"]).stdout.contains("cannot write its folder: ")
    });
    running.signal("INT");
    let ran = running.wait();
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("could not write its folder: "), "{}", ran.stderr);
}

#[test]
fn control_characters_in_a_reason_are_escaped() {
    let env = TestEnv::new();
    let folder = env.dir.join("files").to_string_lossy().into_owned();
    let _node = env.node("/n");
    let mut running = env.spawn(&["blackbox", "run", "-o", &folder, "--after", "0.1"]);
    running.wait_for_stderr("keeps up to");
    env.run(&["blackbox", "trigger", "smoke\x1b[2J\r\nfire"]).ok();
    running.wait_for_stderr("is written");
    let status = env.run(&["blackbox", "status"]).ok();
    running.signal("INT");
    let said = running.wait().stderr;
    let list = env.run(&["blackbox", "list", &folder]).ok();
    for shown in [said, status, list] {
        assert!(!shown.contains(['\x1b', '\r']) && shown.contains("fire"), "{shown:?}");
    }
}

#[test]
fn recording_of_a_killed_black_box_is_recovered() {
    let env = TestEnv::new();
    let folder = env.dir.join("files").to_string_lossy().into_owned();
    let node = env.node("/n");
    let mut raw = node.publisher::<[u8]>("/raw").open().unwrap();
    let mut running = env.spawn(&["blackbox", "run", "-o", &folder, "--after", "500"]);
    running.wait_for_stderr("keeps up to");
    raw.send(b"raw").unwrap();
    env.run(&["blackbox", "trigger", "smoke"]).ok();
    util::processes::until("the pending window exists", || {
        let dirs = std::fs::read_dir(&folder).unwrap().flatten();
        dirs.into_iter().any(|dir| dir.path().join("pending.json").exists())
    });
    running.signal("KILL");
    running.wait();
    let files = env.run(&["blackbox", "recover", &folder, "--json"]).json();
    assert_eq!(files.as_array().unwrap().len(), 1);
    let list = env.run(&["blackbox", "list", &folder, "--json"]).json();
    assert_eq!(list[0]["fired"][0]["why"], "smoke");
    assert!(list[0]["incomplete"].as_str().unwrap().contains("exited early"), "{list}");
    let list = env.run(&["blackbox", "list", &folder]);
    assert!(list.stderr.contains("is incomplete: its black box exited early"), "{list:?}");
    list.ok();
    let info = env.run(&["bag", "info", files[0].as_str().unwrap()]).ok();
    assert!(info.contains("\nTriggers:    call: smoke, at 20"), "{info}");
    assert!(info.contains("\nIncomplete:  its black box exited early"), "{info}");
}

#[test]
fn a_file_that_cannot_be_read_costs_only_its_own_row() {
    let env = TestEnv::new();
    let folder = env.dir.join("files").to_string_lossy().into_owned();
    let run = ["blackbox", "run", "-o", &folder, "--after", "0.1"];
    let mut running = env.spawn(&run);
    running.wait_for_stderr("keeps up to");
    env.run(&["blackbox", "trigger", "smoke"]).ok();
    running.wait_for_stderr("is written");
    running.signal("INT");
    running.wait();
    let files = std::fs::read_dir(&folder).unwrap().flatten().map(|entry| entry.path());
    let whole =
        files.into_iter().find(|path| path.extension().is_some_and(|e| e == "mcap")).unwrap();
    let name = whole.file_name().unwrap().to_str().unwrap();
    let bytes = std::fs::read(&whole).unwrap();
    let beside = |name: &str, bytes: &[u8]| {
        let path = std::path::Path::new(&folder).join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    // A file that is not a recording before the others and after them, and a truncated one.
    let start = name.rsplit_once('-').unwrap().0.rsplit_once('-').unwrap().0;
    let first = beside(&format!("{start}-1000000000001-loss.mcap"), b"");
    let cut = beside(&format!("{start}-1000000000002-loss.mcap"), &bytes[..bytes.len() - 20]);
    let last = beside(&format!("{start}-9999999999999-loss.mcap"), b"not a recording");
    let listed = env.run(&["blackbox", "list", &folder]);
    assert_eq!(listed.code, Some(1), "{listed:?}");
    assert!(listed.stdout.contains("call: smoke"), "{listed:?}");
    for (path, why) in
        [(&first, "not an MCAP file"), (&last, "not an MCAP file"), (&cut, "the file ends")]
    {
        let (said, path) = (&listed.stderr, path.to_str().unwrap());
        let lines: Vec<&str> = said.lines().filter(|line| line.contains(path)).collect();
        assert!(lines.iter().any(|line| line.contains(why)), "{path} {why}: {said}");
    }
    assert!(listed.stderr.contains("3 files"), "{listed:?}");
    let listed = env.run(&["blackbox", "list", &folder, "--json"]);
    assert_eq!(listed.code, Some(1), "{listed:?}");
    let documents: Value = serde_json::from_str(&listed.stdout).unwrap();
    let errors = documents.as_array().unwrap().iter().map(|of| of["error"].is_string());
    assert_eq!(errors.collect::<Vec<_>>(), [true, false, false, true], "{documents}");
}
