//! `scripts/step.sh`, run in a folder of its own: what it counts, what it waives, and when it fails.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A folder with the script and nothing else, removed at the end.
struct Tree(PathBuf);

/// How a step ended, and what it printed.
struct Ended {
    code: Option<i32>,
    text: String,
}

impl Tree {
    fn new(name: &str) -> Tree {
        let root = std::env::temp_dir().join(format!("rnet-step-{}-{name}", std::process::id()));
        fs::create_dir_all(root.join("scripts")).expect("a folder for the script");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/step.sh");
        fs::copy(script, root.join("scripts/step.sh")).expect("the script is there");
        Tree(root)
    }

    /// Writes the list of tests that need not run.
    fn waive(self, list: &str) -> Tree {
        fs::create_dir_all(self.0.join(".ci")).expect("a folder for the list");
        fs::write(self.0.join(".ci/not-run.txt"), list).expect("the list is written");
        self
    }

    /// Runs a step called `tests`, as CI does or as people do, that prints `output`.
    fn step(&self, in_ci: bool, output: &str) -> Ended {
        self.run(in_ci, &["--tests", "tests", "printf", "%s", output])
    }

    fn run(&self, in_ci: bool, args: &[&str]) -> Ended {
        // Not the copy itself: while another test's child has it open for writing, the kernel does not run it.
        let mut command = Command::new("bash");
        command.arg(self.0.join("scripts/step.sh")).args(args).env_remove("NOT_RUN_FAILS");
        if in_ci {
            command.env("NOT_RUN_FAILS", "1");
        }
        let output = command.output().expect("bash is there");
        let text = String::from_utf8(output.stdout).expect("it prints text");
        Ended { code: output.status.code(), text }
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What cargo's harness prints of a test that could not run; the line may begin with another test's.
const NOT_RUN: &str = "test a::b ... NOT RUN: a::b: no mounts here\nok\n2 passed\n";
/// What pytest prints of one.
const SKIPPED: &str = "SKIPPED t/test_x.py::test_y[a b] - Skipped: why: because\n2 passed\n";
const LIST: &str =
    "# step  test: reason\ntests   a::b: CI has no mounts\nother   c: not of this step\n";

#[test]
fn a_step_says_how_many_tests_passed_and_what_it_cost() {
    let ended = Tree::new("counted").step(true, "2 passed\n3 passed\n");
    assert_eq!(ended.code, Some(0));
    assert!(ended.text.contains("s CPU  5 tests passed"), "{}", ended.text);
}

#[test]
fn a_step_for_which_no_time_is_left_does_not_begin_and_is_told() {
    let tree = Tree::new("time");
    let run = |until: &str| {
        let mut command = Command::new("bash");
        command.arg(tree.0.join("scripts/step.sh")).args(["step", "echo", "began"]);
        let output = command.env("STEPS_UNTIL_S", until).output().expect("bash is there");
        String::from_utf8(output.stdout).expect("it prints text")
    };
    let late = run("1");
    assert!(late.contains("NOT RUN: the time") && !late.contains("began"), "{late}");
    assert!(run("99999999999").contains("began"));
    let summary = tree.run(false, &["--summary"]);
    assert!(summary.text.contains("not run step"), "{}", summary.text);
}

#[test]
fn a_step_that_is_running_when_the_time_is_over_is_ended_and_told() {
    let tree = Tree::new("cut");
    let run = |says: &str| {
        let until = SystemTime::now() + Duration::from_secs(2);
        let until = until.duration_since(UNIX_EPOCH).expect("it is past 1970").as_secs();
        let mut command = Command::new("bash");
        command.arg(tree.0.join("scripts/step.sh")).args(["--tests", "step", "sh", "-c"]);
        command.arg(format!("echo {says}; sleep 600"));
        command.env("STEPS_UNTIL_S", until.to_string()).env("STEP_NEEDS_S", "0");
        let output = command.output().expect("bash is there");
        (output.status.code(), String::from_utf8(output.stdout).expect("it prints text"))
    };
    let (code, text) = run("begun");
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("cut") && text.contains("NOT RUN whole"), "{text}");
    let (code, text) = run("test a ... FAILED");
    assert_eq!(code, Some(124), "{text}");
}

#[test]
fn a_step_that_ran_no_test_fails() {
    let ended = Tree::new("none").step(false, "0 passed\n");
    assert_eq!(ended.code, Some(1));
    assert!(ended.text.contains("it ran no test"), "{}", ended.text);
}

#[test]
fn what_did_not_run_is_named_and_fails_in_ci() {
    let tree = Tree::new("not-run");
    for (output, test) in
        [(NOT_RUN, "a::b: no mounts"), (SKIPPED, "t/test_x.py::test_y[a b]: why: because")]
    {
        for (in_ci, code) in [(false, 0), (true, 1)] {
            let ended = tree.step(in_ci, output);
            assert_eq!(ended.code, Some(code), "{}", ended.text);
            assert!(ended.text.contains(&format!("NOT RUN: {test}")), "{}", ended.text);
        }
    }
    // What is no step of tests may leave something out as well.
    let ended = tree.run(true, &["tests", "echo", "NOT RUN: sanitizer: no runtime"]);
    assert_eq!(ended.code, Some(1), "{}", ended.text);
}

#[test]
fn the_list_waives_by_step_and_name() {
    let tree = Tree::new("waived").waive(LIST);
    let ended = tree.step(true, NOT_RUN);
    assert_eq!(ended.code, Some(0), "{}", ended.text);
    assert!(ended.text.contains("NOT RUN, waived: a::b"), "{}", ended.text);
    assert!(!ended.text.contains("yet it ran"), "{}", ended.text);
    // Another test of the step, and a name that the waived one only begins.
    for other in ["c", "a::b::c", "x_a::b"] {
        let ended = tree.step(true, &format!("{NOT_RUN}NOT RUN: {other}: no\n"));
        assert_eq!(ended.code, Some(1), "{other}: {}", ended.text);
    }
    let pytest = tree.waive("tests t/test_x.py::test_y[a b]: CI is root\n");
    let ended = pytest.step(true, SKIPPED);
    assert_eq!(ended.code, Some(0), "{}", ended.text);
}

#[test]
fn a_waiver_whose_test_ran_is_reported() {
    let ended = Tree::new("stale").waive(LIST).step(true, "2 passed\n");
    assert_eq!(ended.code, Some(0), "{}", ended.text);
    assert!(ended.text.contains("and yet it ran: a::b"), "{}", ended.text);
    assert!(!ended.text.contains("yet it ran: c"), "{}", ended.text);
}

#[test]
fn a_waiver_without_a_reason_waives_nothing() {
    let ended = Tree::new("bare").waive("tests a::b\ntests a::b:\n").step(true, NOT_RUN);
    assert_eq!(ended.code, Some(1), "{}", ended.text);
}
