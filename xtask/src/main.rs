//! Checks of this repository that a compiler cannot make.
//!
//! - `cargo xtask deps` checks the dependencies between crates against the map of the design, and the licences
//!   of foreign packages.
//! - `cargo xtask audit` compares foreign packages with security advisories.
//! - `cargo xtask cycles` limits import cycles between the files of a crate to three files.
//! - `cargo xtask tidy` checks the conventions of the project: sizes, links, sleeps, safety.
//! - `cargo xtask message-path` prints a hash of the message path's sources, which the report of the
//!   comparison contains.
//! - `cargo xtask api` compares the public API of `rnet` with its listing.
//! - `cargo xtask c-header` compares `rnet.h` with the exported functions of rnet-c.
//! - `cargo xtask cpp-messages` compares the C++ structs of the built-in messages with their `.proto` files.
//! - `cargo xtask lines` prints the size of the project.
//! - `cargo xtask instructions` compares the instruction counts of sending and receiving with a baseline.
//!
//! Every check is a pure function from text to findings, with a test that shows it failing on a bad sample.
//! Only this file, `api`, `audit`, `c_header`, `generated` and `instructions` read the tree and run other programs. A
//! check without input fails.
#![forbid(unsafe_code)]

mod api;
mod audit;
mod c_header;
mod claims;
mod constants;
mod cpp_messages;
mod cycles;
mod deps;
mod generated;
mod instructions;
mod languages;
mod lines;
mod manifest;
mod markdown;
mod message_path;
mod syntax;
mod tidy;
mod words;

use std::io::Write;
use std::path::Path;
use std::process::{Command, ExitCode};

/// A finding of a check: the location and the fault.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    place: String,
    text: String,
}

impl Finding {
    fn new(place: impl Into<String>, text: impl Into<String>) -> Self {
        Self { place: place.into(), text: text.into() }
    }
}

/// One file of the working tree: its path from the root, with `/`, and its bytes.
struct SourceFile {
    path: String,
    bytes: Vec<u8>,
}

impl SourceFile {
    /// The text of the file, or `None` if it is binary.
    fn text(&self) -> Option<&str> {
        if self.bytes.contains(&0) { None } else { std::str::from_utf8(&self.bytes).ok() }
    }
}

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the root");
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (task, rest) = args.split_first().map_or(("", &[][..]), |(task, rest)| (task, rest));
    if rest.is_empty() && matches!(task, "lines" | "message-path") {
        return print_page(root, task);
    }
    let outcome = match task {
        "deps" if rest.is_empty() => Some(run_deps(root)),
        "cycles" if rest.is_empty() => Some(source_files(root).and_then(|f| cycles::check(&f))),
        "tidy" if rest.is_empty() => Some(run_tidy(root)),
        "api" => api::run(root, rest),
        "audit" => audit::run(root, rest),
        "c-header" => c_header::run(root, rest),
        "cpp-messages" => cpp_messages::run(root, rest),
        "instructions" => instructions::run(root, rest),
        _ => None,
    };
    let Some(outcome) = outcome else {
        eprintln!(
            "usage: cargo xtask deps|cycles|tidy|lines|message-path|audit [DATABASE [--write]]|(api|c-header|cpp-messages) [--write]|instructions [--accept | --annotate CASE]"
        );
        return ExitCode::from(2);
    };
    match outcome {
        Ok((checked, findings)) if findings.is_empty() => {
            // The pipe may be closed, for example by `head`.
            let _ = writeln!(std::io::stdout(), "xtask {task}: {checked}: ok");
            ExitCode::SUCCESS
        }
        Ok((checked, mut findings)) => {
            findings.sort();
            findings.iter().for_each(|f| eprintln!("{}: {}", f.place, f.text));
            eprintln!("xtask {task}: {checked}: {} findings", findings.len());
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("xtask {task}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn print_page(root: &Path, task: &str) -> ExitCode {
    let page = source_files(root).and_then(|files| match task {
        "lines" => Ok(lines::table(&files)),
        _ => message_path::hash(&files).map(|hash| hash + "\n"),
    });
    match page {
        Ok(page) => {
            let _ = write!(std::io::stdout(), "{page}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("xtask {task}: {error}");
            ExitCode::FAILURE
        }
    }
}

type Outcome = Result<(String, Vec<Finding>), String>;

fn run_deps(root: &Path) -> Outcome {
    let files = source_files(root)?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let (mut graph, mut findings) = (deps::Graph::default(), Vec::new());
    // The root workspace first, then the separate workspaces (bench, fuzz).
    let nested = files.iter().filter(|f| f.path.ends_with("/Cargo.toml")).map(|f| f.path.as_str());
    for manifest in std::iter::once("Cargo.toml").chain(nested) {
        if graph.knows_manifest(manifest) {
            continue;
        }
        let metadata = output(
            Command::new(&cargo)
                .args(["metadata", "--format-version=1", "--manifest-path", manifest])
                .current_dir(root),
        )?;
        let json = serde_json::from_slice(&metadata).map_err(|e| format!("cargo metadata: {e}"))?;
        graph.add_metadata(root, &json)?;
        findings.extend(audit::licences::check(&json));
    }
    let is_decision = |f: &&SourceFile| f.path.starts_with("docs/decisions/");
    let decisions: Vec<&str> =
        files.iter().filter(is_decision).filter_map(SourceFile::text).collect();
    if graph.our_edges() == 0 {
        return Err("found no dependency between our crates, so nothing was checked".into());
    }
    findings.extend(deps::check(&graph, &decisions));
    Ok((graph.summary(), findings))
}

fn run_tidy(root: &Path) -> Outcome {
    let files = source_files(root)?;
    if files.is_empty() {
        return Err("git lists no file, so nothing was checked".into());
    }
    let exists = |path: &str| root.join(path).exists();
    let mut findings = tidy::check(&files, &exists);
    findings.extend(claims::check(&files));
    findings.extend(languages::check(&files));
    findings.extend(words::check(&files));
    findings.extend(constants::check(&files));
    findings.extend(message_path::check(&message_path::hash(&files)?, &files));
    Ok((format!("{} files", files.len()), findings))
}

/// The files that git tracks or would track, as in the working tree.
fn source_files(root: &Path) -> Result<Vec<SourceFile>, String> {
    // `safe.directory`: in CI, the checkout may belong to another user.
    let listing = output(
        Command::new("git")
            .args(["-c", "safe.directory=*", "ls-files", "-z"])
            .args(["--cached", "--others", "--exclude-standard"])
            .current_dir(root),
    )?;
    let listing = String::from_utf8(listing).map_err(|e| format!("git ls-files: {e}"))?;
    let mut paths: Vec<&str> = listing.split_terminator('\0').collect();
    paths.sort_unstable();
    paths.dedup();
    let mut files = Vec::new();
    for path in paths {
        // Its target is checked at its own path.
        if root.join(path).is_symlink() {
            continue;
        }
        match std::fs::read(root.join(path)) {
            Ok(bytes) => files.push(SourceFile { path: path.into(), bytes }),
            // Removed from the working tree but not yet from the index.
            Err(_) if !root.join(path).is_file() => {}
            Err(error) => return Err(format!("{path}: {error}")),
        }
    }
    Ok(files)
}

fn output(command: &mut Command) -> Result<Vec<u8>, String> {
    let name = format!("{command:?}");
    let result = command.output().map_err(|e| format!("{name}: {e}"))?;
    if result.status.success() {
        Ok(result.stdout)
    } else {
        Err(format!("{name}: {}", String::from_utf8_lossy(&result.stderr).trim()))
    }
}
