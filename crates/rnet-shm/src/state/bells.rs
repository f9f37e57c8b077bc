//! The bells of the nodes that follow the state: whoever writes rings a follower at the bell of its node that it
//! has named, as publishers ring subscribers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::bell::Bells;
use crate::node::OwnNode;
use crate::presence;

/// The bells of other nodes, by process slot, each with the incarnation that it is of.
#[derive(Default)]
pub(super) struct PeerBells(Mutex<BTreeMap<usize, (u64, Arc<Bells>)>>);

impl PeerBells {
    /// Those of the node that has the process slot, mapped at their first use. `None` if it has none: it has
    /// ended, or is not there any more.
    pub(super) fn of(
        &self,
        own: &OwnNode,
        process_slot: usize,
        incarnation: u64,
    ) -> Option<Arc<Bells>> {
        if incarnation == own.incarnation() {
            return Some(own.bells().clone());
        }
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match known.get(&process_slot) {
            Some((of, bells)) if *of == incarnation => return Some(bells.clone()),
            _ => {}
        }
        let folder = presence::find_folder(own.domain(), incarnation)?;
        let bells = Arc::new(Bells::open(&folder.join("bells")).ok()?);
        known.insert(process_slot, (incarnation, bells.clone()));
        Some(bells)
    }
}
