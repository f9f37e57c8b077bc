//! Stops the link with the last node of the domain.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rnet::inspect::{Domain, Location, Snapshot};

use crate::{error_text, stop};

/// How long a link without nodes waits for the first one: the node that started it may still be opening.
pub const FIRST_NODE_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest sleep; a node that joins or leaves ends it.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// Whether this process exits because no node was left.
static STOPPED_WITHOUT_NODES: AtomicBool = AtomicBool::new(false);

/// Whether a node has joined after this process began to exit for want of nodes. That node found the link
/// and has not started another. Call it after the role is released.
pub fn node_returned(location: &Location) -> bool {
    STOPPED_WITHOUT_NODES.load(Ordering::SeqCst)
        && snapshot(location).is_ok_and(|snapshot| has_nodes(&snapshot))
}

/// Whether the domain has nodes. If not, this process exits, and [`node_returned`] can be called.
pub fn has_nodes_now(location: &Location) -> bool {
    let has_nodes = snapshot(location).map_or(true, |snapshot| has_nodes(&snapshot));
    STOPPED_WITHOUT_NODES.fetch_or(!has_nodes, Ordering::SeqCst);
    has_nodes
}

fn snapshot(location: &Location) -> rnet::Result<Snapshot> {
    location.domain()?.snapshot()
}

fn has_nodes(snapshot: &Snapshot) -> bool {
    snapshot.nodes.iter().any(|node| node.meta.language != "tool")
}

/// Stops this process once no node is left. Tools do not count.
pub fn stop_after_last_node(location: &Location) -> Result<(), String> {
    let mut watcher = location.domain().and_then(Domain::watch_nodes).map_err(error_text)?;
    let mut domain = location.domain().map_err(error_text)?;
    let watch = move || {
        let begun = Instant::now();
        let mut seen = false;
        while !stop::is_requested() {
            // A failed check is repeated.
            let changed = watcher.wait(MAX_WAIT).is_ok_and(|events| !events.is_empty());
            if seen && !changed {
                continue;
            }
            let Ok(snapshot) = domain.snapshot() else { continue };
            let any = has_nodes(&snapshot);
            seen |= any;
            if !any && (seen || begun.elapsed() > FIRST_NODE_TIMEOUT) {
                STOPPED_WITHOUT_NODES.store(true, Ordering::SeqCst);
                return stop::request();
            }
        }
    };
    let thread = std::thread::Builder::new().name("rnet-nodes".into());
    thread.spawn(watch).map(drop).map_err(|e| format!("cannot start a thread: {e}"))
}
