//! Following the state: all keys as they are, and each change.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rnet::state::State;
use rnet::{Error, Node};

use super::item::{Item, Key};
use super::json;
use super::queue::Queue;

/// Longest time between two looks at whether the recording has ended.
const STEP: Duration = Duration::from_millis(100);
/// Between two looks while the queue is full: the watch keeps the newest value of each key.
const FULL_PAUSE: Duration = Duration::from_millis(10);

/// Puts the keys of the state of a node's domain, and their changes, until `ended`.
pub fn follow(node: &Node, queue: &Queue<Item>, ended: &Arc<AtomicBool>) -> rnet::Result<()> {
    let state: State = node.state()?;
    let mut watch = state.watch("/")?;
    while !ended.load(Ordering::Acquire) {
        if queue.is_full(0) {
            std::thread::sleep(FULL_PAUSE);
            continue;
        }
        let change = match watch.recv(Some(STEP)) {
            Ok(change) => change,
            Err(Error::Timeout { .. } | Error::Interrupted) => continue,
            Err(error) => return Err(error),
        };
        let (said, is_deleted) = (json::change(&change), change.entry.is_none());
        let key = Key { key: change.key, said, is_deleted, at_ns: rnet::now_ns() };
        let item = Item::Key(key);
        let len = item.len_bytes();
        queue.put(item, len);
    }
    Ok(())
}
