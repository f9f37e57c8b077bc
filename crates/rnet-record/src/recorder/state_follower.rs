//! Follows the state: the initial value of all keys, and each change.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rnet::state::State;
use rnet::{Error, Node};

use super::item::{Item, StateKey};
use super::json;
use super::progress::Shared;
use super::queue::Queue;

/// Maximum interval between two checks whether the recording has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Interval between two checks while the queue is full: the watch keeps the newest value of each key.
const FULL_PAUSE: Duration = Duration::from_millis(10);

/// Maximum time after the end for reading values written before the end.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Queues the state keys of a node's domain, and their changes, until `ended`.
pub fn follow(
    node: &Node,
    queue: &Queue<Item>,
    shared: &Shared,
    ended: &AtomicBool,
) -> rnet::Result<()> {
    let state: State = node.state()?;
    let mut watch = state.watch("/")?;
    let mut until: Option<Instant> = None;
    let mut is_all = false;
    while until.is_none_or(|until| Instant::now() < until) {
        if until.is_none() && ended.load(Ordering::Acquire) {
            until = Some(Instant::now() + DRAIN_TIMEOUT);
        }
        if queue.is_full(0) {
            std::thread::sleep(FULL_PAUSE);
            continue;
        }
        let step = if until.is_none() { POLL_INTERVAL } else { Duration::ZERO };
        let change = match watch.recv_timeout(step) {
            Ok(change) => change,
            Err(Error::Timeout { .. }) if until.is_some() => {
                is_all = true;
                break;
            }
            Err(Error::Timeout { .. } | Error::Interrupted) => continue,
            Err(error) => return Err(error),
        };
        shared.progress().skipped_values += change.skipped.unwrap_or(1);
        let (fields, is_deleted) = (json::change(&change), change.entry.is_none());
        let key = StateKey { key: change.key, fields, is_deleted, at_ns: rnet::now_ns() };
        let item = Item::Key(key);
        let len = item.len_bytes();
        queue.put(item, len);
    }
    if !is_all {
        let limit_s = DRAIN_TIMEOUT.as_secs();
        shared.note(format!(
            "not all of the last state changes were read within {limit_s} s of the end: the newest value of \
             some keys may be missing"
        ));
    }
    Ok(())
}
