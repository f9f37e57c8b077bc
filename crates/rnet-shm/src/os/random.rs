//! Random numbers of the kernel, and identities that no other process has.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::os::{clock, fork};

/// A number that nobody else has, from the kernel. Forks do not repeat it.
pub fn random_u64() -> u64 {
    let mut bytes = [0u8; 8];
    // Small requests are never cut short, and the call cannot fail once the system is up.
    match rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()) {
        Ok(8) => u64::from_le_bytes(bytes),
        _ => clock::now_ns() ^ u64::from(std::process::id()) << 40,
    }
}

/// An identity of 32 bits, for what cannot carry 64. The identities of a process count on from a random number, so
/// that no two of them are alike; a forked child counts on from a random number of its own.
pub fn next_id() -> u32 {
    /// Above: one more than the number of forks in which the count began, so that 0 is a count that has not begun.
    /// Below: the next identity.
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let process = fork::generation();
    let mut seen = NEXT.load(Ordering::Relaxed);
    loop {
        let id = if (seen >> 32) as u32 == process { seen as u32 } else { random_u64() as u32 };
        let next = u64::from(process) << 32 | u64::from(id.wrapping_add(1));
        match NEXT.compare_exchange_weak(seen, next, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return id,
            Err(now) => seen = now,
        }
    }
}
