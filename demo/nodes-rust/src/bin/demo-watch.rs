//! The watcher: observes the domain, sends `run.py` the live table once a second, and counts everything that
//! was sent and received.
#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use rnet::Node;
use rnet::inspect::Domain;
use rnet_demo::messages::{StopEvent, stop_reason};
use rnet_demo::process::{self, Command, Process};
use rnet_demo::rates::Rates;
use rnet_demo::traffic_counts::TrafficCounts;
use serde_json::json;

/// Poll interval. The log of a publisher can be read after its death only if the publisher lived this long; a
/// driver whose authority is revoked at once lives for about 30 ms.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
const TABLE: Duration = Duration::from_secs(1);
/// Topics of robot-net itself, which the nodes do not count: calls for authority, the audit trail, the link's
/// topics.
const OWN_TOPICS: &str = "/_rnet/";

fn main() -> ExitCode {
    process::run(watch)
}

fn watch(process: &Process) -> rnet::Result<()> {
    let node = Node::new("watcher")?;
    let mut stops =
        node.subscriber::<StopEvent>("/safety/stop").reliable().transient_local().open()?;
    stops.wait_for_publishers_timeout(1, Duration::from_secs(10))?;
    process.joined();
    let _heard = stops.on(|event| {
        process::report(json!({
            "event": "stop",
            "active": event.active == 1,
            "reason": stop_reason(event.reason),
            "raised_ns": event.raised_ns,
            "latency_us": event.latency().as_secs_f64() * 1e6,
        }));
    });
    let mut domain = Domain::open(None, None, None)?;
    let mut traffic_counts = TrafficCounts::default();
    let mut rates = Rates::default();
    let mut next_table = Instant::now();
    loop {
        let command = process.next(POLL_INTERVAL);
        if command == Some(Command::Stop) {
            return Ok(());
        }
        let looked_ns = rnet::now_ns();
        let mut snapshot = domain.snapshot()?;
        snapshot.publishers.retain(|publisher| !publisher.topic.starts_with(OWN_TOPICS));
        snapshot.subscriptions.retain(|subscription| !subscription.topic.starts_with(OWN_TOPICS));
        for problem in &snapshot.problems {
            eprintln!("{problem}");
        }
        if Instant::now() >= next_table {
            next_table = Instant::now() + TABLE;
            let rows = rates.rows(&snapshot, looked_ns);
            process::report(json!({"event": "table", "rows": rows}));
        }
        let nodes: Vec<String> = snapshot.nodes.iter().map(|n| n.meta.name.clone()).collect();
        traffic_counts.enter(snapshot);
        match command {
            Some(Command::Quiet) => process::report_quiet(&[]),
            Some(Command::Other(what)) if what == "books" => {
                let mut books = traffic_counts.to_json();
                books["event"] = json!("books");
                books["at_ns"] = json!(looked_ns);
                books["nodes"] = json!(nodes);
                process::report(books);
            }
            _ => {}
        }
    }
}
