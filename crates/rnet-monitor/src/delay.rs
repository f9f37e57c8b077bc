//! How long messages take, as their subscribers measure it.

use std::collections::HashMap;

use rnet::inspect::{ChannelInfo, Snapshot};
use rnet::msgs::duration_to_ns;
use rnet_format::units;
use serde_json::{Value, json};

use crate::link::{host_of, last_status};

/// A subscription and a publisher, by id.
pub type ChannelKey = (u64, u64);

/// What a subscription measured of a publisher.
pub struct DelayRow {
    /// Node of the subscription.
    pub subscriber: String,
    /// Node of the publisher.
    pub publisher: String,
    /// By how much its times may be wrong, in ns: the publisher is on another host, whose clock is another.
    pub uncertain_ns: Option<u64>,
    /// The counts.
    pub channel: ChannelInfo,
}

/// By how much the clock of each other host may be wrong, in ns, as the link says.
#[must_use]
pub fn clock_uncertainties(snapshot: &Snapshot) -> HashMap<String, u64> {
    let peers = last_status(snapshot).map(|status| status.peers).unwrap_or_default();
    let known = peers.into_iter().filter_map(|peer| {
        let uncertain_ns = duration_to_ns(peer.clock_offset_uncertainty.as_ref()?)?;
        Some((peer.host, uncertain_ns.unsigned_abs()))
    });
    known.collect()
}

/// What the subscriptions of a snapshot have measured.
#[must_use]
pub fn channels(snapshot: &Snapshot, clocks: &HashMap<String, u64>) -> Vec<(ChannelKey, DelayRow)> {
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
#[must_use]
pub fn delta(new: &ChannelInfo, old: Option<&ChannelInfo>) -> ChannelInfo {
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

impl DelayRow {
    /// Cells of these counts: subscriber, publisher, messages, four quantiles, all losses.
    #[must_use]
    pub fn cells(&self, counts: &ChannelInfo) -> Vec<String> {
        let at = |q| counts.quantile_ns(q).map_or_else(|| "-".to_owned(), units::latency);
        vec![
            self.subscriber.clone(),
            self.publisher.clone(),
            counts.received.to_string(),
            at(0.5),
            at(0.99),
            at(0.999),
            at(1.0),
            self.channel.lost.total().to_string(),
        ]
    }

    /// These counts as JSON.
    #[must_use]
    pub fn document(&self, c: &ChannelInfo) -> Value {
        let row = self;
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
}
