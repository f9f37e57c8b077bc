//! `rnet trace`: where the time of messages goes.
//!
//! It subscribes to the traces of the topics, and the nodes that receive these topics then publish a record of each
//! message there (docs/design/trace.md). What the records say is for `rnet_monitor::trace` to find.

mod perfetto;
mod svg;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use rnet::inspect::Snapshot;
use rnet::trace::{TraceRecord, trace_topic, traced_topic};
use rnet::{Sample, Subscriber, SubscriberOptions, TopicName};
use rnet_format::suggestions::did_you_mean;
use rnet_monitor::trace::{Chain, Edge, Edges, Stage, Times, Traced, Uncertainty};
use serde_json::json;

use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::shared_args::{NodeArg, number_of, seconds};
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
    let budget = number_of("milliseconds", text)?;
    match budget > 0.0 && budget <= 1e9 {
        true => Ok(budget),
        false => Err("a budget must be above 0 and at most 10^9 ms".to_owned()),
    }
}

/// Topics that may be traced at a time.
const MAX_TOPICS: usize = 64;
/// Records that are kept; more of them are left out, which is told.
const MAX_RECORDS: usize = 1_000_000;
/// Between two looks. Meanwhile a log holds all that a subscription may write.
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
    // Neither costs the other: a file that cannot be written not the table, a pipe that is closed not the files.
    let printed = print(context, args, &trace, &edges, chain.as_ref());
    let svg = || svg::draw(&edges, chain.as_ref());
    let perfetto = || perfetto::document(&trace.records, &edges, &trace.publishers);
    let drawn = args.svg.as_ref().map_or(Ok(()), |path| write(path, &svg()));
    let written = args.perfetto.as_ref().map_or(Ok(()), |path| write(path, &perfetto()));
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
    edges.iter().try_for_each(|edge| print_edge(context, edge))?;
    chain.map_or(Ok(()), |chain| print_chain(context, chain, args.budget_ms))
}

/// What was recorded.
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
        let options = SubscriberOptions::new().keep_all().message_type(TraceRecord::plain_type());
        subscribers.push(node.subscriber_with::<[u8]>(trace_topic(topic)?.as_str(), options)?);
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
            left_out += take_records(subscriber, &mut records)?;
        }
        if last {
            break;
        }
        // A signal ends the trace and not the command: what was recorded is shown.
        let _ = signal::sleep(READ_INTERVAL.min(end.saturating_duration_since(Instant::now())));
    }
    // Some may have come meanwhile.
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

/// Takes the records that are there; returns how many had no room.
fn take_records(subscriber: &mut Subscriber<[u8]>, records: &mut Vec<Traced>) -> Outcome<u64> {
    let mut left_out = 0;
    loop {
        match subscriber.try_recv() {
            Ok(None) => return Ok(left_out),
            Ok(Some(_)) if records.len() >= MAX_RECORDS => left_out += 1,
            Ok(Some(sample)) => records.extend(parse_record(&sample)),
            // A node that dies, or one whose records are no such, ends its own part of the trace.
            Err(rnet::Error::PeerLost { .. } | rnet::Error::IncompatibleType { .. }) => {}
            Err(rnet::Error::Corrupt { .. } | rnet::Error::Detached { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// A record, if it is a sound one; they come from other processes.
fn parse_record(sample: &Sample<'_, [u8]>) -> Option<Traced> {
    let record = TraceRecord::from_bytes(sample).filter(TraceRecord::is_consistent)?;
    let topic = traced_topic(sample.topic())?.to_owned();
    let traced = Traced { topic, node: sample.node().to_owned(), record, clock: Uncertainty::NONE };
    Some(match sample.origin() {
        // The link has put the time of its writing on our clock.
        Some(_) => {
            traced.on_our_clock(sample.sent_ns(), Uncertainty::of(sample.sent_uncertainty_ns()))
        }
        None => traced,
    })
}

/// In which nodes publishers are, those of other hosts by both their ids.
#[derive(Default)]
pub struct PublisherNames(HashMap<u64, String>);

impl PublisherNames {
    fn add_from(&mut self, snapshot: &Snapshot) {
        for publisher in &snapshot.publishers {
            let ids = std::iter::once(publisher.id).chain(publisher.stands_for);
            self.0.extend(ids.map(|id| (id, publisher.node.clone())));
        }
    }

    fn name_of(&self, record: &TraceRecord) -> Option<String> {
        let ids = [record.message().0, record.publisher];
        ids.iter().find_map(|id| self.0.get(id)).cloned()
    }
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

fn print_edge(context: &mut Context, edge: &Edge) -> Outcome {
    let untraced = match edge.untraced {
        0 => String::new(),
        n => format!(", {n} others were not traced"),
    };
    context.heading(&format!(
        "{}: {} -> {}, {} messages{untraced}",
        edge.topic, edge.publisher, edge.subscriber, edge.traced
    ))?;
    let stages = Stage::ALL.iter().filter_map(|stage| Some((*stage, edge.stages.get(stage)?)));
    let rows = stages.map(|(stage, times)| row(stage.name(), times));
    let rows: Vec<_> = rows.chain([row("all", &edge.total)]).collect();
    table::print(context, &["STAGE", "MESSAGES ", "P50 ", "P99 ", "MAX "], &rows)?;
    match uncertainty_text(edge.uncertain) {
        Some(about) => context.line(format_args!("network and all: {about} clock uncertainty")),
        None => Ok(()),
    }
}

/// How far from the truth a time may be, in words; `None` for one of one clock.
fn uncertainty_text(uncertain: Uncertainty) -> Option<String> {
    match uncertain {
        Uncertainty::NONE => None,
        Uncertainty::Ns(ns) => Some(format!("± {}", table::latency(ns))),
        Uncertainty::Unknown => Some("± not yet known".to_owned()),
    }
}

fn row(name: &str, times: &Times) -> Vec<String> {
    let shown = [times.p50_ns, times.p99_ns, times.max_ns].map(table::latency);
    [name.to_owned(), times.count.to_string()].into_iter().chain(shown).collect()
}

fn print_chain(context: &mut Context, chain: &Chain, budget_ms: Option<f64>) -> Outcome {
    let topics: Vec<&str> = chain.hops.iter().map(|hop| hop.topic.as_str()).collect();
    context.heading(&topics.join(" -> "))?;
    if chain.unknown > 0 {
        let ambiguous = match chain.ambiguous {
            0 => String::new(),
            n => format!(
                ": for {n}, two inputs are closer than the clock uncertainty between the hosts"
            ),
        };
        context
            .line(format_args!("the path of {} messages is not known{ambiguous}", chain.unknown))?;
    }
    if chain.total.count == 0 {
        return Ok(());
    }
    let (mut rows, mut clocks) = (Vec::new(), Vec::new());
    let mut part = |name: &str, times: &Times, about: Uncertainty| {
        rows.push(row(name, times));
        clocks.extend(
            uncertainty_text(about).map(|about| format!("{name}: {about} clock uncertainty")),
        );
    };
    for (at, hop) in chain.hops.iter().enumerate() {
        part(
            &format!("{} sent to callback start", hop.topic),
            &hop.transport,
            hop.transport_uncertain,
        );
        let work = match chain.hops.get(at + 1) {
            Some(next) => format!("{} callback start to {} sent", hop.topic, next.topic),
            None => format!("{} callback start to end", hop.topic),
        };
        part(&work, &hop.work, hop.work_uncertain);
    }
    part("all", &chain.total, chain.uncertain);
    table::print(context, &["PART", "MESSAGES ", "P50 ", "P99 ", "MAX "], &rows)?;
    clocks.iter().try_for_each(|line| context.line(format_args!("{line}")))?;
    if let (Some(over), Some(budget_ms)) = (chain.over_budget, budget_ms) {
        let count = chain.total.count;
        let verdict = if chain.total.p99_ns as f64 > budget_ms * 1e6 { "over" } else { "within" };
        context.line(format_args!(
            "{verdict} the budget of {budget_ms} ms: {over} of {count} took longer"
        ))?;
    }
    Ok(())
}
