//! Replacement if libnng was missing at build time.

use crate::Pattern;
use bench_harness::{Error, Net, Publisher, Result, Sink, Subscription, Topic};

fn absent() -> Error {
    Error::new("libnng-dev was not installed when this was built: apt-get install libnng-dev")
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
