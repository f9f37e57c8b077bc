//! Publishes the time of the recording on `/clock`.

use rnet::{Node, Publisher, Result, msgs};

/// Topic that nodes with simulated time follow.
pub const CLOCK_TOPIC: &str = "/clock";

/// Publishes the time in equal steps.
pub struct ClockPublisher {
    publisher: Publisher<msgs::Clock>,
    period_ns: u64,
    /// The next time to publish; before the first message, `None`.
    next_ns: Option<u64>,
}

impl ClockPublisher {
    pub fn open(node: &Node, hz: f64) -> Result<Self> {
        let publisher = node.publisher(CLOCK_TOPIC).open()?;
        let period_ns = ((1e9 / hz) as u64).max(1);
        Ok(Self { publisher, period_ns, next_ns: None })
    }

    pub fn publisher(&self) -> &Publisher<msgs::Clock> {
        &self.publisher
    }

    /// The time to publish before a message of this time.
    pub fn due(&self, before_ns: u64) -> Option<u64> {
        Some(self.next_ns.unwrap_or(before_ns)).filter(|next| *next <= before_ns)
    }

    pub fn tick(&mut self, ns: u64) -> Result<()> {
        self.next_ns = Some(ns.saturating_add(self.period_ns));
        self.publisher.send(&msgs::Clock { time_ns: i64::try_from(ns).unwrap_or(i64::MAX) })
    }

    /// The time jumps to `ns`.
    pub fn seek(&mut self, ns: u64) {
        self.next_ns = Some(ns);
    }
}
