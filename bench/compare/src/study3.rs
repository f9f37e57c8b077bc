//! Study 3 is a criterion benchmark of its own, `bench/study3`; here it is run and its figures read.

use bench_harness::{Error, Result};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Its name among the workloads.
pub const NAME: &str = "study3";
/// The most seconds that building and running it may take.
const LIMIT_S: &str = "900";

/// Its heading.
pub const TITLE: &str = "Study 3: criterion's Pub-Sub";

/// Runs the benchmark.
///
/// # Errors
/// If it does not complete, or its figures cannot be read.
pub fn run(bench: &Path, quick: bool) -> Result<Value> {
    let out = bench.join("target/study3/delivered.json");
    // Otherwise figures of an earlier run would count as those of this one.
    let _ = std::fs::remove_file(&out);
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", LIMIT_S, "cargo"]);
    command.current_dir(bench).env("STUDY3_OUT", &out);
    // The whole workspace, as `make build-bench` does: one package alone would build all that it
    // uses once more, with fewer features.
    command.args(["bench", "--quiet", "--workspace", "--bench", "pub_sub", "--"]);
    if quick {
        command.arg("--quick");
    }
    // The long output of criterion and cargo is shown only after an error.
    let output = command.output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let end: Vec<&str> = said.lines().rev().take(5).collect();
        let end: Vec<&str> = end.into_iter().rev().collect();
        return Err(Error::new(format!("ended with {}: {}", output.status, end.join(" | "))));
    }
    let named = |e: &dyn std::fmt::Display| Error::new(format!("{}: {e}", out.display()));
    let text = std::fs::read_to_string(&out).map_err(|e| named(&e))?;
    serde_json::from_str(&text).map_err(|e| named(&e))
}
