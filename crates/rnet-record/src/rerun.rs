//! Running one node again on its recorded inputs, and comparing what it publishes with what it published.
//!
//! The node runs in a domain of its own, in which nobody else is but the re-run. It gets its inputs one by one, in the
//! order in which they were sent, and each only when it rests: all threads of its process sleep, and none of them waits
//! for a message that it has not taken. So what it publishes depends on its inputs and on their order alone, not on
//! how fast it or this machine is. Its time is that of the recording, if it follows `/clock`.
//!
//! What counts as an input or an output, and what this cannot see, is docs/design/rerun.md.

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

/// How to run a node again.
#[derive(Clone, Debug)]
pub struct RerunOptions {
    /// Name that the node has in the recording; of none, the name with which it joins.
    pub name: Option<String>,
    /// Topics that the node gets, which it has to subscribe to; of none, all recorded ones that it subscribes to when
    /// it starts, without those that it published itself and those of the library.
    pub inputs: Vec<String>,
    /// Topics that are compared; of none, all that it publishes or published, without those of the library.
    pub outputs: Vec<String>,
    /// What of a message may differ.
    pub tolerances: Tolerances,
    /// The field by whose value an output and its recorded one are found; of none, the first is compared with the first,
    /// and so on. With it, outputs that were not recorded are counted and are no difference: a node in lock step also
    /// answers the inputs that it had no time for when it was recorded.
    pub key: Option<String>,
    /// Leave out the calls that the node made when it was recorded, and those that it answered: nobody makes or answers
    /// them.
    pub without_calls: bool,
    /// From this time of the recording on, in ns since 1970 UTC.
    pub start_ns: Option<u64>,
    /// Up to before this time of the recording, in ns since 1970 UTC.
    pub end_ns: Option<u64>,
    /// How many times a second of the recording `/clock` is published beside the inputs.
    pub clock_hz: f64,
    /// How long the node may take to join, to rest after an input, and to answer at all.
    pub timeout: Duration,
    /// For so long nothing about its endpoints changes when it has started. Outputs that the node still owes at the end
    /// are awaited as long.
    pub settle: Duration,
    /// Keep the values of fields, for a plot.
    pub trace: bool,
    /// Asked now and then: whether to give up, as [`RerunError::Interrupted`].
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

/// What came of it.
#[derive(Debug)]
pub struct RerunReport {
    /// Name of the node.
    pub node: String,
    /// Messages that it got, by topic.
    pub inputs: BTreeMap<String, u64>,
    /// Keys of the recorded state that were set before it was started, and changes of them that it got since.
    pub keys: (u64, u64),
    /// What it published, by topic.
    pub outputs: Vec<TopicResult>,
    /// Calls that it was recorded with and that were left out.
    pub calls: Calls,
    /// How long that took.
    pub took: Duration,
    /// The field that differs the most, if its values were kept.
    pub worst: Option<Trace>,
}

impl RerunReport {
    /// Whether everything was published that was recorded, within the tolerances, and nothing else.
    pub fn is_same(&self) -> bool {
        self.outputs.iter().all(TopicResult::is_same)
    }
}

/// Starts the node by a command, in the domain of `location`, feeds it, and compares what it publishes. The node's
/// process and all of its process group are ended with the call.
///
/// The command is told its domain by the environment, as `rnet rerun` tells it: `RNET_DIR`, `RNET_DOMAIN`, and
/// `RNET_NETWORK=off`.
///
/// # Errors
/// [`RerunError`]: the node does not join, dies, does not rest or never answers; the file says nothing of it or cannot
/// be read.
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
        // What was kept for late joiners is there at the start.
        due.at_ns = due.at_ns.max(options.start_ns.unwrap_or(0));
        feed.step(&due, &mut comparison)?;
    }
    feed.check_has_input(recording, options)?;
    feed.end(&mut comparison, options)?;
    let (node, inputs, keys) = feed.summary();
    let (outputs, worst) = comparison.end()?;
    Ok(RerunReport { node, inputs, keys, outputs, calls, took: begun.elapsed(), worst })
}
