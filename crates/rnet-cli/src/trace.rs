//! `rnet trace`: where messages spend their time.
//!
//! It subscribes to the traces of the topics; the nodes that receive these topics then publish a record of
//! each message there (docs/design/trace.md). `rnet_monitor::trace` evaluates the records.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use rnet::TopicName;
use rnet::trace::{TraceRecord, trace_topic, traced_topic};
use rnet_format::suggestions::did_you_mean;
use rnet_format::units::parse_number;
use rnet_monitor::trace::{
    Chain, Edge, Edges, PublisherNames, TimesView, Traced, perfetto, svg, take_records,
};
use serde_json::json;

use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::shared_args::{NodeArg, seconds};
use crate::{signal, table};

#[derive(Debug, Args)]
pub struct TraceArgs {
    /// The topics; they do not need to exist yet
    #[arg(value_name = "TOPIC", required_unless_present = "chain")]
    pub topics: Vec<TopicName>,
    /// Trace the chain of messages through these topics, from the first to the last
    #[arg(long, value_name = "TOPIC,…", value_delimiter = ',')]
    pub chain: Vec<TopicName>,
    /// Latency budget of the whole chain, in milliseconds; exit 1 if more than one in 100 takes longer
    #[arg(long, value_name = "MS", requires = "chain", value_parser = parse_budget)]
    pub budget_ms: Option<f64>,
    /// Trace for this many seconds; exit code 124 if no message arrived
    #[arg(long = "for", value_name = "S", default_value = "5", value_parser = seconds)]
    pub time: Duration,
    /// Draw the stages as SVG to FILE
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Write all messages to FILE in the trace format of Perfetto and Chrome
    #[arg(long, value_name = "FILE")]
    pub perfetto: Option<PathBuf>,
}

fn parse_budget(text: &str) -> Result<f64, String> {
    let budget = parse_number("milliseconds", text)?;
    match budget > 0.0 && budget <= 1e9 {
        true => Ok(budget),
        false => Err("a budget must be above 0 and at most 10^9 ms".to_owned()),
    }
}

/// Maximum number of topics traced at a time.
const MAX_TOPICS: usize = 64;
/// Maximum number of kept records; further ones are dropped, which is reported.
const MAX_RECORDS: usize = 1_000_000;
/// Interval between two reads. A log holds everything that a subscription may write in this time.
const READ_INTERVAL: Duration = Duration::from_millis(20);

pub fn run(context: &mut Context, args: &TraceArgs) -> Outcome {
    let mut topics = args.topics.clone();
    topics.extend(args.chain.iter().cloned());
    topics.sort();
    topics.dedup();
    if topics.len() > MAX_TOPICS {
        let what = format!("cannot trace {} topics: the limit is {MAX_TOPICS}", topics.len());
        return Err(Failure::Usage(what));
    }
    if args.chain.len() == 1 {
        return Err(Failure::Usage(
            "a chain needs at least two topics: --chain /imu,/cmd".to_owned(),
        ));
    }
    let trace = trace(context, args, &topics)?;
    if trace.records.is_empty() {
        return Err(no_records_error(context, args, &topics));
    }
    let edges = Edges::of(&trace.records, |record| trace.publishers.name_of(record));
    let chain = (!args.chain.is_empty()).then(|| {
        let topics: Vec<String> = args.chain.iter().map(TopicName::to_string).collect();
        Chain::of(&topics, &trace.records, args.budget_ms.map(|ms| (ms * 1e6) as u64))
    });
    // Independent of each other: an unwritable file does not prevent the table, nor a closed pipe the files.
    let printed = print(context, args, &trace, &edges, chain.as_ref());
    let drawing = || svg(&edges, chain.as_ref());
    let events = || perfetto(&trace.records, &edges, &trace.publishers);
    let drawn = args.svg.as_ref().map_or(Ok(()), |path| write(path, &drawing()));
    let written = args.perfetto.as_ref().map_or(Ok(()), |path| write(path, &events()));
    printed.and(drawn).and(written)?;
    match &chain {
        Some(chain) if chain.total.count == 0 => {
            let what = "no message went through the whole chain: the node that receives a topic must publish \
                        the next one";
            Err(Failure::TimedOut(what.to_owned()))
        }
        Some(chain) if args.budget_ms.is_some_and(|ms| chain.total.p99_ns as f64 > ms * 1e6) => {
            Err(Failure::AlreadyReported)
        }
        _ => Ok(()),
    }
}

fn print(
    context: &mut Context,
    args: &TraceArgs,
    trace: &Trace,
    edges: &[Edge],
    chain: Option<&Chain>,
) -> Outcome {
    if context.json() {
        return context.document(&json!({
            "for_s": args.time.as_secs_f64(),
            "records": trace.records.len(),
            "lost_records": trace.lost,
            "edges": edges,
            "chain": chain,
            "budget_ms": args.budget_ms,
        }));
    }
    edges.iter().try_for_each(|edge| print_view(context, "STAGE", &edge.view()))?;
    let chain = chain.map(|chain| chain.view(args.budget_ms));
    chain.map_or(Ok(()), |chain| print_view(context, "PART", &chain))
}

/// The recorded data.
struct Trace {
    records: Vec<Traced>,
    publishers: PublisherNames,
    /// Records that this command was too slow for.
    lost: u64,
}

fn trace(context: &mut Context, args: &TraceArgs, topics: &[TopicName]) -> Outcome<Trace> {
    let node = context.node("trace", &NodeArg::default())?;
    let mut subscribers = Vec::new();
    for topic in topics {
        subscribers.push(
            node.subscriber::<[u8]>(trace_topic(topic)?.as_str())
                .keep_all()
                .message_type(TraceRecord::plain_type())
                .open()?,
        );
    }
    if context.on_terminal() {
        context.eprintln(format_args!("tracing for {:?}", args.time));
    }
    let mut publishers = PublisherNames::default();
    publishers.add_from(&context.domain()?.snapshot()?);
    let end = Instant::now() + args.time;
    let (mut records, mut left_out) = (Vec::new(), 0);
    loop {
        let last = Instant::now() >= end || signal::stop_requested();
        for subscriber in &mut subscribers {
            left_out += take_records(subscriber, MAX_RECORDS, &mut records)?;
        }
        if last {
            break;
        }
        // A signal ends the trace and not the command: the recorded part is shown.
        let _ = signal::sleep(READ_INTERVAL.min(end.saturating_duration_since(Instant::now())));
    }
    // New publishers may have appeared meanwhile.
    publishers.add_from(&context.domain()?.snapshot()?);
    let lost = subscribers.iter().map(|subscriber| subscriber.lost().total()).sum::<u64>();
    if lost + left_out > 0 {
        context.eprintln(format_args!(
            "{} records were lost: more arrived than could be read",
            lost + left_out
        ));
    }
    if signal::stop_requested() && records.is_empty() {
        return Err(Failure::Interrupted);
    }
    Ok(Trace { records, publishers, lost: lost + left_out })
}

fn no_records_error(context: &Context, args: &TraceArgs, topics: &[TopicName]) -> Failure {
    let snapshot = context.domain().and_then(|mut domain| Ok(domain.snapshot()?));
    let mut what = format!("no message was received in {:?}", args.time);
    if let Ok(snapshot) = snapshot {
        for topic in topics {
            let subscribed = snapshot.subscriptions.iter().any(|s| s.topic == topic.as_str());
            let names = snapshot.subscriptions.iter().map(|s| s.topic.as_str());
            let names = names.filter(|name| traced_topic(name).is_none());
            let near = did_you_mean(topic.as_str(), names);
            match (subscribed, near) {
                (true, _) => what += &format!("; {topic} has subscribers but no messages"),
                (false, Some(near)) => what += &format!("; {topic} has no subscribers ({near})"),
                (false, None) => what += &format!("; {topic} has no subscribers"),
            }
        }
    }
    Failure::TimedOut(what)
}

fn write(path: &Path, text: &str) -> Outcome {
    std::fs::write(path, text)
        .map_err(|error| Failure::Failed(format!("cannot write {}: {error}", path.display())))
}

fn print_view(context: &mut Context, of: &str, view: &TimesView) -> Outcome {
    context.heading(&view.heading)?;
    view.before.iter().try_for_each(|line| context.line(format_args!("{line}")))?;
    table::print(context, &[of, "MESSAGES ", "P50 ", "P99 ", "MAX "], &view.rows)?;
    view.after.iter().try_for_each(|line| context.line(format_args!("{line}")))
}
