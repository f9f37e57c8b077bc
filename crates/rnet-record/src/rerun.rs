//! Runs one node again on its recorded inputs, and compares its outputs with the recorded ones.
//!
//! The node runs in a domain of its own, which contains only the node and the re-run. It gets its inputs one
//! by one in the order of sending, and each only when the node is idle: all threads of its process sleep, and
//! none has an unread message. So its outputs depend only on its inputs and their order, and not on the speed
//! of the node or of this machine. If the node follows `/clock`, its time is that of the recording.
//!
//! docs/design/rerun.md defines inputs and outputs, and lists the limits of the method.

mod calls;
mod compare;
mod error;
mod feed;
mod junit;
mod node;
mod quiescence;
mod simulated_clients;
mod simulated_servers;
mod state;
mod text;
mod trace;

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::time::{Duration, Instant};

use rnet::inspect::Location;

use crate::play::OrderedMessages;
use crate::read::{Recording, Select};
pub use calls::Calls;
use compare::Comparison;
pub use compare::{Difference, Tolerance, Tolerances, TopicResult};
pub use error::RerunError;
use feed::InputFeeder;
pub use junit::junit;
use node::TestedNode;
pub use text::{difference_text, result_line};
pub use trace::Trace;

/// Options of a re-run.
#[derive(Clone, Debug)]
pub struct RerunOptions {
    /// Name of the node in the recording; `None` for the name with which it joins.
    pub name: Option<String>,
    /// Topics to feed, which the node must subscribe to. If empty: all recorded topics to which it subscribes
    /// at its start, without its own and those of the library.
    pub inputs: Vec<String>,
    /// Topics to compare. If empty: all topics that the node publishes or published, without those of the
    /// library.
    pub outputs: Vec<String>,
    /// Permitted differences of fields.
    pub tolerances: Tolerances,
    /// The field that pairs outputs with recorded ones by its value; `None` pairs them by order. With a key,
    /// unrecorded outputs are counted and are not a difference: in lock step a node also answers inputs that
    /// it had no time for when it was recorded.
    pub key: Option<String>,
    /// Omit the recorded calls that the node made or answered.
    pub without_calls: bool,
    /// Start time in the recording, in ns since 1970 UTC.
    pub start_ns: Option<u64>,
    /// End time in the recording (exclusive), in ns since 1970 UTC.
    pub end_ns: Option<u64>,
    /// Rate of `/clock` in addition to the inputs, per second of the recording.
    pub clock_hz: f64,
    /// Time limit for the node to join, to become idle after an input, and to answer.
    pub timeout: Duration,
    /// The node has started when its endpoints were unchanged for this long. Outputs that are missing at the
    /// end are awaited for the same time.
    pub settle: Duration,
    /// Keep the values of fields, for a plot.
    pub trace: bool,
    /// Polled: whether to abort with [`RerunError::Interrupted`].
    pub stop: fn() -> bool,
}

impl Default for RerunOptions {
    fn default() -> Self {
        Self {
            name: None,
            inputs: Vec::new(),
            outputs: Vec::new(),
            tolerances: Tolerances::default(),
            key: None,
            without_calls: false,
            start_ns: None,
            end_ns: None,
            clock_hz: 100.0,
            timeout: Duration::from_secs(10),
            settle: Duration::from_millis(500),
            trace: false,
            stop: || false,
        }
    }
}

/// Result of a re-run.
#[derive(Debug)]
pub struct RerunReport {
    /// Name of the node.
    pub node: String,
    /// Number of messages fed, by topic.
    pub inputs: BTreeMap<String, u64>,
    /// Number of state keys set before the start, and of changes fed after it.
    pub keys: (u64, u64),
    /// Result of each output topic.
    pub outputs: Vec<TopicResult>,
    /// Recorded calls that were omitted.
    pub calls: Calls,
    /// Duration of the re-run.
    pub took: Duration,
    /// The values of the field with the largest difference, if they were kept.
    pub worst: Option<Trace>,
}

impl RerunReport {
    /// Whether exactly the recorded messages were published, within the tolerances.
    pub fn is_same(&self) -> bool {
        self.outputs.iter().all(TopicResult::is_same)
    }
}

/// Starts the node with a command in the domain of `location`, feeds it, and compares its outputs. The
/// process group of the node is terminated before this returns.
///
/// The environment passes the domain to the command, as `rnet rerun` does: `RNET_DIR`, `RNET_DOMAIN`, and
/// `RNET_NETWORK=off`.
///
/// # Errors
/// [`RerunError`]: the node does not join, dies, does not become idle or never answers; the file does not
/// contain the node or cannot be read.
pub fn rerun(
    recording: &Recording,
    location: &Location,
    command: &mut Command,
    options: &RerunOptions,
) -> Result<RerunReport, RerunError> {
    let begun = Instant::now();
    node::check_inputs(recording, options, &BTreeSet::new())?;
    let tested = TestedNode::join(recording, location, command, options)?;
    let calls = match options.without_calls {
        true => Calls::of(recording, &tested.recorded),
        false => Calls::default(),
    };
    let recorded = (tested.recorded.clone(), tested.calls.clone());
    let authorities = tested.servers.authorities();
    let mut comparison = Comparison::new(recording, recorded, authorities, options);
    let mut feed = InputFeeder::open(tested, recording, options)?;
    let select = Select {
        topics: feed.topics(),
        excluded_channels: feed.own_channels(),
        start_ns: options.start_ns,
        end_ns: options.end_ns,
        with_latched: true,
        ..Select::default()
    };
    for due in OrderedMessages::new(recording, select) {
        let mut due = due?;
        // Messages kept for late joiners exist at the start.
        due.at_ns = due.at_ns.max(options.start_ns.unwrap_or(0));
        feed.step(&due, &mut comparison)?;
    }
    feed.check_has_input(recording, options)?;
    feed.end(&mut comparison, options)?;
    let (node, inputs, keys) = feed.summary();
    let (outputs, worst) = comparison.end()?;
    Ok(RerunReport { node, inputs, keys, outputs, calls, took: begun.elapsed(), worst })
}
