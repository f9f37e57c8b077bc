//! `rnet rerun`: runs a node again on its recorded inputs.

use std::fs;
use std::io::Write as _;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use rnet::inspect::Location;
use rnet::{NodeName, TopicName};
use rnet_bench::measure::BenchDir;
use rnet_record::plot::{Series, check_name, draw_svg, unit_of};
use rnet_record::read::Recording;
use rnet_record::rerun::{
    RerunError, RerunOptions, RerunReport, Tolerance, Tolerances, TopicResult, Trace,
    difference_text, junit, rerun, result_line,
};
use rnet_record::tools::NewFile;
use serde_json::json;

use crate::bag::file;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::shared_args::{SpanArgs, seconds};
use crate::signal;
use rnet_format::text::escape_controls;

#[derive(Debug, Args)]
pub struct RerunArgs {
    /// An MCAP file
    pub file: PathBuf,
    /// The command that starts the node, with its arguments; must be the last option
    #[arg(long, value_name = "COMMAND", required = true, num_args = 1.., allow_hyphen_values = true)]
    pub node: Vec<String>,
    /// Name of the node in the recording [default: the name that the node joins with]
    #[arg(long, value_name = "NODE")]
    pub name: Option<NodeName>,
    /// A topic to feed to the node; repeatable [default: the recorded topics that it subscribes to]
    #[arg(short, long, value_name = "TOPIC")]
    pub input: Vec<TopicName>,
    /// A topic to compare; repeatable [default: all topics that it published or publishes]
    #[arg(short, long, value_name = "TOPIC")]
    pub output: Vec<TopicName>,
    /// Tolerance for a numeric field and all fields inside it; X alone applies to all fields
    #[arg(long, value_name = "FIELD=X")]
    pub tolerance: Vec<ToleranceArg>,
    /// A field to exclude from the comparison; repeatable
    #[arg(long, value_name = "FIELD")]
    pub ignore: Vec<String>,
    /// Pair messages by the value of this field instead of by their order
    #[arg(long, value_name = "FIELD")]
    pub key: Option<String>,
    /// Run without the service calls that the node made or answered when it was recorded
    #[arg(long)]
    pub without_calls: bool,
    #[command(flatten)]
    pub span: SpanArgs,
    /// Rate of /clock between the inputs, in messages per second of recording time
    #[arg(long, value_name = "HZ", default_value_t = 100.0, value_parser = crate::play::args::parse_hertz)]
    pub clock_rate: f64,
    /// Time limit in seconds for the node to join, to become idle after an input, and to answer
    #[arg(long, value_name = "S", default_value = "10", value_parser = seconds)]
    pub timeout: Duration,
    /// The node counts as started when its endpoints have not changed for this many seconds
    #[arg(long, value_name = "S", default_value = "0.5", value_parser = seconds)]
    pub settle: Duration,
    /// Write the result as JUnit XML for CI systems, also if the node fails; an existing file is removed first
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Plot the field that differs the most, recorded and rerun, to an .svg file; an existing file is removed first
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
}

/// A field and its tolerance.
#[derive(Clone, Debug)]
pub struct ToleranceArg {
    /// Empty for all fields.
    pub field: String,
    pub within: f64,
}

impl FromStr for ToleranceArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (field, number) = text.rsplit_once('=').unwrap_or(("", text));
        let within: f64 = number.parse().map_err(|_| format!("{number:?} is not a number"))?;
        match within >= 0.0 {
            true => Ok(Self { field: field.to_owned(), within }),
            false => Err("the tolerance must not be negative".to_owned()),
        }
    }
}

/// The domain, in its own directory.
const DOMAIN: &str = "rerun";

pub fn run(context: &mut Context, args: &RerunArgs) -> Outcome {
    let recording = file::open(context, &args.file)?;
    check_outputs(args)?;
    let options = options(&recording, args);
    let base = std::path::absolute(context.domains_dir())
        .map_err(|e| Failure::Usage(format!("cannot use --dir: {e}")))?;
    let bench_dir = BenchDir::new(&base)?;
    let location = Location::new(Some(DOMAIN), Some(bench_dir.path().to_owned()), None)?;
    let mut command = command(args, bench_dir.path())?;
    // Removes the output of an earlier run, so that it is not mistaken for this run's, however this run ends.
    args.junit.iter().chain(&args.plot).try_for_each(|path| remove_file(path))?;
    let done = rerun(&recording, &location, &mut command, &options);
    signal::check()?;
    if let Some(path) = &args.junit {
        let start_ns = recording.info().times.map_or(0, |times| times.0);
        write(path, junit(&args.file, start_ns, &done).as_bytes())?;
    }
    let done = done.map_err(|error| failure(&error))?;
    match (&args.plot, &done.worst) {
        (Some(path), Some(trace)) => write(path, plot(path, &recording, trace)?.as_bytes())?,
        (Some(path), None) => context.eprintln(format_args!(
            "{} was not written: no compared field is numeric",
            path.display()
        )),
        (None, _) => {}
    }
    print_result(context, &recording, &done)?;
    match done.is_same() {
        true => Ok(()),
        false if context.json() => Err(Failure::AlreadyReported),
        false => Err(Failure::Failed(format!(
            "{} did not publish what was recorded",
            escape_controls(&done.node)
        ))),
    }
}

fn options(recording: &Recording, args: &RerunArgs) -> RerunOptions {
    let mut tolerances = Tolerances::default();
    for one in &args.tolerance {
        tolerances.set(&one.field, Tolerance::Within(one.within));
    }
    for field in &args.ignore {
        tolerances.set(field, Tolerance::Ignored);
    }
    let from = recording.info().times.map_or(0, |times| times.0);
    let at = |time: std::time::Duration| {
        from.saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
    };
    RerunOptions {
        name: args.name.as_ref().map(ToString::to_string),
        inputs: args.input.iter().map(ToString::to_string).collect(),
        outputs: args.output.iter().map(ToString::to_string).collect(),
        tolerances,
        key: args.key.clone(),
        without_calls: args.without_calls,
        start_ns: args.span.start.map(at),
        end_ns: args.span.end.map(at),
        clock_hz: args.clock_rate,
        timeout: args.timeout,
        settle: args.settle,
        trace: args.plot.is_some(),
        stop: signal::stop_requested,
    }
}

/// The node's command. It overrides the robot's configuration, so that the node stays in its domain and
/// writes no durable state.
fn command(args: &RerunArgs, bench_dir: &Path) -> Outcome<Command> {
    let mut command = Command::new(&args.node[0]);
    command.args(&args.node[1..]);
    command.env("RNET_DIR", bench_dir).env("RNET_DOMAIN", DOMAIN).env("RNET_NETWORK", "off");
    command.env("RNET_STATE_DIR", bench_dir.join("durable")).env("RNET_SIM_TIME", "1");
    for name in ["RNET_GROUP", "RNET_LISTEN", "RNET_CONNECT"] {
        command.env_remove(name);
    }
    // The node's stdout goes to stderr.
    let stderr = std::io::stderr().as_fd().try_clone_to_owned()?;
    command.stdout(Stdio::from(stderr));
    Ok(command)
}

fn failure(error: &RerunError) -> Failure {
    let text = escape_controls(&format!("{}: {error}", error.code())).into_owned();
    match error {
        RerunError::TimedOut { .. } => Failure::TimedOut(text),
        _ => Failure::Failed(text),
    }
}

/// Checks that the output files can be written: an existing file is removed first, and must not be anything
/// but an earlier result.
fn check_outputs(args: &RerunArgs) -> Outcome {
    args.plot.iter().try_for_each(|path| check_name(path))?;
    let wrong = |option: &str, path: &Path, what: &str| {
        Err(Failure::Usage(format!("{option} {} {what}", path.display())))
    };
    let id = |path: &Path| path.metadata().ok().map(|file| (file.dev(), file.ino()));
    let recording = id(&args.file);
    for (option, path) in [("--junit", &args.junit), ("--plot", &args.plot)] {
        let Some(path) = path else { continue };
        let Ok(there) = path.symlink_metadata() else { continue };
        // /dev/stdout is a link, and leads to a pipe or a terminal.
        let leads_to_file = || path.metadata().map_or(true, |to| to.is_file());
        if id(path) == recording {
            return wrong(option, path, "is the recording; give the name of another file");
        }
        if there.is_symlink() && leads_to_file() {
            return wrong(option, path, "is a symbolic link; give the name of its target");
        }
        if there.is_dir() {
            return wrong(option, path, "is a folder; give the name of a file");
        }
    }
    match (&args.junit, &args.plot) {
        (Some(junit), Some(plot)) if junit == plot => {
            wrong("--plot", plot, "is the file of --junit; give the name of another file")
        }
        _ => Ok(()),
    }
}

/// Removes a regular file. Other targets, such as a pipe, are written to directly.
fn remove_file(path: &Path) -> Outcome {
    if !path.symlink_metadata().is_ok_and(|there| there.is_file()) {
        return Ok(());
    }
    let why = |error| Failure::Failed(format!("cannot overwrite {}: {error}", path.display()));
    fs::remove_file(path).map_err(why)
}

fn write(path: &Path, bytes: &[u8]) -> Outcome {
    let written = match path.exists() {
        true => fs::write(path, bytes),
        false => NewFile::create(path).and_then(|new| {
            new.file()?.write_all(bytes)?;
            new.commit()
        }),
    };
    written.map_err(|error| Failure::Failed(format!("cannot write {}: {error}", path.display())))
}

/// Size of the picture, in pixels.
const PLOT_SIZE: (u32, u32) = (960, 420);

fn plot(path: &Path, recording: &Recording, trace: &Trace) -> Outcome<String> {
    let start = recording.info().times.map_or(0, |times| times.0);
    let line = |name: &str, value: fn(&(u64, f64, f64)) -> f64| Series {
        name: name.to_owned(),
        unit: unit_of(recording, &trace.topic, &trace.field),
        points: trace
            .points
            .iter()
            .map(|point| (point.0.saturating_sub(start) as f64 / 1e9, value(point)))
            .collect(),
    };
    let lines = [line("recorded", |point| point.1), line("re-run", |point| point.2)];
    let title = format!("{} {}", trace.topic, trace.field);
    draw_svg(path, &title, &lines, PLOT_SIZE)
}

fn print_result(context: &mut Context, recording: &Recording, done: &RerunReport) -> Outcome {
    if context.json() {
        let topics: Vec<_> = done.outputs.iter().map(document).collect();
        return context.document(&json!({
            "node": done.node,
            "same": done.is_same(),
            "inputs": done.inputs,
            "keys": {"set": done.keys.0, "changed": done.keys.1},
            "outputs": topics,
            "not_compared": {"calls": done.calls.made, "answers": done.calls.answered},
            "seconds": done.took.as_secs_f64(),
        }));
    }
    let inputs: u64 = done.inputs.values().sum();
    let (node, took) = (&done.node, done.took.as_secs_f64());
    let topics: Vec<&str> = done.inputs.keys().map(String::as_str).collect();
    let line = format!("{node} received {inputs} messages of {} in {took:.3} s", topics.join(", "));
    context.line(format_args!("{}", escape_controls(&line)))?;
    let (set, changed) = done.keys;
    if set + changed > 0 {
        context.line(format_args!("{set} state keys were set, {changed} changed"))?;
    }
    if !done.calls.is_empty() {
        let line = format!("not compared: {}", done.calls);
        context.line(format_args!("{}", escape_controls(&line)))?;
    }
    let start = recording.info().times.map_or(0, |times| times.0);
    for topic in &done.outputs {
        context.line(format_args!("{}", escape_controls(&result_line(topic))))?;
        let (first, worst) = (topic.first.as_ref(), topic.worst.as_ref());
        for (word, one) in [("first", first), ("worst", worst)] {
            if let Some(one) = one {
                context.line(format_args!(
                    "  {word}: {}",
                    escape_controls(&difference_text(one, start))
                ))?;
            }
        }
    }
    Ok(())
}

fn document(topic: &TopicResult) -> serde_json::Value {
    let mut document = json!(topic);
    document["same"] = topic.is_same().into();
    document
}
