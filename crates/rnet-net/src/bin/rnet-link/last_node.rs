//! The last node of the domain takes the link with it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rnet::inspect::{Domain, Location, Snapshot};

use crate::{error_text, stop};

/// For how long a link that has not seen a node yet waits for one: the node that started it may still be on its way.
const FIRST_NODE_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest sleep; who comes and goes ends it.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// Whether this process ends because no node was left.
static STOPPED_WITHOUT_NODES: AtomicBool = AtomicBool::new(false);

/// Whether a node has come after this process began to end because none was left. It has found a link that was still
/// there and has started none. To be asked once the role is given back.
pub fn node_returned(location: &Location) -> bool {
    let lives = |domain: &mut Domain| domain.snapshot().is_ok_and(|snapshot| has_nodes(&snapshot));
    STOPPED_WITHOUT_NODES.load(Ordering::SeqCst)
        && location.domain().is_ok_and(|mut domain| lives(&mut domain))
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
            // What cannot be seen now is looked at again.
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
