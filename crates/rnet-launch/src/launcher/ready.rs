//! The readiness of nodes.

use std::collections::BTreeSet;

use rnet::NodeName;
use rnet::inspect::Snapshot;

use super::Launcher;
use crate::identity::session;
use crate::node::Ready;
use crate::record::Record;
use crate::slot::{NodeState, Slot};

impl Launcher<'_> {
    pub(super) fn check_readiness(&mut self) {
        let asks =
            |slot: &Slot| slot.may_become_ready() && matches!(slot.node.ready, Ready::Publishes(_));
        let snapshot = match self.slots.iter().any(asks) {
            true => self.snapshot(),
            false => None,
        };
        let mut late = Vec::new();
        for slot in &mut self.slots {
            if !slot.may_become_ready() {
                continue;
            }
            let missing = match &slot.node.ready {
                Ready::Started => None,
                Ready::Exited => Some("it has not exited".to_owned()),
                Ready::Notified => {
                    let record = Record::read(&self.folder, &slot.node.name);
                    let is_ready = record.is_some_and(|record| record.is_ready);
                    (!is_ready).then(|| "it has not reported readiness on RNET_READY_FD".to_owned())
                }
                Ready::Publishes(topics) => {
                    let published =
                        snapshot.as_ref().map(|all| published(all, slot)).unwrap_or_default();
                    let missing = topics.iter().find(|topic| !published.contains(topic.as_str()));
                    missing.map(|topic| format!("it does not publish {topic}"))
                }
            };
            let name: NodeName = slot.node.name.clone();
            match missing {
                None => {
                    slot.is_ready = true;
                    slot.why.clear();
                    self.context.event(&name, "ready", "");
                }
                Some(why) => {
                    let limit_ms = slot.node.ready_timeout_ms;
                    if !slot.is_delay_reported
                        && slot.since.elapsed().as_millis() >= u128::from(limit_ms)
                    {
                        slot.is_delay_reported = true;
                        slot.why = format!("not ready: {why}");
                        late.push((name, format!("after {} s: {why}", limit_ms as f64 / 1e3)));
                    }
                }
            }
        }
        for (name, why) in late {
            let detail = match self.dependents_of(&name).as_slice() {
                [] => why,
                [one] => format!("{why}; {one} is waiting for it"),
                several => format!("{why}; {} are waiting for it", several.join(", ")),
            };
            self.context.event(&name, "not-ready", &detail);
        }
    }

    /// Nodes that are not started before this one is ready.
    fn dependents_of(&self, name: &NodeName) -> Vec<String> {
        let waits =
            |slot: &&Slot| slot.state == NodeState::Waiting && slot.node.after.contains(name);
        self.slots.iter().filter(waits).map(|slot| slot.node.name.to_string()).collect()
    }

    /// A snapshot of the domain; `None` if it cannot be read.
    pub(super) fn snapshot(&mut self) -> Option<Snapshot> {
        if self.domain.is_none() {
            self.domain = self.context.domain().ok();
        }
        self.domain.as_mut()?.snapshot().ok()
    }
}

/// The topics that the processes of a node publish. The owner of a process in another container is unknown;
/// its topics count.
fn published<'s>(all: &'s Snapshot, slot: &Slot) -> BTreeSet<&'s str> {
    let is_own = |node: &str| {
        let meta = all.node(node).map(|node| &node.meta);
        meta.is_some_and(|meta| {
            !meta.is_in_our_pid_namespace()
                || session(meta.pid as i32).is_some_and(|session| Some(session) == slot.session())
        })
    };
    let own = all.publishers.iter().filter(|publisher| publisher.via.is_none());
    own.filter(|publisher| is_own(&publisher.node))
        .map(|publisher| publisher.topic.as_str())
        .collect()
}
