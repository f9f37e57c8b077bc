//! `scripts/step.sh`, run in a folder of its own: what it counts, what it waives, and when it fails.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A folder with the script and nothing else, removed at the end.
struct Tree(PathBuf);

/// How a step ended, and what it printed.
struct StepOutcome {
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
    fn step(&self, in_ci: bool, output: &str) -> StepOutcome {
        self.run(in_ci, &["--tests", "tests", "printf", "%s", output])
    }

    fn run(&self, in_ci: bool, args: &[&str]) -> StepOutcome {
        // Not the copy itself: while another test's child has it open for writing, the kernel does not run it.
        let mut command = Command::new("bash");
        command.arg(self.0.join("scripts/step.sh")).args(args).env_remove("NOT_RUN_FAILS");
        if in_ci {
            command.env("NOT_RUN_FAILS", "1");
        }
        let output = command.output().expect("bash is there");
        let text = String::from_utf8(output.stdout).expect("it prints text");
        StepOutcome { code: output.status.code(), text }
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
fn a_step_has_a_limit_only_where_one_is_set() {
    let step = |limit: Option<&str>| {
        let tree = Tree::new("limit");
        let mut command = Command::new("bash");
        command.arg(tree.0.join("scripts/step.sh")).args(["a", "sleep", "0.2"]);
        command.env_remove("STEP_LIMIT_S");
        command.envs(limit.map(|limit| ("STEP_LIMIT_S", limit)));
        let output = command.output().expect("bash is there");
        (output.status.success(), String::from_utf8(output.stdout).expect("UTF-8"))
    };
    assert!(step(None).0);
    let (ok, output) = step(Some("0.01"));
    assert!(!ok && output.contains("killed after"), "{output}");
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
