//! ZeroMQ by its reference implementation, libzmq, through the crate `zmq`: PUB/SUB that waits
//! instead of dropping, over TCP and over Unix sockets; PAIR and REQ/REP over TCP.

mod call;
mod context;
mod pair;
mod pub_sub;
mod receive;

use bench_harness::{AsSystem, System};

/// The systems of this driver.
pub fn systems() -> Vec<Box<dyn System>> {
    vec![
        Box::new(pub_sub::PubSub { ipc: false }),
        Box::new(pub_sub::PubSub { ipc: true }),
        Box::new(pair::Pair),
    ]
}

/// Request and reply.
pub fn calls() -> Vec<Box<dyn System>> {
    vec![Box::new(AsSystem::new(call::ReqRep))]
}

#[cfg(test)]
mod tests;
