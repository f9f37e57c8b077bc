//! Figures for the page: nodes, topics, hosts, problems.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::turn::{Sink, Tick};
use crate::outbox::Outbox;

pub struct FiguresSink {
    pub sub: u64,
    pub outbox: Arc<Outbox>,
    pub interval: Duration,
    pub all: bool,
    pub last: Option<Instant>,
}

impl Sink for FiguresSink {
    fn wants_look(&self, now: Instant) -> bool {
        self.last
            .is_none_or(|last| now.duration_since(last) + super::turn::TURN / 2 >= self.interval)
    }

    fn tick(&mut self, tick: &Tick<'_>) {
        let Some(view) = tick.view.filter(|_| self.wants_look(tick.now)) else { return };
        self.last = Some(tick.now);
        self.outbox.whole(self.sub, view.text(self.all).to_owned());
    }
}
