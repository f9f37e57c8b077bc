//! The parameters of the domain.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rnet_monitor::documents::{self, named};
use serde_json::{Value as Json, json};

use super::turn::{Sink, Tick};
use crate::outbox::Outbox;
use crate::times::in_seconds;

const INTERVAL: Duration = Duration::from_millis(200);

pub struct ParamsSink {
    sub: u64,
    outbox: Arc<Outbox>,
    /// As of which revision of the state they were told.
    revision: Option<u64>,
    told: String,
    last: Option<Instant>,
}

impl ParamsSink {
    pub fn new(sub: u64, outbox: Arc<Outbox>) -> ParamsSink {
        ParamsSink { sub, outbox, revision: None, told: String::new(), last: None }
    }

    fn look(&mut self, tick: &Tick<'_>) -> rnet::Result<()> {
        // What had no room in the queue of the page is told again.
        let is_broken = self.outbox.take_broken(self.sub);
        let mut params = Vec::new();
        if let Some(state) = tick.desk.seat.state_if_any()? {
            let revision = state.revision();
            if self.revision == Some(revision) && !is_broken {
                return Ok(());
            }
            self.revision = Some(revision);
            params = named(state.params()?);
        }
        let params: Vec<Json> = params
            .iter()
            .map(|(node, name, info)| in_seconds(documents::param(node, name, info)))
            .collect();
        let text = json!({"params": params}).to_string();
        if text != self.told || is_broken {
            self.outbox.whole(self.sub, text.clone());
            self.told = text;
        }
        Ok(())
    }
}

impl Sink for ParamsSink {
    fn tick(&mut self, tick: &Tick<'_>) {
        if self.last.is_some_and(|last| tick.now.duration_since(last) < INTERVAL) {
            return;
        }
        self.last = Some(tick.now);
        if let Err(error) = self.look(tick) {
            self.revision = None;
            self.told.clear();
            self.outbox.trouble(self.sub, &error.into(), false);
        }
    }
}
