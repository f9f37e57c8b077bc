//! The systems, one file each.

mod libzmq;
mod nats;
mod rnet;
mod zenoh;
mod zeromq;

use crate::function::Publish;
use crate::{Arrivals, Function};
use bench_harness::Result;
use std::sync::Arc;

/// Opens publisher and subscriber; the subscriber counts on the [`Arrivals`].
type Open = fn(Arc<Arrivals>) -> Result<Box<dyn Publish>>;

/// A system of the study.
pub struct System {
    /// The study's name of its function, for instance "nats".
    pub function: &'static str,
    /// Its own name.
    pub name: &'static str,
    /// How it is set up.
    pub setup: &'static str,
    open: Open,
}

impl System {
    /// The name of its function.
    pub fn function_name(&self, mutex: bool) -> String {
        if mutex { format!("{}_with_mutex", self.function) } else { self.function.to_owned() }
    }

    /// Opens it again and waits until both endpoints are connected. The calling thread is the one that
    /// measures.
    ///
    /// # Errors
    /// Why it cannot run here.
    pub fn open(&self, mutex: bool) -> Result<Function> {
        let arrivals = Arc::new(Arrivals::default());
        let publisher = (self.open)(arrivals.clone())?;
        Function::new(publisher, arrivals, mutex)
    }
}

/// All of them, the study's first.
pub fn all() -> [System; 5] {
    [nats::SYSTEM, zenoh::SYSTEM, zeromq::SYSTEM, libzmq::SYSTEM, rnet::SYSTEM]
}
