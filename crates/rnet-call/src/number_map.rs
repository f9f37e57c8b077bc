//! Maps whose keys are numbers that other processes choose: call numbers and client ids.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

use rnet_shm::os::random::random_u64;

pub type NumberMap<T> = HashMap<u32, T, RandomHash>;

/// Multiplies by a factor that other processes do not know, so that they cannot choose colliding numbers. A
/// call looks up its number about ten times, and the standard library's hash takes ten times as long as this.
#[derive(Clone, Copy)]
pub struct RandomHash {
    factor: u64,
}

impl Default for RandomHash {
    fn default() -> RandomHash {
        // Not a `OnceLock`: a fork while another thread initialises it would leave it uninitialised in the
        // child forever.
        static FACTOR: AtomicU64 = AtomicU64::new(0);
        let factor = match FACTOR.load(Ordering::Relaxed) {
            0 => {
                let (order, drawn) = (Ordering::Relaxed, random_u64() | 1);
                FACTOR.compare_exchange(0, drawn, order, order).err().unwrap_or(drawn)
            }
            factor => factor,
        };
        RandomHash { factor }
    }
}

impl BuildHasher for RandomHash {
    type Hasher = MultiplyHasher;

    fn build_hasher(&self) -> MultiplyHasher {
        MultiplyHasher { factor: self.factor, product: 0 }
    }
}

pub struct MultiplyHasher {
    factor: u64,
    product: u64,
}

impl Hasher for MultiplyHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u32(u32::from(*byte)));
    }

    fn write_u32(&mut self, number: u32) {
        self.product = (self.product ^ u64::from(number)).wrapping_mul(self.factor);
    }

    fn finish(&self) -> u64 {
        // A map uses the lowest and the highest bits. Before this step, only the highest depend on all bits
        // of the number.
        self.product ^ self.product >> 32
    }
}
