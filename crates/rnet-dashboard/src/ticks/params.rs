//! The parameters of the domain, or of another host.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rnet::param::ParamInfo;
use rnet_monitor::documents::{self, named};
use serde_json::{Value as Json, json};

use super::abroad::Abroad;
use super::turn::{Sink, Tick};
use crate::errand::Errand;
use crate::outbox::Outbox;
use crate::times::{in_seconds, of_host};
use crate::wire::Refusal;

const INTERVAL: Duration = Duration::from_millis(200);
/// Between an answer of another host and the next question.
const FAR_INTERVAL: Duration = Duration::from_millis(500);

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
            params = rows(state.params()?);
        }
        let text = json!({"params": params}).to_string();
        if text != self.told || is_broken {
            self.outbox.whole(self.sub, text.clone());
            self.told = text;
        }
        Ok(())
    }
}

fn rows(params: Vec<ParamInfo>) -> Vec<Json> {
    let row =
        |(node, name, info): &documents::Named| in_seconds(documents::param(node, name, info));
    named(params).iter().map(row).collect()
}

/// The parameters of another host.
pub struct FarParamsSink {
    sub: u64,
    outbox: Arc<Outbox>,
    abroad: Abroad,
    errand: Option<Errand<Vec<ParamInfo>>>,
    /// What its nodes had when it answered last; `None` until then.
    params: Option<Vec<Json>>,
    told: String,
    last: Option<Instant>,
}

impl FarParamsSink {
    pub fn new(sub: u64, outbox: Arc<Outbox>, host: String) -> FarParamsSink {
        let (abroad, told) = (Abroad::new(host), String::new());
        FarParamsSink { sub, outbox, abroad, errand: None, params: None, told, last: None }
    }

    /// Tells what the host has answered. Of one that has answered before, the last is shown, with why it is no newer.
    fn look(&mut self, tick: &Tick<'_>) -> Result<(), Refusal> {
        let Some(errand) = &self.errand else {
            let asked = self.abroad.ask(&tick.desk.seat, |host| host.params())?;
            self.errand = Some(asked);
            return Ok(());
        };
        let Some(done) = errand.take() else { return Ok(()) };
        self.errand = None;
        self.last = Some(tick.now);
        let away = match done {
            Ok(params) => {
                let rows = rows(params).into_iter().map(|row| of_host(&self.abroad.host, row));
                self.params = Some(rows.collect());
                None
            }
            Err(refusal) if self.params.is_none() => return Err(refusal),
            Err(refusal) => Some(refusal.message),
        };
        let text = json!({"params": self.params, "away": away}).to_string();
        if text != self.told || self.outbox.take_broken(self.sub) {
            self.outbox.whole(self.sub, text.clone());
            self.told = text;
        }
        Ok(())
    }
}

impl Sink for FarParamsSink {
    fn tick(&mut self, tick: &Tick<'_>) {
        if self.last.is_some_and(|last| tick.now.duration_since(last) < FAR_INTERVAL) {
            return;
        }
        if let Err(refusal) = self.look(tick) {
            self.last = Some(tick.now);
            self.outbox.trouble(self.sub, &refusal, false);
        }
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
