//! Who the ten nodes are, and what they say to each other.

use std::path::PathBuf;

use rnet::Plain;
use serde::{Deserialize, Serialize};

pub const STATE: &str = "/robot/state";
pub const TORQUE: &str = "/robot/torque";
pub const ESTIMATE: &str = "/robot/estimate";
pub const FORCE: &str = "/robot/force";
pub const SHUTTER: &str = "/camera/shutter";
pub const IMAGE: &str = "/camera/image";
pub const BATTERY: &str = "/battery/state";
pub const DRIVE: &str = "/operator/drive";
pub const STOP: &str = "/safety/stop";

/// A message of every topic but the camera's. `python/python/rnet/demo.py` has it too, and rnet compares the two.
#[derive(Clone, Copy, Debug, Default, Plain)]
#[repr(C)]
pub struct Signal {
    /// The sender's number of it, from 0: by it each receiver finds out what it missed, without asking rnet.
    pub number: u64,
    /// When the sensor was read, or when that was which it answers, by [`rnet::now_ns`].
    pub read_ns: u64,
    pub values: [f64; 4],
}

impl Signal {
    /// From the bytes of a message; of a picture the number.
    pub fn of(bytes: &[u8]) -> Signal {
        let word = |at: usize| bytes.get(8 * at..).and_then(|rest| rest.first_chunk().copied());
        let number = |at| word(at).map_or(0, u64::from_le_bytes);
        let values = std::array::from_fn(|i| f64::from_bits(number(i + 2)));
        Signal { number: number(0), read_ns: number(1), values }
    }

    pub fn bytes(&self) -> Vec<u8> {
        let words = [self.number, self.read_ns].into_iter().chain(self.values.map(f64::to_bits));
        words.flat_map(u64::to_le_bytes).collect()
    }
}

/// The job of a node's process.
#[derive(Debug, Serialize, Deserialize)]
pub struct DemoJob {
    /// Which of [`NODES`].
    pub node: usize,
    /// How many nodes hear each of the topics that it sends on.
    pub subscriber_counts: Vec<usize>,
    /// The Python that does it, if it is not this program.
    pub python: Option<PathBuf>,
}

impl DemoJob {
    pub fn of(node: usize, python: Option<PathBuf>) -> DemoJob {
        let subscriber_counts =
            NODES[node].publishes.iter().map(|topic| subscriber_count(topic)).collect();
        DemoJob { node, subscriber_counts, python }
    }
}

/// One node.
pub struct NodeSpec {
    pub name: &'static str,
    /// How often it acts by itself; 0 is never.
    pub hz: u64,
    pub publishes: &'static [&'static str],
    pub subscribes: &'static [&'static str],
}

impl NodeSpec {
    pub fn period_ns(&self) -> Option<u64> {
        1_000_000_000_u64.checked_div(self.hz)
    }
}

const fn spec(
    name: &'static str,
    hz: u64,
    publishes: &'static [&'static str],
    subscribes: &'static [&'static str],
) -> NodeSpec {
    NodeSpec { name, hz, publishes, subscribes }
}

/// The one with the model.
pub const SIMULATION: usize = 0;
/// The one that is killed.
pub const CONTROLLER: usize = 1;

pub const NODES: [NodeSpec; 10] = [
    spec("simulation", 1_000, &[STATE, SHUTTER], &[TORQUE]),
    spec("controller", 0, &[TORQUE], &[STATE, DRIVE]),
    spec("estimator", 0, &[ESTIMATE], &[STATE]),
    spec("force", 10_000, &[FORCE], &[STATE]),
    spec("camera", 0, &[IMAGE], &[SHUTTER]),
    spec("battery", 20, &[BATTERY], &[TORQUE]),
    spec("safety", 0, &[STOP], &[STATE, TORQUE, FORCE]),
    spec("operator", 20, &[DRIVE], &[STOP, BATTERY]),
    spec("logger", 0, &[], &[STATE, TORQUE, ESTIMATE, FORCE, SHUTTER, IMAGE, BATTERY, DRIVE, STOP]),
    spec("display", 0, &[], &[IMAGE, ESTIMATE, STOP]),
];

/// How many nodes hear a topic.
pub fn subscriber_count(topic: &str) -> usize {
    NODES.iter().filter(|spec| spec.subscribes.contains(&topic)).count()
}

/// Whether a slow reader may hold up its senders, for a moment: not those that measure.
pub fn is_reliable(topic: &str) -> bool {
    ![FORCE, SHUTTER, IMAGE].contains(&topic)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_topic_has_one_publisher_and_a_subscriber() {
        for topic in NODES.iter().flat_map(|spec| spec.subscribes) {
            let senders = NODES.iter().filter(|spec| spec.publishes.contains(topic));
            assert_eq!(senders.count(), 1, "{topic}");
        }
        let mut sent = NODES.iter().flat_map(|spec| spec.publishes);
        assert!(sent.all(|topic| subscriber_count(topic) > 0));
        assert_eq!(NODES[SIMULATION].name, "simulation");
        assert_eq!(NODES[CONTROLLER].name, "controller");
    }
}
