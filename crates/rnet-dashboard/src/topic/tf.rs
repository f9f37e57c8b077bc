//! The tree of frames, from all topics with transforms.

use std::collections::BTreeMap;
use std::time::Instant;

use prost::Message as _;
use rnet::TypeDesc;
use rnet::inspect::ObservedMessage;
use rnet::msgs::{FrameTransform, FrameTransforms};
use serde_json::{Value as Json, json};

use super::ros2;
use super::sink::{MAX_NAME_LEN_BYTES, RateLimiter, TopicSink};
use crate::outbox::Output;

/// Maximum number of frames.
const MAX_FRAMES: usize = 1_024;

pub struct TfSink {
    output: Output,
    rate_limiter: RateLimiter,
    frames: BTreeMap<String, Json>,
    has_changed: bool,
}

impl TfSink {
    pub fn new(output: Output, hz: f64) -> TfSink {
        // The first item tells the page at once that no frames exist yet.
        let (frames, has_changed) = (BTreeMap::new(), true);
        TfSink { output, rate_limiter: RateLimiter::new(hz), frames, has_changed }
    }

    fn put(&mut self, transform: FrameTransform, node: &str, sent_s: f64) {
        let FrameTransform { parent_frame_id, child_frame_id, translation, rotation, .. } =
            transform;
        if child_frame_id.len().max(parent_frame_id.len()) > MAX_NAME_LEN_BYTES {
            return;
        }
        if self.frames.len() >= MAX_FRAMES && !self.frames.contains_key(&child_frame_id) {
            return;
        }
        let t = translation.unwrap_or_default();
        // A missing rotation is the identity, and not four zeros.
        let r = rotation.map_or([0.0, 0.0, 0.0, 1.0], |r| [r.x, r.y, r.z, r.w]);
        let frame = json!({
            "frame": child_frame_id,
            "parent": parent_frame_id,
            "translation": [t.x, t.y, t.z],
            "rotation": r,
            "sent_s": sent_s,
            "node": node,
        });
        self.frames.insert(child_frame_id, frame);
        self.has_changed = true;
    }
}

/// Whether a topic carries transforms.
pub fn is_transform(_: &str, desc: &TypeDesc) -> bool {
    let transforms = ["foxglove.FrameTransform", "foxglove.FrameTransforms", ros2::TRANSFORMS];
    desc.name().is_some_and(|name| transforms.contains(&name))
}

impl TopicSink for TfSink {
    fn message(&mut self, observed: &ObservedMessage<'_>, bytes: &[u8], sent_s: f64) {
        let all = match observed.type_desc.name() {
            Some(ros2::TRANSFORMS) => ros2::transforms(observed, bytes).ok(),
            Some("foxglove.FrameTransforms") => {
                FrameTransforms::decode(bytes).ok().map(|all| all.transforms)
            }
            _ => FrameTransform::decode(bytes).ok().map(|one| vec![one]),
        };
        for transform in all.unwrap_or_default() {
            self.put(transform, observed.node, sent_s);
        }
    }

    fn tick(&mut self, now: Instant, _: f64) {
        self.has_changed |= self.output.take_needs_full();
        if self.has_changed && self.rate_limiter.take(now) {
            self.has_changed = false;
            let frames: Vec<&Json> = self.frames.values().collect();
            self.output.replace(json!({"frames": frames}).to_string());
        }
    }
}
