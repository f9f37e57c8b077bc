//! nanomsg and its successor nng, through thin declarations of Debian's C libraries: PUB/SUB, which drops
//! messages when its queue is full, and PAIR, which waits.

mod nanomsg;
mod nng;

use bench_harness::{Error, Net, Result, System, Topic};

/// How a topic is carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pattern {
    /// One or more publishers to one or more subscribers; never waits, and drops instead.
    PubSub,
    /// One to one; waits.
    Pair,
}

impl Pattern {
    /// Where a publisher listens: PUB/SUB on a free TCP port, PAIR on a Unix socket of its own.
    #[cfg(any(has_nng, has_nanomsg))]
    fn address(self, net: &Net, topic: &Topic) -> Option<String> {
        let socket = net.dir.join(format!("{}.{}.ipc", topic.name, topic.index));
        (self == Self::Pair).then(|| format!("ipc://{}", socket.display()))
    }

    fn may_lose(self) -> Option<&'static str> {
        (self == Self::PubSub)
            .then_some("PUB never waits: it drops what a subscriber has no room for")
    }

    fn supports(self, topic: &Topic) -> Result<()> {
        if self == Self::Pair && (topic.publishers, topic.subscribers) != (1, 1) {
            return Err(Error::new("PAIR joins exactly two"));
        }
        Ok(())
    }
}

/// The systems of this driver.
pub fn systems() -> Vec<Box<dyn System>> {
    vec![
        Box::new(nanomsg::Nanomsg { pattern: Pattern::PubSub }),
        Box::new(nanomsg::Nanomsg { pattern: Pattern::Pair }),
        Box::new(nng::Nng { pattern: Pattern::PubSub }),
        Box::new(nng::Nng { pattern: Pattern::Pair }),
    ]
}

/// How long a send of PAIR waits for capacity before it checks whether the subscriber has left.
#[cfg(any(has_nng, has_nanomsg))]
const STOP_CHECK_INTERVAL_MS: i32 = 100;

#[cfg(test)]
mod tests;
