//! A changed file: what it says no more is stopped, what it says otherwise is started anew, all else goes on.

use super::Launcher;
use crate::file::{Plan, load};
use crate::slot::{Fate, Slot, State};

/// The files, as they were seen.
#[derive(Debug, Default)]
pub(super) struct Seen {
    texts: Vec<Option<String>>,
    /// The mistake that was told.
    refused: Option<String>,
}

impl Launcher<'_> {
    pub(super) fn follow_file(&mut self) {
        let Some(seen) = &mut self.seen else { return };
        let read = self.plan.read.iter();
        let texts: Vec<_> = read.map(|(path, _)| std::fs::read_to_string(path).ok()).collect();
        let is_new =
            self.plan.read.iter().zip(&texts).any(|((_, old), new)| Some(old) != new.as_ref());
        // Looked at twice: who writes a file may be in the middle of it.
        let is_steady = seen.texts == texts;
        if !is_steady {
            *seen = Seen { texts, refused: None };
        }
        // Refused, it is read again all the same: the mistake may be in a file that no plan has named yet.
        if !(is_new && is_steady) {
            return;
        }
        match load(&self.path, &self.choices) {
            Ok(plan) => self.take_up(plan),
            Err(error) => {
                let refused = Some(error.to_string());
                if seen.refused != refused {
                    self.around.say(&format!("{error}; the nodes keep running unchanged"));
                }
                seen.refused = refused;
            }
        }
    }

    fn take_up(&mut self, plan: Plan) {
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
                        slot.fate = Fate::Again;
                        slot.stop();
                        self.around.event(&node.name, "stopping", "changed in the file");
                    }
                    false => slot.enter(State::Waiting),
                }
            } else if slot.fate == Fate::Forgotten {
                // It was taken out and put back before it had ended.
                slot.fate = Fate::Again;
            }
            slot.node = node.clone();
            self.slots.push(slot);
        }
        for mut slot in old {
            slot.fate = Fate::Forgotten;
            if !slot.is_running() {
                self.settle(&slot.node.name);
            }
            slot.stop();
            self.around.event(&slot.node.name, "stopping", "removed from the file");
            self.slots.push(slot);
        }
        let told: Vec<String> = self.plan.unfit().iter().map(ToString::to_string).collect();
        let mut unfit = plan.unfit();
        unfit.retain(|error| !told.contains(&error.to_string()));
        self.plan = plan;
        self.tell_unfit(unfit);
    }
}
