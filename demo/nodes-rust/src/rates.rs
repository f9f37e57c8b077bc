//! The live table: figures of each topic since the last snapshot.

use std::collections::{BTreeMap, HashMap};

use rnet::inspect::{ChannelInfo, Snapshot, SubscriptionInfo};
use serde_json::{Value, json};

/// Differences between successive snapshots of a domain.
#[derive(Debug, Default)]
pub struct Rates {
    last_ns: u64,
    /// Messages sent, by publisher.
    sent: HashMap<u64, u64>,
    /// Latency histograms, by subscription.
    latency: HashMap<u64, Vec<u64>>,
}

/// All channels of a subscription, including those to publishers that are gone.
pub fn channels(subscription: &SubscriptionInfo) -> impl Iterator<Item = &ChannelInfo> {
    subscription.channels.iter().chain(&subscription.past)
}

/// Whether a subscriber polls at its own rate, and skips most messages. Its latencies then measure the
/// polling interval and not the transport.
pub fn is_sampler(subscription: &SubscriptionInfo) -> bool {
    let (skipped, received) = channels(subscription)
        .fold((0, 0), |(skipped, received), c| (skipped + c.skipped, received + c.received));
    skipped > received
}

/// Adds a histogram to another.
pub fn add(to: &mut Vec<u64>, from: &[u64]) {
    to.resize(to.len().max(from.len()), 0);
    to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
}

/// Quantiles of a histogram, in us; null without values.
pub fn latency_us(counts: &[u64], max_ns: u64) -> Value {
    let quantile = |q| rnet::quantile(counts, q).map(|ns| ns.min(max_ns) as f64 / 1e3);
    json!({
        "p50": quantile(0.5),
        "p99": quantile(0.99),
        "p999": quantile(0.999),
        "max": quantile(1.0),
    })
}

impl Rates {
    /// One row per topic, for the time since the last call.
    pub fn rows(&mut self, snapshot: &Snapshot, now_ns: u64) -> Value {
        let seconds = now_ns.saturating_sub(self.last_ns) as f64 * 1e-9;
        let mut rows: BTreeMap<&str, (u64, u64, Vec<u64>, u64)> = BTreeMap::new();
        let mut sent_now = HashMap::new();
        for publisher in &snapshot.publishers {
            let before = self.sent.get(&publisher.id).copied().unwrap_or(0);
            sent_now.insert(publisher.id, publisher.sent);
            let row = rows.entry(&publisher.topic).or_default();
            row.0 += publisher.sent.saturating_sub(before);
        }
        let mut latency_now = HashMap::new();
        for subscription in &snapshot.subscriptions {
            let row = rows.entry(&subscription.topic).or_default();
            let mut counts = Vec::new();
            let mut longest = 0;
            for channel in channels(subscription) {
                row.1 += channel.lost.total();
                longest = longest.max(channel.max_latency_ns);
                add(&mut counts, &channel.latency);
            }
            if !is_sampler(subscription) {
                let mut since = counts.clone();
                if let Some(before) = self.latency.get(&subscription.id) {
                    since.iter_mut().zip(before).for_each(|(now, b)| *now = now.saturating_sub(*b));
                }
                add(&mut row.2, &since);
                row.3 = row.3.max(longest);
            }
            latency_now.insert(subscription.id, counts);
        }
        let first = self.last_ns == 0;
        (self.last_ns, self.sent, self.latency) = (now_ns, sent_now, latency_now);
        rows.into_iter()
            .map(|(topic, (sent, lost, counts, longest))| {
                json!({
                    "topic": topic,
                    "rate_hz": if first { 0.0 } else { sent as f64 / seconds },
                    "lost": lost,
                    "latency_us": latency_us(&counts, longest),
                })
            })
            .collect()
    }
}
