//! `rnet graph`: publishers and subscribers as text, or as the source of a diagram.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use rnet::inspect::Domain;
use rnet_monitor::graph::NodeGraph;
use rnet_monitor::link::own_host;
use serde_json::json;

use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::shared_args::seconds;
use crate::snapshot::take_snapshot;
use crate::{domain, signal};

#[derive(Debug, Args)]
pub struct GraphArgs {
    /// Output format [default: by the extension of FILE: .dot, .mmd, .txt; else text]
    #[arg(long, short, value_enum)]
    pub format: Option<Format>,
    /// Write the graph to FILE
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Measure rates over this many seconds; 0: show no rates
    #[arg(long = "over", value_name = "S", default_value = "1", value_parser = seconds)]
    pub over: Duration,
    /// Also show robot-net's internal topics (/_rnet/…)
    #[arg(long)]
    pub all: bool,
}

/// A form in which the graph is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Indented lines
    Text,
    /// Graphviz DOT
    Dot,
    /// Mermaid flowchart
    Mermaid,
}

pub fn run(context: &mut Context, args: &GraphArgs) -> Outcome {
    let format = format_of(context, args)?;
    let (domain, snapshot) = take_snapshot(context)?;
    let own = own_host(&snapshot);
    if args.over.is_zero() {
        let net = NodeGraph::new(&snapshot, &own, None, args.all);
        return print(context, args, format, &domain, &net);
    }
    let began = Instant::now();
    signal::sleep(args.over)?;
    let elapsed_s = began.elapsed().as_secs_f64();
    let (domain, later) = take_snapshot(context)?;
    let net = NodeGraph::new(&later, &own, Some((&snapshot, elapsed_s)), args.all);
    print(context, args, format, &domain, &net)
}

/// The requested format, by name or by the file name's extension.
fn format_of(context: &Context, args: &GraphArgs) -> Outcome<Format> {
    if context.json() && args.format.is_some() {
        return Err(Failure::Usage("--json and --format cannot be used together".to_owned()));
    }
    if let Some(format) = args.format {
        return Ok(format);
    }
    let ending = args.output.as_deref().and_then(Path::extension);
    match ending.map(|ending| ending.to_string_lossy()).as_deref() {
        Some("dot" | "gv") => Ok(Format::Dot),
        Some("mmd" | "mermaid") => Ok(Format::Mermaid),
        None | Some("txt") => Ok(Format::Text),
        // A JSON document may have any file name.
        Some(_) if context.json() => Ok(Format::Text),
        Some(ending) => Err(Failure::Usage(format!(
            "unknown graph format .{ending}: use .dot, .mmd or .txt, or select the format with --format"
        ))),
    }
}

fn print(
    context: &mut Context,
    args: &GraphArgs,
    format: Format,
    domain: &Domain,
    net: &NodeGraph<'_>,
) -> Outcome {
    if net.is_empty() {
        domain::report_none_found(context, "topics")?;
    }
    let drawn = match format {
        _ if context.json() => {
            let document = json!({"domain": domain.id(), "hosts": net.hosts, "topics": net.topics});
            format!("{document:#}\n")
        }
        Format::Text => net.to_text(),
        Format::Dot => net.to_dot(),
        Format::Mermaid => net.to_mermaid(),
    };
    match &args.output {
        Some(path) => write(path, &drawn),
        None => context.line(format_args!("{}", drawn.trim_end_matches('\n'))),
    }
}

fn write(path: &Path, drawn: &str) -> Outcome {
    std::fs::write(path, drawn)
        .map_err(|error| Failure::Failed(format!("cannot write {}: {error}", path.display())))
}
