//! Parameters of the file that a node did not take: it says so on its stderr and goes on with its default.
//!
//! The node looks at the value when it declares the parameter, some time after its start. So the launcher looks for the
//! declarations, less and less often, as each look opens a node.

use std::time::{Duration, Instant};

use super::Launcher;
use crate::slot::Slot;

/// From the start of a node to the first look. Each further wait is twice the one before.
const FIRST_WAIT: Duration = Duration::from_millis(500);
const MAX_LOOKS: u32 = 8;

/// Parameters of a node of which it is not known whether the node has taken them.
#[derive(Debug)]
pub struct Undeclared {
    names: Vec<String>,
    looks: u32,
    due: Instant,
}

impl Undeclared {
    /// Those of a node that is started now.
    pub fn of(slot: &Slot) -> Option<Undeclared> {
        let names: Vec<String> = slot.node.process.params.keys().cloned().collect();
        let due = Instant::now() + FIRST_WAIT;
        (!names.is_empty()).then_some(Undeclared { names, looks: 0, due })
    }

    fn is_due(&self) -> bool {
        Instant::now() >= self.due
    }

    /// Once more later; `None` if it was looked for often enough, or there is nothing to look for.
    fn later(mut self) -> Option<Undeclared> {
        self.looks += 1;
        self.due = Instant::now() + FIRST_WAIT * (1 << self.looks.min(MAX_LOOKS));
        (self.looks < MAX_LOOKS && !self.names.is_empty()).then_some(self)
    }
}

impl Launcher<'_> {
    /// Reports parameters that nodes have refused since they were started.
    pub(super) fn report_refused_params(&mut self) {
        let is_due =
            |slot: &Slot| slot.is_running() && slot.undeclared.as_ref().is_some_and(|u| u.is_due());
        if !self.slots.iter().any(is_due) {
            return;
        }
        let Some(state) = self.around.node().and_then(|node| node.state()).ok() else {
            for slot in self.slots.iter_mut().filter(|slot| is_due(slot)) {
                slot.undeclared = slot.undeclared.take().and_then(Undeclared::later);
            }
            return;
        };
        let mut refused = Vec::new();
        for slot in self.slots.iter_mut().filter(|slot| is_due(slot)) {
            let Some(mut undeclared) = slot.undeclared.take() else { continue };
            let of = &slot.node.name;
            undeclared.names.retain(|name| {
                let param = state.param(of, name).ok().flatten();
                let Some(description) = param.and_then(|param| param.description) else {
                    return true;
                };
                if let Some(why) = description.refused {
                    let text = format!("{name} = {} {}; using the default", why.value, why.why);
                    refused.push((of.clone(), text));
                }
                false
            });
            slot.undeclared = undeclared.later();
        }
        for (name, text) in refused {
            self.around.event(&name, "param-refused", &text);
        }
    }
}
