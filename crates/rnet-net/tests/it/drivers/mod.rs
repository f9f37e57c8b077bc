//! Drivers that repeatedly take authority over a command, and checks of the receiver's record.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rnet::{FallbackReason, Node};

use crate::random::Random;

pub const TOPIC: &str = "/cmd";

/// The message of a driver: its host, the number of its authority, and the count of its commands under that
/// number.
pub type Words = [u64; 3];

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ReceiverAction {
    /// When, in ns of the receiver's clock.
    Applied(u64, Words),
    FellBack(FallbackReason),
}

fn bytes(words: Words) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn words(bytes: &[u8]) -> Words {
    let word = |at: usize| u64::from_le_bytes(bytes[8 * at..8 * at + 8].try_into().unwrap());
    [word(0), word(1), word(2)]
}

/// Drives repeatedly until it is stopped.
pub fn drive(node: &Node, host: u64, mut random: Random, ends: &AtomicBool, driven: &AtomicU64) {
    while !ends.load(Ordering::Relaxed) {
        let priority = random.below(3) as i32;
        let lease = random.ms(20..400);
        // Some stop waiting before the answer: they do not have the granted authority.
        let timeout = random.ms(1..1500);
        let taken =
            node.drive::<[u8]>(TOPIC).priority(priority).lease(lease).timeout(timeout).take();
        let Ok(mut driver) = taken else {
            std::thread::sleep(random.ms(0..5)); // sleep: another host drives, or no driver is heard
            continue;
        };
        driven.fetch_add(1, Ordering::Relaxed);
        let number = driver.number();
        for count in 0..random.in_range(1..300) {
            if ends.load(Ordering::Relaxed) || driver.send(&bytes([host, number, count])).is_err() {
                break;
            }
            std::thread::sleep(random.ms(0..3)); // sleep: the period of the commands
        }
        if random.chance(1, 2) {
            let _ = driver.release();
        }
    }
}

impl ReceiverAction {
    /// Records a command that is applied now.
    pub fn applied(bytes: &[u8]) -> ReceiverAction {
        ReceiverAction::Applied(rnet::now_ns(), words(bytes))
    }
}

/// Checks the receiver's record: no earlier driver and no earlier command after a later one. Each pause of
/// twice the deadline has a fallback in it, or directly after the command that ends it.
pub fn judge(did: &[ReceiverAction], deadline: Duration) -> usize {
    let (mut last, mut of, mut last_ns) = (None::<Words>, BTreeMap::new(), None);
    for (at, done) in did.iter().enumerate() {
        let ReceiverAction::Applied(now_ns, now @ [host, number, count]) = *done else {
            last_ns = None;
            continue;
        };
        assert_eq!(*of.entry(number).or_insert(host), host, "{number} was granted to two hosts");
        if let Some(before @ [_, last_number, last_count]) = last {
            assert!(number >= last_number, "{now:?} after {before:?}: an earlier driver");
            let is_later = number > last_number || count > last_count;
            assert!(is_later, "{now:?} after {before:?}: an earlier command");
        }
        // If a command came before the deadline and was recorded that much later, its handler has taken
        // longer than the deadline, which a fallback follows.
        let pause_ns = last_ns.map_or(0, |last_ns| now_ns - last_ns);
        if u128::from(pause_ns) > 2 * deadline.as_nanos() {
            let next = did.get(at + 1);
            let is_safe = next.is_none_or(|next| matches!(next, ReceiverAction::FellBack(_)));
            let near = &did[at.saturating_sub(3)..did.len().min(at + 3)];
            assert!(is_safe, "{pause_ns} ns without a fallback: {near:?}");
        }
        (last, last_ns) = (Some(now), Some(now_ns));
    }
    of.len()
}
