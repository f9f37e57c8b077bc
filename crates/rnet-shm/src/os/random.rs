//! Random numbers of the kernel, and process-unique identities.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::os::{clock, fork};

/// A unique random number from the kernel. Forks do not repeat it.
pub fn random_u64() -> u64 {
    let mut bytes = [0u8; 8];
    // Small requests are never truncated, and the call cannot fail after boot.
    match rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()) {
        Ok(8) => u64::from_le_bytes(bytes),
        _ => clock::now_ns() ^ u64::from(std::process::id()) << 40,
    }
}

/// A 32-bit identity, for formats that cannot hold 64 bits. The identities of a process count up from a
/// random number, so no two of them are equal; a forked child starts from its own random number.
pub fn next_id() -> u32 {
    /// Upper half: the fork count plus one when counting started, so that 0 means not started. Lower half:
    /// the next identity.
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
