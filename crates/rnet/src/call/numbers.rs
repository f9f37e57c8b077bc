//! Maps by numbers that others choose: those of calls, and the ids of clients.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::OnceLock;

pub type ByNumber<T> = HashMap<u32, T, Spread>;

/// Multiplies by a factor that other processes do not know, so that they cannot choose numbers which collide. A call
/// looks for its number some ten times, and the hash of the standard library takes ten times as long as this.
#[derive(Clone, Copy)]
pub struct Spread {
    factor: u64,
}

impl Default for Spread {
    fn default() -> Spread {
        static FACTOR: OnceLock<u64> = OnceLock::new();
        Spread { factor: *FACTOR.get_or_init(|| RandomState::new().hash_one(0) | 1) }
    }
}

impl BuildHasher for Spread {
    type Hasher = Product;

    fn build_hasher(&self) -> Product {
        Product { factor: self.factor, product: 0 }
    }
}

pub struct Product {
    factor: u64,
    product: u64,
}

impl Hasher for Product {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u32(u32::from(*byte)));
    }

    fn write_u32(&mut self, number: u32) {
        self.product = (self.product ^ u64::from(number)).wrapping_mul(self.factor);
    }

    fn finish(&self) -> u64 {
        // A map takes the lowest bits and the highest: all bits of the number have changed the latter alone.
        self.product ^ self.product >> 32
    }
}
