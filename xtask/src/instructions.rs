//! Compares the number of instructions per message with a baseline: `cargo xtask instructions`.
//!
//! On a shared machine, measured time drifts by more than the effect of a code change; the number of
//! instructions does not drift. Callgrind counts the instructions of `crates/rnet/benches/instructions.rs`,
//! in the release build, for a number of rounds and for twice that number: the difference is the steady
//! state. The baseline is `instructions.toml` in the same directory. A case that grew by more than 3 % is a
//! finding, a call by more than 10 %.
//!
//! Another compiler or another clock source changes the counts of the same source. They are then shown but
//! not judged, and the summary of `make test` shows `NOT RUN`.

mod baseline;
mod callgrind;

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{Finding, Outcome, output};
use baseline::{Baseline, Conditions, PerMessage, Verdict};
use callgrind::Profile;

const BASELINE: &str = "crates/rnet/benches/instructions.toml";
/// The functions whose instructions are counted, including callees: one of the program, and the work of the
/// two sides of a call, each in its thread.
const COUNTED: &[&str] = &[
    "counted_by_callgrind",
    "rnet_call::open_calls::OpenCalls::start_single*",
    "rnet_call::server_core::ServerCore::take_next_request*",
    "rnet_call::server_core::ServerCore::run_call*",
    "rnet_call::client_core::ClientCore::take_single_reply*",
    "rnet_call::open_calls::OpenCalls::finish*",
];
/// Rounds of the first run; the second has twice as many. The first run fills a log more than once, so that
/// the difference contains no lap in which the log was still empty.
const ROUNDS: u64 = 50;
const CLOCK_SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
/// Number of source lines that `--annotate` shows.
const ANNOTATED_LINES: usize = 60;
/// `scripts/step.sh` copies the text after this prefix into the summary.
const NOTE: &str = "step-note: ";

/// The task on the command line.
enum Task<'a> {
    Check,
    Accept,
    Annotate(&'a str),
}

/// Runs the command; `None` for invalid arguments.
pub fn run(root: &Path, args: &[String]) -> Option<Outcome> {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let task = match args[..] {
        [] => Task::Check,
        ["--accept"] => Task::Accept,
        ["--annotate", case] => Task::Annotate(case),
        _ => return None,
    };
    Some(perform(root, &task))
}

fn perform(root: &Path, task: &Task) -> Outcome {
    // Checked before the build, which would otherwise be useless.
    valgrind().arg("--version").output().map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            "valgrind is required but not installed: apt-get install valgrind".into()
        }
        _ => format!("valgrind --version: {error}"),
    })?;
    let was = read_baseline(root);
    if let (Task::Check, Err(error)) = (task, &was) {
        return Err(format!("{BASELINE}: {error}; `cargo xtask instructions --accept` writes it"));
    }
    let program = Program::build(root)?;
    let cases = program.cases()?;
    if let Task::Annotate(case) = task {
        if !cases.iter().any(|known| known == case) {
            return Err(format!("unknown case {case}; known cases: {}", cases.join(", ")));
        }
        return annotate(root, &program, case);
    }
    let mut counts = Vec::new();
    for case in cases {
        let (profile, messages) = program.steady_state(&case)?;
        counts.push((case, PerMessage::of(profile.total, messages)));
    }
    let is = Baseline { conditions: conditions(root)?, counts };
    // An unreadable baseline was reported, or will be replaced.
    let was = was.unwrap_or_default();
    let comparison = baseline::compare(&was, &is);
    print!("{}", comparison.table);
    let mut summary = format!("{} cases, {}", is.counts.len(), is.conditions);
    if let Task::Accept = task {
        std::fs::write(root.join(BASELINE), is.render()).map_err(|e| format!("{BASELINE}: {e}"))?;
        println!("wrote {BASELINE}: explain increased counts in the commit message");
        return Ok((summary, vec![]));
    }
    if !was.conditions.compares_with(&is.conditions) {
        summary.push_str(", not compared");
    }
    Ok((summary, report(&was, &is, comparison.verdicts)))
}

/// Reads the baseline.
fn read_baseline(root: &Path) -> Result<Baseline, String> {
    let text = std::fs::read_to_string(root.join(BASELINE)).map_err(|e| e.to_string())?;
    baseline::parse(&text)
}

/// Converts verdicts to findings, and prints notes that are not failures.
fn report(was: &Baseline, is: &Baseline, verdicts: Vec<(String, Verdict)>) -> Vec<Finding> {
    let accept = "`cargo xtask instructions --accept`";
    if was.conditions.libc != is.conditions.libc {
        println!("the baseline was measured with the memcpy of {}", was.conditions.libc);
    }
    let mut findings = Vec::new();
    let mut cheaper = Vec::new();
    let judged = was.conditions.compares_with(&is.conditions);
    for (case, verdict) in verdicts {
        let text = match verdict {
            Verdict::Grew(change) if judged => format!(
                "{change} instructions per message, more than {} %: make it cheaper, or {accept} \
                 and give the reason in the commit (`cargo xtask instructions --annotate {case}` \
                 shows where they are)",
                baseline::tolerance_percent(&case)
            ),
            Verdict::Shrank(change) if judged => {
                cheaper.push(format!("{case} {change}"));
                continue;
            }
            Verdict::New => format!("the baseline does not contain this case: {accept}"),
            Verdict::Gone => format!("{BASELINE} contains a removed case: {accept}"),
            Verdict::Grew(_) | Verdict::Shrank(_) | Verdict::Same => continue,
        };
        findings.push(Finding::new(case, text));
    }
    if !judged {
        let (was, is) = (&was.conditions, &is.conditions);
        println!("NOT RUN: instructions: the baseline is for {was}, but this is {is}: {accept}");
    } else if !cheaper.is_empty() {
        println!("{NOTE}cheaper: {}; keep the gain with {accept}", cheaper.join(", "));
    }
    findings
}

/// Shows where a case executes its instructions: per message, by function and by line.
fn annotate(root: &Path, program: &Program, case: &str) -> Outcome {
    let (profile, messages) = program.steady_state(case)?;
    let per_message = |count: u64| PerMessage::of(count, messages).to_string();
    let mut page = format!("{case}: {} instructions per message\n\n", per_message(profile.total));
    page.push_str("by function, without callees:\n");
    for (function, count) in callgrind::ranked(&profile.by_function) {
        // Smaller counts come from events that occur once per lap or round.
        if PerMessage::of(count, messages) != PerMessage::default() {
            page.push_str(&format!("{:>10}  {function}\n", per_message(count)));
        }
    }
    page.push_str(&format!("\nby line, the first {ANNOTATED_LINES}:\n"));
    let lines = callgrind::ranked(&profile.by_line);
    for ((file, line), count) in lines.into_iter().take(ANNOTATED_LINES) {
        let file = file.strip_prefix(&format!("{}/", root.display())).unwrap_or(file);
        // Sources of the standard library and of libc may not be installed.
        let text = std::fs::read_to_string(root.join(file)).unwrap_or_default();
        let text = line.checked_sub(1).and_then(|at| text.lines().nth(at)).unwrap_or_default();
        let (count, file) = (per_message(count), shortened(file));
        page.push_str(&format!("{count:>10}  {file}:{line}  {}\n", text.trim()));
    }
    // `| head` may close the pipe.
    let _ = std::io::stdout().write_all(page.as_bytes());
    Ok((format!("{case}, {messages} messages"), vec![]))
}

/// The end of a foreign file's path; its start depends on the build machine.
fn shortened(path: &str) -> &str {
    let start = ["/library/", "/registry/src/"].iter().find_map(|part| path.find(part));
    start.map_or(path, |at| &path[at + 1..])
}

/// The built program, and the location of its profiles.
struct Program {
    executable: PathBuf,
    profiles: PathBuf,
}

impl Program {
    fn build(root: &Path) -> Result<Program, String> {
        let profiles = root.join("target/instructions");
        std::fs::create_dir_all(&profiles).map_err(|e| format!("{}: {e}", profiles.display()))?;
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let built = Command::new(cargo)
            .args(["build", "--release", "--quiet", "--workspace", "--bench=instructions"])
            .arg("--message-format=json-render-diagnostics")
            // The counts are those of a plain `cargo build --release`, without tuning flags.
            .env_remove("RUSTFLAGS")
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .current_dir(root)
            .stderr(Stdio::inherit())
            .output()
            .map_err(|e| format!("cargo build: {e}"))?;
        if !built.status.success() {
            return Err("crates/rnet/benches/instructions.rs does not build".into());
        }
        let messages = String::from_utf8_lossy(&built.stdout);
        let executable = messages.lines().find_map(|line| {
            let message: serde_json::Value = serde_json::from_str(line).ok()?;
            let ours = message["target"]["name"] == "instructions";
            ours.then(|| message["executable"].as_str().map(PathBuf::from)).flatten()
        });
        let executable = executable.ok_or("cargo build reports no executable `instructions`")?;
        Ok(Program { executable, profiles })
    }

    /// The names of the cases.
    fn cases(&self) -> Result<Vec<String>, String> {
        let names = output(Command::new(&self.executable).arg("--list"))?;
        let names = String::from_utf8_lossy(&names);
        let names: Vec<String> = names.lines().map(str::to_owned).collect();
        if names.is_empty() { Err("the program has no cases".into()) } else { Ok(names) }
    }

    /// The additional cost of twice the rounds, and the number of messages in that difference.
    fn steady_state(&self, case: &str) -> Result<(Profile, u64), String> {
        let (short, fewer) = self.count(case, ROUNDS)?;
        let (long, more) = self.count(case, 2 * ROUNDS)?;
        match (long.minus(&short), more.checked_sub(fewer)) {
            (Some(profile), Some(messages)) if messages > 0 => Ok((profile, messages)),
            _ => Err(format!("{case}: twice the rounds did not take more instructions")),
        }
    }

    fn count(&self, case: &str, rounds: u64) -> Result<(Profile, u64), String> {
        let file = self.profiles.join(format!("{case}-{rounds}.out"));
        let printed = output(
            valgrind()
                .args(["--tool=callgrind", "--quiet"])
                .arg(format!("--callgrind-out-file={}", file.display()))
                .args(COUNTED.iter().map(|function| format!("--toggle-collect={function}")))
                // Larger output, but simpler to parse.
                .args(["--compress-strings=no", "--compress-pos=no"])
                .arg(&self.executable)
                .args([case, &rounds.to_string()]),
        )?;
        let printed = String::from_utf8_lossy(&printed);
        let messages = printed
            .trim()
            .parse()
            .map_err(|_| format!("{case} printed {printed:?}, which is not a number"))?;
        let text =
            std::fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        let profile = callgrind::parse(&text).map_err(|e| format!("{}: {e}", file.display()))?;
        Ok((profile, messages))
    }
}

fn valgrind() -> Command {
    Command::new("valgrind")
}

/// The conditions besides the source that determine the counts.
fn conditions(root: &Path) -> Result<Conditions, String> {
    let rustc = output(Command::new("rustc").arg("-vV").current_dir(root))?;
    let rustc = String::from_utf8_lossy(&rustc);
    let field = |name: &str| {
        let value = rustc.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        value.map(str::to_owned).ok_or(format!("rustc -vV does not print {name}"))
    };
    let clock = std::fs::read_to_string(CLOCK_SOURCE);
    let libc = output(Command::new("getconf").arg("GNU_LIBC_VERSION"));
    let libc = libc.map(|text| String::from_utf8_lossy(&text).trim().to_owned());
    Ok(Conditions {
        rustc: field("release:")?,
        target: field("host:")?,
        clock: clock.map_or("unknown".into(), |name| name.trim().to_owned()),
        libc: libc.unwrap_or_else(|_| "unknown".into()),
    })
}
