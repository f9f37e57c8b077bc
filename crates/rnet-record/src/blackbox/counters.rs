//! Triggers without a message: nodes that die, messages that are lost, deadlines that are missed.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rnet::NodeEvent;
use rnet::inspect::{Domain, Location, Snapshot, SubscriptionInfo};

use super::trigger::{Trigger, TriggerKind, pattern_matches};
use super::trigger_queue::{FiredTrigger, TriggerQueue};

/// Interval between two polls.
const INTERVAL: Duration = Duration::from_millis(100);

/// A condition that persists fires once, and again after it was absent for this long.
pub const QUIET_PERIOD: Duration = Duration::from_secs(1);

/// Lost messages and missed deadlines of an endpoint at the last poll.
type EndpointCounts = BTreeMap<u64, (u64, u64)>;

/// Tells which nodes are expected to exit: those of sessions whose processes are being stopped.
#[derive(Clone)]
pub struct ExpectedExits {
    session: fn(i32) -> Option<i32>,
    is_meant: Arc<dyn Fn(i32) -> bool + Send + Sync>,
}

impl ExpectedExits {
    /// `session` returns the session id of a running process. `is_meant` returns whether the processes of a
    /// session are expected to exit; it is called after one of them has died.
    pub fn new(
        session: fn(i32) -> Option<i32>,
        is_meant: impl Fn(i32) -> bool + Send + Sync + 'static,
    ) -> ExpectedExits {
        ExpectedExits { session, is_meant: Arc::new(is_meant) }
    }
}

impl fmt::Debug for ExpectedExits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExpectedExits").finish_non_exhaustive()
    }
}

pub struct CounterTriggers {
    /// For deaths; a snapshot would mark past events as seen.
    domain: Domain,
    snapshot_domain: Domain,
    triggers: Vec<Trigger>,
    expected: Option<ExpectedExits>,
    /// The sessions of the nodes' processes: the session of a process that has exited is unknown.
    sessions: BTreeMap<String, i32>,
    /// The sessions before the last update: a node may have exited between the update and the check for
    /// deaths.
    sessions_before: BTreeMap<String, i32>,
    polled_at: Option<Instant>,
    counts: EndpointCounts,
    /// When an endpoint last lost messages (`false`) or missed a deadline (`true`).
    last_growth: BTreeMap<(u64, bool), Instant>,
}

impl CounterTriggers {
    /// Takes a first snapshot of the domain, so that earlier events fire nothing.
    pub fn new(
        location: &Location,
        triggers: &[Trigger],
        expected: Option<ExpectedExits>,
    ) -> rnet::Result<CounterTriggers> {
        let of_counters = |trigger: &&Trigger| {
            matches!(
                trigger.kind,
                TriggerKind::Death(_) | TriggerKind::Loss(_) | TriggerKind::Deadline(_)
            )
        };
        let triggers = triggers.iter().filter(of_counters).cloned().collect();
        let (domain, snapshot_domain) = (location.domain()?, location.domain()?);
        let mut counters = CounterTriggers {
            domain,
            snapshot_domain,
            triggers,
            expected,
            sessions: BTreeMap::new(),
            sessions_before: BTreeMap::new(),
            polled_at: None,
            counts: EndpointCounts::new(),
            last_growth: BTreeMap::new(),
        };
        counters.domain.node_events()?;
        counters.learn_sessions();
        counters.count(None)?;
        Ok(counters)
    }

    /// A snapshot of the domain.
    pub fn snapshot(&mut self) -> rnet::Result<Snapshot> {
        self.snapshot_domain.snapshot()
    }

    /// Polls, if the interval has elapsed.
    pub fn poll(&mut self, trigger_queue: &TriggerQueue) {
        if self.triggers.is_empty() || self.polled_at.is_some_and(|at| at.elapsed() < INTERVAL) {
            return;
        }
        self.polled_at = Some(Instant::now());
        let polled_at = self.domain.node_events().map(|events| {
            for event in &events {
                match event {
                    NodeEvent::Died(node) if !self.is_expected(node) => {
                        let is_it =
                            |what: &TriggerKind| matches!(what, TriggerKind::Death(p) if pattern_matches(p, node));
                        self.fire(trigger_queue, || format!("{node} has died"), is_it);
                    }
                    _ => {}
                }
            }
            if !events.is_empty() {
                self.learn_sessions();
            }
        });
        if let Err(error) = polled_at.and_then(|()| self.count(Some(trigger_queue))) {
            trigger_queue
                .note(format!("deaths, losses and missed deadlines cannot be monitored: {error}"));
        }
    }

    /// Whether the node is expected to exit.
    pub fn is_expected(&self, node: &str) -> bool {
        let session = self.sessions.get(node).or_else(|| self.sessions_before.get(node));
        session.zip(self.expected.as_ref()).is_some_and(|(session, of)| (of.is_meant)(*session))
    }

    fn learn_sessions(&mut self) {
        let Some(expected) = &self.expected else { return };
        let Ok(snapshot) = self.snapshot_domain.snapshot() else { return };
        let own = snapshot.nodes.iter().filter(|node| node.meta.is_in_our_pid_namespace());
        let known = own.filter_map(|node| {
            let session = (expected.session)(i32::try_from(node.meta.pid).ok()?)?;
            Some((node.meta.name.clone(), session))
        });
        self.sessions_before = std::mem::replace(&mut self.sessions, known.collect());
    }

    fn count(&mut self, trigger_queue: Option<&TriggerQueue>) -> rnet::Result<()> {
        let is_counted =
            |t: &Trigger| matches!(t.kind, TriggerKind::Loss(_) | TriggerKind::Deadline(_));
        if !self.triggers.iter().any(is_counted) {
            return Ok(());
        }
        let snapshot = self.snapshot_domain.snapshot()?;
        let mut counts = EndpointCounts::new();
        for of in &snapshot.publishers {
            counts.insert(of.id, (0, of.deadline_missed));
            self.compare(trigger_queue, of.id, &counts, &of.topic, &of.node);
        }
        for of in &snapshot.subscriptions {
            counts.insert(of.id, total_counts(of));
            self.compare(trigger_queue, of.id, &counts, &of.topic, &of.node);
        }
        self.counts = counts;
        self.last_growth.retain(|_, at| at.elapsed() < QUIET_PERIOD);
        Ok(())
    }

    fn compare(
        &mut self,
        trigger_queue: Option<&TriggerQueue>,
        id: u64,
        counts: &EndpointCounts,
        topic: &str,
        node: &str,
    ) {
        let Some(trigger_queue) = trigger_queue else { return };
        let (lost, missed) = counts.get(&id).copied().unwrap_or_default();
        let (lost_before, missed_before) = self.counts.get(&id).copied().unwrap_or_default();
        if lost > lost_before && self.is_new_growth(id, false) {
            let why = || format!("{node} has lost {} messages of {topic}", lost - lost_before);
            self.fire(
                trigger_queue,
                why,
                |what| matches!(what, TriggerKind::Loss(p) if pattern_matches(p, topic)),
            );
        }
        if missed > missed_before && self.is_new_growth(id, true) {
            let why = || format!("{topic} has missed its deadline in {node}");
            self.fire(
                trigger_queue,
                why,
                |what| matches!(what, TriggerKind::Deadline(p) if pattern_matches(p, topic)),
            );
        }
    }

    /// Whether the counter did not grow during the quiet period.
    fn is_new_growth(&mut self, id: u64, is_deadline: bool) -> bool {
        let before = self.last_growth.insert((id, is_deadline), Instant::now());
        before.is_none_or(|at| at.elapsed() >= QUIET_PERIOD)
    }

    fn fire(
        &self,
        trigger_queue: &TriggerQueue,
        why: impl Fn() -> String,
        is_it: impl Fn(&TriggerKind) -> bool,
    ) {
        for trigger in self.triggers.iter().filter(|trigger| is_it(&trigger.kind)) {
            let (name, at_ns) = (trigger.to_string(), rnet::now_ns());
            trigger_queue.push(FiredTrigger { name, why: why(), at_ns }, None);
        }
    }
}

/// Sums all publishers: the counts of a publisher that is gone move to `past`, and are not new.
fn total_counts(of: &SubscriptionInfo) -> (u64, u64) {
    of.channels.iter().chain(&of.past).fold((0, 0), |(lost, missed), channel| {
        (lost + channel.lost.total(), missed + channel.deadline_missed)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_session_of_node_that_just_exited() {
        let dir = std::env::temp_dir().join(format!("rnet-counters-{}", std::process::id()));
        std::fs::create_dir(&dir).unwrap();
        let node = rnet::Node::builder("/n").dir(&dir).domain("counters").open().unwrap();
        let location = Location::new(Some("counters"), Some(dir.clone()), None).unwrap();
        let expected = ExpectedExits::new(|_| Some(7), |session| session == 7);
        let mut counters = CounterTriggers::new(&location, &[], Some(expected)).unwrap();
        drop(node);
        counters.learn_sessions();
        assert!(counters.sessions.is_empty() && counters.is_expected("/n"));
        // The next events report the exit; then the session is no longer needed.
        counters.learn_sessions();
        assert!(!counters.is_expected("/n"));
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
