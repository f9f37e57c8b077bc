//! The last node of the domain takes the link with it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rnet::inspect::{Domain, Location, Snapshot};

use crate::{stop, told};

/// For how long a link that has not seen a node yet waits for one: the node that started it may still be on its way.
const FIRST: Duration = Duration::from_secs(10);
/// Longest sleep; who comes and goes ends it.
const LOOK: Duration = Duration::from_secs(1);

/// Whether this process ends because no node was left.
static NONE_LEFT: AtomicBool = AtomicBool::new(false);

/// Whether a node has come after this process began to end because none was left. It has found a link that was still
/// there and has started none. To be asked once the role is given back.
pub fn came_back(location: &Location) -> bool {
    let lives = |domain: &mut Domain| domain.snapshot().is_ok_and(|snapshot| any(&snapshot));
    NONE_LEFT.load(Ordering::SeqCst) && location.domain().is_ok_and(|mut domain| lives(&mut domain))
}

fn any(snapshot: &Snapshot) -> bool {
    snapshot.nodes.iter().any(|node| node.meta.language != "tool")
}

/// Stops this process once no node is left. Tools do not count.
pub fn end_with_the_last(location: &Location) -> Result<(), String> {
    let mut lookout = location.domain().and_then(Domain::lookout).map_err(told)?;
    let mut domain = location.domain().map_err(told)?;
    let watch = move || {
        let begun = Instant::now();
        let mut seen = false;
        while !stop::is_set() {
            // What cannot be seen now is looked at again.
            let changed = lookout.wait(LOOK).is_ok_and(|events| !events.is_empty());
            if seen && !changed {
                continue;
            }
            let Ok(snapshot) = domain.snapshot() else { continue };
            let any = any(&snapshot);
            seen |= any;
            if !any && (seen || begun.elapsed() > FIRST) {
                NONE_LEFT.store(true, Ordering::SeqCst);
                return stop::set();
            }
        }
    };
    let thread = std::thread::Builder::new().name("rnet-nodes".into());
    thread.spawn(watch).map(drop).map_err(|e| format!("cannot start a thread: {e}"))
}
