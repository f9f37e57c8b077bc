//! The shutdown of a launch: the order of stops, and the nodes that remain.

use rnet::NodeName;

use super::Launcher;
use crate::record::{Record, lock};
use crate::slot::{NodeState, Slot};

/// Checks for the record of a keeper that has its node already, while a launch is being stopped, once per
/// round: 5 s.
const MAX_FINAL_RECORD_CHECKS: u32 = 50;

impl Launcher<'_> {
    /// Stops the nodes that no other running node depends on: the last first.
    pub(super) fn stop_next(&mut self) {
        for at in 0..self.slots.len() {
            if matches!(self.slots[at].state, NodeState::Waiting | NodeState::Backoff(_)) {
                self.cancel_start(at);
            }
        }
        self.stop_companions();
        let running = self.slots.iter().filter(|slot| slot.is_running());
        let needed: Vec<NodeName> = running.flat_map(|slot| slot.node.after.clone()).collect();
        for slot in
            self.slots.iter_mut().filter(|slot| slot.is_running() && !slot.node.is_companion)
        {
            if !needed.contains(&slot.node.name) {
                slot.stop();
            }
        }
    }

    /// Cancels the start of a node. It may run all the same: started by an earlier launch, and not adopted
    /// yet.
    fn cancel_start(&mut self, at: usize) {
        let slot = &mut self.slots[at];
        let record = Record::read(&self.folder, &slot.node.name);
        let is_kept = lock(&self.folder.lock(&slot.node.name)).is_ok_and(|lock| lock.is_none());
        match record.filter(|_| is_kept) {
            Some(record) if record.file != self.plan.file => slot.enter(NodeState::Ended),
            // Without a keeper it has exited, or the record is of the previous one: the next check decides.
            Some(record) => {
                if let Some(keeper) = record.keeper() {
                    slot.set_running(&record, keeper, None);
                }
            }
            // Its keeper is about to write its record; if it does not, no keeper can be asked to stop.
            None if is_kept && slot.record_checks < MAX_FINAL_RECORD_CHECKS => {
                slot.record_checks += 1
            }
            None if is_kept => {
                let record = self.folder.record(&slot.node.name);
                slot.why =
                    format!("it keeps running: its record {} cannot be read", record.display());
                slot.enter(NodeState::GivenUp);
            }
            None => slot.enter(NodeState::Ended),
        }
    }

    /// Stops the companions once no other node is active.
    pub(super) fn stop_companions(&mut self) {
        if !self.has_active_nodes() {
            self.slots.iter_mut().filter(|slot| slot.node.is_companion).for_each(Slot::stop);
        }
    }

    /// Clears the failure of a node that the file no longer has.
    pub(super) fn mark_stopped(&mut self, node: &NodeName) {
        if let Err(error) = Record::mark_stopped(&self.folder, node) {
            self.context.say(&error.to_string());
        }
    }

    /// Clears earlier failures after a stop.
    pub(super) fn mark_all_stopped(&mut self) {
        let records = match self.is_stopping {
            true => Record::all(&self.folder),
            false => Vec::new(),
        };
        for record in records {
            if record.file == self.plan.file {
                self.mark_stopped(&record.node);
            }
        }
    }

    /// The nodes that still run.
    pub(super) fn still_running(&self) -> Vec<(NodeName, String)> {
        let running = self.slots.iter().filter(|slot| slot.is_running() && !slot.has_exited());
        let describe = |slot: &Slot| {
            let after_s = slot.node.process.stop_time().as_secs_f64();
            let fate = match slot.is_stopping {
                true => format!("asked to stop; killed after {after_s} s"),
                false => "not asked to stop; stop it with rnet node stop".to_owned(),
            };
            let pid = slot.pid.map_or_else(|| "pid unknown".to_owned(), |pid| format!("pid {pid}"));
            (slot.node.name.clone(), format!("{pid}, {fate}"))
        };
        running.map(describe).chain(self.running_failure_commands()).collect()
    }
}
