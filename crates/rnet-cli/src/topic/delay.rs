//! `rnet topic delay`: how long messages take.
//!
//! Every subscriber counts the latency of each of its messages in a histogram in shared memory,
//! from the publisher's time stamp to its own taking. This command reads those histograms. An
//! observer's own times would say how often it polls, and nothing of what the subscribers have;
//! so where there is no subscriber, there is no delay to show. Of a topic with publishers of other hosts this command is
//! one itself (`interest`).

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use rnet::inspect::{ChannelInfo, Snapshot};
use rnet::msgs::duration_to_ns;
use serde_json::{Value, json};

use super::args::DelayArgs;
use super::interest::RemoteInterest;
use super::listen::{SilenceReporter, report_waiting};
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::{signal, table};
use rnet_format::text::escape_controls;
use rnet_monitor::link::{STATUS_TOPIC, host_of, last_status};

const REPORT_INTERVAL: Duration = Duration::from_secs(1);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A subscription and a publisher, by id.
type ChannelKey = (u64, u64);

struct DelayRow {
    subscriber: String,
    publisher: String,
    /// By how much its times may be wrong, in ns: the publisher is on another host, whose clock is another.
    uncertain_ns: Option<u64>,
    channel: ChannelInfo,
}

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
            // Of this command's own subscription, what it has measured.
            rows.retain(|(_, row)| row.channel.received > 0 || !interest.is_own(&row.subscriber));
            if rows.is_empty() && !waiting_said {
                let unheard = snapshot.publishers.is_empty();
                let whom = if unheard { "publisher" } else { "matched subscriber" };
                let since = if before.is_empty() { "yet" } else { "any more" };
                report_waiting(context, topic, whom, since);
            }
            waiting_said = rows.is_empty();
            // The totals come first where that is all, and last.
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

/// By how much the clock of each other host may be wrong, in ns, as the link says.
fn clock_uncertainties(snapshot: &Snapshot) -> HashMap<String, u64> {
    let peers = last_status(snapshot).map(|status| status.peers).unwrap_or_default();
    let known = peers.into_iter().filter_map(|peer| {
        let uncertain_ns = duration_to_ns(peer.clock_offset_uncertainty.as_ref()?)?;
        Some((peer.host, uncertain_ns.unsigned_abs()))
    });
    known.collect()
}

fn channels(snapshot: &Snapshot, clocks: &HashMap<String, u64>) -> Vec<(ChannelKey, DelayRow)> {
    let mut rows = Vec::new();
    for subscription in &snapshot.subscriptions {
        for channel in &subscription.channels {
            let publisher = snapshot.publishers.iter().find(|p| p.id == channel.publisher);
            let row = DelayRow {
                subscriber: subscription.node.clone(),
                uncertain_ns: publisher.and_then(|p| clocks.get(host_of(&p.node).0?)).copied(),
                publisher: publisher.map_or("(gone)", |p| &p.node).to_owned(),
                channel: channel.clone(),
            };
            rows.push(((subscription.id, channel.publisher), row));
        }
    }
    rows
}

/// What was counted since `old`.
fn delta(new: &ChannelInfo, old: Option<&ChannelInfo>) -> ChannelInfo {
    let mut delta = new.clone();
    if let Some(old) = old {
        delta.received = new.received.saturating_sub(old.received);
        delta.late_wakes = new.late_wakes.saturating_sub(old.late_wakes);
        for (n, o) in delta.latency.iter_mut().zip(&old.latency) {
            *n = n.saturating_sub(*o);
        }
    }
    delta
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
        let channels: Vec<Value> = rows.iter().map(|(row, c)| json_row(row, c)).collect();
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
    let cells = rows.iter().map(|(row, c)| {
        let at = |q| c.quantile_ns(q).map_or_else(|| "-".to_owned(), table::latency);
        vec![
            row.subscriber.clone(),
            row.publisher.clone(),
            c.received.to_string(),
            at(0.5),
            at(0.99),
            at(0.999),
            at(1.0),
            row.channel.lost.total().to_string(),
        ]
    });
    let titles =
        ["SUBSCRIBER", "PUBLISHER", "MESSAGES ", "P50 ", "P99 ", "P99.9 ", "MAX ", "LOST (ALL) "];
    table::print(context, &titles, &cells.collect::<Vec<_>>())?;
    for (host, uncertain_ns) in uncertain {
        let about = table::latency(uncertain_ns);
        context.line(format_args!("{}: clock uncertainty ± {about}", escape_controls(host)))?;
    }
    Ok(())
}

fn json_row(row: &DelayRow, c: &ChannelInfo) -> Value {
    let us = |q| c.quantile_ns(q).map(|ns| ns as f64 / 1e3);
    json!({
        "subscriber": row.subscriber,
        "publisher": row.publisher,
        "received": c.received,
        "p50_us": us(0.5),
        "p99_us": us(0.99),
        "p999_us": us(0.999),
        "max_us": us(1.0),
        "lost": row.channel.lost,
        "uncertain_us": row.uncertain_ns.map(|ns| ns as f64 / 1e3),
        "late_wakes": c.late_wakes,
    })
}
