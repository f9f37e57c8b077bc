//! Parameters of the file that a node did not accept: it reports so on its stderr and uses its default.
//!
//! The node reads the value when it declares the parameter, some time after its start. So the launcher
//! checks for the declarations, at growing intervals, because each check opens a node.

use std::time::{Duration, Instant};

use super::Launcher;
use crate::slot::Slot;

/// From the start of a node to the first check. Each further wait is twice the previous one.
const FIRST_CHECK_DELAY: Duration = Duration::from_millis(500);
const MAX_PARAM_CHECKS: u32 = 8;

/// Parameters of a node that it may or may not have accepted.
#[derive(Debug)]
pub struct PendingParams {
    names: Vec<String>,
    checks: u32,
    due: Instant,
}

impl PendingParams {
    /// The parameters of a node that is started now.
    pub fn of(slot: &Slot) -> Option<PendingParams> {
        let names: Vec<String> = slot.node.process.params.keys().cloned().collect();
        let due = Instant::now() + FIRST_CHECK_DELAY;
        (!names.is_empty()).then_some(PendingParams { names, checks: 0, due })
    }

    fn is_due(&self) -> bool {
        Instant::now() >= self.due
    }

    /// The next check; `None` after the last one, or if there is nothing to check.
    fn next_check(mut self) -> Option<PendingParams> {
        self.checks += 1;
        self.due = Instant::now() + FIRST_CHECK_DELAY * (1 << self.checks.min(MAX_PARAM_CHECKS));
        (self.checks < MAX_PARAM_CHECKS && !self.names.is_empty()).then_some(self)
    }
}

impl Launcher<'_> {
    /// Reports parameters that nodes have refused since they were started.
    pub(super) fn report_refused_params(&mut self) {
        let is_due = |slot: &Slot| {
            slot.is_running() && slot.pending_params.as_ref().is_some_and(|u| u.is_due())
        };
        if !self.slots.iter().any(is_due) {
            return;
        }
        let Some(state) = self.context.node().and_then(|node| node.state()).ok() else {
            for slot in self.slots.iter_mut().filter(|slot| is_due(slot)) {
                slot.pending_params =
                    slot.pending_params.take().and_then(PendingParams::next_check);
            }
            return;
        };
        let mut refused = Vec::new();
        for slot in self.slots.iter_mut().filter(|slot| is_due(slot)) {
            let Some(mut pending_params) = slot.pending_params.take() else { continue };
            let of = &slot.node.name;
            pending_params.names.retain(|name| {
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
            slot.pending_params = pending_params.next_check();
        }
        for (name, text) in refused {
            self.context.event(&name, "param-refused", &text);
        }
    }
}
