//! Replacement if libnanomsg was missing at build time.

use crate::Pattern;
use bench_harness::{Error, Net, Publisher, Result, Sink, Subscription, Topic};

fn absent() -> Error {
    Error::new(
        "libnanomsg-dev was not installed when this was built: apt-get install libnanomsg-dev",
    )
}

pub fn version() -> Result<String> {
    Err(absent())
}

pub fn publisher(_: Pattern, _: &Net, _: &Topic) -> Result<Box<dyn Publisher>> {
    Err(absent())
}

pub fn subscribe(_: Pattern, _: &Net, _: &Topic, _: Sink) -> Result<Subscription> {
    Err(absent())
}
