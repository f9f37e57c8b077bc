//! Handles a changed file: removed nodes are stopped, changed ones are restarted, and all others continue.

use super::Launcher;
use crate::file::{Plan, load};
use crate::slot::{AfterExit, NodeState, Slot};

/// The files as they were read.
#[derive(Debug, Default)]
pub(super) struct FileSnapshot {
    texts: Vec<Option<String>>,
    /// The mistake that was reported.
    reported_error: Option<String>,
}

impl Launcher<'_> {
    pub(super) fn reload_if_changed(&mut self) {
        let Some(snapshot) = &mut self.file_snapshot else { return };
        let read = self.plan.read.iter();
        let texts: Vec<_> = read.map(|(path, _)| std::fs::read_to_string(path).ok()).collect();
        let is_new =
            self.plan.read.iter().zip(&texts).any(|((_, old), new)| Some(old) != new.as_ref());
        // Read twice: an editor may be in the middle of writing a file.
        let is_steady = snapshot.texts == texts;
        if !is_steady {
            *snapshot = FileSnapshot { texts, reported_error: None };
        }
        // Refused files are read again all the same: the mistake may be in a file that is not part of a
        // plan yet.
        if !(is_new && is_steady) {
            return;
        }
        match load(&self.path, &self.options) {
            Ok(plan) => self.apply_plan(plan),
            Err(error) => {
                let error_text = Some(error.to_string());
                if snapshot.reported_error != error_text {
                    self.context.say(&format!("{error}; the nodes keep running unchanged"));
                }
                snapshot.reported_error = error_text;
            }
        }
    }

    fn apply_plan(&mut self, plan: Plan) {
        let mut old = std::mem::take(&mut self.slots);
        for node in &plan.nodes {
            let at = old.iter().position(|slot| slot.node.name == node.name);
            let Some(mut slot) = at.map(|at| old.remove(at)) else {
                self.slots.push(Slot::new(node.clone()));
                continue;
            };
            if slot.node.process != node.process {
                slot.history = Default::default();
                match slot.is_running() {
                    true => {
                        slot.after_exit = AfterExit::Restart;
                        slot.stop();
                        self.context.event(&node.name, "stopping", "changed in the file");
                    }
                    false => slot.enter(NodeState::Waiting),
                }
            } else if slot.after_exit == AfterExit::Remove {
                // It was removed and added again before it had exited.
                slot.after_exit = AfterExit::Restart;
            }
            slot.node = node.clone();
            self.slots.push(slot);
        }
        for mut slot in old {
            slot.after_exit = AfterExit::Remove;
            if !slot.is_running() {
                self.mark_stopped(&slot.node.name);
            }
            slot.stop();
            self.context.event(&slot.node.name, "stopping", "removed from the file");
            self.slots.push(slot);
        }
        let reported: Vec<String> =
            self.plan.requirement_errors().iter().map(ToString::to_string).collect();
        let mut errors = plan.requirement_errors();
        errors.retain(|error| !reported.contains(&error.to_string()));
        self.plan = plan;
        self.report_requirement_errors(errors);
    }
}
