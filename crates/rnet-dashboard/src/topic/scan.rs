//! Laser scans.

use std::sync::Arc;
use std::time::Instant;

use prost::Message as _;
use rnet::inspect::Heard;
use rnet::msgs::LaserScan;
use serde_json::json;

use super::sink::{Pace, TopicSink, Wants};
use crate::outbox::Outbox;
use crate::wire::{MAX_CLOUD_POINTS, Refusal};

pub struct ScanSink {
    sub: u64,
    outbox: Arc<Outbox>,
    topic: String,
    pace: Pace,
    told: bool,
}

impl ScanSink {
    pub fn new(sub: u64, outbox: Arc<Outbox>, topic: String, hz: f64) -> ScanSink {
        ScanSink { sub, outbox, topic, pace: Pace::new(hz), told: false }
    }
}

impl TopicSink for ScanSink {
    fn wants(&self) -> Wants {
        Wants::Topic(self.topic.clone())
    }

    fn message(&mut self, heard: &Heard<'_>, bytes: &[u8], sent_s: f64) {
        if !self.pace.take(Instant::now()) {
            return;
        }
        let is_one = heard.type_desc.name() == Some("foxglove.LaserScan");
        let scan = if is_one { LaserScan::decode(bytes).ok() } else { None };
        let Some(scan) = scan else {
            if !std::mem::replace(&mut self.told, true) {
                let why = format!("{} is no laser scan", heard.type_desc);
                self.outbox.trouble(self.sub, &Refusal::failed(why), false);
            }
            return;
        };
        let every = scan.ranges.len().div_ceil(MAX_CLOUD_POINTS).max(1);
        let ranges: Vec<u8> = scan
            .ranges
            .iter()
            .step_by(every)
            .flat_map(|range| (*range as f32).to_le_bytes())
            .collect();
        let head = json!({
            "ranges": ranges.len() / 4,
            "angle_min": scan.start_angle,
            "angle_max": scan.end_angle,
            "frame_id": scan.frame_id,
            "node": heard.node,
            "seq": heard.stamp.seq,
            "sent_s": sent_s,
        });
        self.outbox.binary(self.sub, head.to_string(), ranges);
    }

    fn tick(&mut self, _: Instant, _: f64) {}
}
