//! The last node of the domain takes the link with it.

use std::time::{Duration, Instant};

use rnet::inspect::{Domain, Location};

use crate::{stop, told};

/// For how long a link that has not seen a node yet waits for one: the node that started it may still be on its way.
const FIRST: Duration = Duration::from_secs(10);
/// Longest sleep; who comes and goes ends it.
const LOOK: Duration = Duration::from_secs(1);

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
            let any = snapshot.nodes.iter().any(|node| node.meta.language != "tool");
            seen |= any;
            if !any && (seen || begun.elapsed() > FIRST) {
                return stop::set();
            }
        }
    };
    let thread = std::thread::Builder::new().name("rnet-nodes".into());
    thread.spawn(watch).map(drop).map_err(|e| format!("no thread can be started: {e}"))
}
