//! Feeds the inputs one by one, each with its time, and collects the outputs.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use rnet::inspect::Observed;

use super::RerunOptions;
use super::calls::{CallTopic, CallTopicKind};
use super::compare::Comparison;
use super::error::RerunError;
use super::node::{CLOCK_TOPIC, TestedNode};
use super::simulated_servers::NodeRequest;
use super::state::StateChange;
use crate::names;
use crate::play::DueMessage;
use crate::read::Recording;

/// Interval between two polls for a late answer.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Feeds inputs to a node.
pub struct InputFeeder<'a> {
    tested: TestedNode,
    recording: &'a Recording,
    counts: BTreeMap<String, u64>,
    /// Number of state changes.
    changes: u64,
    /// Times of the first and the last input in the recording.
    times: Option<(u64, u64)>,
    limit: Duration,
    bytes: Vec<u8>,
}

impl<'a> InputFeeder<'a> {
    /// Messages that the node has published at its start precede the first input, and are not compared.
    pub fn open(
        tested: TestedNode,
        recording: &'a Recording,
        options: &RerunOptions,
    ) -> Result<Self, RerunError> {
        let counts = tested.input_topics.iter().map(|topic| (topic.clone(), 0)).collect();
        let (times, bytes, limit) = (None, Vec::new(), options.timeout);
        let mut feed = Self { tested, recording, counts, changes: 0, times, limit, bytes };
        feed.process_outputs(None)?;
        Ok(feed)
    }

    /// The topics that are read from the recording.
    pub fn topics(&self) -> Vec<String> {
        let state = [names::STATE_TOPIC.to_owned()];
        let calls = &self.tested.calls;
        let is_call = |topic: &&String| {
            let of = CallTopic::parse(topic);
            of.is_some_and(|of| calls.is_served(&of) || calls.is_answer(&of))
        };
        let topics = self.recording.channels().map(|channel| &channel.topic);
        let calls: BTreeSet<&String> = topics.filter(is_call).collect();
        self.tested.input_topics.iter().chain(calls).cloned().chain(state).collect()
    }

    pub fn own_channels(&self) -> BTreeSet<u16> {
        self.tested.own_channels(self.recording)
    }

    /// Publishes an input, waits until the node is idle, and collects its outputs.
    pub fn step(
        &mut self,
        due: &DueMessage,
        comparison: &mut Comparison<'_>,
    ) -> Result<(), RerunError> {
        let message = &due.message;
        let topic = &message.channel.topic;
        if topic == names::STATE_TOPIC {
            return self.change(due, comparison);
        }
        if let (Some(of), false) =
            (CallTopic::parse(topic), self.tested.input_topics.contains(topic))
        {
            return match due.meta.correlation {
                Some(correlation) => self.call(due, &of, correlation, comparison),
                None => Ok(()),
            };
        }
        let (start, now) = self.advance_to(due, comparison)?;
        let publishers = &mut self.tested.publishers;
        let Some(publisher) = publishers.iter_mut().find_map(|p| p.of(message.channel.id)) else {
            return Ok(());
        };
        // A message that does not match its type is sent unchanged: the node under test has to reject it.
        let content = message.content().unwrap_or(Cow::Borrowed(message.data()));
        publisher.send_with(&content, due.meta)?;
        *self.counts.entry(topic.clone()).or_default() += 1;
        let after = || {
            let at = now.saturating_sub(start) as f64 / 1e9;
            format!(
                "after message {} of {topic}, {at:.6} s after the first input",
                message.sequence()
            )
        };
        self.tested.wait_until_idle(Some(topic), self.limit, &after)?;
        self.process_outputs(Some(comparison))
    }

    /// Advances the time to an input; the first input begins the comparison. Returns the times of the first
    /// input and of this one.
    fn advance_to(
        &mut self,
        due: &DueMessage,
        comparison: &mut Comparison<'_>,
    ) -> Result<(u64, u64), RerunError> {
        self.tested.check_alive(&|| format!("before message {}", due.message.sequence()))?;
        if self.times.is_none() {
            comparison.begin(due.at_ns);
            self.tested.servers.begin(due.at_ns)?;
        }
        let (start, before) = self.times.unwrap_or((due.at_ns, due.at_ns));
        let now = before.max(due.at_ns);
        self.times = Some((start, now));
        self.advance_clock(now, comparison)?;
        Ok((start, now))
    }

    /// Sends a recorded request to a service of the node, or an answer to its own request.
    fn call(
        &mut self,
        due: &DueMessage,
        of: &CallTopic<'_>,
        correlation: u64,
        comparison: &mut Comparison<'_>,
    ) -> Result<(), RerunError> {
        let message = &due.message;
        let is_answer = !matches!(of.kind, CallTopicKind::Request | CallTopicKind::Control);
        if is_answer && self.times.is_none() {
            // Requests of the start were already answered.
            return Ok(());
        }
        let (start, now) = self.advance_to(due, comparison)?;
        let at = now.saturating_sub(start) as f64 / 1e9;
        let after = || format!("after a {}, {at:.6} s after the first input", of.label());
        let (node, limit) = (&self.tested.node, self.limit);
        if is_answer {
            let given = self.tested.servers.deliver(of, correlation, message.data())?;
            let Some(topic) = given else { return Ok(()) };
            self.tested.wait_until_idle(Some(&topic), limit, &after)?;
        } else {
            let sent = self.tested.clients.send(message, correlation, node, limit)?;
            let Some(sent) = sent else { return Ok(()) };
            self.tested.wait_until_idle(Some(&sent.topic), limit, &after)?;
            if !sent.unmatched.is_empty() {
                self.tested.wait_for_match(&sent.unmatched, limit)?;
                self.tested.wait_until_idle(None, limit, &after)?;
            }
        }
        *self.counts.entry(of.label()).or_default() += 1;
        self.process_outputs(Some(comparison))
    }

    /// Applies a state change of another node, and waits until the node is idle.
    fn change(
        &mut self,
        due: &DueMessage,
        comparison: &mut Comparison<'_>,
    ) -> Result<(), RerunError> {
        let Some(change) = StateChange::read(due.message.data()) else { return Ok(()) };
        if change.is_before(self.tested.start_ns) || change.node == self.tested.recorded {
            return Ok(());
        }
        self.tested.check_alive(&|| "before a change of the state".to_owned())?;
        if let Some((start, before)) = self.times {
            let now = before.max(due.at_ns);
            self.times = Some((start, now));
            self.advance_clock(now, comparison)?;
        }
        change.set(&self.tested.node)?;
        self.changes += 1;
        self.tested
            .wait_until_idle(None, self.limit, &|| format!("after {} was set", change.key()))?;
        let comparison = self.times.is_some().then_some(comparison);
        self.process_outputs(comparison)
    }

    /// Advances the clock in equal steps, up to the next input.
    fn advance_clock(
        &mut self,
        ns: u64,
        comparison: &mut Comparison<'_>,
    ) -> Result<(), RerunError> {
        let at = || format!("after {CLOCK_TOPIC} advanced to {ns}");
        loop {
            let Some(clock) = &mut self.tested.clock else { return Ok(()) };
            let tick = clock.due(ns).unwrap_or(ns);
            clock.tick(tick)?;
            self.tested.wait_until_idle(Some(CLOCK_TOPIC), self.limit, &at)?;
            self.process_outputs(Some(comparison))?;
            if tick == ns {
                return Ok(());
            }
        }
    }

    /// Collects the outputs of the node, and answers its requests. Without a comparison, outputs are
    /// discarded.
    fn process_outputs(
        &mut self,
        comparison: Option<&mut Comparison<'_>>,
    ) -> Result<(), RerunError> {
        let Some(comparison) = comparison else {
            return self.tested.answer_early(self.recording, self.limit);
        };
        loop {
            let asked = self.compare_outputs(comparison)?;
            if asked.is_empty() {
                return Ok(());
            }
            for request in asked {
                let TestedNode { servers, node, .. } = &mut self.tested;
                for topic in servers.answer(node, &request, self.limit)? {
                    let after = || format!("after an answer of {}", request.service);
                    self.tested.wait_until_idle(Some(&topic), self.limit, &after)?;
                }
            }
        }
    }

    /// Compares the outputs of the node. Returns its requests.
    fn compare_outputs(
        &mut self,
        comparison: &mut Comparison<'_>,
    ) -> Result<Vec<NodeRequest>, RerunError> {
        let mut asked = Vec::new();
        while let Some(passed) = self.tested.follow.poll_all(&mut self.bytes)? {
            let observed = match passed {
                Observed::Message(observed) => observed,
                Observed::Missed { missed, topic, .. } => {
                    let text = format!(
                        "{} messages of {topic} were missed: the node publishes more for one input than its \
                         log holds",
                        missed.count
                    );
                    return Err(RerunError::failed("lost", text));
                }
            };
            comparison.add(&observed, &self.bytes)?;
            let (Some(of), Some(correlation)) =
                (CallTopic::parse(observed.topic), observed.meta.correlation)
            else {
                continue;
            };
            match of.kind {
                CallTopicKind::Request if self.tested.servers.serves(&of) => {
                    let (service, content) = (of.service.to_owned(), self.bytes.clone());
                    let request = NodeRequest { service, correlation, content };
                    asked.push((observed.stamp.sent_ns, request));
                }
                CallTopicKind::Request | CallTopicKind::Control => {}
                _ => self.tested.clients.note_answer(&of, correlation),
            }
        }
        // Requests of different clients are ordered by time only.
        asked.sort_by_key(|(sent_ns, _)| *sent_ns);
        Ok(asked.into_iter().map(|(_, request)| request).collect())
    }

    /// Checks that the node got an input.
    pub fn check_has_input(
        &self,
        recording: &Recording,
        options: &RerunOptions,
    ) -> Result<(), RerunError> {
        if self.counts.values().any(|count| *count > 0) {
            return Ok(());
        }
        let (first, last) = recording.info().times.unwrap_or_default();
        let after = |ns: u64| ns.saturating_sub(first) as f64 / 1e9;
        let mut when = Vec::new();
        when.extend(options.start_ns.map(|ns| format!("from {} s on", after(ns))));
        when.extend(options.end_ns.map(|ns| format!("before {} s", after(ns))));
        let when = if when.is_empty() { "at all".to_owned() } else { when.join(" and ") };
        let topics = Vec::from_iter(self.tested.input_topics.iter().map(String::as_str)).join(", ");
        let (node, seconds) = (&self.tested.name, after(last));
        let text = format!(
            "the recording has no message of {topics} {when}, so {node} has no input; the recording lasts \
             {seconds:.3} s"
        );
        Err(RerunError::failed("no_messages", text))
    }

    /// Waits for late answers, and reports those that are missing.
    pub fn end(
        &mut self,
        comparison: &mut Comparison<'_>,
        options: &RerunOptions,
    ) -> Result<(), RerunError> {
        let begun = Instant::now();
        loop {
            self.process_outputs(Some(comparison))?;
            let (is_any, owed) = comparison.outstanding()?;
            let limit = if is_any { options.settle } else { options.timeout };
            // Read once: with an answer, the end of the limit is the end of the wait and not an error.
            let is_over = begun.elapsed() >= limit;
            if owed.is_empty() || is_any && is_over {
                break;
            }
            self.tested.check_alive(&|| "after the last input".to_owned())?;
            if is_over {
                let (node, inputs) = (&self.tested.name, self.counts.values().sum::<u64>());
                let text = format!(
                    "{node} does not answer: it received {inputs} messages and published nothing on {} for \
                     {limit:?}",
                    owed.join(", ")
                );
                return Err(RerunError::TimedOut { code: "no_answer", text });
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        match options.inputs.is_empty() {
            true => self.tested.check_late(self.recording),
            false => Ok(()),
        }
    }

    /// Name of the node, and the inputs fed.
    pub fn summary(self) -> (String, BTreeMap<String, u64>, (u64, u64)) {
        (self.tested.name.clone(), self.counts, (self.tested.keys, self.changes))
    }
}
