//! `rnet blackbox`, as people and scripts use it.

use crate::util;

use serde_json::Value;
use util::Place;

#[test]
fn a_box_is_run_asked_and_listed() {
    let place = Place::new();
    let folder = place.dir.join("files").to_string_lossy().into_owned();
    let node = place.node("/n");
    let mut raw = node.publisher::<[u8]>("/raw").unwrap();
    let why = place.run(&["blackbox", "trigger", "smoke"]).fails(1);
    assert!(why.contains("no black box"), "{why}");
    let why = place.run(&["blackbox", "run", "-t", "/battery < 21"]).fails(2);
    assert!(why.contains("does not name a field"), "{why}");
    place.run(&["blackbox", "run", "--memory", "1M"]).fails(2);
    let run = ["blackbox", "run", "-o", &folder, "--after", "0.1", "-t", "death"];
    let mut running = place.spawn(&run);
    running.until_stderr("keeps up to");
    raw.send(b"raw").unwrap();
    let why = place.run(&run).fails(2);
    assert!(why.contains("already runs"), "{why}");
    place.run(&["blackbox", "trigger", "smoke"]).ok();
    running.until_stderr("is written");
    let status = place.run(&["blackbox", "status", "--json"]).json();
    assert_eq!((&status["files"], &status["fired"]), (&1.into(), &1.into()));
    assert_eq!(status["triggers"], serde_json::json!(["death"]));
    let text = place.run(&["blackbox", "status"]).ok();
    assert!(text.contains("call: smoke") && text.contains("at most "), "{text}");
    running.signal("INT");
    assert_eq!(running.wait().code, Some(130));
    let list: Value = place.run(&["blackbox", "list", &folder, "--json"]).json();
    assert_eq!((list.as_array().unwrap().len(), &list[0]["fired"][0]["why"]), (1, &"smoke".into()));
    let text = place.run(&["blackbox", "list", &folder]).ok();
    assert!(text.contains("call: smoke"), "{text}");
    let again = place.run(&["blackbox", "recover", &folder]);
    assert_eq!((again.code, &*again.stdout), (Some(0), ""));
}

#[test]
fn a_box_that_cannot_write_is_seen_by_all_who_ask_and_by_its_exit() {
    let place = Place::new();
    let path = place.dir.join("files");
    let folder = path.to_string_lossy().into_owned();
    let _node = place.node("/n");
    let why = place.run(&["blackbox", "list", &folder]).fails(1);
    assert!(why.contains("cannot read") && why.contains(&folder), "{why}");
    let mut running = place.spawn(&["blackbox", "run", "-o", &folder, "--after", "0.1"]);
    running.until_stderr("keeps up to");
    place.run(&["blackbox", "status"]).ok();
    std::fs::remove_dir(&path).unwrap();
    std::fs::write(&path, b"").unwrap();
    running.until_stderr("the black box cannot write its folder: ");
    let why = place.run(&["blackbox", "status"]).fails(1);
    assert!(why.contains("the black box cannot write its folder: "), "{why}");
    let status = place.run(&["blackbox", "status", "--json"]);
    assert!(status.code == Some(1) && status.stdout.contains("\"folder\": \""), "{status:?}");
    util::processes::until("doctor names it", || {
        place.run(&["doctor"]).stdout.contains("cannot write its folder: ")
    });
    running.signal("INT");
    let ran = running.wait();
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("could not write its folder: "), "{}", ran.stderr);
}

#[test]
fn a_reason_that_is_no_text_for_a_terminal_is_shown_as_text() {
    let place = Place::new();
    let folder = place.dir.join("files").to_string_lossy().into_owned();
    let _node = place.node("/n");
    let mut running = place.spawn(&["blackbox", "run", "-o", &folder, "--after", "0.1"]);
    running.until_stderr("keeps up to");
    place.run(&["blackbox", "trigger", "smoke\x1b[2J\r\nfire"]).ok();
    running.until_stderr("is written");
    let status = place.run(&["blackbox", "status"]).ok();
    running.signal("INT");
    let said = running.wait().stderr;
    let list = place.run(&["blackbox", "list", &folder]).ok();
    for shown in [said, status, list] {
        assert!(!shown.contains(['\x1b', '\r']) && shown.contains("fire"), "{shown:?}");
    }
}

#[test]
fn what_a_killed_box_has_left_is_recovered() {
    let place = Place::new();
    let folder = place.dir.join("files").to_string_lossy().into_owned();
    let node = place.node("/n");
    let mut raw = node.publisher::<[u8]>("/raw").unwrap();
    let mut running = place.spawn(&["blackbox", "run", "-o", &folder, "--after", "500"]);
    running.until_stderr("keeps up to");
    raw.send(b"raw").unwrap();
    place.run(&["blackbox", "trigger", "smoke"]).ok();
    util::processes::until("the window stands", || {
        let dirs = std::fs::read_dir(&folder).unwrap().flatten();
        dirs.into_iter().any(|dir| dir.path().join("pending.json").exists())
    });
    running.signal("KILL");
    running.wait();
    let files = place.run(&["blackbox", "recover", &folder, "--json"]).json();
    assert_eq!(files.as_array().unwrap().len(), 1);
    let list = place.run(&["blackbox", "list", &folder, "--json"]).json();
    assert_eq!(list[0]["fired"][0]["why"], "smoke");
    assert!(list[0]["incomplete"].as_str().unwrap().contains("exited early"), "{list}");
    let list = place.run(&["blackbox", "list", &folder]);
    assert!(list.stderr.contains("is incomplete: its black box exited early"), "{list:?}");
    list.ok();
    let info = place.run(&["bag", "info", files[0].as_str().unwrap()]).ok();
    assert!(info.contains("\nTriggers:    call: smoke, at 20"), "{info}");
    assert!(info.contains("\nIncomplete:  its black box exited early"), "{info}");
}

#[test]
fn a_file_that_cannot_be_read_costs_only_its_own_row() {
    let place = Place::new();
    let folder = place.dir.join("files").to_string_lossy().into_owned();
    let run = ["blackbox", "run", "-o", &folder, "--after", "0.1"];
    let mut running = place.spawn(&run);
    running.until_stderr("keeps up to");
    place.run(&["blackbox", "trigger", "smoke"]).ok();
    running.until_stderr("is written");
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
    // One that is nothing of the kind, before the others and behind them, and one that was cut off.
    let start = name.rsplit_once('-').unwrap().0.rsplit_once('-').unwrap().0;
    let first = beside(&format!("{start}-1000000000001-loss.mcap"), b"");
    let cut = beside(&format!("{start}-1000000000002-loss.mcap"), &bytes[..bytes.len() - 20]);
    let last = beside(&format!("{start}-9999999999999-loss.mcap"), b"not a recording");
    let listed = place.run(&["blackbox", "list", &folder]);
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
    let listed = place.run(&["blackbox", "list", &folder, "--json"]);
    assert_eq!(listed.code, Some(1), "{listed:?}");
    let documents: Value = serde_json::from_str(&listed.stdout).unwrap();
    let errors = documents.as_array().unwrap().iter().map(|of| of["error"].is_string());
    assert_eq!(errors.collect::<Vec<_>>(), [true, false, false, true], "{documents}");
}
