//! `rnet topic delay`: the latency of messages.
//!
//! Every subscriber counts the latency of each message in a histogram in shared memory, from the publisher's
//! time stamp to its own receive. This command reads these histograms. An observer's own times would show how
//! often it polls, not the latency of the subscribers; so without a subscriber no delay is shown. For a topic
//! with publishers of other hosts, this command subscribes itself (`interest`).

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use rnet::inspect::ChannelInfo;
use serde_json::{Value, json};

use super::args::DelayArgs;
use super::interest::RemoteInterest;
use super::listen::{SilenceReporter, report_waiting};
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::{signal, table};
use rnet_format::text::escape_controls;
use rnet_monitor::delay::{ChannelKey, DelayRow, channels, clock_uncertainties, delta};
use rnet_monitor::link::{STATUS_TOPIC, host_of};

const REPORT_INTERVAL: Duration = Duration::from_secs(1);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

pub fn run(context: &mut Context, args: DelayArgs) -> Outcome {
    let topic = args.topic.as_str();
    let mut domain = context.domain()?;
    let begun = Instant::now();
    let deadline = args.timeout.and_then(|t| begun.checked_add(t));
    let mut before: HashMap<ChannelKey, ChannelInfo> = HashMap::new();
    let mut next_report = begun;
    let mut reports = 0;
    let mut waiting_said = false;
    let mut silence = SilenceReporter::default();
    let mut interest = RemoteInterest::default();
    loop {
        let timed_out = deadline.is_some_and(|end| Instant::now() >= end);
        let stopped = signal::stop_requested();
        if Instant::now() >= next_report || timed_out || stopped {
            let snapshot = domain.topic_snapshot(topic)?;
            if snapshot.subscriptions.is_empty() {
                interest.subscribe_if_remote(
                    context,
                    topic,
                    snapshot.publishers.iter().map(|p| p.node.as_str()),
                );
            }
            let clocks = clock_uncertainties(&domain.topic_snapshot(STATUS_TOPIC)?);
            let mut rows = channels(&snapshot, &clocks);
            // Of this command's own subscription, only channels with measurements.
            rows.retain(|(_, row)| row.channel.received > 0 || !interest.is_own(&row.subscriber));
            if rows.is_empty() && !waiting_said {
                let unheard = snapshot.publishers.is_empty();
                let whom = if unheard { "publisher" } else { "matched subscriber" };
                let since = if before.is_empty() { "yet" } else { "any more" };
                report_waiting(context, topic, whom, since);
            }
            waiting_said = rows.is_empty();
            // The totals are printed at the end, and at the start only if they are the whole output.
            let last = args.once || timed_out || stopped;
            let is_new = |(key, row): &(ChannelKey, DelayRow)| {
                before.get(key).is_none_or(|old| old.received != row.channel.received)
            };
            if !rows.is_empty() && (last || !before.is_empty()) {
                if last || rows.iter().any(is_new) {
                    report(context, topic, &rows, if last { None } else { Some(&before) })?;
                    context.flush()?;
                    reports += 1;
                    silence.reset();
                } else {
                    silence.report(context, snapshot.publishers.iter().map(|p| p.node.as_str()));
                }
            }
            let enough = !rows.is_empty() && args.once || Some(reports) == args.count;
            match (stopped, enough, timed_out) {
                (true, ..) => return Err(Failure::Interrupted),
                (_, true, _) => return Ok(()),
                (_, _, true) if reports > 0 => return Ok(()),
                (_, _, true) => {
                    let what =
                        format!("{topic} had no matched subscriber in {:?}", begun.elapsed());
                    return Err(Failure::TimedOut(what));
                }
                _ => {}
            }
            next_report =
                Instant::now() + if rows.is_empty() { POLL_INTERVAL } else { REPORT_INTERVAL };
            before = rows.into_iter().map(|(key, row)| (key, row.channel)).collect();
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

fn report(
    context: &mut Context,
    topic: &str,
    rows: &[(ChannelKey, DelayRow)],
    before: Option<&HashMap<ChannelKey, ChannelInfo>>,
) -> Outcome {
    let rows: Vec<(&DelayRow, ChannelInfo)> = rows
        .iter()
        .map(|(key, row)| (row, delta(&row.channel, before.and_then(|b| b.get(key)))))
        .collect();
    let window = if before.is_some() { "interval" } else { "total" };
    if context.json() {
        let channels: Vec<Value> = rows.iter().map(|(row, c)| row.document(c)).collect();
        return context.json_line(&json!({
            "topic": topic,
            "source": "subscribers",
            "window": window,
            "channels": channels,
        }));
    }
    let uncertain: BTreeMap<&str, u64> = rows
        .iter()
        .filter_map(|(row, _)| Some((host_of(&row.publisher).0?, row.uncertain_ns?)))
        .collect();
    let of = if before.is_some() { "the last second" } else { "all since they joined" };
    context.line(format_args!("{topic}: as measured by its subscribers, {of}"))?;
    let cells = rows.iter().map(|(row, counts)| row.cells(counts));
    let titles =
        ["SUBSCRIBER", "PUBLISHER", "MESSAGES ", "P50 ", "P99 ", "P99.9 ", "MAX ", "LOST (ALL) "];
    table::print(context, &titles, &cells.collect::<Vec<_>>())?;
    for (host, uncertain_ns) in uncertain {
        let about = table::latency(uncertain_ns);
        context.line(format_args!("{}: clock uncertainty ± {about}", escape_controls(host)))?;
    }
    Ok(())
}
