//! Random numbers of the kernel.

use crate::clock;

/// A number that nobody else has, from the kernel.
pub fn random_u64() -> u64 {
    let mut bytes = [0u8; 8];
    // Small requests are never cut short, and the call cannot fail once the system is up.
    match rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()) {
        Ok(8) => u64::from_le_bytes(bytes),
        _ => clock::now_ns() ^ u64::from(std::process::id()) << 40,
    }
}
