//! ZeroMQ in pure Rust: the crate `zeromq`, an implementation of its own on tokio.

mod in_flight;
mod pub_sub;

use bench_harness::System;

/// The systems of this driver.
pub fn systems() -> Vec<Box<dyn System>> {
    vec![Box::new(pub_sub::PubSub)]
}

#[cfg(test)]
mod tests;
