//! The calls that a node was recorded with. A re-run has nobody who answers or calls: they are named, not compared.

use std::collections::BTreeSet;

use crate::names;
use crate::read::Recording;

/// Where topics of calls begin (docs/design/calls.md).
const CALLS: &str = "/_rnet/call/";

/// Services with which a node had to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// Those that it called, or drove by the authority of.
    pub made: BTreeSet<String>,
    /// Those that it answered.
    pub answered: BTreeSet<String>,
}

impl Calls {
    /// Of the node with this name in the recording.
    pub(super) fn of(recording: &Recording, node: &str) -> Self {
        let mut calls = Self::default();
        let own = recording
            .channels()
            .filter(|channel| channel.metadata.get(names::NODE_KEY).is_some_and(|of| of == node));
        for channel in own {
            let Some(path) = channel.topic.strip_prefix(CALLS) else { continue };
            let Some((service, kind)) = path.rsplit_once('/') else { continue };
            let Some((service, _end)) = service.rsplit_once('/') else { continue };
            let service = format!("/{service}");
            match kind {
                "request" | "control" => calls.made.insert(service),
                _ => calls.answered.insert(service),
            };
        }
        calls
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.made.is_empty() && self.answered.is_empty()
    }
}

impl std::fmt::Display for Calls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let words = [("its calls of", &self.made), ("its answers to", &self.answered)];
        let words = words.iter().filter(|(_, services)| !services.is_empty());
        let words = words.map(|(words, services)| {
            format!("{words} {}", services.iter().cloned().collect::<Vec<_>>().join(", "))
        });
        f.write_str(&words.collect::<Vec<_>>().join(" and "))
    }
}
